//! A hot pair: allocate one block, free it, and again. The order is a constant, as it is in programs.

use crate::batches;
use crate::effort::Effort;
use crate::row::EXHAUSTED;
use crate::target::{Held as _, Target};
use crate::team;

/// Nanoseconds per pair; with several threads the mean of theirs, while all of them run.
pub(super) fn run<T: Target, const ORDER: u32>(target: &T, threads: usize, effort: &Effort) -> f64 {
    let costs = team::run(threads, |member| {
        target.attach(member.cpu);
        member.meet();
        let cost = batches::cost(effort.window, |count| {
            for _ in 0..count {
                let block = target.alloc(member.cpu, ORDER).expect(EXHAUSTED);
                std::hint::black_box(block.address());
                target.free(member.cpu, block, ORDER);
            }
        });
        // Nobody leaves while another one still measures.
        member.meet();
        target.detach(member.cpu);
        cost
    });
    costs.iter().sum::<f64>() / costs.len() as f64
}
