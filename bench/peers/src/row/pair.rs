//! A hot pair: allocate one block, free it, and again. The order is a constant, as in programs.

use crate::batches;
use crate::effort::Effort;
use crate::row::EXHAUSTED;
use crate::target::{Held as _, Target};
use crate::team;

/// Nanoseconds for each pair. With several threads, this is the mean of the threads while all of them run.
pub(super) fn run<T: Target, const ORDER: u32>(target: &T, threads: usize, effort: &Effort) -> f64 {
    let costs = team::run(threads, |member| {
        target.attach(member.cpu);
        member.meet();
        let cost = batches::cost(effort.window, |count| {
            for _ in 0..count {
                let block = target.alloc(member.cpu, ORDER).expect(EXHAUSTED);
                std::hint::black_box(block.start());
                target.free(member.cpu, block, ORDER);
            }
        });
        // All threads wait here until the last one has measured.
        member.meet();
        target.detach(member.cpu);
        cost
    });
    costs.iter().sum::<f64>() / costs.len() as f64
}
