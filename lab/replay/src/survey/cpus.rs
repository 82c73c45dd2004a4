//! Counts blocks by the CPU that allocated the block and the CPU that freed the block.

/// Maximum number of CPUs that have a row and a column in the matrix. With more CPUs, the matrix would take
/// more than 32 MiB. `beyond_matrix` counts blocks that a CPU with this number or a higher number allocated
/// or freed.
pub const MATRIX_CPUS_MAX: usize = 2048;

/// Counts of blocks by allocating CPU and freeing CPU. Blocks that were allocated before the recording are
/// not counted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cpus {
    /// Each CPU's totals, by number, up to the last CPU with an event.
    pub each: Vec<CpuTotals>,
    /// The number of blocks for each allocating CPU (row) and each freeing CPU (column). A row has no entries
    /// after its last entry above 0.
    pub matrix: Vec<Vec<u64>>,
    /// Number of blocks that were allocated or freed by a CPU with the number [`MATRIX_CPUS_MAX`] or a higher
    /// number.
    pub beyond_matrix: u64,
    /// Number of blocks freed on the CPU that allocated them.
    pub local_blocks: u64,
    /// The number of pages in `local_blocks`.
    pub local_pages: u64,
    /// Number of blocks that were allocated by one CPU and freed by another CPU.
    pub remote_blocks: u64,
    /// The number of pages in `remote_blocks`.
    pub remote_pages: u64,
}

/// The totals of one CPU. Frees of pages that were allocated before the recording are included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuTotals {
    /// Number of events of any kind.
    pub events: u64,
    /// Number of pages allocated.
    pub allocated_pages: u64,
    /// Number of pages freed.
    pub freed_pages: u64,
}

impl Cpus {
    #[inline]
    pub(super) fn totals(&mut self, cpu: u16) -> &mut CpuTotals {
        let cpu = usize::from(cpu);
        if self.each.len() <= cpu {
            self.each.resize(cpu + 1, CpuTotals::default());
        }
        &mut self.each[cpu]
    }

    /// Counts a block that is freed, by the CPU that allocated the block and the CPU that frees the block.
    #[inline]
    pub(super) fn freed(&mut self, from: u16, to: u16, pages: u64) {
        if from == to {
            self.local_blocks += 1;
            self.local_pages += pages;
        } else {
            self.remote_blocks += 1;
            self.remote_pages += pages;
        }
        let (from, to) = (usize::from(from), usize::from(to));
        if from.max(to) >= MATRIX_CPUS_MAX {
            self.beyond_matrix += 1;
            return;
        }
        if self.matrix.len() <= from {
            self.matrix.resize_with(from + 1, Vec::new);
        }
        let row = &mut self.matrix[from];
        if row.len() <= to {
            row.resize(to + 1, 0);
        }
        row[to] += 1;
    }

    /// Number of CPUs with at least one event.
    #[must_use]
    pub fn active(&self) -> usize {
        self.each.iter().filter(|cpu| cpu.events > 0).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpus_beyond_the_matrix_are_counted_apart() {
        let mut cpus = Cpus::default();
        cpus.freed(1, 0, 8);
        cpus.freed(65535, 65535, 1);
        assert_eq!(cpus.matrix, [vec![], vec![1]]);
        assert_eq!((cpus.beyond_matrix, cpus.local_blocks, cpus.remote_pages), (1, 1, 8));
    }
}
