//! What the kernel says of a CPU's ring: `per_cpu/cpu0/stats`, documented in "ftrace - Function Tracer".

/// Events that did not fit into a ring.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RingCounts {
    /// Those that the kernel overwrote.
    pub overrun: u64,
    /// Those that it refused.
    pub dropped: u64,
}

impl RingCounts {
    /// Reads the file's text. What it does not say is 0.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        let value = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name));
            line.and_then(|value| value.trim().parse().ok()).unwrap_or(0)
        };
        Self {
            overrun: u64::saturating_add(value("overrun:"), value("commit overrun:")),
            dropped: value("dropped events:"),
        }
    }

    /// Those of two rings together.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self {
            overrun: self.overrun.saturating_add(other.overrun),
            dropped: self.dropped.saturating_add(other.dropped),
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
        assert_eq!(counts, RingCounts { overrun: 31, dropped: 5 });
        assert_eq!(counts.plus(counts), RingCounts { overrun: 62, dropped: 10 });
        assert_eq!(RingCounts::parse("overrun: x\n"), RingCounts::default());
    }
}
