//! How much whole memory is left when most of what was allocated is freed, and some stays.

use alloc::vec::Vec;
use core::alloc::Layout;

use ostd::mm::frame::GlobalFrameAllocator;
use ostd::mm::{PAGE_SIZE, Paddr};
use ostd::prelude::*;

/// Frames of the blocks, in turn.
const SIZES: [usize; 8] = [1, 1, 1, 2, 1, 4, 1, 8];
/// Steps after the memory is full.
const STEPS: usize = 200_000;

/// Fills the memory, frees and allocates blocks at random, frees all but one of 32, and looks what is whole.
pub(super) fn run(name: &str, frames: &dyn GlobalFrameAllocator) {
    let mut held: Vec<(Paddr, usize)> = Vec::with_capacity(super::BYTES / PAGE_SIZE);
    let mut sizes = SIZES.into_iter().cycle();
    let mut random = 1;
    // Full, but for what no block fits into.
    while let Some(block) = sizes.next().and_then(|size| alloc(frames, size)) {
        held.push(block);
    }
    for _ in 0..STEPS {
        let at = next(&mut random) % held.len();
        free(frames, held.swap_remove(at));
        held.extend(sizes.next().and_then(|size| alloc(frames, size)));
    }
    let blocks = held.len();
    let mut kept = 0;
    for (at, block) in held.into_iter().enumerate() {
        if at % 32 == 0 {
            kept += block.1;
        } else {
            free(frames, block);
        }
    }
    let whole = |size: usize| core::iter::from_fn(|| alloc(frames, size)).collect::<Vec<_>>();
    let mut orders = (0..=10).rev();
    let largest = orders.find_map(|order| {
        let found = alloc(frames, 1 << order)?;
        free(frames, found);
        Some(order)
    });
    let count = |size| {
        let found = whole(size);
        let count = found.len();
        found.into_iter().for_each(|block| free(frames, block));
        count
    };
    let (huge, eights) = (count(512), count(64));
    print!(r#"{{"contest":"fragmentation","allocator":"{}","blocks":{},"#, name, blocks);
    print!(r#""frames_kept":{},"largest_order":{},"#, kept, largest.unwrap_or(0));
    println!(r#""blocks_of_512":{},"blocks_of_64":{}}}"#, huge, eights);
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
