//! The worst cost of single operations, under the mix.

use std::time::Instant;

use crate::effort::Effort;
use crate::row::mix::{LIVE, Orders, Population};
use crate::target::Target;
use crate::team;

/// The quantiles of operations that [`run`] returns, before the slowest.
const SHARES: [f64; 3] = [0.5, 0.99, 0.999];

/// From this time on, checks whether the thread was interrupted.
const SUSPICIOUS_NS: u32 = 20_000;

/// Nanoseconds at p50, p99, p99.9 and of the slowest of all allocations and frees. The time of two clock
/// readings is subtracted. Operations during which the kernel gave the CPU to another process are left out.
pub(super) fn run<T: Target>(target: &T, effort: &Effort) -> Vec<f64> {
    let mut times = team::run(1, |member| {
        target.attach(member.cpu);
        let mut population = Population::new(target, member.cpu, Orders::Zero, LIVE);
        let mut times = vec![0u32; effort.samples];
        let mut interruptions = interruptions_so_far();
        let mut kept = 0;
        let mut keep = |time| {
            let before = interruptions;
            if time > SUSPICIOUS_NS {
                interruptions = interruptions_so_far();
            }
            if interruptions == before {
                times[kept] = time;
                kept += 1;
            }
        };
        for _ in 0..effort.samples / 2 {
            let slot = population.choose();
            // Looked up before the clock is read: a cache miss here belongs to the row, and depends on the
            // size of a handle.
            let block = population.take(slot);
            keep(timed(|| population.give(slot, block)).1);
            let (block, time) = timed(|| population.ask(slot));
            keep(time);
            population.put(slot, block);
        }
        times.truncate(kept);
        population.clear();
        target.detach(member.cpu);
        times
    })
    .swap_remove(0);
    let clock = clock_cost();
    times.sort_unstable();
    let last = times.len() - 1;
    let at = |share: f64| times[(share * last as f64) as usize];
    let values = SHARES.into_iter().map(at).chain([times[last]]);
    values.map(|time| f64::from(time.saturating_sub(clock))).collect()
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
