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
//! A kernel uses the files in this order. At boot, it uses `pieces` (the memory that OSTD adds), `zones`
//! (divides this memory into zones), `engine` (the choice of the allocator), and `arrays` (one of the
//! choices). For each call, it uses `frames` (OSTD's interface) and `place` (from layouts to frames). All use
//! `lock`.
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

mod arrays;
mod engine;
mod frames;
mod lock;
mod pieces;
mod place;
mod zones;

pub use arrays::ArrayEngine;
pub use engine::{Engine, Ostd};
pub use frames::{ArrayFrames, Frames, LinuxFrames, OwnFrames};
pub use lock::SpinLock;
