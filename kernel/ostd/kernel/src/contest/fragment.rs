//! Measures how much memory is still in large blocks when most allocated blocks are freed and some stay.

use alloc::vec::Vec;
use core::alloc::Layout;

use ostd::cpu::num_cpus;
use ostd::mm::frame::GlobalFrameAllocator;
use ostd::mm::{PAGE_SIZE, Paddr};
use ostd::prelude::*;

/// Block sizes in frames. The churn uses the sizes in turn.
const SIZES: [usize; 8] = [1, 1, 1, 2, 1, 4, 1, 8];
/// Frames in use during the churn: three quarters of the memory.
const IN_USE: usize = super::BYTES / PAGE_SIZE / 4 * 3;
const STEPS: usize = 100_000;

/// Frees random blocks and allocates other blocks, while three quarters of the memory are in use. Then frees
/// all but one block in 32, and counts the large blocks.
pub(super) fn run(name: &str, frames: &dyn GlobalFrameAllocator) {
    let mut held: Vec<(Paddr, usize)> = Vec::with_capacity(IN_USE);
    let mut sizes = SIZES.into_iter().cycle();
    let (mut in_use, mut refused, mut random) = (0, 0, 1);
    for _ in 0..STEPS {
        while in_use < IN_USE {
            let Some(block) = sizes.next().and_then(|size| alloc(frames, size)) else {
                refused += 1;
                break;
            };
            in_use += block.1;
            held.push(block);
        }
        let old = held.swap_remove(next(&mut random) % held.len());
        in_use -= old.1;
        free(frames, old);
    }
    let mut kept = 0;
    for (at, block) in held.into_iter().enumerate() {
        if at % 32 == 0 {
            kept += block.1;
        } else {
            free(frames, block);
        }
    }
    let largest = (0..=14).rev().find(|order| count(frames, 1 << order) > 0);
    print!(
        r#"{{"contest":"fragmentation","allocator":"{}","cpus":{},"refused":{},"#,
        name,
        num_cpus(),
        refused
    );
    print!(r#""frames_in_use":{},"frames_kept":{},"largest_order":{},"#, in_use, kept, largest.unwrap_or(0));
    println!(r#""blocks_of_512":{},"blocks_of_64":{}}}"#, count(frames, 512), count(frames, 64));
}

/// Number of blocks of this size that can be allocated.
fn count(frames: &dyn GlobalFrameAllocator, size: usize) -> usize {
    let blocks: Vec<_> = core::iter::from_fn(|| alloc(frames, size)).collect();
    blocks.iter().for_each(|block| free(frames, *block));
    blocks.len()
}

fn alloc(frames: &dyn GlobalFrameAllocator, size: usize) -> Option<(Paddr, usize)> {
    let layout = Layout::from_size_align(size * PAGE_SIZE, size.next_power_of_two() * PAGE_SIZE).ok()?;
    frames.alloc(layout).map(|start| (start, size))
}

fn free(frames: &dyn GlobalFrameAllocator, (start, size): (Paddr, usize)) {
    (0..size).for_each(|frame| frames.dealloc(start + frame * PAGE_SIZE, PAGE_SIZE));
}

/// A step of xorshift64.
fn next(state: &mut usize) -> usize {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}
