//! Frees single blocks, or a list of blocks.

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
    /// Special properties of a free.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct FreeTraits: u8 {
        /// The free bypasses the per-CPU page set, and counts as a free that found the page set's lock taken.
        /// An interrupt handler of a kernel frees with `BYPASS_PCP` if the handler has interrupted the holder
        /// of the page set's lock.
        const BYPASS_PCP = 1;
        /// The block is freed as one of a list of blocks. The free also emits `MmPageFreeBatched` if the
        /// block goes to a page set.
        const BATCHED = 1 << 1;
    }
}

/// The result of offering a freed block to a page set.
enum Kept {
    /// The page set took the block. If `Drained` holds a due drain, the caller takes the page set's lock
    /// again and continues the drain.
    Drained(Option<DueDrain>),
    /// The page set did not take the block, because the page set's CPU no longer owns the block's pageblock.
    Disowned,
}

impl<'a, P: Platform> PageAllocator<'a, P> {
    /// Frees a block on behalf of `cpu`. Another CPU may have allocated the block.
    ///
    /// # Errors
    /// The free fails if the block is not allocated with the order `order`, in release builds too. If two
    /// CPUs free the same block at once, one CPU succeeds, and the other CPU gets an error, usually
    /// [`FreeError::DoubleFree`]. A refused free changes no block.
    #[inline]
    pub fn free(&self, cpu: CpuId, pfn: Pfn, order: Order) -> Result<(), FreeError> {
        self.free_with(cpu, pfn, order, FreeTraits::default())
    }

    /// Does the same as [`free`](Self::free), with special `traits`. The block goes into the page set or to
    /// the free lists (spec §2.8).
    ///
    /// # Errors
    /// The same errors as [`free`](Self::free).
    #[inline]
    pub fn free_with(&self, cpu: CpuId, pfn: Pfn, order: Order, traits: FreeTraits) -> Result<(), FreeError> {
        if self.policy.ownership().is_some() {
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

    /// Takes a block from its user, so that no other CPU can free the block. Every free begins with a claim
    /// of its block. Race: two CPUs free the same block. The claim of the second CPU fails, so only the first
    /// CPU frees the block.
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

    /// Frees a block under a policy with owners. The block usually goes to the CPU that owns its pageblock.
    /// This function is not inlined, so that a free under a policy without owners costs only one branch more.
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
        if !traits.contains(FreeTraits::BYPASS_PCP) && at.gives_to_list(block) {
            if traits.contains(FreeTraits::BATCHED) {
                let pfn = zone.body.span.pfn(frame);
                emit(self.platform.events(), cpu, || Event::MmPageFreeBatched { pfn, order });
            }
            // Race: the owner goes offline while this CPU adds the block to the owner's list. `cpu_offline`
            // first ends the owner's ownership of pageblocks, and then empties the owner's page set and list.
            // If the list was emptied before this CPU added the block, the pageblock has no owner now, and
            // this CPU empties the list. In both orders, no block stays on the list of an owner that goes
            // offline.
            if zone.body.owners.owner(frame) != Some(at.owner) {
                self.drain_pageset(cpu, zone, at.owner);
            }
            return;
        }
        // The loop repeats if the owner has just lost the pageblock. The loop also repeats if the owner's
        // page set is locked and the policy lets the freeing CPU keep the block.
        loop {
            let cached = match traits.contains(FreeTraits::BYPASS_PCP) {
                true => None,
                false => at.pageset.try_with(|state| {
                    if at.owner == cpu {
                        at.take_in(state);
                    }
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

    /// Replaces the page set in `at` by the page set of the CPU that owns the frame's pageblock. Returns `at`
    /// if no CPU owns the pageblock.
    fn at_owner<'z>(&'z self, at: CpuZone<'z, 'a, P>, frame: FrameIndex) -> CpuZone<'z, 'a, P> {
        match at.zone.body.owners.owner(frame) {
            Some(owner) => {
                CpuZone { cpu: at.cpu, ..self.pagesets.at(at.zone, owner, &self.policy, &self.platform) }
            }
            None => at,
        }
    }

    /// The zone of a frame, and the frame's index in the zone. `None` if the frame lies in no zone.
    #[inline]
    pub(crate) fn locate(&self, pfn: Pfn) -> Option<(&Zone<'a, P>, FrameIndex)> {
        self.zones.iter().find_map(|zone| Some((zone, zone.body.span.index(pfn)?)))
    }

    /// Returns the reason why a block cannot be freed. Emits an event if the block is bad.
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

    /// Frees a list of blocks, as a kernel does when an address space ends.
    ///
    /// # Errors
    /// Returns the index of the first block that could not be freed, and the reason. All blocks that can be
    /// freed are freed.
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
    /// Puts a block on the free lists. Reads the type of the block's pageblock again under the zone's lock.
    /// The rules of Linux 6.12 split a block of two pageblocks, and put each pageblock on the list of its own
    /// type (spec §1.5). While any pageblock is isolated, every policy splits a block of two pageblocks,
    /// because an isolated half must not be allocated with the other half.
    fn free_direct(self, block: Claimed, counted: DivertedFrees) {
        let Claimed { frame, order } = block;
        self.pageset.touch();
        self.zone.with_lock(self.platform, self.cpu, |locked| {
            if !matches!(locked.body.frames.state(frame), State::Cached { .. }) {
                // Race: another CPU marked the block bad after this CPU had claimed it.
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
                locked.update_owner(frame + start);
            }
        });
    }
}

/// The reason why the block at `frame` cannot be taken from its user.
#[cold]
pub(super) fn refusal<P: Platform>(
    zone: &Zone<'_, P>,
    frame: FrameIndex,
    given: Order,
    state: State,
) -> FreeError {
    let pfn = zone.body.span.pfn(frame);
    match state {
        // Race: after this CPU's claim failed, another CPU allocated a block of the same order at this frame.
        State::Allocated { order, .. } if order == given => FreeError::DoubleFree(pfn),
        State::Allocated { order: allocated, .. } => FreeError::WrongOrder { pfn, given, allocated },
        State::Free { .. } | State::Cached { .. } | State::Owned { .. } => FreeError::DoubleFree(pfn),
        State::Leaked { .. } => FreeError::Leaked(pfn),
        State::Hole => FreeError::Foreign(pfn),
        // The frame lies inside a block. If the containing block is free or in a page set, the error is a
        // double free.
        State::Interior => match zone.body.frames.covering_block(frame) {
            Some((_, State::Free { .. } | State::Cached { .. } | State::Owned { .. })) => {
                FreeError::DoubleFree(pfn)
            }
            _ => FreeError::NotABlock(pfn),
        },
    }
}
