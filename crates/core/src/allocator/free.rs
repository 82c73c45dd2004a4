//! Freeing blocks, one at a time or in batches.

use bitflags::bitflags;

use super::PageAllocator;
use crate::buddy::Placement;
use crate::error::FreeError;
use crate::event::{Event, FoundAt, emit};
use crate::frame::{FrameIndex, State};
use crate::pcp::{Claimed, CpuZone, DueDrain};
use crate::platform::Platform;
use crate::policy::{DivertedFrees, Fallback};
use crate::zone::Zone;
use crate::{CpuId, MigrateType, Order, Pfn};

bitflags! {
    /// Under which circumstances a block is freed.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct FreeTraits: u8 {
        /// Bypasses the per-CPU page set, and counts as a free that found the page set's lock taken. In a kernel, an
        /// interrupt does this if it hits a CPU that holds the lock.
        const BYPASS_PCP = 1;
        /// Part of a list free: emits `MmPageFreeBatched`.
        const BATCHED = 1 << 1;
    }
}

/// What a page set made of a freed block.
enum Kept {
    /// It has the block; so much is to be drained under new holds of its lock.
    Drained(Option<DueDrain>),
    /// Its CPU does not own the pageblock any more.
    Disowned,
}

impl<'a, P: Platform> PageAllocator<'a, P> {
    /// Frees a block on behalf of `cpu`, which need not be the CPU that allocated it.
    ///
    /// # Errors
    /// Every misuse is an error, in release builds too. If two CPUs free the same block at once, one succeeds and the other
    /// gets [`FreeError::DoubleFree`]. A refused free leaves the allocator unchanged.
    #[inline]
    pub fn free(&self, cpu: CpuId, pfn: Pfn, order: Order) -> Result<(), FreeError> {
        self.free_with(cpu, pfn, order, FreeTraits::default())
    }

    /// As [`free`](Self::free), in special circumstances: into the page set, or to the free lists (spec §2.8).
    ///
    /// # Errors
    /// As `free`.
    #[inline]
    pub fn free_with(&self, cpu: CpuId, pfn: Pfn, order: Order, traits: FreeTraits) -> Result<(), FreeError> {
        if self.policy.ownership.is_some() {
            return self.free_owned(cpu, pfn, order, traits);
        }
        let (zone, block, migratetype) = self.claim(cpu, pfn, order)?;
        let diverted = self.policy.buddy.diverted_frees;
        let list = self.policy.lists.list(order, migratetype);
        let at = self.pagesets.at(zone, cpu, &self.policy, &self.platform);
        match list {
            None => at.free_direct(block, DivertedFrees::Counted),
            Some(_) if migratetype == MigrateType::Isolate => at.free_direct(block, diverted),
            Some(list) => {
                let cached = match traits.contains(FreeTraits::BYPASS_PCP) {
                    true => None,
                    false => at.pageset.try_with(|state| {
                        if traits.contains(FreeTraits::BATCHED) {
                            emit(self.platform.events(), cpu, || Event::MmPageFreeBatched { pfn, order });
                        }
                        at.push_and_drain(state, list, block)
                    }),
                };
                match cached {
                    None => {
                        zone.body.trylock_failures.add_one();
                        at.free_direct(block, diverted);
                    }
                    Some(None) => {}
                    Some(Some(rest)) => at.drain_slices(list, rest),
                }
            }
        }
        Ok(())
    }

    /// Takes a block from its user: the first act of every free.
    #[inline(always)]
    fn claim(
        &self,
        cpu: CpuId,
        pfn: Pfn,
        order: Order,
    ) -> Result<(&Zone<'a, P>, Claimed, MigrateType), FreeError> {
        if cpu.index() >= self.cpus.len() {
            return Err(FreeError::BadCpu(cpu));
        }
        let (zone, frame) = self.locate(pfn).ok_or(FreeError::Foreign(pfn))?;
        let migratetype = match zone.body.frames.claim(frame, order) {
            Ok(migratetype) => migratetype,
            Err(found) => return Err(self.refuse(cpu, zone, frame, order, found)),
        };
        emit(self.platform.events(), cpu, || Event::MmPageFree { pfn, order });
        Ok((zone, Claimed { frame, order }, migratetype))
    }

    /// Frees a block into the page set of the CPU that owns its pageblock, whoever frees it. Apart from
    /// [`free_with`](Self::free_with), so that this costs the other policies a branch.
    #[cold]
    #[inline(never)]
    fn free_owned(&self, cpu: CpuId, pfn: Pfn, order: Order, traits: FreeTraits) -> Result<(), FreeError> {
        let (zone, block, migratetype) = self.claim(cpu, pfn, order)?;
        self.give_to_owner(cpu, zone, block, migratetype, traits);
        Ok(())
    }

