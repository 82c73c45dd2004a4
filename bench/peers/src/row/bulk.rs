//! Allocates many blocks, then frees all.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use crate::batches;
use crate::effort::Effort;
use crate::row::EXHAUSTED;
use crate::shuffle::Random;
use crate::target::Target;
use crate::team::{self, Member};

/// The order of the frees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FreeOrder {
    /// The last allocated first.
    Lifo,
    /// The first allocated first.
    Fifo,
    /// A random order.
    Random,
}

/// How many blocks each thread allocates, and how it frees them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bulk {
    pub(super) count: usize,
    pub(super) free_order: FreeOrder,
    pub(super) threads: usize,
}

/// Nanoseconds for each block: allocating and freeing together, allocating, freeing. With several threads,
/// the values are the means of the threads, which all allocate at the same time and free at the same time.
/// The first pass does not count, because its memory comes from the kernel. Shuffling does not count either.
pub(super) fn run<T: Target, const ORDER: u32>(target: &T, bulk: Bulk, effort: &Effort) -> [f64; 3] {
    let is_over = AtomicBool::new(false);
    let costs = team::run(bulk.threads, |member| {
        target.attach(member.cpu);
        let cost = passes::<T, ORDER>(target, bulk, effort, member, &is_over);
        target.detach(member.cpu);
        cost
    });
    std::array::from_fn(|part| costs.iter().map(|cost| cost[part]).sum::<f64>() / costs.len() as f64)
}

/// The passes of one thread. The first thread announces the last pass.
fn passes<T: Target, const ORDER: u32>(
    target: &T,
    bulk: Bulk,
    effort: &Effort,
    member: &Member<'_>,
    is_over: &AtomicBool,
) -> [f64; 3] {
    let mut random = Random::new(bulk.count as u64 + member.cpu as u64);
    let mut blocks: Vec<Option<T::Block>> = Vec::with_capacity(bulk.count);
    let mut costs: [Vec<f64>; 3] = [const { Vec::new() }; 3];
    let mut begin = Instant::now();
    loop {
        member.meet();
        if is_over.load(Ordering::Relaxed) {
            break;
        }
        let start = Instant::now();
        for _ in 0..bulk.count {
            blocks.push(Some(target.alloc(member.cpu, ORDER).expect(EXHAUSTED)));
        }
        let allocated = start.elapsed();
        match bulk.free_order {
            FreeOrder::Lifo => blocks.reverse(),
            FreeOrder::Fifo => {}
            FreeOrder::Random => random.shuffle(&mut blocks),
        }
        member.meet();
        let start = Instant::now();
        for block in blocks.drain(..).flatten() {
            target.free(member.cpu, block, ORDER);
        }
        let freed = start.elapsed();
        for (costs, time) in costs.iter_mut().zip([allocated + freed, allocated, freed]) {
            costs.push(time.as_nanos() as f64 / bulk.count as f64);
        }
        let passes = costs[0].len() - 1;
        if passes == 0 {
            begin = Instant::now();
        } else if member.cpu == 0 && (passes >= effort.passes || begin.elapsed() >= effort.budget) {
            is_over.store(true, Ordering::Relaxed);
        }
    }
    costs.map(|costs| batches::median(&costs[1..]))
}
