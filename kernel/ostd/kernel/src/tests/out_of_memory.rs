//! All CPUs allocate until no memory is left, then free everything.

use alloc::vec::Vec;

use ostd::mm::{Frame, FrameAllocOptions};

use super::{Test, nothing};
use crate::{crew, frames};

pub(crate) const TEST: Test = Test { name: "out-of-memory", counts: "frames", prepare: nothing, run, finish };

fn run(_: usize) -> u64 {
    let mut options = FrameAllocOptions::new();
    options.zeroed(false);
    // Reserve the table first, because later there is no memory for it. The table is so large that it takes
    // several of the largest blocks side by side.
    let mut held: Vec<Frame<()>> = Vec::with_capacity(frames::free() as usize);
    crew::meet();
    while let Ok(frame) = options.alloc_frame() {
        held.push(frame);
    }
    crew::meet();
    let frames = held.len() as u64;
    held.truncate(0);
    crew::meet();
    frames
}

/// Checks that memory is free again and unfragmented.
fn finish() {
    let mut options = FrameAllocOptions::new();
    options.zeroed(false);
    let segments: Vec<_> = (0..16).map(|_| options.alloc_segment(512).expect("16 huge pages")).collect();
    assert!(segments.iter().all(|segment| ostd::mm::HasSize::size(segment) == 512 * ostd::mm::PAGE_SIZE));
}
