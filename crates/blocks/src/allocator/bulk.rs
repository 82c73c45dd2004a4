//! Many blocks by one call: those of one word come and go together.

use pageset_core::{AllocError, CpuId, FreeError, Order, Pfn, Request};

use super::BlockAllocator;
use crate::block_word::BlockWord;

impl BlockAllocator<'_> {
    /// Fills the empty slots of `pages` with single pages. Slots that are filled already are skipped. Returns how many slots
    /// are filled in the end; fewer than all only if memory is short.
    ///
    /// # Errors
    /// As [`alloc`](Self::alloc), if not one page could be had; [`AllocError::BulkOrder`] for another order than 0.
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
            let blocks = match self.alloc_word(cpu, request, missing) {
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

    /// Frees blocks one after the other. Those that lie together and follow each other are one step.
    ///
    /// # Errors
    /// The first block that could not be freed, by its place, and why. The other blocks are freed nevertheless.
    pub fn free_batch(&self, cpu: CpuId, blocks: &[(Pfn, Order)]) -> Result<(), (usize, FreeError)> {
        let mut outcome = Ok(());
        let mut done = 0;
        while let Some((together, count)) = BlockWord::leading(&blocks[done..]) {
            // One of several that is no block in use shows when they are freed one by one.
            if !self.put_word(cpu, together) {
                for (at, (pfn, order)) in blocks.iter().enumerate().skip(done).take(count) {
                    let freed = self.free(cpu, *pfn, *order).map_err(|error| (at, error));
                    outcome = outcome.and(freed);
                }
            }
            done += count;
        }
        outcome
    }
}
