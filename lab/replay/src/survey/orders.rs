//! Allocated and freed blocks, by order and migratetype.

use std::collections::BTreeMap;

use pageset_core::{COSTLY_ORDER, MigrateType, NR_ORDERS, Order, THP_ORDER};
use pageset_trace::{Event, EventKind};
use serde::{Serialize, Serializer};

use crate::recorded::{KindCounts, RecordedKinds, needs};

/// The number of columns in [`OrderBlocks::allocated`]: one for each migratetype, and one for unknown
/// migratetypes.
pub const TYPE_COLUMNS: usize = MigrateType::COUNT + 1;

/// Blocks by order and migratetype.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Orders {
    /// The orders that have blocks, in ascending order.
    pub by_order: Vec<OrderBlocks>,
    /// Number of blocks allocated.
    pub allocated_blocks: Option<u64>,
    /// Number of frames allocated.
    pub allocated_pages: Option<u64>,
    /// Number of blocks freed.
    pub freed_blocks: Option<u64>,
    /// Number of frames freed.
    pub freed_pages: Option<u64>,
    /// Number of blocks freed in a batch (`mm_page_free_batched`), all of order 0. [`Self::freed_blocks`]
    /// includes these blocks.
    pub freed_in_batches: Option<u64>,
    /// Number of allocations that failed.
    pub failed: Option<u64>,
    /// Number of events with an impossible order, or with a frame that is not aligned to the order. All other
    /// counts leave these events out.
    pub impossible: u64,
}

/// The blocks of one order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct OrderBlocks {
    /// The order.
    pub order: usize,
    /// Blocks allocated, with a column for each requested migratetype. The last column counts blocks of
    /// unknown migratetype.
    #[serde(serialize_with = "by_type")]
    pub allocated: Option<[u64; TYPE_COLUMNS]>,
    /// Blocks freed. Events of frees do not have the migratetype.
    pub freed: Option<u64>,
}

impl OrderBlocks {
    /// Number of blocks allocated.
    #[must_use]
    pub fn allocated_blocks(&self) -> Option<u64> {
        self.allocated.map(|types| types.iter().sum())
    }

    fn is_used(&self) -> bool {
        self.allocated_blocks().is_some_and(|blocks| blocks > 0) || self.freed.is_some_and(|freed| freed > 0)
    }
}

impl Orders {
    /// Number of allocated blocks of orders that page sets hold since Linux 5.14.
    pub(super) fn allocated_of_set_orders(&self) -> Option<u64> {
        self.allocated_blocks?;
        let is_held = |order: usize| order <= COSTLY_ORDER || order == THP_ORDER;
        let held = self.by_order.iter().filter(|blocks| is_held(blocks.order));
        Some(held.filter_map(OrderBlocks::allocated_blocks).sum())
    }
}

/// Names of the columns of [`OrderBlocks::allocated`].
#[must_use]
pub fn type_names() -> Vec<&'static str> {
    MigrateType::ALL.iter().map(|migratetype| migratetype.name()).chain(["unknown"]).collect()
}

/// The key of a migratetype in JSON.
#[must_use]
pub fn type_key(name: &str) -> String {
    name.to_ascii_lowercase().replace(' ', "_")
}

fn by_type<S: Serializer>(types: &Option<[u64; TYPE_COLUMNS]>, serializer: S) -> Result<S::Ok, S::Error> {
    let keys = || type_names().into_iter().map(type_key);
    let by_key: Option<BTreeMap<String, u64>> = types.map(|types| keys().zip(types).collect());
    by_key.serialize(serializer)
}

/// Counts blocks by order and migratetype.
#[derive(Debug, Default)]
pub(super) struct OrderCounter {
    allocated: [[u64; TYPE_COLUMNS]; NR_ORDERS],
    freed: [u64; NR_ORDERS],
    pub(super) failed: u64,
    pub(super) impossible: u64,
}

impl OrderCounter {
    #[inline]
    pub(super) fn allocated(&mut self, event: &Event, order: Order) {
        let column = event.block_type().map_or(MigrateType::COUNT, MigrateType::index);
        self.allocated[order.index()][column] += 1;
    }

    #[inline]
    pub(super) fn freed(&mut self, order: Order) {
        self.freed[order.index()] += 1;
    }

    pub(super) fn finish(&self, recorded: &RecordedKinds, kinds: &KindCounts) -> Orders {
        let allocations = |count| recorded.known(needs::ALLOCATIONS, count);
        let frees = |count| recorded.known(needs::FREES, count);
        let batched = EventKind::MmPageFreeBatched;
        let of_all_types = || self.allocated.iter().map(|types| types.iter().sum::<u64>());
        let by_order = self.allocated.iter().zip(self.freed).enumerate();
        let by_order = by_order.map(|(order, (types, freed))| OrderBlocks {
            order,
            allocated: recorded.known(needs::ALLOCATIONS, *types),
            freed: frees(freed),
        });
        Orders {
            by_order: by_order.filter(OrderBlocks::is_used).collect(),
            allocated_blocks: allocations(of_all_types().sum()),
            allocated_pages: allocations(frames(of_all_types())),
            freed_blocks: frees(self.freed.iter().sum()),
            freed_pages: frees(frames(self.freed.iter().copied())),
            freed_in_batches: recorded.known(&[batched], kinds[batched.index()]),
            failed: allocations(self.failed),
            impossible: self.impossible,
        }
    }
}

fn frames(blocks_by_order: impl Iterator<Item = u64>) -> u64 {
    blocks_by_order.enumerate().map(|(order, blocks)| blocks << order).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_types_are_words() {
        let is_word = |name: &str| type_key(name).bytes().all(|b| b.is_ascii_lowercase() || b == b'_');
        assert!(type_names().into_iter().all(is_word));
    }
}
