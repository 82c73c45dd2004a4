//! A page set without its lock: the lists, the rule that puts each block on a list (spec §2.1), and the
//! numbers that control the page set.

use crate::frame::List;
use crate::policy::HAS_LAB;
use crate::{COSTLY_ORDER, MigrateType, Order, PAGEBLOCK_ORDER};

/// The index of a list among the lists of a page set.
pub type ListIndex = usize;

/// Largest number of lists that a scheme has.
pub(crate) const MAX_LISTS: usize =
    if HAS_LAB { ListScheme::EveryOrder.lists() } else { ListScheme::TwoHugeLists.lists() };

/// The orders and types that page sets hold, and the number of lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case", deny_unknown_fields))]
pub enum ListScheme {
    /// Order 0, one list per type: Linux 4.9.
    OrderZero,
    /// Orders 0 to 3: one list per type for order 0, one list for each other order (the 2016 high-order
    /// series, v5).
    HighOrderV5,
    /// Like `HighOrderV5`, but for orders 0 to 5 (a request in the review of the 2016 series).
    HighOrderToFive,
    /// Orders 0 to 3: one list for each order and type.
    LowOrders,
    /// The lists of `LowOrders`, and one list of huge pages: Linux 5.14 to 6.7, except stable 6.1.
    OneHugeList,
    /// The lists of `LowOrders`, a list of movable huge pages, and a list of other huge pages: Linux 6.12 and
    /// later, and stable 6.1.
    TwoHugeLists,
    /// All orders up to a pageblock's: one list for each order and type, for page sets that split and merge
    /// blocks themselves. Needs the feature `lab`.
    EveryOrder,
}

const TYPES: usize = MigrateType::PCP_COUNT;
const FIRST_HUGE: ListIndex = (COSTLY_ORDER + 1) * TYPES;

impl ListScheme {
    /// Number of lists.
    #[must_use]
    pub const fn lists(self) -> usize {
        match self {
            Self::OrderZero => TYPES,
            Self::HighOrderV5 => TYPES + COSTLY_ORDER,
            Self::HighOrderToFive => TYPES + 5,
            Self::LowOrders => FIRST_HUGE,
            Self::OneHugeList => FIRST_HUGE + 1,
            Self::TwoHugeLists => FIRST_HUGE + 2,
            Self::EveryOrder => (PAGEBLOCK_ORDER + 1) * TYPES,
        }
    }

    /// Whether page sets with this scheme hold blocks of this order.
    #[inline]
    #[must_use]
    pub const fn holds(self, order: Order) -> bool {
        // Test for order 0 first: most blocks are single pages, which every scheme holds.
        if order.index() == 0 {
            return true;
        }
        self.held_orders() >> order.index() & 1 == 1
    }

    /// A bit mask of the orders that page sets with this scheme hold.
    #[inline]
    const fn held_orders(self) -> u16 {
        const LOW: u16 = (1 << (COSTLY_ORDER + 1)) - 1;
        match self {
            Self::OrderZero => 1,
            Self::HighOrderToFive => (1 << 6) - 1,
            Self::HighOrderV5 | Self::LowOrders => LOW,
            Self::OneHugeList | Self::TwoHugeLists => LOW | 1 << Order::THP.index(),
            Self::EveryOrder => (1 << (PAGEBLOCK_ORDER + 1)) - 1,
        }
    }

    /// The list for blocks of this order and type. Types without their own lists share the lists of movable
    /// blocks. Returns `None` for orders that page sets with this scheme do not hold.
    #[inline]
    #[must_use]
    pub fn list(self, order: Order, migratetype: MigrateType) -> Option<ListIndex> {
        self.holds(order).then(|| self.list_of_held(order, migratetype))
    }

    /// Returns the result of [`list`](Self::list) for an order that page sets hold.
    #[inline]
    pub(crate) fn list_of_held(self, order: Order, migratetype: MigrateType) -> ListIndex {
        debug_assert!(self.holds(order), "{self:?} has no list of order {order}");
        let migratetype = if migratetype.is_mergeable() { migratetype } else { MigrateType::Movable };
        if order.index() == 0 {
            return migratetype.index();
        }
        match (self, order.index()) {
            (Self::HighOrderV5 | Self::HighOrderToFive, order) => TYPES + order - 1,
            (_, order) if order <= COSTLY_ORDER => TYPES * order + migratetype.index(),
            (Self::TwoHugeLists, _) if migratetype == MigrateType::Movable => FIRST_HUGE + 1,
            (Self::EveryOrder, order) => TYPES * order + migratetype.index(),
            _ => FIRST_HUGE,
        }
    }

