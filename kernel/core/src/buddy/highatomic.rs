//! The reserve of pageblocks for high-order requests that cannot wait (spec §1.12).

use crate::event::EventSink;
use crate::frame::FrameIndex;
use crate::policy::HighAtomicRule;
use crate::zone::LockedZone;
use crate::{MigrateType, Order, PAGEBLOCK_FRAMES};

impl<E: EventSink> LockedZone<'_, E> {
    /// Adds the pageblock that holds `frame` to the reserve, unless the reserve has reached its limit or the
    /// pageblock is special already. `frame` is the first frame of a block that an atomic high-order request
    /// has just got. If the block is larger than a pageblock, Linux 6.12 adds the whole block to the reserve.
    pub(crate) fn reserve_highatomic(&mut self, frame: FrameIndex, order: Order) {
        let pageblock = u64::from(PAGEBLOCK_FRAMES);
        let percent = self.body.managed.get() / 100;
        let limit = match self.body.rules.highatomic {
            HighAtomicRule::WholeBlocks => percent + pageblock,
            HighAtomicRule::FreeFrames if percent < pageblock => return,
            HighAtomicRule::FreeFrames => percent.next_multiple_of(pageblock),
        };
        let reserved = self.body.gauges.reserved_highatomic();
        if reserved >= limit || !self.body.frames.pageblock_type(frame).is_mergeable() {
            return;
        }
        let start = Self::pageblock_start(frame);
        let added = match self.body.rules.highatomic {
            HighAtomicRule::FreeFrames if order >= Order::PAGEBLOCK => {
                self.set_block_type(frame, order, MigrateType::HighAtomic);
                u64::from(order.frames())
            }
            rule => {
                let inside =
                    self.body.span.contains(start) && self.body.span.contains(start + PAGEBLOCK_FRAMES - 1);
                if rule == HighAtomicRule::FreeFrames && !inside {
                    return;
                }
                self.set_block_type(start, Order::PAGEBLOCK, MigrateType::HighAtomic);
                self.move_free_blocks(start, MigrateType::HighAtomic);
                pageblock
            }
        };
        self.body.gauges.set_reserved_highatomic(reserved + added);
    }

    /// Removes the first pageblock with a free block from the reserve, and gives this pageblock the type
    /// `to`. Returns `false` if no free block moved to another list.
    pub(crate) fn unreserve_highatomic(&mut self, to: MigrateType) -> bool {
        let to = self.grouped(to);
        for order in Order::ZERO.and_above() {
            let Some(frame) = self.buddy.list(order, MigrateType::HighAtomic).head() else { continue };
            let size = match self.body.rules.highatomic {
                HighAtomicRule::WholeBlocks => PAGEBLOCK_FRAMES,
                HighAtomicRule::FreeFrames => PAGEBLOCK_FRAMES.max(order.frames()),
            };
            if self.body.frames.pageblock_type(frame) == MigrateType::HighAtomic {
                let reserved = self.body.gauges.reserved_highatomic();
                self.body.gauges.set_reserved_highatomic(reserved.saturating_sub(u64::from(size)));
            }
            if order > Order::PAGEBLOCK && self.body.rules.highatomic == HighAtomicRule::FreeFrames {
                self.set_block_type(frame, order, to);
                self.retype(frame, order, MigrateType::HighAtomic, to);
                return true;
            }
            let start = Self::pageblock_start(frame);
            self.set_block_type(start, Order::PAGEBLOCK, to);
            if self.move_free_blocks(start, to) > 0 {
                return true;
            }
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::buddy::tests::Bench;
    use crate::policy::BuddyRules;

    #[test]
    fn a_small_zone_reserves_nothing_in_6_12_and_one_block_in_6_1() {
        for (rules, reserved) in [(BuddyRules::LINUX_6_12, 0), (BuddyRules::LINUX_6_1, 1024)] {
            let mut bench = Bench::new(4096, rules);
            for frame in [0, 1024, 2048, 3072] {
                bench.zone().reserve_highatomic(frame, Order::ZERO);
            }
            assert_eq!(bench.body.gauges.reserved_highatomic(), reserved, "{rules:?}");
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "a zone too large for miri")]
    fn the_reserve_ends_at_its_limit() {
        // One percent of the test's zone is exactly one pageblock.
        for (rules, reserved) in [(BuddyRules::LINUX_6_12, 512), (BuddyRules::LINUX_6_1, 1024)] {
            let mut bench = Bench::new(51_200, rules);
            for frame in [0, 1024, 2048, 3072] {
                assert!(bench.zone().take_at(frame, Order::ZERO));
                bench.body.frames.mark_allocated(frame, Order::ZERO, MigrateType::Unmovable);
                bench.zone().reserve_highatomic(frame, Order::ZERO);
            }
            assert_eq!(bench.body.gauges.reserved_highatomic(), reserved, "{rules:?}");
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "a zone too large for miri")]
    fn reserved_blocks_come_back() {
        let mut bench = Bench::new(512 * 120, BuddyRules::LINUX_6_12);
        let frame = bench.zone().take_smallest(Order::ZERO, MigrateType::Movable).unwrap();
        bench.body.frames.mark_allocated(frame, Order::ZERO, MigrateType::Unmovable);
        bench.zone().reserve_highatomic(frame, Order::ZERO);
        assert_eq!(bench.body.gauges.free_highatomic(), 511);
        assert_eq!(bench.list(0, MigrateType::HighAtomic), [1]);
        assert!(bench.zone().unreserve_highatomic(MigrateType::Movable));
        assert_eq!(bench.body.gauges.free_highatomic(), 0);
        assert_eq!(bench.body.gauges.reserved_highatomic(), 0);
        assert!(!bench.zone().unreserve_highatomic(MigrateType::Movable));
    }

    #[test]
    #[cfg_attr(miri, ignore = "a zone too large for miri")]
    fn a_reserved_block_of_two_pageblocks_comes_back_whole() {
        let mut bench = Bench::new(512 * 120, BuddyRules::LINUX_6_12);
        let frame = bench.zone().take_smallest(Order::MAX, MigrateType::Movable).unwrap();
        bench.body.frames.mark_allocated(frame, Order::MAX, MigrateType::Unmovable);
        bench.zone().reserve_highatomic(frame, Order::MAX);
        bench.free(frame, Order::MAX);
        assert_eq!(bench.list(10, MigrateType::HighAtomic), [frame]);
        assert!(bench.zone().unreserve_highatomic(MigrateType::Movable));
        assert_eq!(bench.body.gauges.reserved_highatomic(), 0);
        for pageblock in [frame, frame + 512] {
            assert_eq!(bench.body.frames.pageblock_type(pageblock), MigrateType::Movable);
        }
    }
}
