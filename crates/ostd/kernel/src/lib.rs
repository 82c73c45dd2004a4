//! A kernel on OSTD that boots on pageset's allocators and tries them.
#![no_std]
#![deny(unsafe_code)]

use ostd::prelude::*;
use ostd::power::{ExitCode, poweroff};
use pageset_core::FrameAllocator;
use pageset_core::policy::LINUX_6_18;
use pageset_ostd::Frames;

#[cfg(feature = "linux")]
#[ostd::global_frame_allocator]
static FRAMES: pageset_ostd::LinuxFrames = Frames::new(LINUX_6_18);

#[cfg(feature = "own")]
#[ostd::global_frame_allocator]
static FRAMES: pageset_ostd::OwnFrames = Frames::new(LINUX_6_18);

#[ostd::main]
fn main() {
    let engine = FRAMES.engine().expect("the kernel runs");
    println!("usage {:?}", engine.usage());
    println!("{:?}", engine.validate());
    println!("lost {}", FRAMES.lost_frames());
    poweroff(ExitCode::Success)
}
