//! Memory that stays after a burst while all threads sleep, and the cost of the next allocations.

use std::time::{Duration, Instant};

use crate::effort::Effort;
use crate::memory;
use crate::row::EXHAUSTED;
use crate::row::touch::burst;
use crate::target::{Held as _, Line, Target};
use crate::team;

/// Pages that are allocated and touched after the last wait.
const NEXT: usize = 4096;

/// The MiB that are still resident after each wait, for each GiB of burst. The last value is the nanoseconds
/// for each page of the next 16 MiB.
pub(super) fn run<T: Target>(target: &T, before: u64, effort: &Effort) -> Vec<f64> {
    team::run(1, |member| {
        target.attach(member.cpu);
        let (blocks, order) = burst(target, member.cpu, effort.burst);
        // The list's own memory should not count, so this loop frees the list, too.
        for block in blocks {
            target.free(member.cpu, block, order);
        }
        let freed = Instant::now();
        let mut values = Vec::new();
        for wait in effort.waits {
            let Some(wait) = wait else {
                values.push(f64::NAN);
                continue;
            };
            let elapsed = freed.elapsed();
            std::thread::sleep(wait.saturating_sub(elapsed));
            let left = memory::anonymous().saturating_sub(before);
            values.push(memory::mib_per_gib(left, effort.burst));
        }
        values.push(next(target, member.cpu).as_nanos() as f64 / NEXT as f64);
        target.detach(member.cpu);
        values
    })
    .swap_remove(0)
}

/// Time for allocating and touching single pages.
fn next<T: Target>(target: &T, cpu: usize) -> Duration {
    let mut blocks = Vec::with_capacity(NEXT);
    let start = Instant::now();
    for _ in 0..NEXT {
        let mut block = target.alloc(cpu, 0).expect(EXHAUSTED);
        block.touch(0, Line::First);
        blocks.push(block);
    }
    let time = start.elapsed();
    for block in blocks {
        target.free(cpu, block, 0);
    }
    time
}
