//! A given place, counts that are no power of two, and parts of blocks.

use core::ops::Range;

use pageset_core::{AllocError, CpuId, FreeError, Order, Pfn, Request, RequestTraits, Watermark, ZoneKind};

use super::mixed::Mix;
use super::{BlockAllocator, FRAMES, blocks_in, head_of};
use crate::cpu_lists::Wanted;
use crate::free_bits::WORDS;
use crate::stack::BlockIndex;
use crate::state::{Phase, State};
use crate::tail_bits::words_of;
use crate::zone::Zone;

impl BlockAllocator<'_> {
    /// Allocates the block that begins at this frame. Order and type are the request's; its zone, node and address limit are
    /// ignored. O(CPUs), or O(pageblocks) near the watermark.
    ///
    /// # Errors
    /// [`AllocError::Foreign`] if this frame is no memory; [`AllocError::NotFree`] if a frame of the block is in use, or is none of
    /// the zone's; [`AllocError::OutOfMemory`] if the zone would not stay above its minimum watermark, unless the request ignores
    /// it. See [`AllocError`] for what no request can be.
    pub fn alloc_at(&self, cpu: CpuId, pfn: Pfn, request: &Request) -> Result<(), AllocError> {
        if !self.is_known(cpu) {
            return Err(AllocError::BadCpu(cpu));
        }
        if !request.migratetype.is_mergeable() {
            return Err(AllocError::BadType(request.migratetype));
        }
        if !pfn.is_aligned(request.order) {
            return Err(AllocError::Misaligned(pfn, request.order));
        }
        let (zone, index) = self.locate(pfn).ok_or(AllocError::Foreign(pfn))?;
        if self.is_hole(index) {
            return Err(AllocError::Foreign(pfn));
        }
        let last = pfn.checked_add(u64::from(request.order.frames()) - 1);
        if !last.is_some_and(|last| zone.span.contains(&last.0)) {
            return Err(AllocError::NotFree(pfn));
        }
        let take = || {
            if request.order < Order::PAGEBLOCK {
                self.take_place(cpu, index, Wanted::of(request))
            } else {
                self.take_whole_place(index / FRAMES, request)
            }
        };
        let taken = take() || {
            self.give_back_of_all(zone);
            take()
        };
        if !taken {
            return Err(AllocError::NotFree(pfn));
        }
        if self.stays_above_min(zone, request) {
            return Ok(());
        }
        // Nobody else can have freed it.
        let freed = self.free(cpu, pfn, request.order);
        debug_assert!(freed.is_ok(), "a block that was just taken is in use");
        Err(AllocError::OutOfMemory { order: request.order })
    }

    /// Whether a zone has its minimum now that a block at a given place was taken (spec §1.8): a request of high priority has to
    /// leave as much as any other, since it could do with another place.
    fn stays_above_min(&self, zone: &Zone, request: &Request) -> bool {
        let lasting = request.traits & (RequestTraits::NO_WATERMARKS | RequestTraits::NO_RESERVES);
        let mut anywhere = request.with(lasting);
        anywhere.highest_zone = ZoneKind::Dma;
        let floor = zone.floor(&anywhere, Watermark::Min);
        self.is_free_at_least(zone, floor) || {
            self.give_back_of_all(zone);
            self.free_in(zone) >= floor
        }
    }

    fn take_whole_place(&self, block: BlockIndex, request: &Request) -> bool {
        let blocks = blocks_in(request.order);
        (block..block + blocks).for_each(|part| self.reap_block(part));
        let zone = &self.zones[self.zone_of_block(block).index()];
        self.claim_whole_at(zone, block, blocks) && self.hand_out(block, request.order, request.migratetype)
    }

    fn take_place(&self, cpu: CpuId, index: usize, wanted: Wanted) -> bool {
        let (block, frame) = (index / FRAMES, index % FRAMES);
        // One of which all is free would not stay split.
        self.reap_block(block);
        let zone = &self.zones[self.zone_of_block(block).index()];
        if self.claim_whole_at(zone, block, 1) {
            let split = State::split(wanted.order, wanted.migratetype).in_phase(Phase::Idle).of_owner(cpu);
            if !self.turn_into(block, |state| split.keeping(state)) {
                return false;
            }
            self.free[block].open(0..WORDS);
        }
        let state = self.states[block].get();
        if state.gives() && !state.is_mixed() && state.order() == wanted.order {
            let is_same = |now: State| now.gives() && !now.is_mixed() && now.order() == wanted.order;
            if !self.free[block].take_at(frame, wanted.order) {
                self.note_miss(block, wanted.order);
                return false;
            }
            if is_same(self.states[block].get()) {
                self.settle(block);
                self.note_taken(block);
                return true;
            }
            self.return_frames(block, frame, wanted.order);
        }
        self.mix(block) == Mix::Mixed && self.take_mixed_at(block, frame, wanted.order).is_some()
    }

    /// Allocates `frames` contiguous frames; what the next power of two has beyond is free. They are freed with
    /// [`free_range`](Self::free_range), all at once or in parts.
    ///
    /// # Errors
    /// As [`alloc`](Self::alloc) for the block that holds them; [`AllocError::BadCount`] if none does.
    /// [`AllocError::OutOfMemory`] too if other CPUs change each pageblock that was tried; [`AllocError::NotFree`] if somebody
    /// freed what was found, who did not own it.
    pub fn alloc_exact(&self, cpu: CpuId, frames: u64, request: &Request) -> Result<Pfn, AllocError> {
        let order = Order::holding(frames).ok_or(AllocError::BadCount(frames))?;
        let mut request = *request;
        request.order = order;
        /// Pageblocks to try, if other CPUs are at work on one after the other.
        const TRIES: u32 = 8;
        for _ in 0..TRIES {
            let pfn = self.alloc(cpu, &request)?;
            let surplus = pfn.0 + frames..pfn.0 + u64::from(order.frames());
            if surplus.is_empty() || self.free_range(cpu, surplus).is_ok() {
                return Ok(pfn);
            }
            // Nothing of it was freed. If somebody else freed it, who must not, there is nothing to give back.
            self.free(cpu, pfn, order).map_err(|_| AllocError::NotFree(pfn))?;
        }
        Err(AllocError::OutOfMemory { order })
    }

    /// Frees these frames, whatever blocks they are parts of. What is left of such a block is in use as the largest blocks that
    /// fit.
    ///
    /// # Errors
    /// [`FreeError`] if a frame is not in use: nothing is freed then. [`FreeError::Busy`] with the first frame that is not free, if
    /// another CPU changes its pageblock.
    pub fn free_range(&self, cpu: CpuId, pfns: Range<u64>) -> Result<(), FreeError> {
        self.check_all_in_use(cpu, &pfns)?;
        let mut start = pfns.start;
        while start < pfns.end {
            let (zone, index) = self.locate(Pfn(start)).ok_or(FreeError::Foreign(Pfn(start)))?;
            let end = part_end(zone, start, pfns.end);
            let frame = index % FRAMES;
            self.free_part(cpu, index / FRAMES, frame..frame + (end - start) as usize, Pfn(start))?;
            start = end;
        }
        Ok(())
    }

    /// Turns the blocks of a range into single frames, each of which is a block of its own from then on: for those who free them
    /// one by one. A block that reaches beyond the range is split as a whole.
    ///
    /// # Errors
    /// [`FreeError`] if a frame is not in use: nothing is split then. [`FreeError::Busy`] if another CPU changes its pageblock.
    pub fn split_range(&self, cpu: CpuId, pfns: Range<u64>) -> Result<(), FreeError> {
        self.check_all_in_use(cpu, &pfns)?;
        let (Some(first), Some(last)) = (pfns.clone().next(), pfns.last()) else { return Ok(()) };
        let around = |pfn| self.block_in_use(Pfn(pfn)).ok_or(FreeError::DoubleFree(Pfn(pfn)));
        let (Pfn(mut start), _) = around(first)?;
        let (Pfn(end), order) = around(last)?;
        let end = end + u64::from(order.frames());
        while start < end {
            let (zone, index) = self.locate(Pfn(start)).ok_or(FreeError::Foreign(Pfn(start)))?;
            let (block, frame) = (index / FRAMES, index % FRAMES);
            let part_end = part_end(zone, start, end);
            self.cut_pair(block);
            let state = self.states[block].get();
            if state.phase() == Phase::Handed {
                self.cut_whole(cpu, block).ok_or(FreeError::DoubleFree(Pfn(start)))?;
            } else if state.order() != Order::ZERO && !state.is_mixed() && self.mix(block) != Mix::Mixed {
                return Err(FreeError::Busy(Pfn(start)));
            }
            if self.states[block].get().is_mixed() {
                self.tails[block].clear_frames(frame..frame + (part_end - start) as usize);
            }
            start = part_end;
        }
        Ok(())
    }

    fn check_all_in_use(&self, cpu: CpuId, pfns: &Range<u64>) -> Result<(), FreeError> {
        if !self.is_known(cpu) {
            return Err(FreeError::BadCpu(cpu));
        }
        if pfns.is_empty() {
            return Err(FreeError::BadRange(Pfn(pfns.start), Pfn(pfns.end)));
        }
        let mut start = pfns.start;
        while start < pfns.end {
            let (zone, index) = self.locate(Pfn(start)).ok_or(FreeError::Foreign(Pfn(start)))?;
            let end = part_end(zone, start, pfns.end);
            let frame = index % FRAMES;
            if !self.are_all_in_use(index / FRAMES, frame..frame + (end - start) as usize) {
                (start..end).try_for_each(|pfn| self.check_in_use(Pfn(pfn)))?;
            }
            start = end;
        }
        Ok(())
    }

    /// Whether all these frames of a pageblock are in use, with one look at each word. If it has holes or bad frames, each frame
    /// needs a look of its own, so this says `false`.
    fn are_all_in_use(&self, block: BlockIndex, frames: Range<usize>) -> bool {
        let state = self.states[block].get();
        match state.phase() {
            Phase::Handed | Phase::Inner => !self.is_bad(block, frames.start, state),
            Phase::Idle | Phase::Current | Phase::Changing => {
                let is_in_use = |(word, bits)| self.free[block].word(word) & bits == 0;
                !state.has_bad() && !state.is_holed() && words_of(frames).all(is_in_use)
            }
            Phase::Absent | Phase::Whole | Phase::Spare => false,
        }
    }

    pub(super) fn check_in_use(&self, pfn: Pfn) -> Result<(), FreeError> {
        let (_, index) = self.locate(pfn).ok_or(FreeError::Foreign(pfn))?;
        let (block, frame) = (index / FRAMES, index % FRAMES);
        let state = self.states[block].get();
        match state.phase() {
            Phase::Absent => Err(FreeError::Foreign(pfn)),
            _ if self.is_bad(block, frame, state) => Err(FreeError::Leaked(pfn)),
            Phase::Whole | Phase::Spare => Err(FreeError::DoubleFree(pfn)),
            Phase::Handed | Phase::Inner => Ok(()),
            _ if state.is_holed() && self.tails[block].is_tail(frame) => Err(FreeError::Foreign(pfn)),
            _ if self.free[block].is_free(frame) => Err(FreeError::DoubleFree(pfn)),
            _ => Ok(()),
        }
    }

    /// Frees frames of one pageblock, of which the first is `pfn`.
    fn free_part(
        &self,
        cpu: CpuId,
        block: BlockIndex,
        frames: Range<usize>,
        pfn: Pfn,
    ) -> Result<(), FreeError> {
        self.cut_pair(block);
        let state = self.states[block].get();
        if state.phase() == Phase::Handed {
            if frames.len() == FRAMES {
                let freed = self.free_whole(cpu, self.zone_of_block(block), block, Order::PAGEBLOCK);
                return if freed { Ok(()) } else { Err(FreeError::DoubleFree(pfn)) };
            }
            self.cut_whole(cpu, block).ok_or(FreeError::DoubleFree(pfn))?;
        } else if state.order() != Order::ZERO && !state.is_mixed() && self.mix(block) != Mix::Mixed {
            return Err(FreeError::Busy(pfn));
        }
        let state = self.states[block].get();
        if state.is_mixed() {
            self.cut_out(block, frames.clone());
        }
        for (word, bits) in words_of(frames) {
            let free = self.free[block].put_frames(word, bits).map_err(|_| FreeError::DoubleFree(pfn))?;
            self.note_free(block, Order::ZERO, free);
        }
        Ok(())
    }

    /// A block of two pageblocks becomes two blocks.
    fn cut_pair(&self, block: BlockIndex) {
        let head = if self.states[block].get().phase() == Phase::Inner { head_of(block) } else { block };
        let is_pair = |state: State| state.phase() == Phase::Handed && state.order() > Order::PAGEBLOCK;
        let cut = self.states[head].update(|state| is_pair(state).then(|| state.of_order(Order::PAGEBLOCK)));
        if let Ok(before) = cut
            && let Some(second) = self.states.get(head + 1)
        {
            let inner = before.in_phase(Phase::Handed).of_order(Order::PAGEBLOCK);
            second.update(|state| Some(inner.keeping(state))).ok();
        }
    }

    /// A block that is a pageblock becomes a pageblock with one block, of which parts can be freed.
    fn cut_whole(&self, cpu: CpuId, block: BlockIndex) -> Option<()> {
        let is_whole = |state: State| state.phase() == Phase::Handed && state.order() == Order::PAGEBLOCK;
        self.states[block].update(|state| is_whole(state).then(|| state.in_phase(Phase::Changing))).ok()?;
        self.tails[block].clear();
        self.tails[block].mark_block(0, Order::PAGEBLOCK);
        self.states[block]
            .update(|state| {
                let split = State::split(Order::ZERO, state.migratetype()).in_phase(Phase::Idle).mixed();
                Some(split.of_owner(cpu).keeping(state))
            })
            .ok()
            .map(|_| ())
    }
}

/// Where the pageblock or the zone of a frame ends, or else the range. Another zone may go on in the same 512 frames.
fn part_end(zone: &Zone, start: u64, range_end: u64) -> u64 {
    ((start / FRAMES as u64 + 1) * FRAMES as u64).min(zone.span.end).min(range_end)
}