    /// The lists of the class of orders that a list belongs to. The first class is order 0, and the second
    /// class is all higher orders.
    pub(crate) const fn class_of(self, list: ListIndex) -> core::ops::Range<ListIndex> {
        if list < TYPES { 0..TYPES } else { TYPES..self.lists() }
    }

    /// The order of all blocks on a list. The index must be below the number of [`lists`](Self::lists).
    #[inline]
    pub fn order(self, list: ListIndex) -> Order {
        debug_assert!(list < self.lists(), "{self:?} has no list {list}");
        match self {
            Self::HighOrderV5 | Self::HighOrderToFive => {
                Order::from_index(if list < TYPES { 0 } else { list - TYPES + 1 })
            }
            Self::OneHugeList | Self::TwoHugeLists if list >= FIRST_HUGE => Order::THP,
            _ => Order::from_index(list / TYPES),
        }
    }
}

/// How a list of a page set stores its blocks.
///
/// An allocator must know which blocks are on a list, so its lists are linked through the frames' metadata
/// ([`List`]). A replay needs only the number of blocks (`BlockCount`).
pub trait BlockList: Copy {
    /// The value that names a block on a list.
    type Block: Copy;
    /// The tables that hold the links of the lists.
    type Frames<'f>;
    /// An empty list.
    const EMPTY: Self;

