//! What is missing from a recording: gaps as they are met, and the kernel's own count at the end.

use std::fs;

use pageset_trace::{Gap, LostEvents};

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
    pub(crate) fn total(&self, kernel: &KernelCounts) -> LostEvents {
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

/// What the kernel says of its rings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct KernelCounts {
    /// Events that it overwrote.
    pub(crate) overrun: u64,
    /// Events that it refused.
    pub(crate) dropped: u64,
}

impl KernelCounts {
    /// Of these CPUs together.
    pub(crate) fn read(instance: &Instance, cpus: impl Iterator<Item = u32>) -> Self {
        cpus.fold(Self::default(), |sum, cpu| {
            let path = instance.path(format!("per_cpu/cpu{cpu}/stats"));
            let one = Self::parse(&fs::read_to_string(path).unwrap_or_default());
            Self {
                overrun: sum.overrun.saturating_add(one.overrun),
                dropped: sum.dropped.saturating_add(one.dropped),
            }
        })
    }

    /// Source: the file `per_cpu/cpu0/stats`, documented in "ftrace - Function Tracer".
    fn parse(text: &str) -> Self {
        let value = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name));
            line.and_then(|value| value.trim().parse().ok()).unwrap_or(0)
        };
        Self {
            overrun: u64::saturating_add(value("overrun:"), value("commit overrun:")),
            dropped: value("dropped events:"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STATS: &str = "entries: 12\noverrun: 30\ncommit overrun: 1\nbytes: 480\n\
        oldest event ts: 1.0\nnow ts: 2.0\ndropped events: 5\nread events: 7\n";

    fn gap(events: Option<u64>) -> Gap {
        Gap { cpu: 0, after_ns: 1, before_ns: 2, events }
    }

    #[test]
    fn the_kernels_counts_are_read() {
        assert_eq!(KernelCounts::parse(STATS), KernelCounts { overrun: 31, dropped: 5 });
        assert_eq!(KernelCounts::parse("overrun: x\n"), KernelCounts::default());
    }

    #[test]
    fn nothing_is_counted_twice_and_nothing_is_forgotten() {
        let mut losses = Losses::default();
        losses.add(gap(Some(10)));
        losses.add(gap(None));
        assert_eq!(losses.events(), 11);
        let total = losses.total(&KernelCounts { overrun: 31, dropped: 5 });
        assert_eq!((total.overrun, total.gaps_of_unknown_size, total.missing()), (31, 0, 36));
        let total = losses.total(&KernelCounts::default());
        assert_eq!((total.overrun, total.gaps_of_unknown_size), (10, 1));
    }

    #[test]
    fn very_many_gaps_are_counted_only() {
        let mut losses = Losses::default();
        (0..GAPS_MAX as u64 + 5).for_each(|_| losses.add(gap(Some(1))));
        assert_eq!((losses.gaps.len(), losses.events()), (GAPS_MAX, GAPS_MAX as u64 + 5));
    }
}
