//! Allocates and frees many blocks by one call. One exchange takes or frees several blocks of a row.

use pageset_core::{AllocError, CpuId, FreeError, Order, Pfn, Request, Watermark};

use super::needy::Highatomic;
use super::{BlockAllocator, FRAMES};
use crate::access::Access;
use crate::ids::{FrameId, places};
use crate::index::Several;
use crate::row::{ROW_FRAMES, ROW_ORDER, ROWS};
use crate::row_blocks::RowBlocks;
use crate::zone::Zone;

impl<A: Access> BlockAllocator<'_, A> {
    /// Fills the empty slots of `pages` with single pages, and skips filled slots. Returns the number of
    /// filled slots, including those that were filled before. Slots stay empty only if memory is short.
    ///
    /// # Errors
    /// The errors of [`alloc`](Self::alloc) if no page was found; [`AllocError::BulkOrder`] for another order
    /// than 0.
    pub fn alloc_bulk(
        &self,
        cpu: CpuId,
        request: &Request,
        pages: &mut [Option<Pfn>],
    ) -> Result<usize, AllocError> {
        if request.order != Order::ZERO {
            return Err(AllocError::BulkOrder(request.order));
        }
        let mut filled = pages.iter().flatten().count();
        let mut missing = pages.len() - filled;
        let mut slots = pages.iter_mut().filter(|slot| slot.is_none());
        let mut got_any = false;
        while missing > 0 {
            let blocks = match self.alloc_row(cpu, request, missing) {
                Ok(blocks) => blocks,
                Err(error) if !got_any => return Err(error),
                Err(_) => break,
            };
            got_any = true;
            filled += blocks.len();
            missing -= blocks.len();
            blocks.zip(&mut slots).for_each(|(pfn, slot)| *slot = Some(pfn));
        }
        Ok(filled)
    }

    /// Frees blocks in the order of the slice. One exchange frees consecutive blocks of one order in one row,
    /// if the row has several such blocks.
    ///
    /// # Errors
    /// The index of the first block that could not be freed, and the reason. The other blocks are freed.
    pub fn free_batch(&self, cpu: CpuId, blocks: &[(Pfn, Order)]) -> Result<(), (usize, FreeError)> {
        let mut outcome = Ok(());
        let mut done = 0;
        while let Some((together, count)) = RowBlocks::leading(&blocks[done..]) {
            // `put_row` frees all blocks of one row, or none if one of them is not in use. The loop
            // frees the blocks one by one, which finds the block that is not in use.
            if !self.put_row(cpu, together) {
                for (at, (pfn, order)) in blocks.iter().enumerate().skip(done).take(count) {
                    let freed = self.free(cpu, *pfn, *order).map_err(|error| (at, error));
                    outcome = outcome.and(freed);
                }
            }
            done += count;
        }
        outcome
    }

    /// Allocates up to `limit` pageblocks that lie near each other, and at most 32. All of these pageblocks
    /// come from the zone that the CPU's requests use first. Calls `each` with the first frame of each
    /// pageblock. Returns the number of pageblocks: 0 if the zone has none to spare. [`alloc`](Self::alloc)
    /// tries all zones.
    pub fn alloc_pageblocks(
        &self,
        cpu: CpuId,
        request: &Request,
        limit: usize,
        mut each: impl FnMut(Pfn),
    ) -> usize {
        let mut request = *request;
        request.order = Order::PAGEBLOCK;
        let Some(zone) = self.home_zone(cpu, &request) else { return 0 };
        let needy = self.needy(zone, cpu, &request, Highatomic::Closed);
        let zone = &self.zones[zone.index()];
        let floor = zone.floor(&request, Watermark::Low);
        let spare = zone.free_at_least().saturating_sub(floor) / FRAMES as u64;
        let limit = limit.min(usize::try_from(spare).unwrap_or(usize::MAX));
        let mut allocated = 0;
        for block in self.claim_several(needy, limit) {
            if self.hand_out(block, Order::PAGEBLOCK, request.migratetype) {
                each(zone.pfn(FrameId::of(block, 0)));
                allocated += 1;
            }
        }
        allocated
    }

    /// Frees blocks of one order. If blocks that follow each other in `blocks` lie in one row, one exchange
    /// frees them together. Returns the number of blocks that could not be freed, for example because they
    /// were not in use with this order.
    #[inline(always)]
    pub fn free_many(&self, cpu: CpuId, order: Order, blocks: impl Iterator<Item = Pfn> + Clone) -> usize {
        let Some((zone, _)) = blocks.clone().next().and_then(|first| self.locate(first)) else {
            return blocks.filter(|pfn| self.free(cpu, *pfn, order).is_err()).count();
        };
        let mut refused = 0;
        let otherwise = |id: FrameId| refused += usize::from(self.free(cpu, zone.pfn(id), order).is_err());
        // A frame of another zone gets a place outside this zone's pageblocks, so `otherwise` gets it.
        let firsts = blocks.map(|pfn| FrameId(pfn.0.wrapping_sub(zone.offset) as usize));
        self.free_blocks(cpu, zone, order, firsts, otherwise);
        refused
    }

    /// Frees the blocks that begin at these frames. Consecutive blocks of one row are freed together.
    /// `otherwise` gets the blocks that this function cannot free.
    #[inline(always)]
    pub(super) fn free_blocks(
        &self,
        cpu: CpuId,
        zone: &Zone,
        order: Order,
        firsts: impl Iterator<Item = FrameId> + Clone,
        mut otherwise: impl FnMut(FrameId),
    ) {
        if order == Order::PAGEBLOCK && self.is_known(cpu) {
            return self.free_pageblocks(zone, firsts, otherwise);
        }
        if order.index() > ROW_ORDER || !self.is_known(cpu) {
            return firsts.for_each(otherwise);
        }
        let (rows, states) = (&self.rows[places(&zone.blocks)], &self.states[places(&zone.blocks)]);
        let first = FrameId::of(zone.blocks.start, 0).0;
        if A::IS_SHARED {
            // The exchanges below would wait for the rows' cache lines one after the other. The loads here
            // fetch all cache lines at once.
            let row_of = |place: usize| Some(rows.get(place / FRAMES)?.peek(place % FRAMES / ROW_FRAMES));
            let looks = firsts.clone().filter_map(|id| row_of(id.0.wrapping_sub(first)));
            core::hint::black_box(looks.fold(0, |all, row| all | row));
        }
        // The blocks to free together: the place of their row in the zone, and a bit for each block.
        let (mut row, mut heads) = (usize::MAX, 0);
        // The last place has no frame. The place without a frame ends the last group, so that the loop frees
        // that group.
        for id in firsts.chain(core::iter::once(FrameId(usize::MAX))) {
            let place = id.0.wrapping_sub(first);
            let (of, head) = (place / ROW_FRAMES, 1 << (place % ROW_FRAMES));
            if of == row && heads & head == 0 {
                heads |= head;
                continue;
            }
            let (block, at) = (row / ROWS, row % ROWS);
            if let (Some(rows), Some(state)) = (rows.get(block), states.get(block))
                && let Ok(left) = rows.put_blocks(at, order, heads)
            {
                let block = zone.blocks.start.after(block);
                self.note_line(block, cpu);
                self.note_free_of(cpu, block, state.get(), left);
            } else {
                let refused = (0..ROW_FRAMES).filter(|at| heads >> at & 1 == 1);
                refused.for_each(|at| otherwise(FrameId((row * ROW_FRAMES + at).wrapping_add(first))));
            }
            (row, heads) = (of, head);
        }
    }

    /// Frees the pageblocks that begin at these frames. Consecutive pageblocks whose bits share a word
    /// of a set return to the zone together. `otherwise` gets the blocks that this function cannot free.
    fn free_pageblocks(
        &self,
        zone: &Zone,
        firsts: impl Iterator<Item = FrameId>,
        mut otherwise: impl FnMut(FrameId),
    ) {
        let mut freed = Several::NONE;
        for id in firsts {
            let block = id.block();
            let is_freed = id.in_block() == 0 && zone.blocks.contains(&block) && self.end_block(block);
            if !is_freed {
                otherwise(id);
            } else if !freed.add(block) {
                self.publish_several(zone, freed);
                freed = Several::of(block);
            }
        }
        self.publish_several(zone, freed);
    }
}
