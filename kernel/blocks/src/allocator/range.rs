//! Blocks at a given place, exact counts of frames, and parts of blocks.

use core::ops::Range;

use pageset_core::{AllocError, CpuId, FreeError, Order, Pfn, Request, RequestTraits, Watermark, ZoneKind};

use super::attempt::Attempt;
use super::{BlockAllocator, FRAMES, blocks_in, head_of};
use crate::access::Access;
use crate::cpu_share::Wanted;
use crate::ids::{BlockId, FrameId, each};
use crate::row::ROW_FRAMES;
use crate::rows::{Refused, Use};
use crate::state::{Phase, State};
use crate::zone::Zone;

impl<A: Access> BlockAllocator<'_, A> {
    /// Allocates the block that begins at this frame. The call uses the order and the type of the request,
    /// and ignores its zone, node and address limit. A call for a whole pageblock takes O(CPUs). Near the
    /// zone's watermark, a call takes O(CPUs + unsettled pageblocks).
    ///
    /// # Errors
    /// [`AllocError::Foreign`] if the frame is no memory of this allocator. [`AllocError::NotFree`] if a
    /// frame of the block is in use or outside the zone. [`AllocError::OutOfMemory`] if the zone would fall
    /// below its minimum watermark, unless the request ignores watermarks. See [`AllocError`] for invalid
    /// requests.
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
        let (zone, id) = self.locate(pfn).ok_or(AllocError::Foreign(pfn))?;
        if self.is_hole(id) {
            return Err(AllocError::Foreign(pfn));
        }
        let last = pfn.checked_add(u64::from(request.order.frames()) - 1);
        if !last.is_some_and(|last| zone.span.contains(&last.0)) {
            return Err(AllocError::NotFree(pfn));
        }
        let take = || {
            if request.order < Order::PAGEBLOCK {
                self.take_place(id, Wanted::of(request))
            } else {
                self.take_whole_place(id.block(), request)
            }
        };
        if !take() {
            return Err(AllocError::NotFree(pfn));
        }
        if self.stays_above_min(zone, request) {
            return Ok(());
        }
        // No caller has got the block. If another CPU has marked it bad meanwhile, it stays out of service.
        self.free(cpu, pfn, request.order).ok();
        Err(AllocError::OutOfMemory { order: request.order })
    }

    /// Whether a zone is not below its minimum watermark after a block at a given place was taken (spec
    /// §1.8). A request of high priority must leave as many frames as other requests, because it could use
    /// another place.
    pub(super) fn stays_above_min(&self, zone: &Zone, request: &Request) -> bool {
        let lasting = request.traits & (RequestTraits::NO_WATERMARKS | RequestTraits::NO_RESERVES);
        let mut anywhere = request.with(lasting);
        anywhere.highest_zone = ZoneKind::Dma;
        let floor = zone.floor(&anywhere, Watermark::Min);
        self.is_free_at_least(zone, floor) || {
            self.unreserve_all(zone);
            self.is_free_at_least(zone, floor)
        }
    }

    fn take_whole_place(&self, block: BlockId, request: &Request) -> bool {
        let blocks = blocks_in(request.order);
        let parts = block..block.after(blocks);
        each(&parts).for_each(|part| self.reap_block(part));
        let zone = &self.zones[self.zone_of_block(block).index()];
        let is_taken = self.claim_whole_at(zone, block, blocks)
            && self.hand_out(block, request.order, request.migratetype);
        if is_taken {
            each(&parts).for_each(|part| self.note_use(request.migratetype, part));
        }
        is_taken
    }

    fn take_place(&self, id: FrameId, wanted: Wanted) -> bool {
        let (block, frame) = (id.block(), id.in_block());
        if !self.open_if_whole(block, wanted.migratetype) {
            return false;
        }
        let taken = self.state(block).get().gives() && self.rows(block).take_at(frame, wanted.order);
        if taken && !self.state(block).get().gives() {
            // The pageblock has gone out of service, or is becoming whole.
            self.return_block(block, frame, wanted.order);
            return false;
        }
        if taken {
            self.note_taken(block, wanted.order.frames());
            self.note_use(wanted.migratetype, block);
        }
        self.settle(block);
        taken
    }

    /// Allocates exactly `frames` contiguous frames, 1024 at most. The call ignores the request's order. Free
    /// the frames with [`free_range`](Self::free_range), all at once or in parts.
    ///
    /// The run may begin at any frame, unless the count is a power of two. The call looks at a few pageblocks
    /// in part use, and takes the run out of the shortest long enough free run of one of them. If all runs
    /// have one length, they leave hardly any gaps between them.
    ///
    /// # Errors
    /// The errors of [`alloc`](Self::alloc) for a block of at least this many frames;
    /// [`AllocError::BadCount`] if no block is large enough. [`AllocError::NotFree`] if another CPU marks a
    /// frame of the new block bad before this call returns. The error is the same if another caller frees a
    /// frame of the new block by mistake. The other frames of the block then stay in use, because another
    /// owner may already have them.
    pub fn alloc_exact(&self, cpu: CpuId, frames: u64, request: &Request) -> Result<Pfn, AllocError> {
        let order = Order::holding(frames).ok_or(AllocError::BadCount(frames))?;
        let mut request = *request;
        request.order = order;
        if u64::from(order.frames()) > frames
            && let Some(pfn) = self.alloc_run(cpu, frames as usize, &request)
        {
            return Ok(pfn);
        }
        let pfn = self.alloc(cpu, &request)?;
        self.free_surplus(cpu, pfn, frames, order)?;
        Ok(pfn)
    }

    /// Frees the frames at the end of a new block that the request did not ask for.
    ///
    /// Race: another CPU marks a frame of the block bad meanwhile. The frames that stay in service still
    /// belong to this call, so it frees all of them. After another error, frames that are in use stay in use:
    /// another caller freed a part of the block by mistake, so these frames may belong to a new owner.
    pub(super) fn free_surplus(
        &self,
        cpu: CpuId,
        pfn: Pfn,
        frames: u64,
        order: Order,
    ) -> Result<(), AllocError> {
        let surplus = pfn.0 + frames..pfn.0 + u64::from(order.frames());
        if surplus.is_empty() {
            return Ok(());
        }
        let Err(error) = self.free_in_service(cpu, surplus.clone()) else { return Ok(()) };
        if matches!(error, FreeError::Leaked(_)) {
            self.free_in_service(cpu, pfn.0..surplus.start).ok();
        }
        Err(AllocError::NotFree(pfn))
    }

    /// Frees frames that this call has taken, and that no caller got.
    ///
    /// Race: another CPU marks a frame bad meanwhile. The frames that stay in service still belong to this
    /// call, so it frees all of them. After another error, the frames from the error on stay in use: another
    /// caller freed one of them by mistake, so they may belong to a new owner.
    ///
    /// # Errors
    /// [`FreeError::Leaked`] if a frame is out of service, or the error of the mistake.
    pub(super) fn free_in_service(&self, cpu: CpuId, pfns: Range<u64>) -> Result<(), FreeError> {
        let freed = self.free_parts(cpu, pfns.clone());
        if let Err(FreeError::Leaked(bad)) = freed {
            // `free_parts` has freed no frame of the bad frame's row, because a row is freed at once.
            let rest = (bad.0 - bad.0 % ROW_FRAMES as u64).max(pfns.start);
            for frame in rest..pfns.end {
                self.free_parts(cpu, frame..frame + 1).ok();
            }
        }
        freed
    }

    /// Frees the frames of a range, which may be whole blocks or parts of blocks. The rest of a block stays
    /// in use, as the largest aligned blocks that fit.
    ///
    /// Several CPUs may free parts of one block at the same time.
    ///
    /// # Errors
    /// [`FreeError::BadRange`] for an empty range. Another [`FreeError`] if a frame is not in use. The call
    /// then frees nothing. [`FreeError::Busy`] if another CPU is changing a pageblock of the range. The
    /// frames before that frame are free. To free the other frames, call again from the frame that the error
    /// names.
    pub fn free_range(&self, cpu: CpuId, pfns: Range<u64>) -> Result<(), FreeError> {
        self.check_all_in_use(cpu, &pfns)?;
        self.free_parts(cpu, pfns)
    }

    /// Frees frames that are in use.
    pub(super) fn free_parts(&self, cpu: CpuId, pfns: Range<u64>) -> Result<(), FreeError> {
        for_each_part(self, &pfns, |zone, block, frames| {
            let mut rest = frames;
            let pfn = |rest: &Range<usize>| zone.pfn(FrameId::of(block, rest.start));
            self.until_done(pfn(&rest), || self.try_free_part(cpu, zone, block, &mut rest)).map_err(|error| {
                match error {
                    FreeError::Busy(_) => FreeError::Busy(pfn(&rest)),
                    other => other,
                }
            })
        })
    }

    /// Turns the blocks of a range into single frames, which can be freed one by one. A block that reaches
    /// beyond the range is split completely.
    ///
    /// # Errors
    /// The errors of [`free_range`](Self::free_range). Nothing is split if a frame is not in use. After
    /// [`FreeError::Busy`], call `split_range` again for the same range.
    pub fn split_range(&self, cpu: CpuId, pfns: Range<u64>) -> Result<(), FreeError> {
        self.check_all_in_use(cpu, &pfns)?;
        let last = pfns.end.saturating_sub(1);
        let around = |pfn| self.block_in_use(Pfn(pfn)).ok_or(FreeError::Busy(Pfn(pfns.start)));
        let (Pfn(start), _) = around(pfns.start)?;
        let (Pfn(end), order) = around(last)?;
        // If the range is in one half of a pair, both halves are split.
        for_each_part(self, &(start..end + u64::from(order.frames())), |zone, block, part| {
            let first = zone.pfn(FrameId::of(block, 0)).0;
            let frame = |pfn: u64| pfn.saturating_sub(first).min(FRAMES as u64) as usize;
            let within = |pfn: u64| frame(pfn).clamp(part.start, part.end);
            let frames = within(pfns.start)..within(pfns.end);
            self.until_done(Pfn(pfns.start), || self.try_split_part(block, frames.clone(), Pfn(pfns.start)))
        })
    }

    /// Checks that all frames of a range are in use.
    fn check_all_in_use(&self, cpu: CpuId, pfns: &Range<u64>) -> Result<(), FreeError> {
        if !self.is_known(cpu) {
            return Err(FreeError::BadCpu(cpu));
        }
        if pfns.is_empty() {
            return Err(FreeError::BadRange(Pfn(pfns.start), Pfn(pfns.end)));
        }
        for_each_part(self, pfns, |zone, block, frames| {
            self.until_done(Pfn(pfns.start), || self.check_in_use(zone, block, frames.clone()))
        })
    }

    /// Checks that all these frames of a pageblock are in use. The error names the first frame that is not in
    /// use.
    fn check_in_use(&self, zone: &Zone, block: BlockId, frames: Range<usize>) -> Result<Attempt, FreeError> {
        let state = self.state(block).get();
        let pfn = |frame: usize| zone.pfn(FrameId::of(block, frame));
        match state.phase() {
            Phase::Absent => Err(FreeError::Foreign(pfn(frames.start))),
            Phase::Whole | Phase::Parked => Err(FreeError::DoubleFree(pfn(frames.start))),
            Phase::Block | Phase::SecondHalf if self.is_bad(block, frames.start, state) => {
                Err(FreeError::Leaked(pfn(frames.start)))
            }
            Phase::Block | Phase::SecondHalf => Ok(Attempt::Done),
            // Frames inside a block that is out of service look like frames in use.
            Phase::Open | Phase::Changing
                if !state.has_bad() && self.rows(block).are_in_use(frames.clone()) =>
            {
                Ok(Attempt::Done)
            }
            Phase::Changing => Ok(Attempt::Again),
            Phase::Open => {
                { frames }.try_fold(Attempt::Done, |all, frame| match self.rows(block).look(frame) {
                    Use::Block(..) => Ok(all),
                    // Race: another CPU frees the frame, or cuts the frame's block to free another part. So
                    // look again.
                    Use::Changing => Ok(Attempt::Again),
                    Use::Free => Err(FreeError::DoubleFree(pfn(frame))),
                    Use::InsideWithheld => Err(FreeError::Leaked(pfn(frame))),
                    Use::Withheld => Err(self.why_withheld(block, frame, pfn(frame))),
                })
            }
        }
    }

    /// Frees frames of one pageblock, and shortens `rest` by the freed frames.
    fn try_free_part(
        &self,
        cpu: CpuId,
        zone: &Zone,
        block: BlockId,
        rest: &mut Range<usize>,
    ) -> Result<Attempt, FreeError> {
        let pfn = zone.pfn(FrameId::of(block, rest.start));
        let state = self.state(block).get();
        match state.phase() {
            Phase::Absent => return Err(FreeError::Foreign(pfn)),
            Phase::Whole | Phase::Parked => return Err(FreeError::DoubleFree(pfn)),
            // Race: another CPU is making the pageblock whole. The other CPU loses, because these frames are
            // in use. This free uses the rows without waiting, because the other CPU may have stopped. Race:
            // another CPU owns a part of the same block, and is opening the pageblock. Until the pageblock is
            // open, some rows do not have their new words, and refuse this free. The next attempt sees the
            // new state.
            Phase::Changing => return self.free_rows(cpu, zone, block, rest).or(Ok(Attempt::Again)),
            Phase::SecondHalf => self.cut_pair(head_of(block)),
            Phase::Block if state.has_bad() => return Err(FreeError::Leaked(pfn)),
            Phase::Block if state.block_order() > Order::PAGEBLOCK => self.cut_pair(block),
            Phase::Block if rest.len() == FRAMES => {
                if self.free_whole(cpu, zone.id, block, Order::PAGEBLOCK) {
                    return Ok(Attempt::Done);
                }
            }
            Phase::Block => self.open_in_use(block, Order::PAGEBLOCK),
            Phase::Open => return self.free_rows(cpu, zone, block, rest),
        }
        Ok(Attempt::Again)
    }

    fn free_rows(
        &self,
        cpu: CpuId,
        zone: &Zone,
        block: BlockId,
        rest: &mut Range<usize>,
    ) -> Result<Attempt, FreeError> {
        while rest.start < rest.end {
            match self.rows(block).free_first(rest.clone()) {
                Ok((freed, left)) => {
                    self.note_free(cpu, block, left);
                    rest.start += freed;
                }
                Err(Refused::Changing) => return Ok(Attempt::Again),
                // Race: another CPU changed the block during the look. If all frames are in use now, try
                // again.
                Err(Refused::NoBlock) => {
                    return self.check_in_use(zone, block, rest.clone()).map(|_| Attempt::Again);
                }
            }
        }
        Ok(Attempt::Done)
    }

    /// Splits the blocks around frames of one pageblock. If `frames` is empty, splits the pageblock only if
    /// it is still one block.
    fn try_split_part(&self, block: BlockId, frames: Range<usize>, pfn: Pfn) -> Result<Attempt, FreeError> {
        let state = self.state(block).get();
        match state.phase() {
            // The caller's range has no frame in this pageblock. This pageblock was one half of a pair, and
            // the range lies in the other half. The owner of this pageblock has freed it already.
            Phase::Absent | Phase::Whole | Phase::Parked if frames.is_empty() => {
                return Ok(Attempt::Done);
            }
            Phase::Absent | Phase::Whole | Phase::Parked => {
                return Err(FreeError::DoubleFree(pfn));
            }
            // Rows that another CPU has not set yet would look split.
            Phase::Changing => {}
            Phase::SecondHalf => self.cut_pair(head_of(block)),
            Phase::Block if state.has_bad() => return Err(FreeError::Leaked(pfn)),
            Phase::Block if state.block_order() > Order::PAGEBLOCK => self.cut_pair(block),
            Phase::Block => self.open_in_use(block, Order::ZERO),
            // The owner of a part has opened the pageblock, so it is no longer one block.
            Phase::Open if frames.is_empty() => return Ok(Attempt::Done),
            Phase::Open => match self.rows(block).split(frames) {
                Ok(()) => return Ok(Attempt::Done),
                Err(Refused::Changing) => {}
                Err(Refused::NoBlock) => return Err(FreeError::DoubleFree(pfn)),
            },
        }
        Ok(Attempt::Again)
    }

    /// Cuts a block of two pageblocks, which begins at `head`, into two blocks.
    pub(super) fn cut_pair(&self, head: BlockId) {
        let is_pair = |state: State| state.phase() == Phase::Block && state.block_order() > Order::PAGEBLOCK;
        let cut =
            self.state(head).update::<A>(|state| is_pair(state).then(|| state.of_block(Order::PAGEBLOCK)));
        if let Ok(before) = cut
            && let Some(second) = self.states.get(head.after(1).0)
        {
            let as_block = |state: State| before.of_block(Order::PAGEBLOCK).isolated(state.is_isolated());
            second.update::<A>(|state| (state.phase() == Phase::SecondHalf).then(|| as_block(state))).ok();
        }
    }

    /// Opens a block of pageblock size: its frames become blocks in use of this order. A block that is out of
    /// service stays as it is.
    pub(super) fn open_in_use(&self, block: BlockId, order: Order) {
        let is_whole = |state: State| state.is_block_of(Order::PAGEBLOCK);
        let begun =
            self.state(block).update::<A>(|state| is_whole(state).then(|| state.in_phase(Phase::Changing)));
        if begun.is_err() {
            return;
        }
        self.rows(block).open_in_use(order);
        let to_open = |state: State| {
            let open = State::open(state.migratetype()).isolated(state.is_isolated());
            if state.has_bad() { open.bad() } else { open }
        };
        self.state(block).update::<A>(|state| Some(to_open(state))).ok();
        // Race: another CPU freed a part of the pageblock meanwhile, and saw the phase `Changing`. The other
        // CPU did not settle the pageblock, so this CPU settles it.
        self.settle(block);
    }
}

