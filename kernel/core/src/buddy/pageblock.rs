//! Counts the free and the movable frames of a pageblock, and moves its free blocks to the lists of another
//! type.

use crate::event::EventSink;
use crate::frame::{FrameIndex, State};
use crate::zone::LockedZone;
use crate::{MigrateType, Order, PAGEBLOCK_FRAMES};

/// Counts of a pageblock's free frames and movable frames. Cached, leaked and unmovable frames are in neither
/// count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PageblockUse {
    pub(crate) free: u32,
    pub(crate) movable: u32,
}

impl PageblockUse {
    /// Number of the pageblock's frames that are free, or whose use is like the type `wanted` (spec §1.6). A
    /// movable frame is like `Movable`. In a movable pageblock, a frame that is neither free nor movable is
    /// like the other types. `current` is the pageblock's type.
    pub(crate) fn suits(self, wanted: MigrateType, current: MigrateType) -> u32 {
        let alike = match (wanted, current) {
            (MigrateType::Movable, _) => self.movable,
            (_, MigrateType::Movable) => PAGEBLOCK_FRAMES.saturating_sub(self.free + self.movable),
            _ => 0,
        };
        self.free + alike
    }
}

impl<E: EventSink> LockedZone<'_, E> {
    pub(crate) fn pageblock_start(frame: FrameIndex) -> FrameIndex {
        frame & !(PAGEBLOCK_FRAMES - 1)
    }

    /// Visits every block that starts between `from` and the end of its pageblock, in ascending order.
    pub(super) fn for_each_block(
        &mut self,
        from: FrameIndex,
        mut visit: impl FnMut(&mut Self, FrameIndex, State, Order),
    ) {
        let end = Self::pageblock_start(from) + PAGEBLOCK_FRAMES;
        let mut frame = from;
        while frame < end {
            let state = self.body.frames.state(frame);
            match state.order() {
                Some(order) => {
                    visit(self, frame, state, order);
                    frame += order.frames();
                }
                None => frame += 1,
            }
        }
    }

    /// Counts the free and the movable frames of a pageblock, from the frame `from` on. If a block begins
    /// before the pageblock, the block covers the whole pageblock, so 512 of the block's frames count.
    pub(crate) fn pageblock_use(&mut self, from: FrameIndex) -> PageblockUse {
        let mut frames = PageblockUse::default();
        if let Some((head, state)) = self.body.frames.covering_block(from)
            && head < from
        {
            frames.add(state, PAGEBLOCK_FRAMES);
        }
        self.for_each_block(from, |_, _, state, order| {
            frames.add(state, order.frames().min(PAGEBLOCK_FRAMES));
        });
        frames
    }

    /// Moves every free block of a pageblock, from the frame `from` on, to the tails of `to`'s lists, in
    /// ascending order. Returns the number of frames moved.
    pub(crate) fn move_free_blocks(&mut self, from: FrameIndex, to: MigrateType) -> u32 {
        let mut moved = 0;
        self.for_each_block(from, |zone, frame, state, order| {
            if let State::Free { migratetype, .. } = state {
                zone.retype(frame, order, migratetype, to);
                moved += order.frames();
            }
        });
        moved
    }
}

impl PageblockUse {
    fn add(&mut self, state: State, frames: u32) {
        match state {
            State::Free { .. } => self.free += frames,
            State::Allocated { movable: true, .. } => self.movable += frames,
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::buddy::tests::Bench;
    use crate::policy::BuddyRules;

    #[test]
    fn a_block_of_two_pageblocks_counts_in_both() {
        let mut bench = Bench::new(2048, BuddyRules::LINUX_6_12);
        let frame = bench.zone().take_smallest(Order::MAX, MigrateType::Movable).unwrap();
        bench.body.frames.set_state(frame, State::Allocated { order: Order::MAX, movable: true });
        for start in [0, 512] {
            assert_eq!(bench.zone().pageblock_use(start), PageblockUse { free: 0, movable: 512 });
        }
        assert_eq!(bench.zone().pageblock_use(1024), PageblockUse { free: 512, movable: 0 });
    }

    #[test]
    fn moving_keeps_orders_and_ascending_addresses() {
        let mut bench = Bench::new(1024, BuddyRules::LINUX_6_1);
        let frame = bench.zone().take_smallest(Order::ZERO, MigrateType::Movable).unwrap();
        assert_eq!(frame, 0);
        let moved = bench.zone().move_free_blocks(1, MigrateType::Unmovable);
        assert_eq!(moved, 511);
        assert_eq!(bench.list(0, MigrateType::Unmovable), [1]);
        assert_eq!(bench.list(8, MigrateType::Unmovable), [256]);
        assert_eq!(bench.list(9, MigrateType::Movable), [512]);
    }
}
