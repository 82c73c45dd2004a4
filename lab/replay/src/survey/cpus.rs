//! Counts blocks by the CPU that allocated the block and the CPU that freed the block.

use serde::{Serialize, Serializer};

use crate::recorded::{RecordedKinds, needs};
use crate::who::percent;

/// Maximum number of CPUs that have a row and a column in the matrix. With more CPUs, the matrix would take
/// more than 32 MiB. `beyond_matrix` counts blocks that a CPU with this number or a higher number allocated
/// or freed.
pub const MATRIX_CPUS_MAX: usize = 2048;

/// Counts of blocks by allocating CPU and freeing CPU. Blocks that were allocated before the recording are
/// not counted.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Cpus {
    /// The totals of each CPU that has an event, in ascending order.
    pub each: Vec<CpuTotals>,
    /// The number of blocks for each allocating CPU (row) and each freeing CPU (column). A row has no entries
    /// after its last entry above 0. JSON has only the pairs of CPUs that have blocks.
    #[serde(serialize_with = "pairs")]
    pub matrix: Option<Vec<Vec<u64>>>,
    /// Number of blocks that were allocated or freed by a CPU with the number [`MATRIX_CPUS_MAX`] or a higher
    /// number.
    pub beyond_matrix: Option<u64>,
    /// Number of blocks freed on the CPU that allocated them.
    pub local_blocks: Option<u64>,
    /// The number of pages in `local_blocks`.
    pub local_pages: Option<u64>,
    /// Number of blocks that were allocated by one CPU and freed by another CPU.
    pub remote_blocks: Option<u64>,
    /// The number of pages in `remote_blocks`.
    pub remote_pages: Option<u64>,
    /// The number `remote_blocks`, in percent of `local_blocks` and `remote_blocks`. Also `None` if both are
    /// 0.
    pub remote_percent: Option<f64>,
}

/// The totals of one CPU. Frees of pages that were allocated before the recording are included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct CpuTotals {
    /// The CPU.
    pub cpu: usize,
    /// Number of events of any kind.
    pub events: u64,
    /// Number of pages allocated.
    pub allocated_pages: Option<u64>,
    /// Number of pages freed.
    pub freed_pages: Option<u64>,
}

fn pairs<S: Serializer>(matrix: &Option<Vec<Vec<u64>>>, serializer: S) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct Pair {
        allocating_cpu: usize,
        freeing_cpu: usize,
        blocks: u64,
    }
    let Some(matrix) = matrix else { return serializer.serialize_none() };
    let rows = matrix.iter().enumerate();
    serializer.collect_seq(rows.flat_map(|(allocating_cpu, row)| {
        let used = row.iter().enumerate().filter(|(_, blocks)| **blocks > 0);
        used.map(move |(freeing_cpu, blocks)| Pair { allocating_cpu, freeing_cpu, blocks: *blocks })
    }))
}

/// Counts by CPU.
#[derive(Debug, Default)]
pub(super) struct CpuCounter {
    /// By number, up to the last CPU with an event.
    each: Vec<CpuCounts>,
    matrix: Vec<Vec<u64>>,
    beyond_matrix: u64,
    local: Freed,
    remote: Freed,
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct CpuCounts {
    pub(super) events: u64,
    pub(super) allocated_pages: u64,
    pub(super) freed_pages: u64,
}

#[derive(Debug, Default)]
struct Freed {
    blocks: u64,
    pages: u64,
}

impl CpuCounter {
    #[inline]
    pub(super) fn counts(&mut self, cpu: u16) -> &mut CpuCounts {
        let cpu = usize::from(cpu);
        if self.each.len() <= cpu {
            self.each.resize(cpu + 1, CpuCounts::default());
        }
        &mut self.each[cpu]
    }

    /// Counts a block that is freed, by the CPU that allocated the block and the CPU that frees the block.
    #[inline]
    pub(super) fn freed(&mut self, from: u16, to: u16, pages: u64) {
        let freed = if from == to { &mut self.local } else { &mut self.remote };
        freed.blocks += 1;
        freed.pages += pages;
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

    pub(super) fn finish(self, recorded: &RecordedKinds) -> Cpus {
        let of_load = |count| recorded.known(needs::LOAD, count);
        let each = self.each.iter().enumerate().filter(|(_, counts)| counts.events > 0);
        let each = each.map(|(cpu, counts)| CpuTotals {
            cpu,
            events: counts.events,
            allocated_pages: recorded.known(needs::ALLOCATIONS, counts.allocated_pages),
            freed_pages: recorded.known(needs::FREES, counts.freed_pages),
        });
        let Self { beyond_matrix, local, remote, .. } = &self;
        let remote_percent = percent(remote.blocks, local.blocks + remote.blocks);
        Cpus {
            each: each.collect(),
            beyond_matrix: of_load(*beyond_matrix),
            local_blocks: of_load(local.blocks),
            local_pages: of_load(local.pages),
            remote_blocks: of_load(remote.blocks),
            remote_pages: of_load(remote.pages),
            remote_percent: recorded.known(needs::LOAD, remote_percent).flatten(),
            matrix: recorded.known(needs::LOAD, self.matrix),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpus_beyond_the_matrix_are_counted_apart() {
        let mut counter = CpuCounter::default();
        counter.freed(1, 0, 8);
        counter.freed(65535, 65535, 1);
        let cpus = counter.finish(&RecordedKinds::all());
        assert_eq!(cpus.matrix, Some(vec![vec![], vec![1]]));
        let counts = (cpus.beyond_matrix, cpus.local_blocks, cpus.remote_pages);
        assert_eq!(counts, (Some(1), Some(1), Some(8)));
    }
}
