//! The huge blocks that the remaining pages occupy, after random frees and 100 rounds of churn.

use crate::effort::Effort;
use crate::row::EXHAUSTED;
use crate::shuffle::Random;
use crate::target::{Held as _, PAGE, Target};
use crate::team;

/// Pages of a huge block.
const HUGE: usize = 512;
/// Rounds of churn.
const ROUNDS: usize = 100;

/// Fills memory with single pages, frees 75 % of them at random, then replaces a random 10 % of the remaining
/// pages 100 times. Returns the number of 2 MiB blocks in each GiB that have a page in use. 512 is the worst,
/// and 128 the best.
pub(super) fn run<T: Target>(target: &T, effort: &Effort) -> f64 {
    let pages = effort.burst / PAGE;
    let mut occupied = team::run(1, |member| {
        target.attach(member.cpu);
        let alloc = || target.alloc(member.cpu, 0).expect(EXHAUSTED);
        let mut random = Random::new(3 + effort.seed);
        let mut blocks: Vec<T::Block> = (0..pages).map(|_| alloc()).collect();
        random.shuffle(&mut blocks);
        for block in blocks.drain(pages / 4..) {
            target.free(member.cpu, block, 0);
        }
        for _ in 0..ROUNDS {
            random.shuffle(&mut blocks);
            let kept = blocks.len() - blocks.len() / 10;
            for block in blocks.drain(kept..) {
                target.free(member.cpu, block, 0);
            }
            while blocks.len() < pages / 4 {
                blocks.push(alloc());
            }
        }
        let numbers: Vec<_> = blocks.iter().map(|block| block.page() / HUGE).collect();
        for block in blocks {
            target.free(member.cpu, block, 0);
        }
        target.detach(member.cpu);
        numbers
    })
    .swap_remove(0);
    occupied.sort_unstable();
    occupied.dedup();
    occupied.len() as f64 * ((1 << 30) as f64 / effort.burst as f64)
}
