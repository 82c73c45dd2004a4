//! Allocates contiguous frames at any alignment or at an address, also more than a block has. Such a run may
//! cross borders between pageblocks, and may have whole pageblocks in its middle.
//!
//! # Which operations may race, who loses, and why that is safe
//!
//! Race: this CPU has found a free run, and another CPU takes frames of it. This CPU takes the run pageblock
//! by pageblock, by the exchanges that every allocation uses. If another CPU was faster at one pageblock,
//! this CPU loses. This CPU frees the frames that it has taken, and goes on searching. The loss is safe,
//! because no caller has got those frames.

use core::ops::Range;

use pageset_core::{
    AllocError, CpuId, FreeError, MigrateType, Order, PAGEBLOCK_FRAMES, Pfn, Request, Watermark,
};

use super::attempt::Attempt;
use super::sets::Members;
use super::unit::UNIT;
use super::{BlockAllocator, FRAMES};
use crate::access::Access;
use crate::cpu_share::count;
use crate::ids::{BlockId, FrameId, each};
use crate::rows::Refused;
use crate::state::Phase;
use crate::zone::Zone;

impl<A: Access> BlockAllocator<'_, A> {
    /// Allocates `frames` contiguous frames, up to a whole zone. The first frame is a multiple of `align`, a
    /// power of two. The call ignores the request's order. Free the frames with
    /// [`free_range`](Self::free_range), all at once or in parts.
    ///
    /// A call for up to 1024 frames, with an alignment up to 1024, usually takes as long as an
    /// [`alloc`](Self::alloc) of one block. Other calls search for the first run of whole pageblocks that is
    /// long enough, and then for the first run of free frames. O(pageblocks). Whole GiB at a multiple of a
    /// GiB are found without a search of the pageblocks.
    ///
    /// # Errors
    /// [`AllocError::BadCount`] for a count of 0; [`AllocError::BadAlign`] if `align` is no power of two;
    /// [`AllocError::NotFree`] in the cases of [`alloc_exact`](Self::alloc_exact); the errors of
    /// [`alloc`](Self::alloc).
    pub fn alloc_contiguous(
        &self,
        cpu: CpuId,
        frames: u64,
        align: u64,
        request: &Request,
    ) -> Result<Pfn, AllocError> {
        if !self.is_known(cpu) {
            return Err(AllocError::BadCpu(cpu));
        }
        if frames == 0 {
            return Err(AllocError::BadCount(frames));
        }
        if !align.is_power_of_two() {
            return Err(AllocError::BadAlign(align));
        }
        let mut request = *request;
        request.order = Order::holding(frames.max(align)).unwrap_or(Order::MAX);
        if frames <= u64::from(Order::MAX.frames()) && align == 1 {
            match self.alloc_exact(cpu, frames, &request) {
                // A run may cross a border between pageblocks.
                Err(AllocError::OutOfMemory { .. }) => {}
                outcome => return outcome,
            }
        } else if frames.max(align) <= u64::from(Order::MAX.frames()) {
            match self.alloc(cpu, &request) {
                Ok(pfn) => {
                    self.free_surplus(cpu, pfn, frames, request.order)?;
                    return Ok(pfn);
                }
                Err(AllocError::OutOfMemory { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        if !request.migratetype.is_mergeable() {
            return Err(AllocError::BadType(request.migratetype));
        }
        let node = self.node_for(cpu, &request).ok_or(AllocError::NoEligibleZone)?;
        let mut zones = self.zones_for(&request, node).peekable();
        let first = *zones.peek().ok_or(AllocError::NoEligibleZone)?;
        let found = zones.find_map(|zone| self.take_contiguous(zone.index(), cpu, frames, align, &request));
        found.ok_or_else(|| {
            count::<A>(&self.share_at(first, cpu).counters.failed);
            AllocError::OutOfMemory { order: request.order }
        })
    }

    /// Allocates the frames of a range at its address, within one zone. The call ignores the request's order,
    /// zone, node and address limit. Free the frames with [`free_range`](Self::free_range), all at once or in
    /// parts. O(pageblocks of the range).
    ///
    /// # Errors
    /// The errors of [`alloc_at`](Self::alloc_at), which name the first frame of the range;
    /// [`AllocError::BadCount`] for an empty range.
    pub fn alloc_range(&self, cpu: CpuId, pfns: Range<u64>, request: &Request) -> Result<(), AllocError> {
        if !self.is_known(cpu) {
            return Err(AllocError::BadCpu(cpu));
        }
        if !request.migratetype.is_mergeable() {
            return Err(AllocError::BadType(request.migratetype));
        }
        let Some(last) = pfns.end.checked_sub(1).filter(|_| !pfns.is_empty()) else {
            return Err(AllocError::BadCount(0));
        };
        let first = Pfn(pfns.start);
        let (zone, id) = self.locate(first).ok_or(AllocError::Foreign(first))?;
        if self.is_hole(id) {
            return Err(AllocError::Foreign(first));
        }
        if !zone.span.contains(&last) {
            return Err(AllocError::NotFree(first));
        }
        let frames = id..id.after((pfns.end - pfns.start) as usize);
        if !self.take_frames(cpu, zone, frames, request.migratetype) {
            return Err(AllocError::NotFree(first));
        }
        if self.stays_above_min(zone, request) {
            return Ok(());
        }
        // No caller has got the frames of the range.
        self.free_in_service(cpu, pfns).ok();
        Err(AllocError::OutOfMemory { order: request.order })
    }

    /// Cuts the block around a frame in use, so that a block begins with the frame. An owner can then free or
    /// pass on the parts separately. The parts stay in use, as the largest aligned blocks that fit.
    ///
    /// # Errors
    /// The errors of [`free_range`](Self::free_range) for this frame.
    pub fn split_at(&self, cpu: CpuId, pfn: Pfn) -> Result<(), FreeError> {
        if !self.is_known(cpu) {
            return Err(FreeError::BadCpu(cpu));
        }
        let (_, id) = self.locate(pfn).ok_or(FreeError::Foreign(pfn))?;
        self.until_done(pfn, || self.try_split_at(id.block(), id.in_block(), pfn))
    }

    fn try_split_at(&self, block: BlockId, frame: usize, pfn: Pfn) -> Result<Attempt, FreeError> {
        let state = self.state(block).get();
        match state.phase() {
            Phase::Absent => return Err(FreeError::Foreign(pfn)),
            Phase::Whole | Phase::Parked => return Err(FreeError::DoubleFree(pfn)),
            Phase::Changing => {}
            Phase::SecondHalf => self.cut_pair(super::head_of(block)),
            Phase::Block if state.has_bad() => return Err(FreeError::Leaked(pfn)),
            Phase::Block if frame == 0 => return Ok(Attempt::Done),
            Phase::Block if state.block_order() > Order::PAGEBLOCK => self.cut_pair(block),
            Phase::Block => self.open_in_use(block, Order::PAGEBLOCK),
            Phase::Open => match self.rows(block).cut_before(frame) {
                Ok(()) => return Ok(Attempt::Done),
                Err(Refused::Changing) => {}
                Err(Refused::NoBlock) => return Err(FreeError::DoubleFree(pfn)),
            },
        }
        Ok(Attempt::Again)
    }

    /// Takes contiguous free frames of a zone, if the zone has enough in a run and stays above its minimum.
    fn take_contiguous(
        &self,
        zone: usize,
        cpu: CpuId,
        frames: u64,
        align: u64,
        request: &Request,
    ) -> Option<Pfn> {
        let zone = &self.zones[zone];
        // The zone's count does not include free frames of reserved pageblocks, so end all reservations
        // first.
        self.unreserve_all(zone);
        let floor = zone.floor(request, Watermark::Min);
        if !self.is_free_at_least(zone, floor.saturating_add(frames)) {
            return None;
        }
        let frames = usize::try_from(frames).ok()?;
        let take = |frames: Range<FrameId>| {
            let first = zone.pfn(frames.start);
            self.take_frames(cpu, zone, frames, request.migratetype).then_some(first)
        };
        let whole = || self.whole_places(zone, frames, align).find_map(take);
        let any = || {
            // Takes the first run that is large enough. If another CPU takes frames of the run meanwhile,
            // tries the next run.
            let mut run = FrameId(0)..FrameId(0);
            self.free_extents(zone).find_map(|extent| {
                run = if run.end == extent.start { run.start..extent.end } else { extent };
                let first = zone.first_aligned(run.start, align)?;
                take(first..first.checked_after(frames).filter(|end| *end <= run.end)?)
            })
        };
        match frames {
            // The run consists of whole pageblocks. No CPU reserves a pageblock now, so the set of whole
            // pageblocks has all whole pageblocks.
            _ if frames.is_multiple_of(FRAMES) && align >= u64::from(PAGEBLOCK_FRAMES) => whole(),
            FRAMES.. => whole().or_else(any),
            _ => any(),
        }
    }

    /// The aligned ranges of `frames` frames that have only whole pageblocks. `frames` is at least a
    /// pageblock's. For whole units at a multiple of a unit, each search for a range begins at a whole unit.
    /// For other ranges, each search begins at a whole pageblock. If a pageblock of a range is not whole, the
    /// next search begins after the pageblock that is not whole. Ranges may overlap.
    fn whole_places(&self, zone: &Zone, frames: usize, align: u64) -> impl Iterator<Item = Range<FrameId>> {
        let whole = self.set(Members::Whole);
        let of_units = frames.min(usize::try_from(align).unwrap_or(usize::MAX)) >= UNIT * FRAMES;
        let mut at = zone.blocks.start;
        core::iter::from_fn(move || {
            loop {
                let member = match of_units {
                    true => self.find_whole_unit(zone, at)?.start,
                    false => whole.find_from(&zone.blocks, at)?,
                };
                let first = zone.first_aligned(FrameId::of(member, 0), align)?;
                let end = first.checked_after(frames)?;
                let blocks = first.block()..BlockId(end.0.div_ceil(FRAMES));
                if blocks.end > zone.blocks.end {
                    return None;
                }
                let missing = whole.first_missing(&blocks);
                at = missing.unwrap_or(first.block()).after(1);
                if missing.is_none() {
                    return Some(first..end);
                }
            }
        })
    }

    /// The runs of free frames of a zone, in ascending order. A run across a border between pageblocks is
    /// returned in parts.
    fn free_extents(&self, zone: &Zone) -> impl Iterator<Item = Range<FrameId>> {
        each(&zone.blocks).flat_map(|block| {
            let is_whole = self.is_published(block);
            let gives = !is_whole && self.state(block).get().gives();
            let of_rows = gives.then(|| self.rows(block).free_runs()).into_iter().flatten();
            let whole = is_whole.then_some(0..FRAMES);
            let frame = move |at: usize| FrameId::of(block, at);
            whole.into_iter().chain(of_rows).map(move |run| frame(run.start)..frame(run.end))
        })
    }

    /// Takes these frames, if all are free: whole pageblocks as blocks, other parts as the largest aligned
    /// blocks that fit.
    fn take_frames(&self, cpu: CpuId, zone: &Zone, frames: Range<FrameId>, of: MigrateType) -> bool {
        let mut at = frames.start;
        while at < frames.end {
            let (block, first) = (at.block(), at.in_block());
            let part = first..FRAMES.min(first + (frames.end.0 - at.0));
            if !self.take_part(block, part.clone(), of) {
                if at > frames.start {
                    // No caller has got these frames.
                    self.free_in_service(cpu, zone.pfn(frames.start).0..zone.pfn(at).0).ok();
                }
                return false;
            }
            self.note_use(of, block);
            at = at.after(part.len());
        }
        true
    }

    /// Takes these frames of a pageblock, if all are free.
    fn take_part(&self, block: BlockId, frames: Range<usize>, of: MigrateType) -> bool {
        if frames.len() == FRAMES {
            self.reap_block(block);
            return self.claim_whole_at(self.zone_at(block), block, 1)
                && self.hand_out(block, Order::PAGEBLOCK, of);
        }
        if !self.open_if_whole(block, of) {
            return false;
        }
        if !self.state(block).get().gives() {
            return false;
        }
        if !self.rows(block).take_range(frames.clone()) {
            // Race: this CPU took some rows for a moment. If another CPU settled the pageblock in that
            // moment, the other CPU did not count these rows as free. So this CPU makes the pageblock
            // unsettled.
            self.note_rows(block);
            return false;
        }
        self.note_taken(block, frames.len() as u32);
        let gives = self.state(block).get().gives();
        if gives {
            self.settle(block);
        } else {
            // The pageblock has gone out of service, or is becoming whole.
            self.put_back_run(block, frames);
        }
        gives
    }
}

impl Zone {
    /// The first frame from `id` on whose number is a multiple of `align`, a power of two.
    fn first_aligned(&self, id: FrameId, align: u64) -> Option<FrameId> {
        let more = self.pfn(id).0.wrapping_neg() & (align - 1);
        id.checked_after(usize::try_from(more).ok()?)
    }
}
