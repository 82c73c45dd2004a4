//! Allocates and frees several blocks of a row by one exchange, for caches above this allocator.

use pageset_core::{AllocError, CpuId, Order, Pfn, Request};

use super::BlockAllocator;
use super::needy::Highatomic;
use crate::access::Access;
use crate::cpu_share::{CpuShare, Wanted};
use crate::ids::{BlockId, FrameId};
use crate::row::{ROW_FRAMES, ROWS};
use crate::row_blocks::RowBlocks;

impl<A: Access> BlockAllocator<'_, A> {
    /// Allocates blocks that lie in one row: at least one, at most `limit`. Orders larger than a row get one
    /// block. O(1) while the CPU's pageblock has a free block.
    ///
    /// # Errors
    /// The errors of [`alloc`](Self::alloc) if no block was found.
    #[inline]
    pub fn alloc_row(&self, cpu: CpuId, request: &Request, limit: usize) -> Result<RowBlocks, AllocError> {
        if let Some(blocks) = self.take_current_row(cpu, request, limit) {
            return Ok(blocks);
        }
        self.alloc_row_near(cpu, request, limit.max(1))
    }

    /// Takes blocks from another row of the CPU's pageblock. If no row of the pageblock has a suitable block,
    /// allocates one block in the usual way.
    #[cold]
    #[inline(never)]
    fn alloc_row_near(&self, cpu: CpuId, request: &Request, limit: usize) -> Result<RowBlocks, AllocError> {
        if let Some(blocks) = self.take_next_row(cpu, request, limit) {
            return Ok(blocks);
        }
        // This call may reserve another pageblock for the CPU, and leave more free blocks in the row of the
        // block.
        let pfn = self.alloc(cpu, request)?;
        let one = RowBlocks::of(pfn, request.order);
        Ok(match self.take_current_row(cpu, request, limit - 1) {
            Some(more) if more.first() == one.first() => {
                RowBlocks::from_heads(one.first(), request.order, one.heads() | more.heads())
            }
            Some(more) => {
                self.return_blocks(cpu, more);
                one
            }
            None => one,
        })
    }

    /// Takes blocks from the next row of the CPU's pageblock that has free blocks of this order.
    fn take_next_row(&self, cpu: CpuId, request: &Request, limit: usize) -> Option<RowBlocks> {
        let needy = self.needy(self.home_zone(cpu, request)?, cpu, request, Highatomic::Closed);
        let reservation = needy.share.reservation(Self::row_wanted(request, limit)?);
        let (block, row) = reservation.get()?;
        if !self.is_reserved_by(cpu, block) {
            return None;
        }
        needy.share.activity.note::<A>();
        (1..ROWS).find_map(|step| {
            let next = (row + step) % ROWS;
            let blocks = self.take_row(needy.share, (block, next), request, limit)?;
            reservation.advance::<A>(block, row, next);
            self.note_line(block, cpu);
            Some(blocks)
        })
    }

    /// Takes blocks of the row that the CPU's last block came from.
    #[inline]
    fn take_current_row(&self, cpu: CpuId, request: &Request, limit: usize) -> Option<RowBlocks> {
        let share = self.share_at(self.home_zone(cpu, request)?, cpu);
        let place = share.reservation(Self::row_wanted(request, limit)?).get()?;
        let blocks = self.take_row(share, place, request, limit)?;
        self.note_line(place.0, cpu);
        Some(blocks)
    }

    /// The order and type to take, if a block of the request's order fits into a row and `limit` is not 0.
    #[inline]
    fn row_wanted(request: &Request, limit: usize) -> Option<Wanted> {
        let has_several = limit > 0 && request.order.frames() as usize <= ROW_FRAMES;
        has_several.then(|| Wanted::of(request))
    }

    #[inline]
    fn take_row(
        &self,
        share: &CpuShare,
        (block, row): (BlockId, usize),
        request: &Request,
        limit: usize,
    ) -> Option<RowBlocks> {
        let rows = self.rows.get(block.0)?;
        let heads = rows.take_blocks(row, request.order, limit);
        if heads == 0 {
            return None;
        }
        let first = share.pfn(FrameId::of(block, row * ROW_FRAMES));
        let blocks = RowBlocks::from_heads(first, request.order, heads);
        if !self.state(block).get().serves(request.migratetype) {
            rows.put_blocks(row, request.order, heads).ok();
            self.settle(block);
            return None;
        }
        Some(blocks)
    }

    /// Frees blocks that were taken in vain: they lie in another row than the caller's block.
    #[cold]
    fn return_blocks(&self, cpu: CpuId, blocks: RowBlocks) {
        self.put_row(cpu, blocks);
    }

    /// Frees blocks that lie in one row. Returns the blocks that it refused, for example because they were
    /// not in use. The other blocks are free. A [`free`](Self::free) of a returned block tells why it was
    /// refused.
    #[inline]
    #[must_use = "the blocks that it returns are not free"]
    pub fn free_row(&self, cpu: CpuId, blocks: RowBlocks) -> Option<RowBlocks> {
        let is_free = self.put_row(cpu, blocks);
        if is_free { None } else { self.free_one_by_one(cpu, blocks) }
    }

    #[cold]
    fn free_one_by_one(&self, cpu: CpuId, blocks: RowBlocks) -> Option<RowBlocks> {
        let order = blocks.order();
        let mut refused = blocks.filter(|pfn| self.free(cpu, *pfn, order).is_err());
        let mut all = RowBlocks::of(refused.next()?, order);
        refused.for_each(|pfn| {
            all.add(pfn);
        });
        Some(all)
    }

    /// Frees all of these blocks if all are in use, otherwise none.
    #[inline]
    pub(super) fn put_row(&self, cpu: CpuId, blocks: RowBlocks) -> bool {
        self.is_known(cpu)
            && self
                .place_of(blocks)
                .is_some_and(|place| self.put_heads(cpu, place, blocks.order(), blocks.heads()))
    }

    /// Does the same as [`put_row`](Self::put_row). The blocks are given by pageblock, row, and a bit for
    /// each first frame.
    #[inline(always)]
    pub(super) fn put_heads(
        &self,
        cpu: CpuId,
        (block, row): (BlockId, usize),
        order: Order,
        heads: usize,
    ) -> bool {
        if order.frames() as usize > ROW_FRAMES {
            return false;
        }
        let Ok(left) = self.rows(block).put_blocks(row, order, heads) else { return false };
        self.note_line(block, cpu);
        self.note_free(cpu, block, left);
        true
    }

    /// The pageblock of these blocks, and the row in it.
    #[inline]
    fn place_of(&self, blocks: RowBlocks) -> Option<(BlockId, usize)> {
        // Look up the first block: the first frame of the row may be a hole, or lie below the zone.
        let frame = u64::from(blocks.heads().trailing_zeros());
        let (_, id) = self.locate(Pfn(blocks.first().0.checked_add(frame)?))?;
        Some((id.block(), id.in_block() / ROW_FRAMES))
    }
}

impl RowBlocks {
    /// The blocks of one order and row at the beginning of a list, and how many they are.
    pub(super) fn leading(blocks: &[(Pfn, Order)]) -> Option<(Self, usize)> {
        let (&(pfn, order), rest) = blocks.split_first()?;
        let mut row = Self::of(pfn, order);
        let more = rest.iter().take_while(|(pfn, of)| *of == order && row.add(*pfn)).count();
        Some((row, 1 + more))
    }
}
