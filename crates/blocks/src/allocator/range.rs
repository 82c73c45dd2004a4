//! A given place, counts that are no power of two, and parts of blocks.

use core::ops::Range;

use pageset_core::{AllocError, CpuId, FreeError, Order, Pfn, Request, RequestTraits, Watermark, ZoneKind};

use super::free::Back;
use super::mixed::{LOOKS, Mix};
use super::{BlockAllocator, FRAMES, blocks_in, head_of};
use crate::atomic::relax;
use crate::cpu_lists::Wanted;
use crate::stack::BlockIndex;
use crate::state::{Phase, State};
use crate::tail_bits::words_of;
use crate::zone::Zone;

impl BlockAllocator<'_> {
    /// Allocates the block that begins at this frame. Order and type are the request's; its zone, node and address limit are
    /// ignored. O(CPUs), or O(pageblocks) near the watermark.
    ///
    /// # Errors
    /// - [`AllocError::Foreign`] if this frame is no memory.
    /// - [`AllocError::NotFree`] if a frame of the block is in use, or is none of the zone's. Also if another CPU changes the pageblock and
    ///   does not go on: it may have stopped, or have been interrupted by the caller.
    /// - [`AllocError::SingleFramesOnly`] if all frames of the block are free, but their pageblock has a [hole](BlockAllocator#holes).
    /// - [`AllocError::OutOfMemory`] if the zone would not stay above its minimum watermark, unless the request ignores it.
    ///
    /// See [`AllocError`] for what no request can be.
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
            return Err(self.why_not_at(index, request.order, pfn));
        }
        if self.stays_above_min(zone, request) {
            return Ok(());
        }
        // Nobody else can have freed it.
        let freed = self.free(cpu, pfn, request.order);
        debug_assert!(freed.is_ok(), "a block that was just taken is in use");
        Err(AllocError::OutOfMemory { order: request.order })
    }

    /// Why a given place could not be had.
    #[cold]
    fn why_not_at(&self, index: usize, order: Order, pfn: Pfn) -> AllocError {
        let (block, frame) = (index / FRAMES, index % FRAMES);
        let state = self.states[block].get();
        let has_single_frames = state.gives() && state.is_holed() && order != Order::ZERO;
        // A pageblock with a hole is not all free, so the block is smaller than that.
        let end = frame + order.frames() as usize;
        if has_single_frames && end <= FRAMES && (frame..end).all(|frame| self.free[block].is_free(frame)) {
            AllocError::SingleFramesOnly(pfn)
        } else {
            AllocError::NotFree(pfn)
        }
    }

    /// Whether a zone has its minimum now that a block at a given place was taken (spec §1.8): a request of high priority has to
    /// leave as much as any other, since it could do with another place.
    fn stays_above_min(&self, zone: &Zone, request: &Request) -> bool {
        let lasting = request.traits & (RequestTraits::NO_WATERMARKS | RequestTraits::NO_RESERVES);
        let mut anywhere = request.with(lasting);
        anywhere.highest_zone = ZoneKind::Dma;
        let floor = zone.floor(&anywhere, Watermark::Min);
        self.is_free_at_least(zone, floor) || {
            self.give_up_at_hand(zone);
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
            if !self.open(block, split) {
                return false;
            }
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

    /// Allocates `frames` contiguous frames, 1024 at most; what the next power of two has beyond is free. The request's order is ignored.
    /// They are freed with [`free_range`](Self::free_range), all at once or in parts.
    ///
    /// O(pageblocks) as soon as no pageblock is whole, which is soon if most requests are such.
    ///
    /// # Errors
    /// As [`alloc`](Self::alloc) for the block that holds them; [`AllocError::BadCount`] if none does. Pageblocks with a
    /// [hole](BlockAllocator#holes) serve one frame only: if all free memory lies in these, more is [`AllocError::OutOfMemory`].
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
            let end = pfn.0 + u64::from(order.frames());
            match self.free_parts(cpu, pfn.0 + frames..end) {
                Ok(()) => return Ok(pfn),
                Err(FreeError::Busy(_)) => {}
                Err(_) => return Err(AllocError::NotFree(pfn)),
            }
            // Nothing of it was freed, since all of that lies in one pageblock; but a pair may be two blocks by now.
            let halves =
                || [pfn.0, pfn.0 + FRAMES as u64].map(Pfn).map(|half| self.free(cpu, half, Order::PAGEBLOCK));
            let freed = self.free(cpu, pfn, order);
            if freed.is_err() && (order <= Order::PAGEBLOCK || halves().iter().any(Result::is_err)) {
                return Err(AllocError::NotFree(pfn));
            }
        }
        Err(AllocError::OutOfMemory { order })
    }

    /// Frees these frames, whatever blocks they are parts of. What is left of such a block is in use as the largest blocks that
    /// fit.
    ///
    /// Several CPUs may free parts of one block at the same time.
    ///
    /// # Errors
    /// [`FreeError::BadRange`] for a range without frames; [`FreeError`] if a frame is not in use, be it that a CPU keeps it for its own
    /// requests: nothing is freed then. [`FreeError::Busy`] with the first frame that is not free, if another CPU changes its
    /// pageblock at this moment: free the rest again.
    pub fn free_range(&self, cpu: CpuId, pfns: Range<u64>) -> Result<(), FreeError> {
        self.check_all_in_use(cpu, &pfns)?;
        self.free_parts(cpu, pfns)
    }

    /// Frees frames that are in use.
    fn free_parts(&self, cpu: CpuId, pfns: Range<u64>) -> Result<(), FreeError> {
        for_each_part(self, &pfns, |zone, block, frames| {
            self.until_done(zone.pfn(block * FRAMES + frames.start), |pfn| {
                self.try_free_part(cpu, zone, block, frames.clone(), pfn)
            })
        })
    }

    /// Turns the blocks of a range into single frames, each of which is a block of its own from then on: for those who free them
    /// one by one. A block that reaches beyond the range is split as a whole.
    ///
    /// # Errors
    /// As [`free_range`](Self::free_range): nothing is split if a frame is not in use, and after [`FreeError::Busy`] it may be called
    /// again for the same range.
    pub fn split_range(&self, cpu: CpuId, pfns: Range<u64>) -> Result<(), FreeError> {
        self.check_all_in_use(cpu, &pfns)?;
        let last = pfns.end.saturating_sub(1);
        let around = |pfn| self.block_in_use(Pfn(pfn)).ok_or(FreeError::Busy(Pfn(pfns.start)));
        let (Pfn(start), _) = around(pfns.start)?;
        let (Pfn(end), order) = around(last)?;
        // Both pageblocks of a pair, though the range be in one.
        for_each_part(self, &(start..end + u64::from(order.frames())), |zone, block, _| {
            let first = zone.pfn(block * FRAMES).0;
            let ours = pfns.start.max(first)..pfns.end.min(first + FRAMES as u64);
            let frames =
                (ours.start.saturating_sub(first) as usize)..(ours.end.saturating_sub(first) as usize);
            self.until_done(Pfn(pfns.start), |pfn| self.try_split_part(cpu, block, frames.clone(), pfn))
        })
    }

    /// Tries until it is done, or refused; not for ever, since another CPU may stop in the middle.
    fn until_done(
        &self,
        pfn: Pfn,
        mut attempt: impl FnMut(Pfn) -> Result<Attempt, FreeError>,
    ) -> Result<(), FreeError> {
        for _ in 0..LOOKS {
            if attempt(pfn)? == Attempt::Done {
                return Ok(());
            }
            relax();
        }
        Err(FreeError::Busy(pfn))
    }

    /// Checks that all frames of a range are in use.
    fn check_all_in_use(&self, cpu: CpuId, pfns: &Range<u64>) -> Result<(), FreeError> {
        if !self.is_known(cpu) {
            return Err(FreeError::BadCpu(cpu));
        }
        if pfns.is_empty() {
            return Err(FreeError::BadRange(Pfn(pfns.start), Pfn(pfns.end)));
        }
        let checked = for_each_part(self, pfns, |zone, block, frames| self.check_in_use(zone, block, frames));
        checked.map_err(|error| match error {
            // Nothing was done yet, so the caller begins anew.
            FreeError::Busy(_) => FreeError::Busy(Pfn(pfns.start)),
            error => error,
        })
    }

    /// Frees frames of one pageblock, the first of which is `pfn`.
    fn try_free_part(
        &self,
        cpu: CpuId,
        zone: &Zone,
        block: BlockIndex,
        frames: Range<usize>,
        pfn: Pfn,
    ) -> Result<Attempt, FreeError> {
        let state = self.states[block].get();
        match state.phase() {
            Phase::Absent => return Err(FreeError::Foreign(pfn)),
            Phase::Whole | Phase::Spare => return Err(FreeError::DoubleFree(pfn)),
            // Another CPU that owns a part of the same block may be faster with what follows: then one looks again.
            Phase::Changing => {}
            Phase::Inner => self.cut_pair(head_of(block)),
            Phase::Handed if state.has_bad() => return Err(FreeError::Leaked(pfn)),
            Phase::Handed if state.order() > Order::PAGEBLOCK => self.cut_pair(block),
            Phase::Handed if frames.len() == FRAMES => {
                if self.free_whole(cpu, zone.id, block, Order::PAGEBLOCK) {
                    return Ok(Attempt::Done);
                }
            }
            Phase::Handed => self.cut_whole(cpu, block, Order::PAGEBLOCK),
            Phase::Idle | Phase::Current => return self.try_free_of_split(block, state, frames, pfn),
        }
        Ok(Attempt::Again)
    }

    fn try_free_of_split(
        &self,
        block: BlockIndex,
        state: State,
        frames: Range<usize>,
        pfn: Pfn,
    ) -> Result<Attempt, FreeError> {
        let size = state.split_order().frames() as usize;
        let are_blocks = frames.start.is_multiple_of(size) && frames.end.is_multiple_of(size);
        let order = if state.is_mixed() {
            if !self.cut_out(block, frames.clone()) {
                return Ok(Attempt::Again);
            }
            Order::ZERO
        } else if are_blocks {
            state.split_order()
        } else {
            self.try_mix(block);
            return Ok(Attempt::Again);
        };
        for (word, frames) in words_of(frames) {
            let free = self.free[block].put_frames(word, frames).map_err(|_| FreeError::DoubleFree(pfn))?;
            let noted = self.note_free(block, order, Back::of_word(word, frames, free));
            noted.map_err(|_| FreeError::DoubleFree(pfn))?;
        }
        Ok(Attempt::Done)
    }

    /// Splits the blocks around frames of one pageblock; all of it if these are none, and it is still one block.
    fn try_split_part(
        &self,
        cpu: CpuId,
        block: BlockIndex,
        frames: Range<usize>,
        pfn: Pfn,
    ) -> Result<Attempt, FreeError> {
        let state = self.states[block].get();
        match state.phase() {
            // Of a pair, the other half: another CPU that owns it has freed it.
            Phase::Absent | Phase::Whole | Phase::Spare if frames.is_empty() => return Ok(Attempt::Done),
            Phase::Absent | Phase::Whole | Phase::Spare => return Err(FreeError::DoubleFree(pfn)),
            Phase::Changing => {}
            Phase::Inner => self.cut_pair(head_of(block)),
            Phase::Handed if state.order() > Order::PAGEBLOCK => self.cut_pair(block),
            Phase::Handed => self.cut_whole(cpu, block, Order::ZERO),
            // The CPU that made parts of it owns them.
            Phase::Idle | Phase::Current if frames.is_empty() => return Ok(Attempt::Done),
            Phase::Idle | Phase::Current if state.is_mixed() => {
                let is_split = self.cut_up(block, frames);
                return Ok(if is_split { Attempt::Done } else { Attempt::Again });
            }
            Phase::Idle | Phase::Current if state.split_order() == Order::ZERO => return Ok(Attempt::Done),
            Phase::Idle | Phase::Current => _ = self.try_mix(block),
        }
        Ok(Attempt::Again)
    }

    /// A block of two pageblocks, the first of which this is, becomes two blocks.
    fn cut_pair(&self, head: BlockIndex) {
        let is_pair = |state: State| state.phase() == Phase::Handed && state.order() > Order::PAGEBLOCK;
        let cut = self.states[head].update(|state| is_pair(state).then(|| state.of_order(Order::PAGEBLOCK)));
        if let Ok(before) = cut
            && let Some(second) = self.states.get(head + 1)
        {
            let inner = before.in_phase(Phase::Handed).of_order(Order::PAGEBLOCK);
            second.update(|state| (state.phase() == Phase::Inner).then(|| inner.keeping(state))).ok();
        }
    }

    /// A block that is a pageblock becomes a pageblock with one block, of which parts can be freed, or with blocks of one frame. One that
    /// is out of service stays.
    fn cut_whole(&self, cpu: CpuId, block: BlockIndex, into: Order) {
        let is_whole = |state: State| {
            state.phase() == Phase::Handed && state.order() == Order::PAGEBLOCK && !state.has_bad()
        };
        let begun =
            self.states[block].update(|state| is_whole(state).then(|| state.in_phase(Phase::Changing)));
        if begun.is_err() {
            return;
        }
        self.tails[block].clear();
        if into == Order::PAGEBLOCK {
            self.tails[block].mark_block(0, into);
        }
        let to_split = |state: State| {
            let split = State::split(Order::ZERO, state.migratetype()).in_phase(Phase::Idle).mixed();
            let split = split.of_owner(cpu).keeping(state);
            // Out of service since.
            if state.has_bad() { split.bad() } else { split }
        };
        self.states[block].update(|state| Some(to_split(state))).ok();
    }
}

