//! The usual allocation: the block that the CPU freed last, or a block of the pageblock that the CPU
//! reserves.

use pageset_core::{AllocError, CpuId, Order, Pfn, Request, ZoneId};

use super::BlockAllocator;
use super::needy::Highatomic;
use crate::access::Access;
use crate::cpu_share::Wanted;
use crate::ids::FrameId;
use crate::row::ROW_ORDER;
use crate::state::BlockState;

impl<A: Access> BlockAllocator<'_, A> {
    /// Allocates a block. Two requests at the same time, on one CPU or on two, get different blocks.
    ///
    /// # Errors
    /// See [`AllocError`]. A request fails although frames are free if the zone would fall below the
    /// request's watermark.
    #[inline(always)]
    pub fn alloc(&self, cpu: CpuId, request: &Request) -> Result<Pfn, AllocError> {
        match self.alloc_from_own(cpu, request) {
            Some(pfn) => Ok(pfn),
            None => self.alloc_near(cpu, request),
        }
    }

    #[inline(always)]
    pub(super) fn alloc_from_own(&self, cpu: CpuId, request: &Request) -> Option<Pfn> {
        if request.order.index() > ROW_ORDER {
            return None;
        }
        let zone = self.home_zone(cpu, request)?;
        let share = self.share_at(zone, cpu);
        let wanted = Wanted::of(request);
        if let Some(id) = share.take_freed_hint(wanted.order)
            && self.take_again(id, zone, cpu, request)
        {
            self.note_line(id.block(), cpu);
            return Some(share.pfn(id));
        }
        let (block, row) = share.reservation(wanted).get()?;
        let frame = self.rows.get(block.0)?.take_in_row(row, wanted.order)?;
        self.note_line(block, cpu);
        Some(share.pfn(self.still(block, frame, wanted)?))
    }

    /// Takes the block of the wanted order that the CPU freed last, if that block is still free. That block
    /// is probably still in the CPU's caches.
    ///
    /// Does not take the block if its buddy is free, too. The block and its buddy form a larger free block,
    /// which a larger request may need.
    ///
    /// If the CPU does not reserve the block's pageblock, checks the watermark, because no earlier step has
    /// checked it for this block.
    #[inline(always)]
    fn take_again(&self, id: FrameId, zone: ZoneId, cpu: CpuId, request: &Request) -> bool {
        let wanted = Wanted::of(request);
        let (block, frame) = (id.block(), id.in_block());
        let Some(state) = self.states.get(block.0).map(BlockState::get) else { return false };
        let rows = &self.rows(block);
        if !state.serves(wanted.migratetype)
            || rows.is_merged(frame, wanted.order)
            || !(state.is_reserved_by(cpu) || self.zones[zone.index()].can_spare(request))
            || !rows.take_at_in_row(frame, wanted.order)
        {
            return false;
        }
        self.note_taken(block, wanted.order.frames());
        self.still(block, frame, wanted).is_some()
    }

    /// For order 9, takes a pageblock of the CPU's stock. For a smaller order, takes a block from any row of
    /// the reserved pageblock. If there is none, tries all zones.
    #[inline(never)]
    fn alloc_near(&self, cpu: CpuId, request: &Request) -> Result<Pfn, AllocError> {
        let Some(zone) = self.home_zone(cpu, request) else { return self.alloc_slow(cpu, request, false) };
        let needy = self.needy(zone, cpu, request, Highatomic::Closed);
        needy.share.activity.note::<A>();
        let found = match request.order {
            Order::PAGEBLOCK => {
                self.take_of_stock(needy.share, request.migratetype).map(|block| FrameId::of(block, 0))
            }
            Order::MAX => None,
            _ => self.take_from_own(needy),
        };
        match found {
            Some(id) => Ok(needy.share.pfn(id)),
            None => self.alloc_slow(cpu, request, true),
        }
    }
}
