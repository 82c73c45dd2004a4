//! What a burst costs: single pages, allocated and written to, until there is a gibibyte of them.

use std::time::Instant;

use crate::effort::Effort;
use crate::row::touch::burst;
use crate::target::{PAGE, Target};
use crate::team;

/// Nanoseconds per page for a burst in a fresh process, then for another one right after the first was freed.
pub(super) fn run<T: Target>(target: &T, effort: &Effort) -> Vec<f64> {
    team::run(1, |member| {
        target.attach(member.cpu);
        let costs = (0..2).map(|_| {
            let start = Instant::now();
            let (blocks, order) = burst(target, member.cpu, effort.burst);
            let time = start.elapsed();
            for block in blocks {
                target.free(member.cpu, block, order);
            }
            time.as_nanos() as f64 / (effort.burst / PAGE) as f64
        });
        let costs = costs.collect();
        target.detach(member.cpu);
        costs
    })
    .swap_remove(0)
}
