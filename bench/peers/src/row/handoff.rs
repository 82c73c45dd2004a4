//! A producer allocates blocks, a consumer on another CPU frees them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::batches;
use crate::effort::Effort;
use crate::row::EXHAUSTED;
use crate::target::{Slot, Target};
use crate::team;

/// The most blocks between the two threads. A chunk is this many blocks, and its time is measured as a whole.
const SLOTS: usize = 1024;

/// The fewest chunks for a median. A time slice of another process affects only a few of them.
const CHUNKS_MIN: usize = 100;

/// The longest wait for these chunks.
const PATIENCE: Duration = Duration::from_secs(2);

/// Nanoseconds for each block: the median over chunks of the producer's time. The ring lets the producer run
/// at most one chunk ahead of the consumer. So the result is the time of the slower thread. Single chunks
/// during which a thread had no CPU do not change the median.
pub(super) fn run<T: Target, const ORDER: u32>(target: &T, effort: &Effort) -> f64 {
    let ring: Vec<_> = (0..SLOTS).map(|_| Slot::new()).collect();
    let is_over = AtomicBool::new(false);
    let costs = team::run(2, |member| {
        target.attach(member.cpu);
        member.meet();
        let cost = if member.cpu == 0 {
            let cost = produce::<T, ORDER>(target, effort.window, &ring);
            is_over.store(true, Ordering::Release);
            cost
        } else {
            consume::<T, ORDER>(target, &is_over, &ring);
            0.0
        };
        member.meet();
        target.detach(member.cpu);
        cost
    });
    costs[0]
}

fn produce<T: Target, const ORDER: u32>(target: &T, window: Duration, ring: &[Slot<T::Block>]) -> f64 {
    let mut costs = Vec::with_capacity(1 << 14);
    let begin = Instant::now();
    // The first fifth is the warm-up.
    while costs.is_empty()
        || begin.elapsed() < window + window / 5
        || (costs.len() < CHUNKS_MIN && begin.elapsed() < PATIENCE)
    {
        let start = Instant::now();
        for slot in ring {
            let block = target.alloc(0, ORDER).expect(EXHAUSTED);
            wait_until(|| !slot.is_full());
            slot.leave(block);
        }
        if begin.elapsed() > window / 5 {
            costs.push(start.elapsed().as_nanos() as f64 / SLOTS as f64);
        }
    }
    batches::median(&costs)
}

/// Frees incoming blocks until the producer has ended and the ring is empty.
fn consume<T: Target, const ORDER: u32>(target: &T, is_over: &AtomicBool, ring: &[Slot<T::Block>]) {
    for slot in ring.iter().cycle() {
        wait_until(|| slot.is_full() || is_over.load(Ordering::Acquire));
        // If the producer has ended, this thread sees all the blocks that it left in the ring.
        let Some(block) = slot.take() else { return };
        target.free(1, block, ORDER);
    }
}

/// Spins, and yields the CPU only at every 4096th turn.
fn wait_until(condition: impl Fn() -> bool) {
    let mut turns = 0u32;
    while !condition() {
        turns += 1;
        if turns.is_multiple_of(4096) {
            std::thread::yield_now();
        } else {
            std::hint::spin_loop();
        }
    }
}
