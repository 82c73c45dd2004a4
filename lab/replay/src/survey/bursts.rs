//! Bursts: how many pages a CPU allocates before its next free, and how many pages a CPU frees before its
//! next allocation.

use serde::Serialize;

use super::log2::Log2Counts;
use crate::recorded::{RecordedKinds, needs};

/// Length of the intervals that are searched for the highest rate, in nanoseconds.
const WINDOW_NS: u64 = 1_000_000;

/// Runs of allocations and runs of frees. A run is a series of one kind of event on one CPU.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Bursts {
    /// Runs of allocations, in pages.
    pub allocations: Runs,
    /// Runs of frees, in pages.
    pub frees: Runs,
    /// The largest number of allocations and frees of all CPUs within one millisecond of the recording's
    /// clock.
    pub peak_per_ms: u64,
    /// The beginning of the millisecond with the most allocations and frees.
    pub peak_at_ns: u64,
}

/// All runs of one kind of event.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Runs {
    /// The distribution of the numbers of pages in a run.
    pub pages: Log2Counts,
    /// The CPU of the longest run.
    pub longest_cpu: u16,
    /// The time when the longest run began.
    pub longest_at_ns: u64,
}

/// The two kinds of events that form runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    Allocation,
    Free,
}

/// The runs that have not ended yet, and the current interval of the search for the highest rate.
#[derive(Debug, Default)]
pub(super) struct BurstCounter {
    bursts: Bursts,
    open: Vec<Option<Run>>,
    window: u64,
    in_window: u64,
}

#[derive(Clone, Copy, Debug)]
struct Run {
    direction: Direction,
    pages: u64,
    since_ns: u64,
}

impl BurstCounter {
    #[inline]
    pub(super) fn record(&mut self, cpu: u16, direction: Direction, pages: u64, ts_ns: u64) {
        let window = ts_ns / WINDOW_NS;
        if window != self.window {
            self.close_window();
            self.window = window;
        }
        self.in_window += 1;
        let index = usize::from(cpu);
        if self.open.len() <= index {
            self.open.resize(index + 1, None);
        }
        match &mut self.open[index] {
            Some(run) if run.direction == direction => run.pages = run.pages.saturating_add(pages),
            open => {
                let ended = open.replace(Run { direction, pages, since_ns: ts_ns });
                if let Some(run) = ended {
                    self.close_run(cpu, run);
                }
            }
        }
    }

    /// The bursts, if the recording has both kinds of events that form runs.
    pub(super) fn finish(mut self, recorded: &RecordedKinds) -> Option<Bursts> {
        self.close_window();
        for (cpu, run) in std::mem::take(&mut self.open).into_iter().enumerate() {
            if let Some(run) = run {
                self.close_run(cpu as u16, run);
            }
        }
        recorded.known(needs::LOAD, self.bursts)
    }

    fn close_run(&mut self, cpu: u16, run: Run) {
        let runs = match run.direction {
            Direction::Allocation => &mut self.bursts.allocations,
            Direction::Free => &mut self.bursts.frees,
        };
        if run.pages > runs.pages.max {
            runs.longest_cpu = cpu;
            runs.longest_at_ns = run.since_ns;
        }
        runs.pages.record(run.pages);
    }

    fn close_window(&mut self) {
        if self.in_window > self.bursts.peak_per_ms {
            self.bursts.peak_per_ms = self.in_window;
            self.bursts.peak_at_ns = self.window * WINDOW_NS;
        }
        self.in_window = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_ends_with_the_other_kind_on_its_cpu() {
        let mut counter = BurstCounter::default();
        for (cpu, direction, pages, ts_ns) in [
            (0, Direction::Allocation, 1, 10),
            (1, Direction::Free, 8, 20),
            (0, Direction::Allocation, 2, 30),
            (0, Direction::Free, 1, 1_000_040),
        ] {
            counter.record(cpu, direction, pages, ts_ns);
        }
        let bursts = counter.finish(&RecordedKinds::all()).unwrap();
        assert_eq!(bursts.allocations.pages.ranges().collect::<Vec<_>>(), [(2, 1)]);
        assert_eq!((bursts.allocations.pages.max, bursts.allocations.longest_at_ns), (3, 10));
        assert_eq!((bursts.frees.pages.total(), bursts.frees.longest_cpu), (2, 1));
        assert_eq!((bursts.peak_per_ms, bursts.peak_at_ns), (3, 0));
    }
}
