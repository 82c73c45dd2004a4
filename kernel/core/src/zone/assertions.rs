//! Checks that debug builds make at each change of the free lists, so that a mistake shows at the place of
//! its cause. The checks cover the invariants of [`validate`](crate::PageAllocator::validate) that need only
//! one block or the heads of lists.

use super::LockedZone;
use crate::frame::FrameIndex;
use crate::policy::Fallback;
use crate::{MigrateType, Order, PAGEBLOCK_FRAMES};

/// The number of pages on the free lists, and the number of pages in a page set, before blocks move between
/// the free lists and the page set.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Passage {
    free: i64,
    cached: i32,
}

impl<E> LockedZone<'_, E> {
    /// Begins a move of blocks between the free lists and a page set that holds `cached` pages.
    #[inline]
    pub(crate) fn begin_passage(&self, cached: i32) -> Passage {
        let free = if cfg!(debug_assertions) { self.pages_on_lists() } else { 0 };
        Passage { free, cached }
    }

    /// Panics in debug builds, unless the free lists have `to_lists` pages more than before, and the page set
    /// has `to_set` pages more than before.
    #[inline]
    pub(crate) fn end_passage(&self, before: Passage, to_lists: i64, to_set: i32, cached: i32) {
        if cfg!(debug_assertions) {
            assert_eq!(self.pages_on_lists() - before.free, to_lists, "change of the free lists (2)");
            assert_eq!(cached - before.cached, to_set, "change of the page set (7)");
        }
    }

    fn pages_on_lists(&self) -> i64 {
        self.free_pages() + self.body.gauges.free_isolated()
    }

    /// Whether a block may be at this place: the block is aligned, lies inside the zone, and contains no
    /// other block (invariant 4).
    pub(super) fn fits(&self, frame: FrameIndex, order: Order) -> bool {
        let last = frame + (order.frames() - 1);
        let is_inside = self.body.span.contains(frame) && self.body.span.contains(last);
        frame & (order.frames() - 1) == 0 && is_inside && self.body.frames.is_whole(frame, order)
    }

    /// Whether the types of a free block's pageblocks allow the block to be on the lists of this type
    /// (invariant 6).
    pub(super) fn belongs(&self, frame: FrameIndex, order: Order, migratetype: MigrateType) -> bool {
        let is_strict = self.body.rules.fallback == Fallback::ClaimOrTakeOne;
        let is_isolated = |migratetype| migratetype == MigrateType::Isolate;
        (0..order.frames()).step_by(PAGEBLOCK_FRAMES as usize).all(|start| {
            let of_pageblock = self.body.frames.pageblock_type(frame + start);
            let agrees = of_pageblock == migratetype || !is_strict;
            agrees && is_isolated(of_pageblock) == is_isolated(migratetype)
        })
    }

    /// Panics in debug builds if the zone's counts contradict each other or the lists. Checks free pages,
    /// free blocks (invariants 2 and 3), and the gauges that say which lists are empty. O(lists).
    #[inline]
    pub(crate) fn assert_consistent(&self) {
        if !cfg!(debug_assertions) {
            return;
        }
        let gauges = &self.body.gauges;
        let in_blocks: i64 =
            Order::ZERO.and_above().map(|order| i64::from(self.buddy.nr_free(order)) << order.get()).sum();
        assert_eq!(in_blocks, self.pages_on_lists(), "free pages are in free blocks (2)");
        let apart = [gauges.free_cma(), gauges.free_highatomic(), gauges.free_isolated()];
        assert!(apart.into_iter().all(|pages| pages >= 0), "no gauge is below zero: {apart:?}");
        for order in Order::ZERO.and_above() {
            let mut is_empty = true;
            for migratetype in MigrateType::ALL {
                let list = self.buddy.list(order, migratetype);
                let shown = gauges.smallest(order, migratetype) == Some(order);
                assert_ne!(shown, list.is_empty(), "the gauge of {migratetype} lists of order {order}");
                is_empty &= list.is_empty();
            }
            assert_eq!(is_empty, self.buddy.nr_free(order) == 0, "free blocks of order {order} (3)");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::buddy::tests::Bench;
    use crate::policy::BuddyRules;
    use crate::zone::End;

    #[test]
    fn a_block_fits_where_it_is_aligned_whole_and_in_the_zone() {
        let mut bench = Bench::new(3000, BuddyRules::LINUX_6_12);
        let order = Order::new(3).unwrap();
        assert!(bench.zone().take_at(8, Order::ZERO));
        let zone = bench.zone();
        assert!(zone.fits(16, order));
        assert!(!zone.fits(12, order), "not aligned");
        assert!(!zone.fits(8, order), "blocks of its own inside");
        assert!(!zone.fits(3000, order), "behind the end");
        assert!(zone.fits(2992, order) && !zone.fits(2992, order.up()), "across the end");
    }

    #[test]
    fn lists_and_pageblocks_have_one_type_in_6_12() {
        for (rules, strict) in [(BuddyRules::LINUX_6_12, true), (BuddyRules::LINUX_6_1, false)] {
            let mut bench = Bench::new(1024, rules);
            let zone = bench.zone();
            assert!(zone.belongs(0, Order::MAX, MigrateType::Movable));
            assert_eq!(zone.belongs(0, Order::ZERO, MigrateType::Unmovable), !strict);
            assert!(!zone.belongs(0, Order::ZERO, MigrateType::Isolate));
        }
    }

    #[test]
    #[cfg_attr(not(debug_assertions), ignore = "only debug builds check")]
    #[should_panic = "is on this list already"]
    fn a_block_that_is_freed_twice_stops_a_debug_build() {
        let mut bench = Bench::new(1024, BuddyRules::LINUX_6_12);
        bench.zone().insert(0, Order::MAX, MigrateType::Movable, End::Head);
    }

    #[test]
    #[cfg_attr(not(debug_assertions), ignore = "only debug builds check")]
    #[should_panic = "change of the free lists (2)"]
    fn pages_that_get_lost_on_their_way_to_a_page_set_stop_a_debug_build() {
        let mut bench = Bench::new(1024, BuddyRules::LINUX_6_12);
        let passage = bench.zone().begin_passage(0);
        assert!(bench.zone().take_at(0, Order::ZERO));
        bench.zone().end_passage(passage, 0, 0, 0);
    }

    #[test]
    #[cfg_attr(not(debug_assertions), ignore = "only debug builds check")]
    #[should_panic = "change of the page set (7)"]
    fn pages_that_a_page_set_does_not_count_stop_a_debug_build() {
        let mut bench = Bench::new(1024, BuddyRules::LINUX_6_12);
        let passage = bench.zone().begin_passage(5);
        bench.zone().end_passage(passage, 0, 63, 5);
    }

    #[test]
    #[cfg_attr(not(debug_assertions), ignore = "only debug builds check")]
    #[should_panic = "free pages are in free blocks (2)"]
    fn pages_that_are_counted_wrongly_stop_a_debug_build() {
        let mut bench = Bench::new(1024, BuddyRules::LINUX_6_12);
        bench.body.gauges.add_free(1);
        bench.zone().assert_consistent();
    }
}
