//! Many blocks are allocated, then all are freed.

use std::time::Instant;

use crate::batches;
use crate::effort::Effort;
use crate::row::EXHAUSTED;
use crate::shuffle::Random;
use crate::target::Target;
use crate::team;

/// In which order blocks are freed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FreeOrder {
    /// The last allocated first.
    Lifo,
    /// The first allocated first.
    Fifo,
    /// A random one.
    Random,
}

/// Nanoseconds per block, allocating and freeing together. The first pass, in which memory comes from the kernel, does
/// not count; neither does the shuffling.
pub(super) fn run<T: Target, const ORDER: u32>(
    target: &T,
    count: usize,
    free_order: FreeOrder,
    effort: &Effort,
) -> f64 {
    team::run(1, |member| {
        target.attach(member.cpu);
        let mut random = Random::new(count as u64);
        let mut blocks: Vec<Option<T::Block>> = Vec::with_capacity(count);
        let cost = batches::passes(effort.budget, effort.passes, || {
            let start = Instant::now();
            for _ in 0..count {
                blocks.push(Some(target.alloc(member.cpu, ORDER).expect(EXHAUSTED)));
            }
            let mut time = start.elapsed();
            match free_order {
                FreeOrder::Lifo => blocks.reverse(),
                FreeOrder::Fifo => {}
                FreeOrder::Random => random.shuffle(&mut blocks),
            }
            let start = Instant::now();
            for block in blocks.drain(..).flatten() {
                target.free(member.cpu, block, ORDER);
            }
            time += start.elapsed();
            time.as_nanos() as f64 / count as f64
        });
        target.detach(member.cpu);
        cost
    })[0]
}