    /// Whether the list is empty.
    fn is_empty(&self) -> bool;
    /// Number of blocks on the list.
    fn len(&self, frames: &Self::Frames<'_>) -> u32;
    /// Adds a block at the head. The block will be allocated next.
    fn push_head(&mut self, frames: &Self::Frames<'_>, block: Self::Block);
    /// Adds a block at the tail.
    fn push_tail(&mut self, frames: &Self::Frames<'_>, block: Self::Block);
    /// Takes the first block.
    fn pop_head(&mut self, frames: &Self::Frames<'_>) -> Option<Self::Block>;
    /// Takes the last block.
    fn pop_tail(&mut self, frames: &Self::Frames<'_>) -> Option<Self::Block>;
}

/// One CPU's page set of one zone.
///
/// # Invariants
/// `count` equals the number of pages on all lists. Every block on a list has the list's order.
#[derive(Debug)]
pub struct Pcp<L = List> {
    pub(super) lists: [L; MAX_LISTS],
    pub(super) scheme: ListScheme,
    /// Number of pages on the lists.
    pub count: i32,
    /// A free that brings `count` to this number of pages causes a drain. While memory is short, a drain may
    /// begin at a lower number of pages.
    pub high: i32,
    /// Number of pages freed lately. Used only if the policy's free history is a count.
    pub free_count: i32,
    /// Number of pages in the page set at the last tick, or the smallest number that an allocation has left
    /// since then. Used only if the policy's decay takes unused pages.
    pub count_min: i32,
    /// The next drain wants `batch << free_factor` pages. Used only if the policy's free history is a factor.
    pub free_factor: u8,
    /// The next refill of order 0 wants `batch << alloc_factor` pages.
    pub alloc_factor: u8,
    /// The list where the last round-robin drain stopped.
    pub(super) last_drained: u8,
    /// Number of ticks until an idle page set of a remote node loses a batch.
    pub expire: u8,
    /// Whether the last free was of order 1 to 3.
    pub previous_was_high_order: bool,
    /// Whether this CPU's share of the data caches is large.
    pub has_large_slice: bool,
}

// `Pcp` must not be larger than the kernel's structure of a page set. The 2023 series keeps the kernel's
// structure, which has 14 lists, within 256 bytes on 64-bit machines (spec, series cover letter).
const _: () = assert!(size_of::<Pcp>() - (MAX_LISTS - 14) * size_of::<List>() <= 256);

impl<L: BlockList> Pcp<L> {
    pub(super) const fn of(scheme: ListScheme) -> Self {
        Self {
            lists: [L::EMPTY; MAX_LISTS],
            scheme,
            count: 0,
            high: 0,
            free_count: 0,
            count_min: 0,
            free_factor: 0,
            alloc_factor: 0,
            last_drained: 0,
            expire: 0,
            previous_was_high_order: false,
            has_large_slice: false,
        }
    }

    /// The scheme of the page set's lists.
    #[must_use]
    pub fn scheme(&self) -> ListScheme {
        self.scheme
    }

    /// Panics in debug builds if `count` contradicts the heads of the lists. O(lists).
    #[inline]
    pub(super) fn assert_consistent(&self) {
        if cfg!(debug_assertions) {
            let is_empty = self.lists.iter().all(L::is_empty);
            assert!(
                self.count >= 0 && is_empty == (self.count == 0),
                "a page set's count equals its lists (7): {} pages, and lists are {}",
                self.count,
                if is_empty { "empty" } else { "not empty" }
            );
        }
    }

    /// Takes the first block of a list: the block that was freed last, or else the first block that a refill
    /// fetched.
    #[inline]
    pub fn pop(&mut self, frames: &L::Frames<'_>, list: ListIndex, order: Order) -> Option<L::Block> {
        debug_assert_eq!(self.scheme.order(list), order, "a block has its list's order (8)");
        let frame = self.lists[list].pop_head(frames)?;
        self.count -= order.frames() as i32;
        self.count_min = self.count_min.min(self.count);
        Some(frame)
    }

    /// Takes the last block of a list (the coldest), which an allocation would take last.
    #[inline]
    pub(super) fn pop_cold(
        &mut self,
        frames: &L::Frames<'_>,
        list: ListIndex,
        order: Order,
    ) -> Option<L::Block> {
        let frame = self.lists[list].pop_tail(frames)?;
        self.count -= order.frames() as i32;
        Some(frame)
    }

    /// Adds a freed block at the head, so that the block is allocated next.
    #[inline]
    pub fn push(&mut self, frames: &L::Frames<'_>, list: ListIndex, frame: L::Block, order: Order) {
        debug_assert_eq!(self.scheme.order(list), order, "a block has its list's order (8)");
        self.lists[list].push_head(frames, frame);
        self.count += order.frames() as i32;
    }

    /// Adds a fetched block at the tail. The refill updates `count` once, at its end.
    #[inline]
    pub(super) fn push_cold(&mut self, frames: &L::Frames<'_>, list: ListIndex, frame: L::Block) {
        self.lists[list].push_tail(frames, frame);
    }

    /// Adds a block at the tail, as a refill does, and adds the block's pages to `count`.
    pub fn append(&mut self, frames: &L::Frames<'_>, list: ListIndex, frame: L::Block, order: Order) {
        self.push_cold(frames, list, frame);
        self.count += order.frames() as i32;
    }

    /// Whether a list is empty.
    #[must_use]
    pub fn is_list_empty(&self, list: ListIndex) -> bool {
        self.lists[list].is_empty()
    }
}

/// Methods of a page set whose lists link blocks.
impl Pcp {
    /// A placeholder of all zeros, so that a static table lies in `.bss`. The placeholder must be replaced
    /// before use, because an empty list is not all zeros.
    pub(crate) const fn unused() -> Self {
        Self { lists: [List::UNUSED; MAX_LISTS], ..Self::of(ListScheme::OrderZero) }
    }

    /// An empty page set.
    #[must_use]
    pub fn with_scheme(scheme: ListScheme) -> Self {
        Self::of(scheme)
    }

    pub(crate) fn list(&self, list: ListIndex) -> &List {
        &self.lists[list]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCHEMES: [ListScheme; 7] = [
        ListScheme::OrderZero,
        ListScheme::HighOrderV5,
        ListScheme::HighOrderToFive,
        ListScheme::LowOrders,
        ListScheme::OneHugeList,
        ListScheme::TwoHugeLists,
        ListScheme::EveryOrder,
    ];

    #[test]
    fn schemes_have_the_lists_of_the_specification() {
        assert_eq!(SCHEMES.map(ListScheme::lists), [3, 6, 8, 12, 13, 14, 30]);
        assert_eq!(SCHEMES.map(ListScheme::lists).into_iter().max(), Some(MAX_LISTS));
    }

    #[test]
    fn every_list_holds_the_order_that_leads_to_it() {
        for scheme in SCHEMES {
            let mut used = std::collections::BTreeSet::new();
            for order in Order::ZERO.and_above().filter(|order| scheme.holds(*order)) {
                for migratetype in MigrateType::ALL {
                    let list = scheme.list(order, migratetype).unwrap();
                    assert_eq!(scheme.order(list), order, "{scheme:?}");
                    used.insert(list);
                }
            }
            assert!(used.into_iter().eq(0..scheme.lists()), "{scheme:?} has no idle list");
        }
    }

    #[test]
    fn orders_that_are_not_held_have_no_list() {
        for scheme in SCHEMES {
            for order in Order::ZERO.and_above() {
                for migratetype in MigrateType::ALL {
                    let list = scheme.list(order, migratetype);
                    assert_eq!(list.is_some(), scheme.holds(order), "{scheme:?}, order {order}");
                }
            }
        }
    }
}
