//! What is missing from a recording: gaps as they are met, and the kernel's own count at the end.

use std::fs;

use pageset_trace::{Gap, LostEvents, raw::RingCounts};

use crate::instance::Instance;

/// Gaps that are kept with their times; all are counted.
const GAPS_MAX: usize = 10_000;

/// Losses so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct Losses {
    pub(crate) gaps: Vec<Gap>,
    counted: u64,
    gaps_of_unknown_size: u64,
    /// Events that came later than others of a later time.
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

    /// Events known to be missing; a gap of unknown size counts as one.
    pub(crate) fn events(&self) -> u64 {
        self.counted.saturating_add(self.gaps_of_unknown_size)
    }

    /// All losses, when the kernel's own counts are known too. The kernel counts every event that it overwrote, so what it
    /// counts beyond the gaps belongs to those of unknown size.
    pub(crate) fn total(&self, kernel: &RingCounts) -> LostEvents {
        let overrun = self.counted.max(kernel.overrun);
        LostEvents {
            overrun,
            dropped: kernel.dropped,
            gaps_of_unknown_size: if kernel.overrun > self.counted { 0 } else { self.gaps_of_unknown_size },
            out_of_order: self.out_of_order,
            ..LostEvents::default()
        }
    }
}

/// What the kernel says of the rings of these CPUs together.
pub(crate) fn kernel_counts(instance: &Instance, cpus: impl Iterator<Item = u32>) -> RingCounts {
    cpus.fold(RingCounts::default(), |sum, cpu| {
        let path = instance.path(format!("per_cpu/cpu{cpu}/stats"));
        sum.plus(RingCounts::parse(&fs::read_to_string(path).unwrap_or_default()))
    })
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
        let total = losses.total(&RingCounts { overrun: 31, dropped: 5 });
        assert_eq!((total.overrun, total.gaps_of_unknown_size, total.missing()), (31, 0, 36));
        let total = losses.total(&RingCounts::default());
        assert_eq!((total.overrun, total.gaps_of_unknown_size), (10, 1));
    }

    #[test]
    fn very_many_gaps_are_counted_only() {
        let mut losses = Losses::default();
        (0..GAPS_MAX as u64 + 5).for_each(|_| losses.add(gap(Some(1))));
        assert_eq!((losses.gaps.len(), losses.events()), (GAPS_MAX, GAPS_MAX as u64 + 5));
    }
}
