//! Fallback of Linux 6.12: claim a whole pageblock, or else take one block and leave the rest (spec §1.6.2).

use super::LockedZone;
use crate::event::EventSink;
use crate::frame::FrameIndex;
use crate::request::AllocFlags;
use crate::{MigrateType, Order, PAGEBLOCK_FRAMES};

impl<E: EventSink> LockedZone<'_, E> {
    /// Takes a block of `order` from a pageblock that changes hands, the largest candidates first.
    pub(super) fn claim(
        &mut self,
        order: Order,
        wanted: MigrateType,
        flags: AllocFlags,
    ) -> Option<FrameIndex> {
        for size in Self::fallback_floor(order, flags).and_above().rev() {
            let Some(found) = self.find_fallback(size, wanted) else { continue };
            if !found.can_steal {
                return None;
            }
            let Some(head) = self.buddy.list(size, found.migratetype).head() else { continue };
            if let Some(frame) = self.claim_block(head, (size, found.migratetype), (order, wanted), flags) {
                self.emit_extfrag(frame, (order, wanted), (size, found.migratetype));
                return Some(frame);
            }
        }
        None
    }

    fn claim_block(
        &mut self,
        frame: FrameIndex,
        (size, list): (Order, MigrateType),
        (order, wanted): (Order, MigrateType),
        flags: AllocFlags,
    ) -> Option<FrameIndex> {
        let current = self.body.frames.pageblock_type(frame);
        if current == MigrateType::HighAtomic {
            return None;
        }
        if size >= Order::PAGEBLOCK {
            self.remove(frame, size, list);
            self.set_block_type(frame, size, wanted);
            self.split(frame, size, order, wanted);
            return Some(frame);
        }
        self.body.boost_watermark(flags);
        let start = Self::pageblock_start(frame);
        let inside = self.body.span.contains(start) && self.body.span.contains(start + PAGEBLOCK_FRAMES - 1);
        if !inside {
            return None;
        }
        let suits = self.pageblock_use(start).suits(wanted, current);
        if !self.is_worth_claiming(suits) {
            return None;
        }
        self.set_block_type(start, Order::PAGEBLOCK, wanted);
        self.move_free_blocks(start, wanted);
        self.take_smallest(order, wanted)
    }

    /// Takes the smallest block that will do from another type, which keeps the remainders and the pageblock.
    pub(super) fn take_one(&mut self, order: Order, wanted: MigrateType) -> Option<FrameIndex> {
        let (size, found) =
            order.and_above().find_map(|size| Some((size, self.find_fallback(size, wanted)?)))?;
        let frame = self.buddy.list(size, found.migratetype).head()?;
        self.remove(frame, size, found.migratetype);
        self.split(frame, size, order, found.migratetype);
        self.emit_extfrag(frame, (order, wanted), (size, found.migratetype));
        Some(frame)
    }
}
