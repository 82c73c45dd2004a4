//! Acts: the recorded requests to page sets, ticks, and starts and stops of reclaimers, in order. An act
//! takes eight bytes.

use pageset_core::policy::SplitFrees;
use pageset_core::{MigrateType, Order};

/// An act: a request to a page set, a tick, or the start or stop of a reclaimer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Act {
    pub(super) kind: ActKind,
    pub(super) block: BlockKind,
    /// Number of blocks. The number is 1, except for bulk allocations and for acts that a replay adds between
    /// two repetitions of a load.
    pub(super) count: u16,
    /// The meaning of this field depends on the kind of act. For a request, the field is the number of a page
    /// set: `zone * CPUs + CPU`. For a tick, the field is the number of a CPU. For the start or stop of a
    /// reclaimer, the field is the number of a node.
    pub(super) at: u32,
}

/// The kind of act.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ActKind {
    /// An act without effect. A free becomes this act if a later event shows that the free has another place
    /// in the order of acts.
    Nothing,
    /// Allocate a block.
    Alloc,
    /// Allocate pages in bulk. Unlike other allocations, a bulk allocation does not change the count of
    /// recent frees.
    BulkAlloc,
    /// Free a block.
    Free,
    /// Free a page of a block that was allocated as a whole. The pages of the block are freed one directly
    /// after the other.
    FreePart,
    /// Free the last page of a block that is freed page by page. This act has the order of the whole block.
    FreeLastPart,
    /// Free a block directly to its zone, because the lock of its page set was busy.
    PastSet,
    /// A CPU's periodic work.
    Tick,
    /// The reclaimer of a node starts.
    ReclaimStarts,
    /// The reclaimer of a node stops.
    ReclaimStops,
}

impl ActKind {
    /// All kinds of acts, in the order of the kinds' numbers.
    pub(super) const ALL: [Self; 10] = [
        Self::Nothing,
        Self::Alloc,
        Self::BulkAlloc,
        Self::Free,
        Self::FreePart,
        Self::FreeLastPart,
        Self::PastSet,
        Self::Tick,
        Self::ReclaimStarts,
        Self::ReclaimStops,
    ];

    /// Whether [`Act::at`] of an act of this kind is the number of a page set.
    pub(super) const fn is_of_set(self) -> bool {
        matches!(self, Self::Alloc | Self::BulkAlloc | Self::PastSet) || self.is_free()
    }

    /// Whether an act of this kind frees to a page set.
    pub(super) const fn is_free(self) -> bool {
        matches!(self, Self::Free | Self::FreePart | Self::FreeLastPart)
    }
}

impl Act {
    /// Returns the block that a free puts into its page set, under a policy with the rule `split_frees`.
    /// Returns `None` if the act puts no block into a page set. For example, the pages of a split block may
    /// enter the page set together, with the last page.
    #[inline]
    pub(super) fn freed(self, split_frees: SplitFrees) -> Option<BlockKind> {
        match (self.kind, split_frees) {
            (ActKind::Free, _) | (ActKind::FreePart, SplitFrees::Singly) => Some(self.block),
            (ActKind::FreeLastPart, SplitFrees::Singly) => Some(self.block.of_order(Order::ZERO)),
            (ActKind::FreeLastPart, SplitFrees::Joined) => Some(self.block),
            _ => None,
        }
    }
}

/// A byte that encodes the order and the type of a block, and the highest zone that the request may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct BlockKind(u8);

impl BlockKind {
    pub(super) const PAGE: Self = Self(0);

    pub(super) fn new(order: Order, migratetype: MigrateType, highest_zone: usize) -> Self {
        let migratetype = if migratetype.is_mergeable() { migratetype } else { MigrateType::Movable };
        Self(order.get() | (migratetype.index() as u8) << 4 | (highest_zone.min(3) as u8) << 6)
    }

    pub(super) const fn to_byte(self) -> u8 {
        self.0
    }

    pub(super) const fn from_byte(byte: u8) -> Self {
        Self(byte)
    }

    #[inline]
    pub(super) fn order(self) -> Order {
        Order::new(self.0 & 15).unwrap_or(Order::ZERO)
    }

    #[inline]
    pub(super) fn migratetype(self) -> MigrateType {
        MigrateType::ALL[usize::from(self.0 >> 4 & 3)]
    }

    /// The highest zone that the request may use, by the kernel's index of zones on x86-64.
    #[inline]
    pub(super) fn highest_zone(self) -> usize {
        usize::from(self.0 >> 6)
    }

    pub(super) fn without_zone(self) -> Self {
        Self::new(self.order(), self.migratetype(), 0)
    }

    pub(super) fn of_order(self, order: Order) -> Self {
        Self(order.get() | self.0 & !15)
    }

    pub(super) fn of_type(self, migratetype: MigrateType) -> Self {
        Self::new(self.order(), migratetype, self.highest_zone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_of_block_survives_its_byte() {
        assert_eq!(size_of::<Act>(), 8);
        for order in Order::ZERO.and_above() {
            for migratetype in MigrateType::ALL.into_iter().take(MigrateType::PCP_COUNT) {
                for highest in 0..4 {
                    let kind = BlockKind::new(order, migratetype, highest);
                    assert_eq!(
                        (kind.order(), kind.migratetype(), kind.highest_zone()),
                        (order, migratetype, highest)
                    );
                }
            }
        }
        assert_eq!(BlockKind::PAGE.of_type(MigrateType::Cma).migratetype(), MigrateType::Movable);
    }
}
