//! `validate`: proof by inspection that no frame is lost, doubled or miscounted. `check_lists` has what CPUs have of pageblocks.

use pageset_core::{FrameCensus, Order, Pfn, Violation, ZoneId};

use super::{BlockAllocator, FRAMES, head_of};
use crate::cpu_lists::Wanted;
use crate::stack::BlockIndex;
use crate::state::{Phase, State};
use crate::zone::Zone;

impl BlockAllocator<'_> {
    /// Checks everything that can be checked by looking. O(frames); exact only while no other CPU is inside the allocator.
    /// What CPUs keep at hand counts as cached.
    ///
    /// # Errors
    /// The first violated invariant.
    pub fn validate(&self) -> Result<FrameCensus, Violation> {
        let mut sum = FrameCensus::default();
        for (id, zone) in self.zones.iter().enumerate() {
            let census = self.check_zone(ZoneId(id as u16), zone)?;
            sum.free += census.free;
            sum.cached += census.cached;
            sum.allocated += census.allocated;
            sum.leaked += census.leaked;
        }
        Ok(sum)
    }

    fn check_zone(&self, id: ZoneId, zone: &Zone) -> Result<FrameCensus, Violation> {
        let mut census = FrameCensus::default();
        let (mut whole, mut counted) = (0, 0);
        for block in zone.blocks.clone() {
            let broken = |rule| Violation { zone: id, pfn: Some(zone.pfn(block * FRAMES)), rule };
            let state = self.states[block].get();
            let free = self.free[block].count();
            if self.whole.has(block) != (state.phase() == Phase::Whole) {
                return Err(broken("the map of whole pageblocks has those that are whole, and no others"));
            }
            if !matches!(state.phase(), Phase::Idle | Phase::Current) && free != 0 {
                return Err(broken("only frames of split pageblocks can be taken one by one"));
            }
            let of_block = self.states[block].counted.load(crate::atomic::Relaxed);
            if of_block != 0 && state.phase() != Phase::Idle {
                return Err(broken("the zone counts free frames of idle pageblocks only"));
            }
            counted += u64::from(of_block);
            match state.phase() {
                Phase::Absent => {}
                Phase::Whole => {
                    whole += 1;
                    census.free += FRAMES as u64;
                }
                Phase::Spare => census.cached += FRAMES as u64,
                Phase::Handed => self.check_handed(zone, block, state).map_err(broken)?,
                Phase::Inner => self.check_inner(zone, block).map_err(broken)?,
                Phase::Changing => return Err(broken("nobody changes a pageblock while nobody is at work")),
                Phase::Idle | Phase::Current => {
                    self.check_split(id, block, state).map_err(broken)?;
                    let share =
                        if state.phase() == Phase::Idle { &mut census.free } else { &mut census.cached };
                    *share += free as u64;
                }
            }
            let used = match state.phase() {
                Phase::Handed | Phase::Inner => FRAMES as u64,
                Phase::Idle | Phase::Current => FRAMES.saturating_sub(free + self.holes(block, state)) as u64,
                _ => 0,
            };
            let leaked = self.leaked(block, state);
            census.leaked += leaked;
            census.allocated += used.checked_sub(leaked).ok_or(broken("a frame out of service is memory"))?;
        }
        let broken = |rule| Violation { zone: id, pfn: None::<Pfn>, rule };
        self.check_stacks(id, zone).map_err(broken)?;
        let kept = self.check_kept(id, zone).map_err(broken)?;
        let used = census.allocated.checked_sub(kept);
        census.allocated = used.ok_or(broken("CPUs keep frames that are in use for their pageblocks"))?;
        census.cached += kept;
        if whole != zone.whole_blocks() {
            return Err(broken("the count of whole pageblocks equals the pageblocks"));
        }
        if i128::from(counted) != i128::from(zone.idle_frames()) + i128::from(self.surplus_in(id)) {
            return Err(broken(
                "what zone and CPUs count as free equals what each pageblock was counted with",
            ));
        }
        if census.free + census.cached + census.allocated + census.leaked != zone.managed() {
            return Err(broken("managed = free + cached + allocated + leaked"));
        }
        Ok(census)
    }

    fn check_handed(&self, zone: &Zone, block: BlockIndex, state: State) -> Result<(), &'static str> {
        if state.order() < Order::PAGEBLOCK {
            return Err("a block smaller than a pageblock lies in a split one");
        }
        let parts = block..block + super::blocks_in(state.order());
        let is_inner =
            |part: BlockIndex| self.states.get(part).is_some_and(|s| s.get().phase() == Phase::Inner);
        if parts.end > zone.blocks.end || !parts.skip(1).all(is_inner) {
            return Err("a block of several pageblocks has all of them");
        }
        if !zone.pfn(block * FRAMES).is_aligned(state.order()) {
            return Err("a block is aligned to its size");
        }
        Ok(())
    }

    fn check_inner(&self, zone: &Zone, block: BlockIndex) -> Result<(), &'static str> {
        let head = self.states[head_of(block)].get();
        if block > zone.blocks.start && head.phase() == Phase::Handed && head.order() > Order::PAGEBLOCK {
            Ok(())
        } else {
            Err("the second half of a block of two pageblocks has a first one")
        }
    }

    fn check_split(&self, id: ZoneId, block: BlockIndex, state: State) -> Result<(), &'static str> {
        if !self.is_known(state.owner()) {
            return Err("a split pageblock has an owner");
        }
        let blocks = Wanted::of_split(state).ok_or("a split pageblock has blocks of an order and type")?;
        if state.phase() == Phase::Current && !self.is_at_hand(id, block, state, blocks) {
            return Err("a pageblock that a CPU allocates from is at hand for it");
        }
        if state.is_isolated() && state.phase() == Phase::Current {
            return Err("no CPU allocates from a pageblock that is out of service");
        }
        if state.is_isolated() && self.states[block].counted.load(crate::atomic::Relaxed) != 0 {
            return Err("free frames of a pageblock that is out of service are not counted");
        }
        if state.is_holed() && (state.is_mixed() || state.order() != Order::ZERO) {
            return Err("a pageblock with holes has single frames");
        }
        if state.is_holed() {
            let is_free_hole = |frame| self.tails[block].is_tail(frame) && self.free[block].is_free(frame);
            if (0..FRAMES).any(is_free_hole) {
                return Err("a hole is not free");
            }
        } else if !state.is_mixed() {
            let frames = state.order().frames() as usize;
            let is_split = |start: usize| {
                let free = (start..start + frames).filter(|frame| self.free[block].is_free(*frame)).count();
                free != 0 && free != frames
            };
            if (0..FRAMES).step_by(frames).any(is_split) {
                return Err("a block is free or in use as a whole");
            }
        }
        Ok(())
    }

    /// Frames that are out of service for good. Those that somebody freed while they were taken out are free.
    fn leaked(&self, block: BlockIndex, state: State) -> u64 {
        let is_leaked =
            |frame: &usize| self.is_bad(block, *frame, state) && !self.free[block].is_free(*frame);
        (0..FRAMES).filter(is_leaked).count() as u64
    }

    fn holes(&self, block: BlockIndex, state: State) -> usize {
        if !state.is_holed() {
            return 0;
        }
        (0..FRAMES).filter(|frame| self.tails[block].is_tail(*frame)).count()
    }
}
