//! Allocated and freed blocks, by order and migratetype.

use pageset_core::{MigrateType, NR_ORDERS, Order};
use pageset_trace::Event;

/// The number of columns in `Orders::allocated`: one for each migratetype, and one for unknown migratetypes.
pub const TYPE_COLUMNS: usize = MigrateType::COUNT + 1;

/// Blocks by order and migratetype.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Orders {
    /// Blocks allocated: a row for each order, with a column for each requested migratetype. The last column
    /// counts blocks of unknown migratetype.
    pub allocated: [[u64; TYPE_COLUMNS]; NR_ORDERS],
    /// Blocks freed, by order. Events of frees do not have the migratetype.
    pub freed: [u64; NR_ORDERS],
    /// Number of blocks freed in a batch (`mm_page_free_batched`), all of order 0. [`Self::freed`] includes
    /// these blocks.
    pub freed_in_batches: u64,
    /// Number of allocations that failed.
    pub failed: u64,
    /// Number of events with an impossible order, or with a frame that is not aligned to the order. All other
    /// counts leave these events out.
    pub impossible: u64,
}

impl Orders {
    #[inline]
    pub(super) fn allocated(&mut self, event: &Event, order: Order) {
        let column = event.block_type().map_or(MigrateType::COUNT, MigrateType::index);
        self.allocated[order.index()][column] += 1;
    }

    /// Number of blocks allocated.
    #[must_use]
    pub fn allocated_blocks(&self) -> u64 {
        self.allocated.iter().flatten().sum()
    }

    /// Number of frames allocated.
    #[must_use]
    pub fn allocated_pages(&self) -> u64 {
        frames(self.allocated.iter().map(|types| types.iter().sum()))
    }

    /// Number of blocks freed.
    #[must_use]
    pub fn freed_blocks(&self) -> u64 {
        self.freed.iter().sum()
    }

    /// Number of frames freed.
    #[must_use]
    pub fn freed_pages(&self) -> u64 {
        frames(self.freed.iter().copied())
    }
}

fn frames(blocks_by_order: impl Iterator<Item = u64>) -> u64 {
    blocks_by_order.enumerate().map(|(order, blocks)| blocks << order).sum()
}