/// What became of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Attempt {
    Done,
    /// Another CPU changes the pageblock, or this attempt did.
    Again,
}

/// Visits the parts of a range that lie in one pageblock each.
fn for_each_part(
    allocator: &BlockAllocator<'_>,
    pfns: &Range<u64>,
    mut visit: impl FnMut(&Zone, BlockIndex, Range<usize>) -> Result<(), FreeError>,
) -> Result<(), FreeError> {
    let mut start = pfns.start;
    while start < pfns.end {
        let (zone, index) = allocator.locate(Pfn(start)).ok_or(FreeError::Foreign(Pfn(start)))?;
        let end = part_end(zone, start, pfns.end);
        let frame = index % FRAMES;
        visit(zone, index / FRAMES, frame..frame + (end - start) as usize)?;
        start = end;
    }
    Ok(())
}

/// Where the pageblock or the zone of a frame ends, or else the range. Another zone may go on in the same 512 frames.
fn part_end(zone: &Zone, start: u64, range_end: u64) -> u64 {
    (start / FRAMES as u64 * FRAMES as u64).saturating_add(FRAMES as u64).min(zone.span.end).min(range_end)
}

#[cfg(all(test, feature = "alloc", not(any(loom, shuttle))))]
mod tests {
    use pageset_core::{Config, MigrateType, NodeId, RequestTraits, ZoneConfig, ZoneId};

