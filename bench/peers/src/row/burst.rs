//! The cost of a burst: allocates single pages and writes to them, up to a gibibyte.

use std::time::Instant;

use crate::effort::Effort;
use crate::row::touch::burst;
use crate::target::{Huge, Mapping, PAGE, Target};
use crate::team;

/// Nanoseconds for each page of two bursts. The first is in a fresh process, with memory that the guest has
/// used before. The second begins right after the first was freed.
pub(super) fn run<T: Target>(target: &T, effort: &Effort) -> Vec<f64> {
    warm_up(effort.burst / 8 * 9);
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

/// Uses memory in huge pages and returns it to the kernel. Under a hypervisor, memory that the guest has not
/// used comes from the host, at ten times the price. Without this function, the first target would pay that
/// price for all targets: the same allocator took 560 and 13103 ns a page. Using memory in small pages first
/// did not change these times.
fn warm_up(bytes: usize) {
    let Ok(kernel) = Mapping::<Huge>::open(bytes / PAGE) else { return };
    let blocks = burst(&kernel, 0, bytes);
    for block in blocks.0 {
        kernel.free(0, block, blocks.1);
    }
}
