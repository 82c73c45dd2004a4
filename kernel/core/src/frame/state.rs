//! The states of a frame. A frame is the first frame of a block (free, cached, owned, allocated or leaked),
//! lies inside a block, or is no memory.

use crate::{MigrateType, Order};

/// The state of one frame.
///
/// # Invariants
/// Only the first frame of a block carries the block's state. All other frames are `Interior`. A merge or a
/// split writes one state for each order between the two sizes. Most frames of a block keep their states in a
/// merge or split.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// The frame is inside a block, not at its start.
    Interior,
    /// The frame is no memory, or memory that the allocator does not manage.
    Hole,
    /// A block in use starts here.
    Allocated { order: Order, movable: bool },
    /// A block that is out of service starts here.
    Leaked { order: Order },
    /// A free block starts here. The block is on the zone's free list of this order and type.
    Free { order: Order, migratetype: MigrateType },
    /// A block in a per-CPU page set starts here. Linux 6.1 drains the block to the lists of the type that is
    /// stored in the state.
    Cached { order: Order, migratetype: MigrateType },
    /// A block in the page set of its pageblock's owner starts here. All owned blocks of a pageblock are in
    /// one page set, so the page set may merge two buddies.
    Owned { order: Order },
}

// In the packed form, the low nibble holds the order, and the high nibble holds one of sixteen tags.
const NO_BLOCK: u8 = 0;
const ALLOCATED_FIXED: u8 = 1;
const ALLOCATED_MOVABLE: u8 = 2;
const LEAKED: u8 = 3;
const FREE: u8 = 4;
const CACHED: u8 = FREE + MigrateType::COUNT as u8;
const HOLE: u8 = 1;
/// With the tag `NO_BLOCK`, the first two values of the low nibble are states without a block. A value from
/// `OWNED` on is an owned block of the order `value - OWNED`.
const OWNED: u8 = 2;

impl State {
    #[inline]
    pub(crate) fn pack(self) -> u8 {
        let (tag, low) = match self {
            Self::Interior => (NO_BLOCK, 0),
            Self::Hole => (NO_BLOCK, HOLE),
            Self::Allocated { order, movable: false } => (ALLOCATED_FIXED, order.get()),
            Self::Allocated { order, movable: true } => (ALLOCATED_MOVABLE, order.get()),
            Self::Leaked { order } => (LEAKED, order.get()),
            Self::Free { order, migratetype } => (FREE + migratetype as u8, order.get()),
            Self::Cached { order, migratetype } => (CACHED + migratetype as u8, order.get()),
            Self::Owned { order } => (NO_BLOCK, OWNED + order.get()),
        };
        tag << 4 | low
    }

    /// Unpacks a byte. A byte that no state packs to, which is corruption, is read as `Hole`.
    #[inline]
    pub(crate) fn unpack(byte: u8) -> Self {
        let (tag, low) = (byte >> 4, byte & 15);
        if tag == NO_BLOCK {
            return Self::unpack_blockless(low);
        }
        let Some(order) = Order::new(low) else { return Self::Hole };
        match tag {
            ALLOCATED_FIXED => Self::Allocated { order, movable: false },
            ALLOCATED_MOVABLE => Self::Allocated { order, movable: true },
            LEAKED => Self::Leaked { order },
            FREE..CACHED => Self::Free { order, migratetype: MigrateType::ALL[usize::from(tag - FREE)] },
            _ => Self::Cached { order, migratetype: MigrateType::ALL[usize::from(tag - CACHED)] },
        }
    }

    /// Unpacks the low nibble of a byte that has the tag `NO_BLOCK`.
    #[inline]
    fn unpack_blockless(low: u8) -> Self {
        match low.checked_sub(OWNED) {
            Some(order) => Order::new(order).map_or(Self::Hole, |order| Self::Owned { order }),
            None if low == HOLE => Self::Hole,
            None => Self::Interior,
        }
    }

    /// Whether `byte` is an allocated block of this order. Compares the packed byte, because every free calls
    /// this function.
    #[inline]
    pub(crate) fn is_allocated(byte: u8, order: Order) -> bool {
        matches!(byte >> 4, ALLOCATED_FIXED | ALLOCATED_MOVABLE) && byte & 15 == order.get()
    }

    /// Whether `byte` is a cached block of this order. Compares the packed byte, because every allocation
    /// calls this function.
    #[inline]
    pub(crate) fn is_cached_as(byte: u8, order: Order) -> bool {
        byte >> 4 >= CACHED && byte & 15 == order.get()
    }

