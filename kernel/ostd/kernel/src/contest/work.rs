//! The measured patterns of allocations and frees. OSTD frees memory frame by frame, so the patterns do,
//! too.

use alloc::vec::Vec;
use core::alloc::Layout;

use ostd::mm::frame::GlobalFrameAllocator;
use ostd::mm::{PAGE_SIZE, Paddr};

/// A pattern of allocations and frees.
pub(super) struct Work {
    pub(super) name: &'static str,
    /// The number of blocks that a run allocates and frees.
    pub(super) blocks: usize,
    frames: usize,
    pub(super) run: fn(&Work, &dyn GlobalFrameAllocator, &mut Vec<Paddr>),
}

pub(super) const WORKS: [Work; 6] = [
    Work { name: "one-at-a-time", blocks: 1024, frames: 1, run: one_at_a_time },
    Work { name: "batch-of-64", blocks: 64, frames: 1, run: all_then_back },
    Work { name: "batch-of-512", blocks: 512, frames: 1, run: all_then_back },
    Work { name: "batch-of-512-scattered", blocks: 512, frames: 1, run: all_then_scattered },
    Work { name: "blocks-of-16-frames", blocks: 16, frames: 16, run: all_then_back },
    Work { name: "block-of-512-frames", blocks: 1, frames: 512, run: all_then_back },
];

impl Work {
    fn alloc(&self, from: &dyn GlobalFrameAllocator) -> Paddr {
        let layout = Layout::from_size_align(self.frames * PAGE_SIZE, PAGE_SIZE).expect("a layout");
        from.alloc(layout).expect("memory enough")
    }

    fn free(&self, to: &dyn GlobalFrameAllocator, block: Paddr) {
        for frame in 0..self.frames {
            to.dealloc(block + frame * PAGE_SIZE, PAGE_SIZE);
        }
    }
}

fn one_at_a_time(work: &Work, frames: &dyn GlobalFrameAllocator, _: &mut Vec<Paddr>) {
    for _ in 0..work.blocks {
        let block = work.alloc(frames);
        work.free(frames, block);
    }
}

fn all_then_back(work: &Work, frames: &dyn GlobalFrameAllocator, held: &mut Vec<Paddr>) {
    held.extend((0..work.blocks).map(|_| work.alloc(frames)));
    while let Some(block) = held.pop() {
        work.free(frames, block);
    }
}

fn all_then_scattered(work: &Work, frames: &dyn GlobalFrameAllocator, held: &mut Vec<Paddr>) {
    held.extend((0..work.blocks).map(|_| work.alloc(frames)));
    // The step and the number of blocks have no common divisor, so each block is visited once.
    (0..work.blocks).for_each(|at| work.free(frames, held[at * 1_021 % work.blocks]));
    held.clear();
}
