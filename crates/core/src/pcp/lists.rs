//! Which list of a page set a block belongs to (spec §2.1).

use crate::{COSTLY_ORDER, MigrateType, Order};

/// One list of a page set.
pub type ListIndex = usize;

/// Most lists that any scheme has.
pub(crate) const MAX_LISTS: usize = 14;

/// Which orders and types per-CPU page sets hold, and in how many lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListScheme {
    /// Order 0, one list per type: Linux 4.9.
    OrderZero,
    /// Orders 0 to 3; order 0 per type, the others one list each: the 2016 high-order series (v5).
    HighOrderV5,
    /// Orders 0 to 3 per type.
    LowOrders,
    /// Those, and one list of huge pages: Linux 5.13 to 6.6.
    OneHugeList,
    /// Those, and two lists of huge pages, movable and other: Linux 6.12.
    TwoHugeLists,
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
            Self::LowOrders => FIRST_HUGE,
            Self::OneHugeList => FIRST_HUGE + 1,
            Self::TwoHugeLists => FIRST_HUGE + 2,
        }
    }

    /// Whether blocks of this order live in page sets.
    #[inline]
    #[must_use]
    pub const fn holds(self, order: Order) -> bool {
        // Most blocks are single pages, which every scheme holds.
        if order.index() == 0 {
            return true;
        }
        match self {
            Self::OrderZero => false,
            Self::HighOrderV5 | Self::LowOrders => order.index() <= COSTLY_ORDER,
            Self::OneHugeList | Self::TwoHugeLists => Self::holds_in_kernel(order),
        }
    }

    /// Whether a kernel with huge pages has a list for this order, which is what its tracepoints tell.
    #[inline]
    pub(crate) const fn holds_in_kernel(order: Order) -> bool {
        order.index() <= COSTLY_ORDER || order.index() == Order::THP.index()
    }

    /// The list for blocks of this order and type; types without lists of their own share the movable ones. `None` for
    /// orders that page sets do not hold.
    #[inline]
    #[must_use]
    pub fn list(self, order: Order, migratetype: MigrateType) -> Option<ListIndex> {
        self.holds(order).then(|| self.list_of_held(order, migratetype))
    }

    /// As [`list`](Self::list), of an order that page sets hold.
    #[inline]
    pub(crate) fn list_of_held(self, order: Order, migratetype: MigrateType) -> ListIndex {
        debug_assert!(self.holds(order), "{self:?} has no list of order {order}");
        let migratetype = if migratetype.is_mergeable() { migratetype } else { MigrateType::Movable };
        if order.index() == 0 {
            return migratetype.index();
        }
        match (self, order.index()) {
            (Self::HighOrderV5, order) => TYPES + order - 1,
            (_, order) if order <= COSTLY_ORDER => TYPES * order + migratetype.index(),
            (Self::TwoHugeLists, _) if migratetype == MigrateType::Movable => FIRST_HUGE + 1,
            _ => FIRST_HUGE,
        }
    }

    /// The order of all blocks on a list, which must be one of the [`lists`](Self::lists).
    #[inline]
    pub fn order(self, list: ListIndex) -> Order {
        debug_assert!(list < self.lists(), "{self:?} has no list {list}");
        match self {
            Self::HighOrderV5 => Order::from_index(if list < TYPES { 0 } else { list - TYPES + 1 }),
            _ if list >= FIRST_HUGE => Order::THP,
            _ => Order::from_index(list / TYPES),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCHEMES: [ListScheme; 5] = [
        ListScheme::OrderZero,
        ListScheme::HighOrderV5,
        ListScheme::LowOrders,
        ListScheme::OneHugeList,
        ListScheme::TwoHugeLists,
    ];

    #[test]
    fn schemes_have_the_lists_of_the_specification() {
        assert_eq!(SCHEMES.map(ListScheme::lists), [3, 6, 12, 13, 14]);
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
