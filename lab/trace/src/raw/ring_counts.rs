//! Reads the kernel's counts for a CPU's ring: `per_cpu/cpu0/stats`, documented in "ftrace - Function
//! Tracer".

/// Counts of a ring's events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RingCounts {
    /// Number of events that the kernel overwrote.
    pub overrun: u64,
    /// Number of events that the kernel rejected.
    pub dropped: u64,
    /// Number of events that any program has read. `None` if the kernel does not give this count.
    ///
    /// Observed on Linux 6.18:
    /// - If a program reads a page from `trace_pipe_raw`, each record of the page counts, even if the kernel
    ///   is still writing the page.
    /// - If a program reads `trace_pipe`, each line counts.
    /// - Overwritten events are counted only in `overrun`. Filtered events are not counted.
    /// - Clearing the ring or setting its clock resets all counts to 0.
    pub read: Option<u64>,
    /// Number of events that can still be read. `None` if the kernel does not give this count.
    pub entries: Option<u64>,
}

impl RingCounts {
    /// Parses the file's text. A count of losses that the text does not contain becomes 0.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        let known = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name));
            line.and_then(|value| value.trim().parse::<u64>().ok())
        };
        let value = |name: &str| known(name).unwrap_or(0);
        Self {
            overrun: u64::saturating_add(value("overrun:"), value("commit overrun:")),
            dropped: value("dropped events:"),
            read: known("read events:"),
            entries: known("entries:"),
        }
    }

    /// Adds the counts of two rings. A sum is `None` if one of its two counts is `None`.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        let both = |one: Option<u64>, two| one.zip(two).map(|(one, two): (u64, u64)| one.saturating_add(two));
        Self {
            overrun: self.overrun.saturating_add(other.overrun),
            dropped: self.dropped.saturating_add(other.dropped),
            read: both(self.read, other.read),
            entries: both(self.entries, other.entries),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STATS: &str = "entries: 12\noverrun: 30\ncommit overrun: 1\nbytes: 480\n\
        oldest event ts: 1.0\nnow ts: 2.0\ndropped events: 5\nread events: 7\n";

    #[test]
    fn the_kernels_counts_are_read() {
        let counts = RingCounts::parse(STATS);
        assert_eq!(counts, RingCounts { overrun: 31, dropped: 5, read: Some(7), entries: Some(12) });
        assert_eq!(
            counts.plus(counts),
            RingCounts { overrun: 62, dropped: 10, read: Some(14), entries: Some(24) }
        );
        assert_eq!(counts.plus(RingCounts::parse("overrun: 1\nentries: 5\n")).read, None);
        assert_eq!(RingCounts::parse("overrun: x\n"), RingCounts::default());
    }
}
