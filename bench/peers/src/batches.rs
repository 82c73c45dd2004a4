//! The cost of one operation: the median over many short batches. So a few batches with an interruption do
//! not change the result.

use std::time::{Duration, Instant};

use pageset_report::Spread;

/// A batch takes at least this long, so that reading the clock costs nothing next to it.
const BATCH: Duration = Duration::from_micros(100);

/// Nanoseconds for each operation: the median over batches during `window`, after a fifth of it as warm-up.
/// `operations` repeats the operation this many times, in a loop of its own without other work.
pub(crate) fn cost(window: Duration, mut operations: impl FnMut(u64)) -> f64 {
    let size = calibrated(window / 5, &mut operations);
    let mut costs = Vec::with_capacity(4096);
    let end = Instant::now() + window;
    loop {
        let start = Instant::now();
        operations(size);
        costs.push(start.elapsed().as_nanos() as f64 / size as f64);
        if Instant::now() >= end {
            return median(&costs);
        }
    }
}

/// Works for `warm_up` and returns how many operations fill a batch.
fn calibrated(warm_up: Duration, operations: &mut impl FnMut(u64)) -> u64 {
    let mut size = 1u64;
    let begin = Instant::now();
    loop {
        let start = Instant::now();
        operations(size);
        if start.elapsed() < BATCH {
            size *= 2;
        } else if begin.elapsed() >= warm_up {
            return size;
        }
    }
}

/// Runs `pass` once to warm up, then until `budget` is spent or `passes` are made. Returns the median of the
/// results.
pub(crate) fn passes(budget: Duration, passes: usize, mut pass: impl FnMut() -> f64) -> f64 {
    pass();
    let begin = Instant::now();
    let mut values = Vec::with_capacity(passes);
    while values.is_empty() || (values.len() < passes && begin.elapsed() < budget) {
        values.push(pass());
    }
    median(&values)
}

/// The median of `values`.
///
/// # Panics
/// Panics if there are no values.
pub(crate) fn median(values: &[f64]) -> f64 {
    Spread::of(values).expect("there is at least one finite value").median
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slow_operation_costs_what_it_takes() {
        let cost = cost(Duration::from_millis(20), |count| {
            std::thread::sleep(Duration::from_micros(300) * count as u32);
        });
        assert!((300_000.0..3_000_000.0).contains(&cost), "{cost}");
    }

    #[test]
    fn the_warm_up_pass_does_not_count() {
        let mut values = [100.0, 3.0, 1.0, 2.0].into_iter();
        let value = passes(Duration::from_secs(9), 3, || values.next().expect("four passes"));
        assert_eq!(value, 2.0);
    }
}
