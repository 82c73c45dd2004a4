//! Freeing blocks, one at a time or in batches.

use bitflags::bitflags;

use super::PageAllocator;
use super::take::pressure;
use crate::buddy::Placement;
use crate::error::FreeError;
use crate::event::{Event, FoundAt, emit};
use crate::frame::{FrameIndex, State};
use crate::pcp::{DueDrain, ListIndex, PagesetState};
use crate::platform::Platform;
use crate::policy::{DivertedFrees, Fallback, FreeDrain};
use crate::request::AllocFlags;
use crate::zone::{Watermark, Zone, ZoneFlag};
use crate::{CpuId, MigrateType, Order, Pfn, ZoneKind};

bitflags! {
    /// Circumstances of a free.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct FreeTraits: u8 {
        /// Behaves as if the per-CPU page set's lock were taken, as in an interrupt that hits its owner.
        const PCP_BUSY = 1;
        /// Part of a list free: emits `MmPageFreeBatched`.
        const BATCHED = 1 << 1;
    }
}

impl<'a, P: Platform> PageAllocator<'a, P> {
    /// Frees a block on behalf of `cpu`, which need not be the CPU that allocated it.
    ///
    /// # Errors
    /// Every misuse is found, in release builds too, also when two CPUs free the same block at once: one succeeds, the
    /// other gets [`FreeError::DoubleFree`]. The allocator is unchanged by a refused free.
    #[inline]
    pub fn free(&self, cpu: CpuId, pfn: Pfn, order: Order) -> Result<(), FreeError> {
        self.free_with(cpu, pfn, order, FreeTraits::default())
    }

    /// As [`free`](Self::free), in special circumstances.
    ///
    /// # Errors
    /// As `free`.
    #[inline]
    pub fn free_with(&self, cpu: CpuId, pfn: Pfn, order: Order, traits: FreeTraits) -> Result<(), FreeError> {
        if !self.is_known(cpu) {
            return Err(FreeError::BadCpu(cpu));
        }
        let (zone, frame) = self.locate(pfn).ok_or(FreeError::Foreign(pfn))?;
        let migratetype = claim(zone, frame, order).inspect_err(|error| {
            if let FreeError::Leaked(pfn) = *error {
                self.note_bad_free(cpu, zone, pfn, order);
            }
        })?;
        emit(self.platform.events(), cpu, || Event::MmPageFree { pfn, order });
        self.free_claimed(cpu, zone, (frame, order, migratetype), traits);
        Ok(())
    }

    #[cold]
    fn note_bad_free(&self, cpu: CpuId, zone: &Zone<'_, P>, pfn: Pfn, order: Order) {
        zone.body.bad_frees.add_one();
        emit(self.platform.events(), cpu, || Event::BadPage { pfn, order, found: FoundAt::Free });
    }

    /// Frees a list of blocks, as a kernel does at the end of an address space.
    ///
    /// # Errors
    /// The first misuse, with its index; the other blocks are freed all the same.
    pub fn free_batch(&self, cpu: CpuId, blocks: &[(Pfn, Order)]) -> Result<(), (usize, FreeError)> {
        let mut outcome = Ok(());
        for (index, &(pfn, order)) in blocks.iter().enumerate() {
            if let Err(error) = self.free_with(cpu, pfn, order, FreeTraits::BATCHED)
                && outcome.is_ok()
            {
                outcome = Err((index, error));
            }
        }
        outcome
    }

    /// Frees a block that [`claim`] took: into the page set, or to the free lists (spec §2.8).
    #[inline]
    pub(super) fn free_claimed(
        &self,
        cpu: CpuId,
        zone: &Zone<'_, P>,
        (frame, order, migratetype): (FrameIndex, Order, MigrateType),
        traits: FreeTraits,
    ) {
        if !self.policy.lists.holds(order) {
            return self.free_direct(cpu, zone, (frame, order), DivertedFrees::Counted);
        }
        let diverted = self.policy.buddy.diverted_frees;
        if migratetype == MigrateType::Isolate {
            return self.free_direct(cpu, zone, (frame, order), diverted);
        }
        let committed = match traits.contains(FreeTraits::PCP_BUSY) {
            true => None,
            false => self
                .pageset(zone, cpu)
                .try_with(|state| self.commit(cpu, zone, state, (frame, order, migratetype), traits)),
        };
        match committed {
            None => {
                zone.body.trylock_failures.add_one();
                self.free_direct(cpu, zone, (frame, order), diverted);
            }
            Some(None) => {}
            Some(Some((rest, list))) => self.drain_slices(cpu, zone, rest, list),
        }
    }

    /// Adds the block to the page set, and drains what is too much. Returns what is left to drain under new holds of
    /// the lock, and the list to begin at.
    #[inline]
    fn commit(
        &self,
        cpu: CpuId,
        zone: &Zone<'_, P>,
        state: &mut PagesetState,
        (frame, order, migratetype): (FrameIndex, Order, MigrateType),
        traits: FreeTraits,
    ) -> Option<(DueDrain, ListIndex)> {
        if traits.contains(FreeTraits::BATCHED) {
            let pfn = zone.body.span.pfn(frame);
            emit(self.platform.events(), cpu, || Event::MmPageFreeBatched { pfn, order });
        }
        let list = self.policy.lists.list_of_held(order, migratetype);
        state.pcp.push(&zone.body.frames, list, frame, order);
        state.counters.pgfree += u64::from(order.frames());
        state.counters.pcp_free += 1;
        let limits = self.pageset(zone, cpu).limits();
        let due = state.pcp.note_free(&self.policy, limits, pressure(zone), order)?;
        let rest = self.drain_due(cpu, zone, state, due, list);
        (rest.pages > 0).then_some((rest, list))
    }

