//! Takes a block out of one pageblock.

use pageset_core::Order;

use super::BlockAllocator;
use super::needy::Needy;
use crate::access::Access;
use crate::cpu_share::Wanted;
use crate::ids::{BlockId, FrameId};
use crate::row::ROW_FRAMES;

impl<A: Access> BlockAllocator<'_, A> {
    /// Takes a block of the pageblock that the CPU reserves. No watermark is checked: the pageblock's memory
    /// left the zone's count when the CPU reserved it.
    pub(super) fn take_from_own(&self, needy: Needy<'_>) -> Option<FrameId> {
        let reservation = needy.share.reservation(needy.wanted);
        let (block, row) = reservation.get()?;
        let state = self.states.get(block.0)?.get();
        if !state.is_reserved_by(needy.cpu) || !state.serves(needy.wanted.migratetype) {
            return None;
        }
        let Some(frame) = self.rows(block).take_any(needy.wanted.order) else {
            self.note_missed(block, needy.wanted.order);
            return None;
        };
        reservation.advance::<A>(block, row, frame / ROW_FRAMES);
        self.note_line(block, needy.cpu);
        self.still(block, frame, needy.wanted)
    }

    /// Takes one block of a pageblock, whether a CPU reserves it or not.
    pub(super) fn take_one(&self, block: BlockId, wanted: Wanted) -> Option<FrameId> {
        let Some(frame) = self.rows(block).take_any(wanted.order) else {
            self.note_missed(block, wanted.order);
            return None;
        };
        self.note_taken(block, wanted.order.frames());
        self.still(block, frame, wanted)
    }

    /// Takes one block of a pageblock, if that needs no cut of a larger free block. After `take_exact`, the
    /// caller must settle the pageblock.
    pub(super) fn take_exact(&self, block: BlockId, wanted: Wanted) -> Option<FrameId> {
        let frame = self.rows(block).take_exact(wanted.order)?;
        self.note_taken(block, wanted.order.frames());
        self.still(block, frame, wanted)
    }

    /// Checks, after a block was taken, that its pageblock still serves this type. Returns the place of the
    /// block's first frame. If the pageblock has another type now, is out of service or becomes whole, this
    /// function returns the block to it.
    ///
    /// Race: another CPU changes the state and then looks at the frames, while this CPU takes the block and
    /// then reads the state. If the other CPU changed the state first, this CPU sees the new state and loses
    /// the block. If this CPU took the block first, the other CPU sees that the frame is in use.
    #[inline(always)]
    pub(super) fn still(&self, block: BlockId, frame: usize, wanted: Wanted) -> Option<FrameId> {
        if self.state(block).get().serves(wanted.migratetype) {
            return Some(FrameId::of(block, frame));
        }
        self.return_block(block, frame, wanted.order);
        None
    }

    #[cold]
    pub(super) fn return_block(&self, block: BlockId, frame: usize, order: Order) {
        self.rows(block).put(frame, order).ok();
        self.settle(block);
    }
}
