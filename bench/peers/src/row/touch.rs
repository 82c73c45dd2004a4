//! Allocates memory, writes to every page, and frees all, like a page fault benchmark.

use std::time::Instant;

use crate::batches;
use crate::effort::Effort;
use crate::row::EXHAUSTED;
use crate::target::{Held as _, Line, PAGE, Target};
use crate::team;

/// 128 MiB are a block of this order.
const SPAN: u32 = 15;

/// Nanoseconds for each page of 4 KiB, over 128 MiB in blocks of `order`. One line of each page is written. A
/// target with `WHOLE_SPANS` gets one block of 128 MiB instead.
pub(super) fn run<T: Target>(target: &T, order: u32, line: Line, effort: &Effort) -> f64 {
    let order = if T::WHOLE_SPANS { SPAN } else { order };
    let pages = 1usize << SPAN;
    team::run(1, |member| {
        target.attach(member.cpu);
        let mut blocks = Vec::with_capacity(pages);
        let cost = batches::passes(effort.budget, effort.passes, || {
            let start = Instant::now();
            for _ in 0..pages >> order {
                let mut block = target.alloc(member.cpu, order).expect(EXHAUSTED);
                block.touch(order, line);
                blocks.push(block);
            }
            for block in blocks.drain(..) {
                target.free(member.cpu, block, order);
            }
            start.elapsed().as_nanos() as f64 / pages as f64
        });
        target.detach(member.cpu);
        cost
    })[0]
}

/// Allocates `bytes` in single pages and touches all of them. A target with `WHOLE_SPANS` gets blocks of 128
/// MiB instead. Returns the blocks and their order.
pub(super) fn burst<T: Target>(target: &T, cpu: usize, bytes: usize) -> (Vec<T::Block>, u32) {
    let order = if T::WHOLE_SPANS && bytes >= PAGE << SPAN { SPAN } else { 0 };
    let count = bytes / (PAGE << order);
    let mut blocks = Vec::with_capacity(count);
    for _ in 0..count {
        let mut block = target.alloc(cpu, order).expect(EXHAUSTED);
        block.touch(order, Line::First);
        blocks.push(block);
    }
    (blocks, order)
}