    /// Goes on with a drain in slices for as long as the page set is at its limit and nobody else has its lock.
    #[cold]
    fn drain_slices(&self, cpu: CpuId, zone: &Zone<'_, P>, mut rest: DueDrain, list: ListIndex) {
        while rest.pages > 0 {
            let drained = self.pageset(zone, cpu).try_with(|state| {
                let goes_on = state.pcp.count > 0 && state.pcp.count >= rest.limit;
                goes_on.then(|| self.drain_due(cpu, zone, state, rest, list))
            });
            match drained {
                Some(Some(left)) => rest = left,
                Some(None) | None => return,
            }
        }
    }

    /// Drains what is due, or one slice of it. Returns what is left.
    #[cold]
    fn drain_due(
        &self,
        cpu: CpuId,
        zone: &Zone<'_, P>,
        state: &mut PagesetState,
        due: DueDrain,
        list: ListIndex,
    ) -> DueDrain {
        let pageset = self.pageset(zone, cpu);
        let pages = match self.policy.free_drain {
            FreeDrain::Whole => due.pages,
            FreeDrain::Slices => due.pages.min(pageset.limits().batch),
        };
        pageset.touch();
        let order = self.policy.drain_order;
        zone.with_lock(&self.platform, cpu, |locked| {
            state.pcp.drain(locked, cpu, order, (pages, list), due.reason, &mut state.counters);
        });
        if zone.body.gauges.has(ZoneFlag::BelowHigh) {
            let high = zone.body.marks.boosted(Watermark::High);
            if zone.body.is_watermark_ok(Order::ZERO, high, ZoneKind::Movable, AllocFlags::empty()) {
                zone.body.gauges.clear(ZoneFlag::BelowHigh);
            }
        }
        DueDrain { pages: due.pages - pages, ..due }
    }

    /// Returns a block to the free lists. Its pageblock's type is read again under the lock; Linux 6.12 gives each
    /// pageblock of a larger block its own (spec §1.5). Where pageblocks are isolated every policy does, since half an
    /// isolated block must not be allocated with the other half.
    pub(super) fn free_direct(
        &self,
        cpu: CpuId,
        zone: &Zone<'_, P>,
        (frame, order): (FrameIndex, Order),
        counted: DivertedFrees,
    ) {
        self.pageset(zone, cpu).touch();
        zone.with_lock(&self.platform, cpu, |locked| {
            if !matches!(locked.body.frames.state(frame), State::Cached { .. }) {
                // Marked bad since it was claimed.
                locked.leak(frame, order, FoundAt::Free);
                return;
            }
            locked.buddy.stats.direct_free += 1;
            locked.buddy.stats.direct_pages += u64::from(order.frames());
            if counted == DivertedFrees::Counted {
                locked.buddy.stats.pgfree += u64::from(order.frames());
            }
            let splits = locked.body.rules.fallback == Fallback::ClaimOrTakeOne
                || locked.body.gauges.isolated_pageblocks() > 0;
            let part = if splits { order.min(Order::PAGEBLOCK) } else { order };
            let frames = &locked.body.frames;
            for start in (0..order.frames()).step_by(part.frames() as usize) {
                if start > 0 {
                    frames.set_state(frame + start, State::Leaked { order: part });
                }
                let migratetype = frames.pageblock_type(frame + start);
                locked.free_block(frame + start, part, migratetype, Placement::Likely);
            }
        });
    }
}

/// Takes a block from its user: checks that it is one, and marks it as cached so that nobody else can free it.
/// Returns the type of its pageblock.
#[inline]
pub(super) fn claim<P: Platform>(
    zone: &Zone<'_, P>,
    frame: FrameIndex,
    order: Order,
) -> Result<MigrateType, FreeError> {
    let frames = &zone.body.frames;
    let migratetype = frames.pageblock_type(frame);
    match frames.exchange_allocated(frame, order, State::Cached { order, migratetype }) {
        Ok(()) => Ok(migratetype),
        Err(found) => Err(refusal(zone, frame, order, found)),
    }
}

#[cold]
fn refusal<P: Platform>(zone: &Zone<'_, P>, frame: FrameIndex, given: Order, state: State) -> FreeError {
    let pfn = zone.body.span.pfn(frame);
    match state {
        // Freed by another CPU and allocated again since this one looked.
        State::Allocated { order, .. } if order == given => FreeError::DoubleFree(pfn),
        State::Allocated { order: allocated, .. } => FreeError::WrongOrder { pfn, given, allocated },
        State::Free { .. } | State::Cached { .. } => FreeError::DoubleFree(pfn),
        State::Leaked { .. } => FreeError::Leaked(pfn),
        State::Hole => FreeError::Foreign(pfn),
        // Inside a block: of somebody's, or of one that was freed meanwhile.
        State::Interior => match zone.body.frames.covering_block(frame) {
            Some((_, State::Free { .. } | State::Cached { .. })) => FreeError::DoubleFree(pfn),
            _ => FreeError::NotABlock(pfn),
        },
    }
}