    /// Whether this is the state of a block that is in a page set, or is about to enter a page set.
    #[inline]
    pub(crate) fn is_cached(self) -> bool {
        matches!(self, Self::Cached { .. } | Self::Owned { .. })
    }

    /// Order of the block that starts at a frame with this state. `None` if no block starts at the frame.
    #[inline]
    pub(crate) fn order(self) -> Option<Order> {
        match self {
            Self::Interior | Self::Hole => None,
            Self::Allocated { order, .. }
            | Self::Leaked { order }
            | Self::Free { order, .. }
            | Self::Cached { order, .. }
            | Self::Owned { order } => Some(order),
        }
    }

    /// Whether a store may change this state to `to`. Only the holder of the lock that protects the state may
    /// store. No lock protects an allocated block, so only an exchange may change its state.
    pub(crate) fn may_become(self, to: Self) -> bool {
        match (self, to) {
            // A frame inside a block becomes the first frame of a block if the larger block is split, or if
            // the zone is filled.
            (Self::Interior, to) => !matches!(to, Self::Cached { .. } | Self::Owned { .. }),
            // A CPU takes, splits or merges a free block, or moves the block to another list.
            (Self::Free { .. }, to) => to != Self::Hole,
            // A page set gives a block to a user or to the zone, or finds that the block is bad.
            (Self::Cached { .. }, to) => !matches!(to, Self::Cached { .. } | Self::Hole),
            // A CPU that frees a block in parts marks the parts as leaked meanwhile, so that other CPUs do
            // not take the parts. A bad block may also move between lists. Race: a CPU marks a block bad
            // while another CPU hands the block out. The second CPU's store wins, and the block is handed
            // out.
            (Self::Leaked { .. }, to) => !matches!(to, Self::Cached { .. } | Self::Owned { .. } | Self::Hole),
            // A page set gives an owned block to a user or to the zone, or finds that the block is bad. The
            // page set also splits and merges owned blocks, but by exchanges.
            (Self::Owned { .. }, to) => !matches!(to, Self::Cached { .. } | Self::Owned { .. } | Self::Hole),
            (Self::Allocated { .. } | Self::Hole, _) => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_state_survives_packing() {
        for byte in 0..=u8::MAX {
            let state = State::unpack(byte);
            assert_eq!(State::unpack(state.pack()), state, "byte {byte:#x}");
            for order in Order::ZERO.and_above() {
                let is = matches!(state, State::Allocated { order: o, .. } if o == order);
                assert_eq!(State::is_allocated(byte, order), is, "byte {byte:#x}");
            }
        }
        let mut distinct = std::collections::BTreeSet::new();
        for order in 0..=10 {
            let order = Order::new(order).unwrap();
            for migratetype in MigrateType::ALL {
                assert!(distinct.insert(State::Free { order, migratetype }.pack()));
                assert!(distinct.insert(State::Cached { order, migratetype }.pack()));
            }
            for movable in [false, true] {
                assert!(distinct.insert(State::Allocated { order, movable }.pack()));
            }
            assert!(distinct.insert(State::Leaked { order }.pack()));
            assert!(distinct.insert(State::Owned { order }.pack()));
        }
        assert!(distinct.insert(State::Interior.pack()));
        assert!(distinct.insert(State::Hole.pack()));
    }

    #[test]
    fn memory_in_use_and_holes_are_not_overwritten() {
        let (order, migratetype) = (Order::ZERO, MigrateType::Movable);
        let free = State::Free { order, migratetype };
        let cached = State::Cached { order, migratetype };
        let allocated = State::Allocated { order, movable: true };
        let leaked = State::Leaked { order };
        let owned = State::Owned { order };
        let all = [State::Interior, State::Hole, free, cached, allocated, leaked, owned];
        for to in all {
            assert!(!allocated.may_become(to) && !State::Hole.may_become(to), "{to:?}");
            assert_eq!(to.may_become(cached), to == free, "{to:?}: only free blocks are fetched");
            let fetched = to == free || to == cached;
            assert_eq!(
                to.may_become(owned),
                fetched,
                "{to:?}: only free blocks, and blocks that a user freed"
            );
            assert_eq!(to.may_become(State::Hole), to == State::Interior, "{to:?}");
        }
        assert!(cached.may_become(allocated) && cached.may_become(free) && leaked.may_become(free));
    }

    #[test]
    fn zeroed_metadata_means_interior() {
        assert_eq!(State::unpack(0), State::Interior);
    }
}
