//! Taking pageblocks out of service and back: one bit of a pageblock's state, which whoever puts the pageblock to another use sees
//! in the same exchange.

use pageset_core::{ConfigError, CpuId, MigrateType, Order, Pfn};

use super::{BlockAllocator, FRAMES};
use crate::free_bits::WORDS;
use crate::stack::BlockIndex;
use crate::state::{Phase, State};

/// All frames of a pageblock are free, as words of bits.
pub(super) const ALL_FREE: [usize; WORDS] = [usize::MAX; WORDS];

impl BlockAllocator<'_> {
    /// Takes a pageblock out of service: its free frames are handed out no more and leave the counts, and frames freed in it stay
    /// in it. Frames that are in use stay so. (A block that another CPU frees at this very moment may be kept by that CPU for one
    /// more request; [`drain_all`](Self::drain_all) brings it back.)
    ///
    /// # Errors
    /// [`ConfigError::BadCpu`] for an unknown CPU, [`ConfigError::Foreign`] if the frame lies in no zone,
    /// [`ConfigError::AlreadyIsolated`] if the pageblock is out of service.
    pub fn isolate_pageblock(&self, cpu: CpuId, pfn: Pfn) -> Result<(), ConfigError> {
        self.check_cpu(cpu)?;
        let (zone, index) = self.locate(pfn).ok_or(ConfigError::Foreign(pfn))?;
        let block = index / FRAMES;
        let isolate = |state: State| {
            let isolated = state.isolated(true);
            // A CPU that allocates from it finds out with its next block.
            let to = if state.phase() == Phase::Current { Phase::Idle } else { state.phase() };
            (!state.is_isolated()).then(|| isolated.in_phase(to))
        };
        self.states[block].update(isolate).map_err(|_| ConfigError::AlreadyIsolated(pfn))?;
        self.uncount(block, self.lists_of(block));
        self.withdraw(block);
        self.give_back_of_all(zone);
        Ok(())
    }

    /// Returns a pageblock to service, for requests of `migratetype`.
    ///
    /// # Errors
    /// [`ConfigError::BadCpu`] for an unknown CPU, [`ConfigError::Foreign`] if the frame lies in no zone,
    /// [`ConfigError::BadType`] for a type that no request can be of, [`ConfigError::NotIsolated`] if the pageblock is in service.
    pub fn unisolate_pageblock(
        &self,
        cpu: CpuId,
        pfn: Pfn,
        migratetype: MigrateType,
    ) -> Result<(), ConfigError> {
        self.check_cpu(cpu)?;
        let (_, index) = self.locate(pfn).ok_or(ConfigError::Foreign(pfn))?;
        if !migratetype.is_mergeable() {
            return Err(ConfigError::BadType(migratetype));
        }
        let block = index / FRAMES;
        let to_service =
            |state: State| state.is_isolated().then(|| state.isolated(false).of_type(migratetype));
        self.states[block].update(to_service).map_err(|_| ConfigError::NotIsolated(pfn))?;
        self.settle(block);
        Ok(())
    }

    /// A pageblock that the caller has for itself becomes what `change` says. `false` if it was isolated meanwhile: then it is out
    /// of service, and not the caller's any more. `false` too if somebody uses it: the map or the list that named it is damaged.
    pub(super) fn turn_into(&self, block: BlockIndex, change: impl Fn(State) -> State) -> bool {
        let is_ours = |state: State| matches!(state.phase(), Phase::Whole | Phase::Changing | Phase::Inner);
        let change = |state: State| (is_ours(state) && !state.is_isolated()).then(|| change(state));
        let Err(found) = self.states[block].update(change) else { return true };
        if is_ours(found) {
            self.put_away(block);
        } else {
            self.note_damage(self.zone_of_block(block));
        }
        false
    }

    /// A pageblock that the caller has for itself is split, and all of its frames are free. `false` if it was isolated meanwhile, as for
    /// [`turn_into`](Self::turn_into).
    ///
    /// While its bits are set it is changing: otherwise a CPU could keep a frame that another one freed twice, and that is set again then.
    pub(super) fn open(&self, block: BlockIndex, split: State) -> bool {
        let changing = split.in_phase(Phase::Changing);
        self.turn_into(block, |state| changing.keeping(state))
            && self.end_opening(block, split.phase(), ALL_FREE)
    }

    /// What is changing is split from here on, and these frames of it are free, as words of bits. `false` if it is out of service.
    pub(super) fn end_opening(&self, block: BlockIndex, phase: Phase, free: [usize; WORDS]) -> bool {
        free.into_iter().enumerate().for_each(|(word, frames)| self.free[block].set(word, frames));
        let to_split = |state: State| {
            let is_ours = state.phase() == Phase::Changing;
            is_ours.then(|| state.in_phase(if state.is_isolated() { Phase::Idle } else { phase }))
        };
        let opened = self.states[block].update(to_split);
        opened.is_ok_and(|before| !before.is_isolated())
    }

    /// Takes back a pageblock that was put into the map of whole ones while it was being isolated.
    #[inline]
    pub(super) fn note_whole(&self, block: BlockIndex) {
        if self.states[block].get().is_isolated() {
            self.withdraw(block);
        }
    }

    /// Nobody can hand out an isolated pageblock as a whole from here on. If somebody has it for itself at the moment, that one
    /// sees that it is isolated.
    #[cold]
    fn withdraw(&self, block: BlockIndex) {
        let zone = &self.zones[self.zone_of_block(block).index()];
        let is_ours = match self.states[block].get().phase() {
            Phase::Whole => self.claim_whole_at(zone, block, 1),
            Phase::Spare => self.states[block].change(Phase::Spare, Phase::Whole),
            _ => false,
        };
        if is_ours {
            self.put_away(block);
        }
    }

    /// The frames of a pageblock that the caller has for itself become free one by one, and stay in it while it is isolated.
    #[cold]
    fn put_away(&self, block: BlockIndex) {
        let split = State::split(Order::ZERO, MigrateType::Movable).in_phase(Phase::Changing);
        self.states[block].update(|state| Some(split.keeping(state))).ok();
        self.end_opening(block, Phase::Idle, ALL_FREE);
        // It may be in service again.
        self.settle(block);
    }
}
