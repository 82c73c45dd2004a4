//! Frees a block: merges it with its buddies and puts it on a list.

use crate::event::{Event, EventSink};
use crate::frame::{FrameIndex, State};
use crate::policy::Fallback;
use crate::zone::{End, LockedZone};
use crate::{MAX_ORDER, MigrateType, Order};

/// The end of the list that a freed block enters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Placement {
    /// A block that will probably merge soon enters at the tail, and any other block enters at the head.
    Likely,
    /// The block enters at the tail, because new memory is added to the zone.
    Tail,
}

impl<E: EventSink> LockedZone<'_, E> {
    /// Merges a block with its free buddies and puts the result on `migratetype`'s list (spec §1.4).
    #[inline]
    pub(crate) fn free_block(
        &mut self,
        mut frame: FrameIndex,
        mut order: Order,
        migratetype: MigrateType,
        placement: Placement,
    ) {
        while order < Order::MAX {
            let buddy = frame ^ order.frames();
            self.emit(|| Event::BuddyLook { pfn: self.pfn(buddy) });
            let Some(list) = self.free_buddy(buddy, order) else { break };
            if order >= Order::PAGEBLOCK {
                let type_of_buddy = self.body.frames.pageblock_type(buddy);
                let differ = type_of_buddy != migratetype;
                if differ && !(type_of_buddy.is_mergeable() && migratetype.is_mergeable()) {
                    break;
                }
                if differ && self.body.rules.fallback == Fallback::ClaimOrTakeOne {
                    self.body.frames.set_block_type(buddy, order, migratetype);
                }
            }
            self.remove(buddy, order, list);
            self.body.frames.set_state(frame | buddy, State::Interior);
            frame &= buddy;
            order = order.up();
        }
        let end = match placement {
            Placement::Tail => End::Tail,
            Placement::Likely if self.is_merge_likely(frame, order) => End::Tail,
            Placement::Likely => End::Head,
        };
        self.insert(frame, order, migratetype, end);
    }

    /// The type of the list that holds a free block of exactly this order at `frame`, if there is one.
    #[inline]
    pub(super) fn free_buddy(&self, frame: FrameIndex, order: Order) -> Option<MigrateType> {
        match self.body.frames.state(frame) {
            State::Free { order: found, migratetype } if found == order => Some(migratetype),
            _ => None,
        }
    }

    /// Whether a free of this block's buddy would merge twice: first the block with its buddy, and then the
    /// merged block with a free buddy. A block that will probably merge twice should stay free for a while.
    #[inline]
    fn is_merge_likely(&self, frame: FrameIndex, order: Order) -> bool {
        if order.index() >= MAX_ORDER - 1 {
            return false;
        }
        let parent = frame & !order.frames();
        let size = order.up();
        let buddy = parent ^ size.frames();
        self.emit(|| Event::BuddyLook { pfn: self.pfn(buddy) });
        self.free_buddy(buddy, size).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::buddy::tests::Bench;
    use crate::policy::BuddyRules;

    /// Tests the second half of the specification's worked example E13.
    #[test]
    fn example_e13_frees_merge_back_to_the_head() {
        let mut bench = Bench::new(4096, BuddyRules::LINUX_6_12);
        for _ in 0..4 {
            let frame = bench.zone().take_smallest(Order::ZERO, MigrateType::Movable).unwrap();
            bench.body.frames.set_state(frame, State::Allocated { order: Order::ZERO, movable: true });
        }
        for frame in [0, 2, 1] {
            bench.free(frame, Order::ZERO);
        }
        assert_eq!(bench.list(1, MigrateType::Movable), [0]);
        assert_eq!(bench.list(0, MigrateType::Movable), [2]);
        bench.free(3, Order::ZERO);
        assert_eq!(bench.list(10, MigrateType::Movable), [0, 1024, 2048, 3072]);
    }

    /// Tests the example of spec §1.4. If frames 0 and 1 are merged, frame 2 must go to the tail. If only
    /// frame 0 is free, frame 2 must go to the head.
    #[test]
    fn a_block_about_to_merge_twice_goes_to_the_tail() {
        for (first, expected) in [(&[0, 1][..], [100, 2]), (&[0][..], [2, 100])] {
            let mut bench = Bench::new(4096, BuddyRules::LINUX_6_1);
            for _ in 0..128 {
                let frame = bench.zone().take_smallest(Order::ZERO, MigrateType::Movable).unwrap();
                bench.body.frames.set_state(frame, State::Allocated { order: Order::ZERO, movable: true });
            }
            first.iter().for_each(|&frame| bench.free(frame, Order::ZERO));
            bench.free(100, Order::ZERO);
            bench.free(2, Order::ZERO);
            let list = bench.list(0, MigrateType::Movable);
            assert_eq!(list.iter().copied().filter(|f| *f != 0).collect::<std::vec::Vec<_>>(), expected);
        }
    }
}