/// Visits the part of a range in each pageblock.
fn for_each_part<A: Access>(
    allocator: &BlockAllocator<'_, A>,
    pfns: &Range<u64>,
    mut visit: impl FnMut(&Zone, BlockId, Range<usize>) -> Result<(), FreeError>,
) -> Result<(), FreeError> {
    let mut start = pfns.start;
    while start < pfns.end {
        let (zone, id) = allocator.locate(Pfn(start)).ok_or(FreeError::Foreign(Pfn(start)))?;
        let end = part_end(zone, start, pfns.end);
        let frame = id.in_block();
        visit(zone, id.block(), frame..frame + (end - start) as usize)?;
        start = end;
    }
    Ok(())
}

/// The lowest of three ends: of the pageblock that has the frame `start`, of the zone, and of the range.
/// Another zone may begin within the same 512 frames.
fn part_end(zone: &Zone, start: u64, range_end: u64) -> u64 {
    (start / FRAMES as u64 * FRAMES as u64).saturating_add(FRAMES as u64).min(zone.span.end).min(range_end)
}

#[cfg(all(test, feature = "alloc", not(any(loom, shuttle))))]
mod tests {
    use pageset_core::{Config, NodeId, ZoneConfig};

    use super::*;
    use crate::Tables;

    /// Calls `with` with an allocator of one zone of 2048 frames.
    fn with_zone(with: impl FnOnce(&BlockAllocator<'_>)) {
        let regions = [0..2048];
        let zones =
            [ZoneConfig { kind: ZoneKind::Normal, node: NodeId(0), span: 0..2048, regions: &regions }];
        let config = Config::new(&zones, &[NodeId(0); 2]);
        with(&BlockAllocator::new(&config, Tables::on_heap(&config).unwrap()).unwrap());
    }

    /// Simulates another CPU that acts on frame 80 of a new block while this CPU frees the frames from 77 on.
    #[track_caller]
    fn check(act: impl Fn(&BlockAllocator<'_>, u64), allocated: u64, leaked: u64) {
        with_zone(|allocator| {
            let (cpu, order) = (CpuId(0), Order::new(7).unwrap());
            let pfn = allocator.alloc(cpu, &Request::new(order)).unwrap();
            allocator.split_at(cpu, Pfn(pfn.0 + 80)).unwrap();
            act(allocator, pfn.0 + 80);
            assert_eq!(allocator.free_surplus(cpu, pfn, 77, order), Err(AllocError::NotFree(pfn)));
            let census = allocator.validate().unwrap();
            assert_eq!((census.allocated, census.leaked), (allocated, leaked));
        });
    }

    /// A reader found this bug: the frames of the block that stayed in service were in use for ever.
    #[test]
    fn if_a_surplus_frame_is_marked_bad_meanwhile_the_rest_of_the_block_is_freed() {
        // The block of 16 frames that begins at frame 80 goes out of service.
        check(|allocator, pfn| allocator.mark_bad(CpuId(1), Pfn(pfn)).unwrap(), 0, 16);
    }

    /// A reader found this bug: an allocation of a range that had to return its frames lost the frames behind
    /// a bad one.
    #[test]
    fn frames_that_go_back_are_free_but_for_a_block_that_was_marked_bad_meanwhile() {
        let cpu = CpuId(0);
        for bad in [100, 511, 512, 1023, 1029] {
            with_zone(|allocator| {
                allocator.alloc_range(cpu, 100..1030, &Request::new(Order::ZERO)).unwrap();
                allocator.split_range(cpu, 100..1030).unwrap();
                allocator.mark_bad(CpuId(1), Pfn(bad)).unwrap();
                assert_eq!(allocator.free_in_service(cpu, 100..1030), Err(FreeError::Leaked(Pfn(bad))));
                let census = allocator.validate().unwrap();
                assert_eq!((census.allocated, census.leaked), (0, 1), "{bad}");
            });
        }
    }

    #[test]
    fn if_another_caller_frees_a_surplus_frame_by_mistake_no_other_frame_of_the_block_is_freed() {
        check(|allocator, pfn| allocator.free_range(CpuId(1), pfn..pfn + 1).unwrap(), 127, 0);
    }
}
