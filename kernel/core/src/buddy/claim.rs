//! The fallback of Linux 6.12 (spec §1.6.2). The fallback claims a whole pageblock of another type, or takes
//! one block and leaves the rest of the pageblock to the other type.

use super::fallback::Reach;
use crate::event::EventSink;
use crate::frame::FrameIndex;
use crate::request::{AllocFlags, Wanted};
use crate::zone::{ListId, LockedZone};
use crate::{MigrateType, Order, PAGEBLOCK_FRAMES};

impl<E: EventSink> LockedZone<'_, E> {
    /// Claims a pageblock of another type, and takes a block of the wanted order from this pageblock. Tries
    /// the pageblocks with the largest free blocks first.
    pub(super) fn claim(&mut self, wanted: Wanted, flags: AllocFlags) -> Option<FrameIndex> {
        if let Some(rule) = self.body.rules.steering()
            && let Some(frame) = self.claim_in_tainted(rule, wanted, flags)
        {
            return Some(frame);
        }
        for size in Self::fallback_floor(wanted.order, flags).and_above().rev() {
            let Some(found) = self.find_fallback(size, wanted.migratetype) else { continue };
            if found.reach == Reach::Block {
                return None;
            }
            let list = ListId { order: size, migratetype: found.migratetype };
            let Some(head) = self.buddy.list(size, found.migratetype).head() else { continue };
            if let Some(frame) = self.claim_block(head, list, wanted, flags) {
                self.emit_extfrag(frame, wanted, list);
                return Some(frame);
            }
        }
        None
    }

    pub(super) fn claim_block(
        &mut self,
        frame: FrameIndex,
        list: ListId,
        wanted: Wanted,
        flags: AllocFlags,
    ) -> Option<FrameIndex> {
        let current = self.body.frames.pageblock_type(frame);
        if current == MigrateType::HighAtomic {
            return None;
        }
        if list.order >= Order::PAGEBLOCK {
            self.remove(frame, list.order, list.migratetype);
            self.set_block_type(frame, list.order, wanted.migratetype);
            self.split(frame, list.order, wanted.order, wanted.migratetype);
            return Some(frame);
        }
        self.body.boost_watermark(flags);
        let start = Self::pageblock_start(frame);
        let inside = self.body.span.contains(start) && self.body.span.contains(start + PAGEBLOCK_FRAMES - 1);
        if !inside {
            return None;
        }
        let suits = self.pageblock_use(start).suits(wanted.migratetype, current);
        if !self.is_worth_claiming(suits) {
            return None;
        }
        self.set_block_type(start, Order::PAGEBLOCK, wanted.migratetype);
        self.move_free_blocks(start, wanted.migratetype);
        self.take_smallest(wanted.order, wanted.migratetype)
    }

    /// Takes a block of the wanted order out of the smallest free block of another type that is large enough.
    /// The other type keeps the remainder of the block and the pageblock.
    pub(super) fn take_one(&mut self, wanted: Wanted) -> Option<FrameIndex> {
        let mut sizes = wanted.order.and_above();
        let (size, found) =
            sizes.find_map(|size| Some((size, self.find_fallback(size, wanted.migratetype)?)))?;
        let list = ListId { order: size, migratetype: found.migratetype };
        let head = self.buddy.list(size, found.migratetype).head()?;
        let rule = self.body.rules.steering().filter(|_| wanted.migratetype != MigrateType::Movable);
        let steered = rule.and_then(|rule| self.first_in_tainted(rule, list));
        Some(self.take_this(steered.unwrap_or(head), list, wanted))
    }

    /// Takes a block of the wanted order from the free block at `frame`, which is of another type. The other
    /// type keeps the remainder of the block and the pageblock.
    pub(super) fn take_this(&mut self, frame: FrameIndex, list: ListId, wanted: Wanted) -> FrameIndex {
        self.remove(frame, list.order, list.migratetype);
        self.split(frame, list.order, wanted.order, list.migratetype);
        self.emit_extfrag(frame, wanted, list);
        frame
    }
}
