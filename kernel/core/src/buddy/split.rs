//! Takes a block from one type's lists and splits it to the wanted size.

use crate::event::{Event, EventSink};
use crate::frame::FrameIndex;
use crate::zone::{End, ListId, LockedZone};
use crate::{MigrateType, Order};

impl<E: EventSink> LockedZone<'_, E> {
    /// Takes a free block of `migratetype`, and splits the block to `order` (spec §1.3). The block has the
    /// smallest possible order from `order` upwards. One bit operation finds the smallest order that has a
    /// free block.
    #[inline]
    pub(crate) fn take_smallest(&mut self, order: Order, migratetype: MigrateType) -> Option<FrameIndex> {
        let found = self.body.gauges.smallest(order, migratetype)?;
        let mut frame = self.buddy.list(found, migratetype).head()?;
        // For a block of at least a pageblock, a policy with `steering` chooses the unit of 1 GiB.
        if found >= Order::PAGEBLOCK
            && let Some(rule) = self.body.rules.steering()
        {
            let list = ListId { order: found, migratetype };
            frame = self.steered_whole(rule, list, migratetype).unwrap_or(frame);
        }
        self.remove(frame, found, migratetype);
        self.split(frame, found, order, migratetype);
        self.emit(|| Event::MmPageAllocZoneLocked {
            pfn: self.pfn(frame),
            order,
            migratetype,
            percpu_refill: order.is_cached_by_kernel() && migratetype.is_mergeable(),
        });
        Some(frame)
    }

    /// Splits a taken block of the order `from`. The caller keeps the lowest part, of the order `order`. The
    /// upper halves go to the heads of `migratetype`'s lists, largest first.
    #[inline]
    pub(crate) fn split(&mut self, frame: FrameIndex, from: Order, order: Order, migratetype: MigrateType) {
        let mut size = from;
        while size > order {
            size = size.down();
            self.insert(frame + size.frames(), size, migratetype, End::Head);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::buddy::tests::Bench;
    use crate::policy::BuddyRules;

    /// Tests the first half of the specification's worked example E13.
    #[test]
    fn example_e13_splitting_leaves_the_upper_halves() {
        let mut bench = Bench::new(4096, BuddyRules::LINUX_6_12);
        assert_eq!(bench.list(10, MigrateType::Movable), [0, 1024, 2048, 3072]);
        for expected in 0..4 {
            assert_eq!(bench.zone().take_smallest(Order::ZERO, MigrateType::Movable), Some(expected));
        }
        assert_eq!(bench.list(2, MigrateType::Movable), [4]);
        assert_eq!(bench.list(3, MigrateType::Movable), [8]);
        assert_eq!(bench.list(9, MigrateType::Movable), [512]);
        assert_eq!(bench.list(10, MigrateType::Movable), [1024, 2048, 3072]);
        assert_eq!(bench.list(0, MigrateType::Movable), [0_u32; 0]);
    }
}
