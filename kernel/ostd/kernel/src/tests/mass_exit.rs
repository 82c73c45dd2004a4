//! Processes that together use a third of the memory, in blocks of many sizes, end at the same time.

use alloc::vec::Vec;

use ostd::cpu::num_cpus;
use ostd::mm::{FrameAllocOptions, Segment};

use super::{Test, nothing};
use crate::{crew, frames};

pub(crate) const TEST: Test =
    Test { name: "mass-exit", counts: "frames", prepare: nothing, run, finish: nothing };

/// Sizes of the segments in frames, in turn: page tables, slabs, stacks, buffers.
const SIZES: [usize; 8] = [1, 1, 2, 1, 4, 1, 16, 3];

fn run(cpu: usize) -> u64 {
    let share = frames::free() / 3 / num_cpus() as u64;
    crew::meet();
    let mut options = FrameAllocOptions::new();
    options.zeroed(false);
    let mut held: Vec<Segment<()>> = Vec::new();
    let mut frames = 0;
    for size in SIZES.into_iter().cycle().skip(cpu) {
        if frames >= share {
            break;
        }
        held.push(options.alloc_segment(size).expect("a third of the memory"));
        frames += size as u64;
    }
    crew::meet();
    drop(held);
    frames
}
