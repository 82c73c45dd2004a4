//! Many blocks by one call: frames of one word come and go together.

use pageset_core::{AllocError, CpuId, FreeError, Order, Pfn, Request};

use super::{BlockAllocator, FRAMES};
use crate::cpu_lists::Wanted;
use crate::free_bits::WORD_FRAMES;

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
        let all = pages.len();
        let mut slots = pages.iter_mut().filter(|slot| slot.is_none());
        let mut got_any = false;
        while let Some(slot) = slots.next() {
            // One the usual way, which has what follows at hand.
            match self.alloc(cpu, request) {
                Ok(pfn) => *slot = Some(pfn),
                Err(error) if !got_any => return Err(error),
                Err(_) => break,
            }
            got_any = true;
            filled += 1;
            filled += self.take_more(cpu, request, all - filled, &mut slots);
        }
        Ok(filled)
    }

    /// Frames of the word that the CPU's last one came from, at most `count`, for which there are slots.
    fn take_more<'s>(
        &self,
        cpu: CpuId,
        request: &Request,
        count: usize,
        slots: &mut impl Iterator<Item = &'s mut Option<Pfn>>,
    ) -> usize {
        let Some(zone) = self.home_zone(cpu, request) else { return 0 };
        let wanted = Wanted::of(request);
        let Some((block, word)) = self.lists_at(zone, cpu).cursor(wanted).get() else { return 0 };
        let mut frames = self.free[block].take_frames(word, count);
        if frames == 0 {
            return 0;
        }
        if !self.states[block].get().serves(wanted.order, wanted.migratetype) {
            self.return_word(block, word, frames);
            return 0;
        }
        let first = block * FRAMES + word * WORD_FRAMES;
        let taken = frames.count_ones() as usize;
        for slot in slots.take(taken) {
            *slot = Some(self.zones[zone.index()].pfn(first + frames.trailing_zeros() as usize));
            frames &= frames - 1;
        }
        debug_assert_eq!(frames, 0, "there was a slot for each frame");
        taken
    }

    #[cold]
    fn return_word(&self, block: usize, word: usize, frames: usize) {
        let put = self.free[block].put_frames(word, frames);
        debug_assert!(put.is_ok(), "frames that were just taken are not free");
        self.settle(block);
    }

    /// Frees blocks one after the other. Single frames that lie together and follow each other are one step.
    ///
    /// # Errors
    /// The first block that could not be freed, by its place, and why. Those before it are free, those from it on are not.
    pub fn free_batch(&self, cpu: CpuId, blocks: &[(Pfn, Order)]) -> Result<(), (usize, FreeError)> {
        let mut rest = 0;
        while let Some((pfn, order)) = blocks.get(rest) {
            match self.free_word(&blocks[rest..]) {
                0 => {
                    self.free(cpu, *pfn, *order).map_err(|error| (rest, error))?;
                    rest += 1;
                }
                freed => rest += freed,
            }
        }
        Ok(())
    }

    /// Frees the frames at the beginning that lie in one word, if there is more than one and all is as it should be. Returns
    /// how many.
    fn free_word(&self, blocks: &[(Pfn, Order)]) -> usize {
        let Some((_, first)) = self.locate(blocks[0].0) else { return 0 };
        let (block, word) = (first / FRAMES, first % FRAMES / WORD_FRAMES);
        if !self.states[block].get().takes_back(Order::ZERO) {
            return 0;
        }
        let mut frames = 0_usize;
        let mut count = 0;
        for (pfn, order) in blocks {
            let place = pfn.0.wrapping_sub(blocks[0].0.0).wrapping_add((first % WORD_FRAMES) as u64);
            if *order != Order::ZERO || place >= WORD_FRAMES as u64 || frames >> place & 1 == 1 {
                break;
            }
            frames |= 1 << place;
            count += 1;
        }
        if count < 2 {
            return 0;
        }
        match self.free[block].put_frames(word, frames) {
            Ok(free) => self.note_free(block, Order::ZERO, free),
            // One of them is free: one by one it will show which.
            Err(_) => return 0,
        }
        count
    }
}