    fn give_to_owner(
        &self,
        cpu: CpuId,
        zone: &Zone<'a, P>,
        block: Claimed,
        migratetype: MigrateType,
        traits: FreeTraits,
    ) {
        let Claimed { frame, order } = block;
        let diverted = self.policy.buddy.diverted_frees;
        let own = self.pagesets.at(zone, cpu, &self.policy, &self.platform);
        let Some(list) = self.policy.lists.list(order, migratetype) else {
            return own.free_direct(block, DivertedFrees::Counted);
        };
        if migratetype == MigrateType::Isolate {
            return own.free_direct(block, diverted);
        }
        let mut at = self.at_owner(own, frame);
        // Tried again only for a pageblock that its owner has just given up, or whose owner is busy.
        loop {
            let cached = match traits.contains(FreeTraits::BYPASS_PCP) {
                true => None,
                false => at.pageset.try_with(|state| {
                    if !at.takes_back(block, migratetype) {
                        return Kept::Disowned;
                    }
                    if traits.contains(FreeTraits::BATCHED) {
                        let pfn = zone.body.span.pfn(frame);
                        emit(self.platform.events(), cpu, || Event::MmPageFreeBatched { pfn, order });
                    }
                    Kept::Drained(at.push_and_drain(state, list, block))
                }),
            };
            match cached {
                None => {
                    zone.body.trylock_failures.add_one();
                    if traits.contains(FreeTraits::BYPASS_PCP) || !at.may_try_own() {
                        return at.free_direct(block, diverted);
                    }
                }
                Some(Kept::Disowned) => {}
                Some(Kept::Drained(None)) => return,
                Some(Kept::Drained(Some(rest))) => return at.drain_slices(list, rest),
            }
            at = own;
        }
    }

    /// The zone with the page set of the CPU that owns a frame's pageblock, if somebody does.
    fn at_owner<'z>(&'z self, at: CpuZone<'z, 'a, P>, frame: FrameIndex) -> CpuZone<'z, 'a, P> {
        match at.zone.body.owners.owner(frame) {
            Some(owner) => {
                CpuZone { cpu: at.cpu, ..self.pagesets.at(at.zone, owner, &self.policy, &self.platform) }
            }
            None => at,
        }
    }

    /// The zone of a frame, and the frame's index in it.
    #[inline]
    pub(crate) fn locate(&self, pfn: Pfn) -> Option<(&Zone<'a, P>, FrameIndex)> {
        self.zones.iter().find_map(|zone| Some((zone, zone.body.span.index(pfn)?)))
    }

    /// Says why a block cannot be freed, and reports it if it is bad.
    #[cold]
    fn refuse(
        &self,
        cpu: CpuId,
        zone: &Zone<'_, P>,
        frame: FrameIndex,
        order: Order,
        found: State,
    ) -> FreeError {
        let error = refusal(zone, frame, order, found);
        if let FreeError::Leaked(pfn) = error {
            zone.body.bad_frees.add_one();
            emit(self.platform.events(), cpu, || Event::BadPage { pfn, order, found: FoundAt::Free });
        }
        error
    }

    /// Frees a list of blocks, as a kernel does at the end of an address space.
    ///
    /// # Errors
    /// Names the first misuse and its index. The other blocks are freed nevertheless.
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
}

impl<P: Platform> CpuZone<'_, '_, P> {
    /// Returns a block to the free lists. Its pageblock's type is read again under the lock; Linux 6.12 gives each
    /// pageblock of a larger block its own (spec §1.5). Where pageblocks are isolated every policy does, since half an
    /// isolated block must not be allocated with the other half.
    fn free_direct(self, block: Claimed, counted: DivertedFrees) {
        let Claimed { frame, order } = block;
        self.pageset.touch();
        self.zone.with_lock(self.platform, self.cpu, |locked| {
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
                locked.settle_owner(frame + start);
            }
        });
    }
}

/// Why a block cannot be taken from its user, whose frame is in this state.
#[cold]
pub(super) fn refusal<P: Platform>(
    zone: &Zone<'_, P>,
    frame: FrameIndex,
    given: Order,
    state: State,
) -> FreeError {
    let pfn = zone.body.span.pfn(frame);
    match state {
        // Freed by another CPU and allocated again since this one looked.
        State::Allocated { order, .. } if order == given => FreeError::DoubleFree(pfn),
        State::Allocated { order: allocated, .. } => FreeError::WrongOrder { pfn, given, allocated },
        State::Free { .. } | State::Cached { .. } | State::Owned { .. } => FreeError::DoubleFree(pfn),
        State::Leaked { .. } => FreeError::Leaked(pfn),
        State::Hole => FreeError::Foreign(pfn),
        // Inside a block: of somebody's, or of one that was freed meanwhile.
        State::Interior => match zone.body.frames.covering_block(frame) {
            Some((_, State::Free { .. } | State::Cached { .. } | State::Owned { .. })) => {
                FreeError::DoubleFree(pfn)
            }
            _ => FreeError::NotABlock(pfn),
        },
    }
}
