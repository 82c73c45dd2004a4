//! Takes pageblocks out of service, and puts pageblocks back into service. While a pageblock is out of
//! service, its free blocks are on the isolated lists (spec §1.8).

use crate::event::EventSink;
use crate::frame::{FrameIndex, State};
use crate::zone::{End, LockedZone};
use crate::{MigrateType, Order};

impl<E: EventSink> LockedZone<'_, E> {
    /// Isolates the pageblock that holds `frame`. Returns `false` if the pageblock is isolated already.
    pub(crate) fn isolate_pageblock(&mut self, frame: FrameIndex) -> bool {
        if self.body.frames.pageblock_type(frame) == MigrateType::Isolate {
            return false;
        }
        let start = Self::pageblock_start(frame);
        self.split_at_pageblocks(start);
        self.set_block_type(start, Order::PAGEBLOCK, MigrateType::Isolate);
        self.move_free_blocks(start, MigrateType::Isolate);
        // A frame that is freed in an isolated pageblock does not go to the pageblock's owner, so end the
        // ownership.
        self.body.owners.disown(start);
        let isolated = self.body.gauges.isolated_pageblocks();
        self.body.gauges.set_isolated_pageblocks(isolated + 1);
        true
    }

    /// Puts the frame's pageblock back into service with the type `to`, which must not be `Isolate`. The
    /// pageblock's free blocks go to the tails of that type's lists. Returns `false` if the pageblock is not
    /// isolated.
    pub(crate) fn unisolate_pageblock(&mut self, frame: FrameIndex, to: MigrateType) -> bool {
        debug_assert!(to != MigrateType::Isolate, "a pageblock returns to service as another type");
        if self.body.frames.pageblock_type(frame) != MigrateType::Isolate {
            return false;
        }
        let start = Self::pageblock_start(frame);
        // The free blocks of two isolated pageblocks may have merged.
        self.split_at_pageblocks(start);
        let to = self.grouped(to);
        self.set_block_type(start, Order::PAGEBLOCK, to);
        self.move_free_blocks(start, to);
        let isolated = self.body.gauges.isolated_pageblocks();
        debug_assert!(isolated > 0, "an isolated pageblock was counted");
        self.body.gauges.set_isolated_pageblocks(isolated.saturating_sub(1));
        true
    }

    /// If the pageblock at `start` is part of a larger free block, splits that block into pageblocks, so that
    /// one pageblock can move alone.
    fn split_at_pageblocks(&mut self, start: FrameIndex) {
        let Some((head, State::Free { order, migratetype })) = self.body.frames.covering_block(start) else {
            return;
        };
        if order <= Order::PAGEBLOCK {
            return;
        }
        self.remove(head, order, migratetype);
        for part in (0..order.frames()).step_by(Order::PAGEBLOCK.frames() as usize) {
            self.insert(head + part, Order::PAGEBLOCK, migratetype, End::Tail);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::buddy::tests::Bench;
    use crate::policy::BuddyRules;

    #[test]
    fn an_isolated_pageblock_is_neither_free_nor_allocated_from() {
        let mut bench = Bench::new(1024, BuddyRules::LINUX_6_12);
        assert!(bench.zone().isolate_pageblock(700));
        assert!(!bench.zone().isolate_pageblock(600), "twice");
        assert_eq!(bench.body.gauges.free_pages(), 512);
        assert_eq!(bench.list(9, MigrateType::Isolate), [512]);
        assert_eq!(bench.zone().take_smallest(Order::PAGEBLOCK, MigrateType::Movable), Some(0));
        assert_eq!(bench.zone().take_smallest(Order::ZERO, MigrateType::Movable), None);
        assert!(bench.zone().unisolate_pageblock(512, MigrateType::Movable));
        assert_eq!(bench.body.gauges.free_pages(), 512);
        assert_eq!(bench.zone().take_smallest(Order::ZERO, MigrateType::Movable), Some(512));
    }
}
