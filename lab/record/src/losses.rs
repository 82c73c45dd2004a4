//! The losses of a recording: gaps while it runs, and the kernel's own counts at its end.
//!
//! A ring can become full before it is read. The kernel then reports the number of overwritten events. The
//! kernel does not report two kinds of loss: another program reads events from the ring, or another program
//! clears the ring. To find unreported losses, the kernel's counts are compared with the number of records
//! that were read.

use std::fs;

use pageset_trace::{Gap, LostEvents, raw::RingCounts};

use crate::instance::Instance;

/// Maximum number of gaps that are kept with their times. Further gaps are counted, but have no times.
const GAPS_MAX: usize = 10_000;

/// Losses so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct Losses {
    pub(crate) gaps: Vec<Gap>,
    counted: u64,
    gaps_of_unknown_size: u64,
    /// Number of events that other programs read from the rings.
    pub(crate) taken: u64,
    /// Number of actions of other programs that may have caused losses. The number of events lost by these
    /// actions is unknown.
    pub(crate) disturbances: u64,
    /// Number of events that were delivered after an event with a later time.
    pub(crate) out_of_order: u64,
}

impl Losses {
    pub(crate) fn add(&mut self, gap: Gap) {
        match gap.events {
            Some(events) => self.counted = self.counted.saturating_add(events),
            None => self.gaps_of_unknown_size += 1,
        }
        if self.gaps.len() < GAPS_MAX {
            self.gaps.push(gap);
        }
    }

    /// Number of events that are known to be missing. A gap of unknown size counts as one event.
    pub(crate) fn events(&self) -> u64 {
        self.counted.saturating_add(self.gaps_of_unknown_size)
    }

    /// Returns all losses, including the kernel's counts. The kernel counts every overwritten event. If the
    /// kernel's count exceeds the events in gaps of known size, the excess lies in the gaps of unknown size,
    /// so gaps of unknown size are not counted separately.
    pub(crate) fn total(&self, kernel: &RingCounts) -> LostEvents {
        let overrun = self.counted.max(kernel.overrun);
        let unknown = if kernel.overrun > self.counted { 0 } else { self.gaps_of_unknown_size };
        LostEvents {
            overrun,
            dropped: kernel.dropped,
            gaps_of_unknown_size: unknown.saturating_add(self.disturbances),
            out_of_order: self.out_of_order,
            taken: self.taken,
            ..LostEvents::default()
        }
    }
}

/// Reads the kernel's counts for a CPU's ring. `None` if the kernel has no counts.
pub(crate) fn counts_of(instance: &Instance, cpu: u16) -> Option<RingCounts> {
    let text = fs::read_to_string(instance.path(format!("per_cpu/cpu{cpu}/stats")));
    text.ok().map(|text| RingCounts::parse(&text))
}

/// The result of comparing the kernel's counts of a ring with the records that were read, after all records
/// were read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Compared {
    /// This recorder has read all records.
    Whole,
    /// Another program has read records. The value is the number of these records.
    Taken(u64),
    /// The kernel's counts have started again: another program has cleared the ring, or has set its clock.
    Cleared,
    /// The kernel does not give the counts.
    Unknown,
}

impl Compared {
    /// Compares the counts of a ring with the records read. The compared counts do not include overwritten
    /// events.
    pub(crate) fn of(kernel: Option<RingCounts>, records: u64) -> Self {
        let Some((read, there)) = kernel.and_then(|kernel| kernel.read.zip(kernel.entries)) else {
            return Self::Unknown;
        };
        match read.saturating_add(there).checked_sub(records) {
            Some(0) => Self::Whole,
            Some(taken) => Self::Taken(taken),
            None => Self::Cleared,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gap(events: Option<u64>) -> Gap {
        Gap { cpu: 0, after_ns: 1, before_ns: 2, events }
    }

    #[test]
    fn nothing_is_counted_twice_and_nothing_is_forgotten() {
        let mut losses = Losses::default();
        losses.add(gap(Some(10)));
        losses.add(gap(None));
        assert_eq!(losses.events(), 11);
        let total = losses.total(&RingCounts { overrun: 31, dropped: 5, ..RingCounts::default() });
        assert_eq!((total.overrun, total.gaps_of_unknown_size, total.missing()), (31, 0, 36));
        let total = losses.total(&RingCounts::default());
        assert_eq!((total.overrun, total.gaps_of_unknown_size), (10, 1));
    }

    #[test]
    fn fault_10_events_that_the_kernel_counted_but_were_not_read_here_are_missing() {
        let counts = |read, entries| {
            Some(RingCounts { read: Some(read), entries: Some(entries), ..RingCounts::default() })
        };
        assert_eq!(Compared::of(counts(100, 0), 100), Compared::Whole);
        assert_eq!(Compared::of(counts(90, 17), 100), Compared::Taken(7));
        assert_eq!(Compared::of(counts(99, 0), 100), Compared::Cleared);
        assert_eq!(Compared::of(Some(RingCounts::default()), 100), Compared::Unknown);
        assert_eq!(Compared::of(None, 0), Compared::Unknown);
        let losses = Losses { taken: 7, disturbances: 2, ..Losses::default() };
        let total = losses.total(&RingCounts { overrun: 5, ..RingCounts::default() });
        assert_eq!((total.taken, total.gaps_of_unknown_size, total.missing()), (7, 2, 14));
    }

    #[test]
    fn very_many_gaps_are_counted_only() {
        let mut losses = Losses::default();
        (0..GAPS_MAX as u64 + 5).for_each(|_| losses.add(gap(Some(1))));
        assert_eq!((losses.gaps.len(), losses.events()), (GAPS_MAX, GAPS_MAX as u64 + 5));
    }
}
