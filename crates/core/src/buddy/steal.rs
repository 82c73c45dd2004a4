//! Fallback of Linux 6.1: move blocks to the wanted type's lists, then look there again (spec §1.6.1).

use super::LockedZone;
use crate::event::EventSink;
use crate::frame::FrameIndex;
use crate::request::AllocFlags;
use crate::{MigrateType, Order, PAGEBLOCK_FRAMES};

impl<E: EventSink> LockedZone<'_, E> {
    /// Moves at least one block of `order` or more to `wanted`'s lists. `false` if no other type has one.
    pub(super) fn steal(&mut self, order: Order, wanted: MigrateType, flags: AllocFlags) -> bool {
        let floor = Self::fallback_floor(order, flags);
        let mut chosen = None;
        for size in floor.and_above().rev() {
            let Some(found) = self.find_fallback(size, wanted) else { continue };
            // A movable request should not break a large block of others if a small one will do.
            let take_smaller = !found.can_steal && wanted == MigrateType::Movable && size > order;
            let from_below =
                || order.and_above().find_map(|size| Some((size, self.find_fallback(size, wanted)?)));
            chosen = if take_smaller { from_below() } else { Some((size, found)) };
            break;
        }
        let Some((size, found)) = chosen else { return false };
        let Some(frame) = self.buddy.list(size, found.migratetype).head() else { return false };
        self.steal_block(frame, (size, found.migratetype), wanted, flags, found.can_steal);
        self.emit_extfrag(frame, (order, wanted), (size, found.migratetype));
        true
    }

    fn steal_block(
        &mut self,
        frame: FrameIndex,
        (size, list): (Order, MigrateType),
        wanted: MigrateType,
        flags: AllocFlags,
        can_steal: bool,
    ) {
        let current = self.body.frames.pageblock_type(frame);
        // A bad block does not move with its pageblock, and left behind it would be chosen again for ever: it moves
        // alone, and whoever takes it finds out.
        let is_bad = self.free_buddy(frame, size).is_none();
        if is_bad || current == MigrateType::HighAtomic {
            return self.retype(frame, size, list, wanted);
        }
        if size >= Order::PAGEBLOCK {
            self.set_block_type(frame, size, wanted);
            return self.retype(frame, size, list, wanted);
        }
        self.body.boost_watermark(flags);
        if !can_steal {
            return self.retype(frame, size, list, wanted);
        }
        let start = Self::pageblock_start(frame);
        if !self.body.span.contains(start + PAGEBLOCK_FRAMES - 1) {
            return self.retype(frame, size, list, wanted);
        }
        let from = if self.body.span.contains(start) { start } else { frame };
        let suits = self.pageblock_use(from).suits(wanted, current);
        self.move_free_blocks(from, wanted);
        if self.is_worth_claiming(suits) {
            self.set_block_type(start, Order::PAGEBLOCK, wanted);
        }
    }
}
