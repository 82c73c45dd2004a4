//! The worst cost of single operations, under the mix.

use std::time::Instant;

use crate::effort::Effort;
use crate::row::mix::{LIVE, Orders, Population};
use crate::target::Target;
use crate::team;

/// The quantiles of operations that [`run`] returns. The last is the slowest.
const SHARES: [f64; 4] = [0.5, 0.99, 0.999, 1.0];

/// After an operation that took longer than this, the row checks whether the thread was interrupted.
const SUSPICIOUS_NS: u32 = 20_000;

/// The latency in nanoseconds of all allocations and frees: the median, the percentiles 99 and 99.9, and the
/// slowest. The time between two clock readings is subtracted. Operations during which the kernel gave the
/// CPU to another process are left out.
pub(super) fn run<T: Target>(target: &T, effort: &Effort) -> Vec<f64> {
    let times = team::run(1, |member| {
        target.attach(member.cpu);
        let mut population = Population::new(target, member.cpu, Orders::Zero, LIVE);
        let mut times = Times::with_capacity(effort.samples);
        for _ in 0..effort.samples / 2 {
            let slot = population.choose();
            // Look the block up before the clock is read. A cache miss here is a cost of the row, and depends
            // on the size of a handle.
            let block = population.take(slot);
            times.note(|| population.give(slot, block));
            let block = times.note(|| population.ask(slot));
            population.put(slot, block);
        }
        population.clear();
        target.detach(member.cpu);
        times
    })
    .swap_remove(0);
    times.at(SHARES).to_vec()
}

/// The times of single operations, without those during which the kernel gave the CPU to another process.
pub(super) struct Times {
    ns: Vec<u32>,
    kept: usize,
    interruptions: i64,
}

impl Times {
    pub(super) fn with_capacity(operations: usize) -> Self {
        Self { ns: vec![0; operations], kept: 0, interruptions: interruptions_so_far() }
    }

    /// Does an operation and notes its time.
    #[inline]
    pub(super) fn note<R>(&mut self, operation: impl FnOnce() -> R) -> R {
        let (result, time) = timed(operation);
        let before = self.interruptions;
        if time > SUSPICIOUS_NS {
            self.interruptions = interruptions_so_far();
        }
        if self.interruptions == before {
            self.ns[self.kept] = time;
            self.kept += 1;
        }
        result
    }

    /// Nanoseconds that these shares of the operations take at most. The time between two clock readings is
    /// subtracted.
    pub(super) fn at<const SHARES: usize>(mut self, shares: [f64; SHARES]) -> [f64; SHARES] {
        self.ns.truncate(self.kept);
        self.ns.sort_unstable();
        let (clock, last) = (clock_cost(), self.kept.saturating_sub(1));
        shares.map(|share| f64::from(self.ns[(share * last as f64) as usize].saturating_sub(clock)))
    }
}

/// How often the kernel has taken the CPU from this thread.
fn interruptions_so_far() -> i64 {
    // SAFETY: all bits zero is a valid value of a structure of numbers.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: the structure is writable and lives during the call.
    let _ = unsafe { libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage) };
    usage.ru_nivcsw
}

/// Returns the result of `operation`, and its nanoseconds, the clock included.
#[inline]
fn timed<R>(operation: impl FnOnce() -> R) -> (R, u32) {
    let start = Instant::now();
    let result = operation();
    (result, u32::try_from(start.elapsed().as_nanos()).unwrap_or(u32::MAX))
}

/// Nanoseconds between two readings of the clock, usually.
fn clock_cost() -> u32 {
    let mut times: Vec<_> = (0..1001).map(|_| timed(|| {}).1).collect();
    times.sort_unstable();
    times[times.len() / 2]
}