    use super::*;
    use crate::{RemoteFrees, Tables};

    /// A caller frees the rest from the frame that `Busy` names, so the frames before it have to be free.
    #[test]
    fn busy_names_the_first_frame_if_nothing_was_freed() {
        let regions = [0..4096];
        let zones =
            [ZoneConfig { kind: ZoneKind::Normal, node: NodeId(0), span: 0..4096, regions: &regions }];
        let config = Config::new(&zones, &[NodeId(0); 2]);
        let allocator = BlockAllocator::new(&config, Tables::on_heap(&config).unwrap()).unwrap();
        let allocator = allocator.with_remote_frees(RemoteFrees::Kept);
        let order = Order::new(10).unwrap();
        let request = Request::new(order).movable().with(RequestTraits::NO_WATERMARKS);
        let pfn = allocator.alloc(CpuId(0), &request).unwrap();
        let single = Wanted { order: Order::ZERO, migratetype: MigrateType::Movable };
        let kept = &allocator.lists_at(ZoneId(0), CpuId(1)).kept;
        // As if CPU 1 was in the middle of a change, and an old entry names a frame of the second pageblock.
        let in_second = pfn.0 + FRAMES as u64 + 7;
        kept.try_with(|held| {
            assert!(held.push(single, in_second as u32));
            let all = pfn.0..pfn.0 + 1024;
            assert_eq!(allocator.free_range(CpuId(0), all.clone()), Err(FreeError::Busy(pfn)));
            assert_eq!(allocator.split_range(CpuId(0), all), Err(FreeError::Busy(pfn)));
            assert_eq!(held.pop(single), Some(in_second as u32));
        });
        allocator.free_range(CpuId(0), pfn.0..pfn.0 + 1024).unwrap();
        assert_eq!(allocator.validate().unwrap().allocated, 0);
    }
}
