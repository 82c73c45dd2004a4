//! Frees a block: any CPU can return the block to its pageblock.

use pageset_core::{CpuId, FreeError, Order, Pfn};

use super::BlockAllocator;
use crate::access::Access;
use crate::ids::BlockId;
use crate::row::{ROW_FRAMES, ROW_ORDER};
use crate::rows::Use;
use crate::state::Phase;

impl<A: Access> BlockAllocator<'_, A> {
    /// Frees a block. O(1).
    ///
    /// # Errors
    /// [`FreeError`] if no block of this order is in use there. The allocator is then unchanged.
    #[inline]
    pub fn free(&self, cpu: CpuId, pfn: Pfn, order: Order) -> Result<(), FreeError> {
        if order.index() <= ROW_ORDER
            && let Some((zone, id)) = self.locate(pfn)
            && self.is_known(cpu)
        {
            let (block, frame) = (id.block(), id.in_block());
            let row = frame / ROW_FRAMES;
            if let Ok(left) = self.rows(block).put_in_row(row, frame % ROW_FRAMES, order) {
                self.note_line(block, cpu);
                if self.note_free(cpu, block, left).may_be_used_by(cpu) {
                    self.share_at(zone.id, cpu).note_freed(id, order);
                }
                return Ok(());
            }
        }
        self.free_past(cpu, pfn, order)
    }

    /// Frees a block that is larger than a row. For a block that is not in use, finds the error to report.
    #[inline(never)]
    fn free_past(&self, cpu: CpuId, pfn: Pfn, order: Order) -> Result<(), FreeError> {
        if let Some((zone, id)) = self.locate(pfn)
            && self.is_known(cpu)
        {
            let (block, frame) = (id.block(), id.in_block());
            let is_freed = match order {
                Order::PAGEBLOCK => frame == 0 && self.free_to_stock(cpu, zone.id, block),
                _ => order < Order::PAGEBLOCK && self.put(cpu, block, frame, order),
            };
            if is_freed {
                return Ok(());
            }
        }
        self.free_slow(cpu, pfn, order)
    }

    /// Returns a block to its pageblock. Returns `false` if no such block is in use.
    #[inline]
    fn put(&self, cpu: CpuId, block: BlockId, frame: usize, order: Order) -> bool {
        let Ok(left) = self.rows(block).put(frame, order) else { return false };
        self.note_line(block, cpu);
        self.note_free(cpu, block, left);
        true
    }

    /// Frees a block of one or two pageblocks. If there is no such block in use, finds the error to report.
    #[cold]
    #[inline(never)]
    fn free_slow(&self, cpu: CpuId, pfn: Pfn, order: Order) -> Result<(), FreeError> {
        if !self.is_known(cpu) {
            return Err(FreeError::BadCpu(cpu));
        }
        let Some((zone, id)) = self.locate(pfn) else { return Err(FreeError::Foreign(pfn)) };
        let (block, frame) = (id.block(), id.in_block());
        let state = self.state(block).get();
        let wrong = |allocated| Err(FreeError::WrongOrder { pfn, given: order, allocated });
        match state.phase() {
            Phase::Absent => Err(FreeError::Foreign(pfn)),
            Phase::Whole | Phase::Parked => Err(FreeError::DoubleFree(pfn)),
            Phase::SecondHalf => Err(FreeError::NotABlock(pfn)),
            Phase::Block if frame != 0 => Err(FreeError::NotABlock(pfn)),
            Phase::Block if state.has_bad() => Err(FreeError::Leaked(pfn)),
            Phase::Block if state.block_order() != order => wrong(state.block_order()),
            Phase::Block if self.free_whole(cpu, zone.id, block, order) => Ok(()),
            Phase::Block => Err(FreeError::DoubleFree(pfn)),
            Phase::Open | Phase::Changing => match self.rows(block).look(frame) {
                Use::Free => Err(FreeError::DoubleFree(pfn)),
                Use::InsideWithheld => Err(FreeError::NotABlock(pfn)),
                // Race: another CPU is freeing, cutting or taking the block. This free loses, because its
                // caller does not own the block.
                Use::Changing => Err(FreeError::DoubleFree(pfn)),
                Use::Block(start, _) if start != frame => Err(FreeError::NotABlock(pfn)),
                Use::Block(_, allocated) if allocated != order => wrong(allocated),
                // One block in use fills this open pageblock. Race: another CPU has split this block of 512
                // pages into rows, to free a part of it. The first exchange of the first row wins.
                Use::Block(..) if order == Order::PAGEBLOCK && self.put(cpu, block, frame, order) => Ok(()),
                // Race: another CPU allocated the block between the two looks. This free loses, because its
                // caller does not own the block.
                Use::Block(..) => Err(FreeError::DoubleFree(pfn)),
                Use::Withheld => Err(self.why_withheld(block, frame, pfn)),
            },
        }
    }

    /// Tells why a withheld frame cannot be freed.
    pub(super) fn why_withheld(&self, block: BlockId, frame: usize, pfn: Pfn) -> FreeError {
        let state = self.state(block).get();
        // A withheld frame is a hole, or is out of service, or another CPU is just taking it out of service.
        if state.is_holed() && !self.is_bad(block, frame, state) {
            FreeError::Foreign(pfn)
        } else {
            FreeError::Leaked(pfn)
        }
    }
}
