//! What the kernel says of a CPU's ring: `per_cpu/cpu0/stats`, documented in "ftrace - Function Tracer".

/// Events that did not fit into a ring.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RingCounts {
    /// Those that the kernel overwrote.
    pub overrun: u64,
    /// Those that it refused.
    pub dropped: u64,
    /// Those that were read, by any program; `None` if the kernel does not say.
    ///
    /// Observed on Linux 6.18: a page that is read from `trace_pipe_raw` counts with each of its records, also one that the
    /// kernel is still writing, and `trace_pipe` counts with each line. What the kernel overwrote is only in `overrun`, and
    /// what a filter left out is in no count. Clearing the ring and setting its clock make all counts 0.
    pub read: Option<u64>,
    /// Those that are there to be read; `None` if the kernel does not say.
    pub entries: Option<u64>,
}

impl RingCounts {
    /// Reads the file's text. Losses of which it says nothing are 0.
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

    /// Those of two rings together; what is known of both is known.
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
