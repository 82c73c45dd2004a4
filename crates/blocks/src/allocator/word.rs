//! All blocks of a word by one exchange: for caches above, which take and give many at a time.

use pageset_core::{AllocError, CpuId, Order, Pfn, Request};

use super::free::Back;
use super::{BlockAllocator, FRAMES};
use crate::block_word::BlockWord;
use crate::cpu_lists::{CpuLists, Wanted};
use crate::free_bits::{WORD_FRAMES, WORDS, frames_of};
use crate::stack::BlockIndex;
use crate::state::Phase;

impl BlockAllocator<'_> {
    /// Allocates blocks that lie in one word: at least one, at most `limit`. One is the most there is of orders larger than a
    /// word. O(1) while the CPU's pageblock has a free block.
    ///
    /// # Errors
    /// As [`alloc`](Self::alloc), if not one block could be had.
    #[inline]
    pub fn alloc_word(&self, cpu: CpuId, request: &Request, limit: usize) -> Result<BlockWord, AllocError> {
        if let Some(blocks) = self.take_word_at_hand(cpu, request, limit) {
            return Ok(blocks);
        }
        self.alloc_word_near(cpu, request, limit.max(1))
    }

    /// From another word of the pageblock at hand, or wherever there is one.
    #[cold]
    #[inline(never)]
    fn alloc_word_near(&self, cpu: CpuId, request: &Request, limit: usize) -> Result<BlockWord, AllocError> {
        if let Some(blocks) = self.take_word_of_rest(cpu, request, limit) {
            return Ok(blocks);
        }
        if let (Some(zone), Some(wanted)) =
            (self.home_zone(cpu, request), Self::word_wanted(request, limit - 1))
        {
            self.lists_at(zone, cpu).cursor(wanted).note_many();
        }
        // One the usual way, which has another pageblock at hand then.
        let pfn = self.alloc(cpu, request)?;
        let one = BlockWord::of(pfn, request.order);
        Ok(match self.take_word_at_hand(cpu, request, limit - 1) {
            Some(more) if more.first() == one.first() => {
                BlockWord::from_heads(one.first(), request.order, one.heads() | more.heads())
            }
            Some(more) => {
                self.return_heads(more);
                one
            }
            None => one,
        })
    }

    /// Blocks of the next word of the pageblock at hand that has any.
    fn take_word_of_rest(&self, cpu: CpuId, request: &Request, limit: usize) -> Option<BlockWord> {
        let lists = self.lists_at(self.home_zone(cpu, request)?, cpu);
        let cursor = lists.cursor(Self::word_wanted(request, limit)?);
        let (block, word) = cursor.get()?;
        let state = self.states.get(block)?.get();
        // What the CPU keeps comes before the rest, one by one.
        if state.phase() != Phase::Current || state.owner() != cpu || lists.kept.has(Wanted::of(request)) {
            return None;
        }
        lists.activity.note();
        (1..WORDS).find_map(|step| {
            let next = (word + step) % WORDS;
            let blocks = self.take_word(lists, (block, next), request, limit)?;
            cursor.advance(block, word, next);
            self.note_line(block, cpu);
            Some(blocks)
        })
    }

    /// Blocks of the word that the CPU's last one came from.
    #[inline]
    fn take_word_at_hand(&self, cpu: CpuId, request: &Request, limit: usize) -> Option<BlockWord> {
        let lists = self.lists_at(self.home_zone(cpu, request)?, cpu);
        let place = lists.cursor(Self::word_wanted(request, limit)?).get()?;
        let blocks = self.take_word(lists, place, request, limit)?;
        self.note_line(place.0, cpu);
        Some(blocks)
    }

    /// What such a request takes, if words have several blocks of it.
    #[inline]
    fn word_wanted(request: &Request, limit: usize) -> Option<Wanted> {
        let has_several = limit > 0 && request.order.frames() as usize <= WORD_FRAMES;
        has_several.then(|| Wanted::of(request))
    }

    #[inline]
    fn take_word(
        &self,
        lists: &CpuLists,
        (block, word): (BlockIndex, usize),
        request: &Request,
        limit: usize,
    ) -> Option<BlockWord> {
        let heads = self.free.get(block)?.take_blocks(word, request.order, limit);
        if heads == 0 {
            return None;
        }
        let first = (block * FRAMES + word * WORD_FRAMES) as u64;
        let blocks = BlockWord::from_heads(Pfn(first.wrapping_add(lists.offset)), request.order, heads);
        if !self.states[block].get().serves(request.order, request.migratetype) {
            self.return_heads(blocks);
            return None;
        }
        Some(blocks)
    }

    /// Puts back what was taken and is not wanted.
    #[cold]
    fn return_heads(&self, blocks: BlockWord) {
        let Some((block, word)) = self.place_of(blocks) else { return };
        let frames = frames_of(blocks.heads(), blocks.order());
        let put = self.free[block].put_frames(word, frames);
        self.note_returned(block, blocks.order(), put.map(|free| Back::of_word(word, frames, free)));
    }

    /// Frees blocks that lie in one word. Returns those that are no blocks in use, and says no more of them: a
    /// [`free`](Self::free) of one does. The others are free then.
    ///
    /// All of them go back to their pageblock, whoever owns it; none is [kept](crate::RemoteFrees::Kept).
    #[inline]
    #[must_use = "the blocks that it returns are not free"]
    pub fn free_word(&self, cpu: CpuId, blocks: BlockWord) -> Option<BlockWord> {
        // One that is larger than a word comes alone, mostly.
        let is_free = match blocks.alone() {
            Some((pfn, order)) if order.frames() as usize > WORD_FRAMES => self.free(cpu, pfn, order).is_ok(),
            _ => self.put_word(cpu, blocks),
        };
        if is_free { None } else { self.free_one_by_one(cpu, blocks) }
    }

    #[cold]
    fn free_one_by_one(&self, cpu: CpuId, blocks: BlockWord) -> Option<BlockWord> {
        let order = blocks.order();
        let is_refused = |pfn: &Pfn| !self.free_alone(cpu, *pfn, order);
        let mut refused = blocks.filter(is_refused);
        let mut all = BlockWord::of(refused.next()?, order);
        refused.for_each(|pfn| {
            all.add(pfn);
        });
        Some(all)
    }

    fn free_alone(&self, cpu: CpuId, pfn: Pfn, order: Order) -> bool {
        let alone = BlockWord::of(pfn, order);
        let is_plain = |block: BlockIndex| self.states[block].get().takes_back(order);
        if let Some((_, index)) = self.locate(pfn)
            && self.states[index / FRAMES].get().is_mixed()
        {
            return self.check_in_mixed(pfn, index, order).is_ok()
                && self.put_mixed(cpu, pfn, index, order).is_ok();
        }
        // Of what needs no other look than at its bits, `free` would keep a block that is free already.
        let is_free = || {
            order.frames() as usize <= WORD_FRAMES
                && self.place_of(alone).is_some_and(|(block, _)| is_plain(block))
        };
        self.put_word(cpu, alone) || !is_free() && self.free(cpu, pfn, order).is_ok()
    }

    /// Frees all of these, if all is as it should be; otherwise none.
    #[inline]
    pub(super) fn put_word(&self, cpu: CpuId, blocks: BlockWord) -> bool {
        let is_in_word = blocks.order().frames() as usize <= WORD_FRAMES;
        self.place_of(blocks)
            .is_some_and(|place| is_in_word && self.put_heads(cpu, place, blocks.order(), blocks.heads()))
    }

    /// The same for blocks that are no larger than a word, by pageblock, word in it, and a bit for each first frame.
    #[inline(always)]
    pub(super) fn put_heads(
        &self,
        cpu: CpuId,
        (block, word): (BlockIndex, usize),
        order: Order,
        heads: usize,
    ) -> bool {
        if !self.states[block].get().takes_back(order) {
            return false;
        }
        let Ok(free) = self.free[block].put_blocks(word, order, heads) else { return false };
        self.note_line(block, cpu);
        self.note_free(block, order, Back::of_word(word, frames_of(heads, order), free)).is_ok()
    }

    /// Pageblock, and word in it.
    #[inline]
    fn place_of(&self, blocks: BlockWord) -> Option<(BlockIndex, usize)> {
        // The word's first frame may be a hole, or lie below the zone; a block of it is not.
        let frame = u64::from(blocks.heads().trailing_zeros());
        let (_, index) = self.locate(Pfn(blocks.first().0.checked_add(frame)?))?;
        Some((index / FRAMES, index % FRAMES / WORD_FRAMES))
    }
}

impl BlockWord {
    /// The blocks at the beginning of a list that lie in one word, and how many these are.
    pub(super) fn leading(blocks: &[(Pfn, Order)]) -> Option<(Self, usize)> {
        let (&(pfn, order), rest) = blocks.split_first()?;
        let mut word = Self::of(pfn, order);
        let more = rest.iter().take_while(|(pfn, of)| *of == order && word.add(*pfn)).count();
        Some((word, 1 + more))
    }
}
