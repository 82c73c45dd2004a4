//! Whether a frame is in use: the one place that says so.
//!
//! A pageblock knows which of its frames are free. A frame that it does not know as free may be kept by a CPU all the same, for that
//! CPU's next requests: then nobody uses it either.

use core::ops::Range;

use pageset_core::{FreeError, Pfn};

use super::mixed::LOOKS;
use super::{BlockAllocator, FRAMES};
use crate::atomic::relax;
use crate::stack::BlockIndex;
use crate::state::Phase;
use crate::zone::Zone;

/// What a pageblock says of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FrameUse {
    /// It is no memory of the allocator's.
    Hole,
    /// It does not come back.
    OutOfService,
    Free,
    /// A block has it: one in use, or one that a CPU keeps.
    InBlock,
}

impl FrameUse {
    /// Why a frame cannot be freed.
    pub(super) const fn check(self, pfn: Pfn) -> Result<(), FreeError> {
        match self {
            Self::Hole => Err(FreeError::Foreign(pfn)),
            Self::OutOfService => Err(FreeError::Leaked(pfn)),
            Self::Free => Err(FreeError::DoubleFree(pfn)),
            Self::InBlock => Ok(()),
        }
    }
}

impl BlockAllocator<'_> {
    /// What the pageblock of a frame says of it, as far as one can see while others allocate and free.
    pub(super) fn frame_use(&self, index: usize) -> FrameUse {
        let (block, frame) = (index / FRAMES, index % FRAMES);
        let state = self.states[block].get();
        match state.phase() {
            Phase::Absent => FrameUse::Hole,
            _ if self.is_bad(block, frame, state) => FrameUse::OutOfService,
            Phase::Whole | Phase::Spare => FrameUse::Free,
            Phase::Handed | Phase::Inner => FrameUse::InBlock,
            _ if state.is_holed() && self.tails[block].is_tail(frame) => FrameUse::Hole,
            _ if self.free[block].is_free(frame) => FrameUse::Free,
            _ => FrameUse::InBlock,
        }
    }

    /// Whether a block has all these frames of a pageblock, with one look at each word. If it has holes or bad frames, each frame
    /// needs a look of its own, so this says `false`.
    fn are_all_in_blocks(&self, block: BlockIndex, frames: Range<usize>) -> bool {
        let state = self.states[block].get();
        match state.phase() {
            Phase::Handed | Phase::Inner => !self.is_bad(block, frames.start, state),
            Phase::Idle | Phase::Current | Phase::Changing => {
                !state.has_bad() && !state.is_holed() && !self.free[block].has_any(frames)
            }
            Phase::Absent | Phase::Whole | Phase::Spare => false,
        }
    }

    /// Checks that all these frames of a pageblock are in use: in blocks, none of which a CPU keeps. The error names the first that
    /// is not.
    pub(super) fn check_in_use(
        &self,
        zone: &Zone,
        block: BlockIndex,
        frames: Range<usize>,
    ) -> Result<(), FreeError> {
        let pfn = |frame: usize| zone.pfn(block * FRAMES + frame);
        let kept = self.first_kept(zone, block * FRAMES + frames.start..block * FRAMES + frames.end)?;
        if kept.is_none() && self.are_all_in_blocks(block, frames.clone()) {
            return Ok(());
        }
        for frame in frames {
            let index = block * FRAMES + frame;
            self.frame_use(index).check(pfn(frame))?;
            if kept == Some(index) {
                return Err(FreeError::DoubleFree(pfn(frame)));
            }
        }
        Ok(())
    }

    /// Whether a CPU keeps this frame, as far as one can see while others allocate and free.
    pub(super) fn is_kept(&self, pfn: Pfn) -> bool {
        let Some((zone, index)) = self.locate(pfn) else { return false };
        self.first_kept(zone, index..index + 1).is_ok_and(|kept| kept.is_some())
    }

    /// The first of these frames of a zone that a CPU keeps.
    ///
    /// # Errors
    /// [`FreeError::Busy`] if another CPU changes what it keeps, and one of these frames may be there.
    pub(super) fn first_kept(&self, zone: &Zone, frames: Range<usize>) -> Result<Option<usize>, FreeError> {
        let mut first = None;
        for lists in self.lists_in(zone.id).filter(|lists| lists.kept.frames() > 0) {
            let look = || lists.kept.first_in(frames.clone());
            // Another CPU may change its list at this moment. Then this look may read an entry that is not used any more, and find a frame
            // that is not kept: so a find is looked at again, with the list in hand. A frame that its owner frees rightly is in no list,
            // and comes into none meanwhile.
            if look().is_none() {
                continue;
            }
            let exact = (0..LOOKS).find_map(|_| {
                let found = lists.kept.try_with(|_| look());
                if found.is_none() {
                    relax();
                }
                found
            });
            let found = exact.ok_or(FreeError::Busy(zone.pfn(frames.start)))?;
            first = [first, found].into_iter().flatten().min();
        }
        Ok(first)
    }
}
