//! A hot pair: allocate one block, free it, and again.

use crate::batches;
use crate::effort::Effort;
use crate::row::EXHAUSTED;
use crate::target::Target;
use crate::team;

/// Nanoseconds per pair; with several threads the mean of theirs, while all of them run.
pub(super) fn run<T: Target>(target: &T, order: u32, threads: usize, effort: &Effort) -> f64 {
    let costs = team::run(threads, |member| {
        target.attach(member.cpu);
        member.meet();
        let cost = batches::cost(effort.window, || {
            let block = target.alloc(member.cpu, order).expect(EXHAUSTED);
            target.free(member.cpu, std::hint::black_box(block), order);
        });
        // Nobody leaves while another one still measures.
        member.meet();
        target.detach(member.cpu);
        cost
    });
    costs.iter().sum::<f64>() / costs.len() as f64
}
