//! pageset's page-frame allocators as the frame allocator of a kernel that is built on [OSTD](ostd).
//!
//! A kernel names an allocator in a static:
//!
//! ```ignore
//! use pageset_core::policy::LINUX_6_18;
//! use pageset_ostd::{Frames, LinuxFrames};
//!
//! #[ostd::global_frame_allocator]
//! static FRAMES: LinuxFrames = Frames::new(LINUX_6_18);
//! ```
//!
//! A kernel meets the files in this order: `pieces` (the memory that OSTD adds), `zones` (the kinds of that
//! memory), `engine` (the choice of the allocator), `frames` (OSTD's interface), `place` (layouts), `run`
//! (blocks of more than 4 MiB). `lock` is used by all.
#![no_std]
#![deny(unsafe_code)]
#![warn(missing_docs)]

extern crate alloc;

// OSTD's log requires a prefix from each crate.
macro_rules! __log_prefix {
    () => {
        "pageset: "
    };
}

mod engine;
mod frames;
mod lock;
mod pieces;
mod place;
mod run;
mod zones;

pub use engine::{Engine, Ostd};
pub use frames::{Frames, LinuxFrames, OwnFrames};
pub use lock::SpinLock;
