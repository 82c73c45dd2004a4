//! Cache lines of pageblocks that pass between CPUs.

/// Which CPU changed the free frames of each pageblock last.
#[derive(Debug, Default)]
pub(super) struct Lines {
    /// CPU + 1, by number of the pageblock.
    writers: Vec<u32>,
    transfers: u64,
}

impl Lines {
    /// A CPU changes which frames of a pageblock are free.
    #[inline]
    pub(super) fn change(&mut self, pageblock: usize, cpu: u32) {
        if self.writers.len() <= pageblock {
            self.writers.resize(pageblock + 1, 0);
        }
        let before = std::mem::replace(&mut self.writers[pageblock], cpu + 1);
        self.transfers += u64::from(before != 0 && before != cpu + 1);
    }

    /// Times a line passed from one CPU to another.
    pub(super) fn transfers(&self) -> u64 {
        self.transfers
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_passes_when_another_cpu_writes_it() {
        let mut lines = Lines::default();
        for (pageblock, cpu) in [(3, 0), (3, 0), (3, 1), (0, 1), (3, 1), (3, 0)] {
            lines.change(pageblock, cpu);
        }
        assert_eq!(lines.transfers(), 2);
    }
}
