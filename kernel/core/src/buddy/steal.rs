//! The fallback of Linux 6.1: moves blocks to the wanted type's lists, and then searches these lists again
//! (spec §1.6.1).

use super::fallback::Reach;
use crate::event::EventSink;
use crate::frame::FrameIndex;
use crate::request::{AllocFlags, Wanted};
use crate::zone::{ListId, LockedZone};
use crate::{MigrateType, Order, PAGEBLOCK_FRAMES};

impl<E: EventSink> LockedZone<'_, E> {
    /// Moves at least one block of the wanted order or larger to the wanted type's lists. Returns `false` if
    /// no other type has a block that is large enough.
    pub(super) fn steal(&mut self, wanted: Wanted, flags: AllocFlags) -> bool {
        let floor = Self::fallback_floor(wanted.order, flags);
        let mut chosen = None;
        for size in floor.and_above().rev() {
            let Some(found) = self.find_fallback(size, wanted.migratetype) else { continue };
            // A movable request should not split a large block of another type if a small block is large
            // enough.
            let is_movable = wanted.migratetype == MigrateType::Movable;
            let take_smaller = found.reach == Reach::Block && is_movable && size > wanted.order;
            let from_below = || {
                let mut sizes = wanted.order.and_above();
                sizes.find_map(|size| Some((size, self.find_fallback(size, wanted.migratetype)?)))
            };
            chosen = if take_smaller { from_below() } else { Some((size, found)) };
            break;
        }
        let Some((size, found)) = chosen else { return false };
        let Some(frame) = self.buddy.list(size, found.migratetype).head() else { return false };
        let list = ListId { order: size, migratetype: found.migratetype };
        self.steal_block(frame, list, wanted.migratetype, flags, found.reach);
        self.emit_extfrag(frame, wanted, list);
        true
    }

    fn steal_block(
        &mut self,
        frame: FrameIndex,
        from: ListId,
        wanted: MigrateType,
        flags: AllocFlags,
        reach: Reach,
    ) {
        let ListId { order: size, migratetype: list } = from;
        let current = self.body.frames.pageblock_type(frame);
        // A bad block does not move with its pageblock. If the bad block stayed on its list, the search for a
        // block would find the bad block again and never end. To end the search, move the bad block alone to
        // the wanted type's list. The CPU that takes the bad block from the wanted type's list notices that
        // the block is bad.
        let is_bad = self.free_buddy(frame, size).is_none();
        if is_bad || current == MigrateType::HighAtomic {
            return self.retype(frame, size, list, wanted);
        }
        if size >= Order::PAGEBLOCK {
            self.set_block_type(frame, size, wanted);
            return self.retype(frame, size, list, wanted);
        }
        self.body.boost_watermark(flags);
        if reach == Reach::Block {
            return self.retype(frame, size, list, wanted);
        }
        let start = Self::pageblock_start(frame);
        if !self.body.span.contains(start + PAGEBLOCK_FRAMES - 1) {
            return self.retype(frame, size, list, wanted);
        }
        let first = if self.body.span.contains(start) { start } else { frame };
        let suits = self.pageblock_use(first).suits(wanted, current);
        self.move_free_blocks(first, wanted);
        if self.is_worth_claiming(suits) {
            self.set_block_type(start, Order::PAGEBLOCK, wanted);
        }
    }
}
