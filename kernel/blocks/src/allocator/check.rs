//! `validate`: checks that no frame is lost, doubled or miscounted.

use pageset_core::{FrameCensus, Order, PAGEBLOCK_ORDER, Pfn, Violation, ZoneId};

use super::sets::Members;
use super::{BlockAllocator, FRAMES, head_of};
use crate::access::Access;
use crate::atomic::Relaxed;
use crate::cpu_share::{CpuShare, TYPES};
use crate::ids::{BlockId, FrameId, each};
use crate::rows::Use;
use crate::state::{Phase, State};
use crate::zone::Zone;

impl<A: Access> BlockAllocator<'_, A> {
    /// Checks frames, states, counts and sets against each other. Of a set, checks only the level that has a
    /// bit for each pageblock. O(frames). The check is exact only while no other CPU runs a call of the
    /// allocator. Free frames of reserved pageblocks and stocks count as cached.
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
        for block in each(&zone.blocks) {
            let broken = |rule| Violation { zone: id, pfn: Some(zone.pfn(FrameId::of(block, 0))), rule };
            let state = self.state(block).get();
            let stocks = self.shares_in(id).filter(|share| share.stock.has(block)).count();
            let places = stocks + usize::from(self.is_published(block));
            if places != usize::from(state.phase() == Phase::Whole) {
                return Err(broken(
                    "a whole pageblock, and no other, is in the set of whole ones or in a stock",
                ));
            }
            if state.phase() != Phase::Open && self.rows(block).free() != 0 {
                return Err(broken("only frames of open pageblocks can be taken one by one"));
            }
            let of_block = self.state(block).counted_frames.load(Relaxed);
            if of_block != 0 && !state.is_idle() {
                return Err(broken(
                    "the zone counts free frames of pageblocks that no CPU reserves, and no others",
                ));
            }
            counted += i64::from(of_block);
            let of_block = self.check_block(zone, block, state).map_err(broken)?;
            whole += usize::from(state.phase() == Phase::Whole && self.is_published(block));
            census.free += of_block.free;
            census.cached += of_block.cached;
            census.allocated += of_block.allocated;
            census.leaked += of_block.leaked;
        }
        let broken = |rule| Violation { zone: id, pfn: None::<Pfn>, rule };
        if whole != zone.whole_blocks() {
            return Err(broken("the count of whole pageblocks equals the pageblocks"));
        }
        if counted != zone.idle_frames() {
            return Err(broken("a zone's count of free frames equals the sum of its pageblocks' counts"));
        }
        if census.free + census.cached + census.allocated + census.leaked != zone.managed() {
            return Err(broken("managed = free + cached + allocated + leaked"));
        }
        Ok(census)
    }

    fn check_block(&self, zone: &Zone, block: BlockId, state: State) -> Result<FrameCensus, &'static str> {
        let mut census = FrameCensus::default();
        let frames = FRAMES as u64;
        match state.phase() {
            Phase::Absent => {}
            Phase::Parked => census.free = frames,
            Phase::Whole if self.is_published(block) => census.free = frames,
            Phase::Whole => census.cached = frames,
            Phase::Block | Phase::SecondHalf => {
                if state.phase() == Phase::Block {
                    self.check_pair(zone, block, state)?;
                } else {
                    self.check_second_half(zone, block)?;
                }
                let is_bad = self.is_bad(block, 0, state);
                *(if is_bad { &mut census.leaked } else { &mut census.allocated }) = frames;
            }
            Phase::Changing => {
                return Err("no pageblock is being changed while no CPU is inside the allocator");
            }
            Phase::Open => self.check_open(zone.id, block, state, &mut census)?,
        }
        Ok(census)
    }

    fn check_pair(&self, zone: &Zone, block: BlockId, state: State) -> Result<(), &'static str> {
        let parts = block..block.after(super::blocks_in(state.block_order()));
        let is_second =
            |part: BlockId| self.states.get(part.0).is_some_and(|s| s.get().phase() == Phase::SecondHalf);
        if parts.end > zone.blocks.end || !each(&parts).skip(1).all(is_second) {
            return Err("a block of two pageblocks has both of them");
        }
        if !zone.pfn(FrameId::of(block, 0)).is_aligned(state.block_order()) {
            return Err("a block is aligned to its size");
        }
        Ok(())
    }

    fn check_second_half(&self, zone: &Zone, block: BlockId) -> Result<(), &'static str> {
        let head = self.state(head_of(block)).get();
        let has_head = head.phase() == Phase::Block && head.block_order() > Order::PAGEBLOCK;
        if block > zone.blocks.start && has_head {
            Ok(())
        } else {
            Err("the second half of a block of two pageblocks has a first one")
        }
    }

    fn check_open(
        &self,
        id: ZoneId,
        block: BlockId,
        state: State,
        census: &mut FrameCensus,
    ) -> Result<(), &'static str> {
        if state.type_index() >= TYPES {
            return Err("an open pageblock has blocks of a type");
        }
        let mut frame = 0;
        let (mut free, mut in_use, mut withheld) = (0, 0, 0);
        while frame < FRAMES {
            match self.rows(block).look(frame) {
                Use::Free => free += 1,
                Use::Withheld | Use::InsideWithheld => {
                    withheld += u64::from(self.is_bad(block, frame, state));
                    if !self.is_bad(block, frame, state) && !state.is_holed() {
                        return Err("a withheld frame is no memory, or out of service");
                    }
                }
                Use::Changing => {
                    return Err("no block is being changed while no CPU is inside the allocator");
                }
                Use::Block(start, order) => {
                    let size = order.frames() as usize;
                    if start != frame || !frame.is_multiple_of(size) {
                        return Err("a block is aligned to its size");
                    }
                    in_use += size as u64;
                    frame += size - 1;
                }
            }
            frame += 1;
        }
        census.allocated = in_use;
        census.leaked = withheld;
        if let Some(cpu) = state.owner() {
            census.cached = free;
            if !self.is_known(cpu) {
                return Err("a CPU reserves a pageblock");
            }
            let mut reservation = self
                .share_at(id, cpu)
                .reservations()
                .iter()
                .filter_map(|reservation| Some(reservation.get()?.0));
            if !reservation.any(|reservation| reservation == block) {
                return Err("a CPU's share names each pageblock that the CPU reserves");
            }
        } else {
            census.free = free;
        }
        self.check_sets(block, state)
    }

    /// Checks that a search finds the free blocks of this pageblock: the pageblock is in the set of its
    /// largest free block, or is known as unsettled.
    fn check_sets(&self, block: BlockId, state: State) -> Result<(), &'static str> {
        if state.owner().is_some() || state.is_isolated() {
            return Ok(());
        }
        let orders = self.rows(block).largest_free().map_or(0, |order| order.min(PAGEBLOCK_ORDER - 1) + 1);
        let is_kept = || self.shares.iter().flat_map(CpuShare::kept_unsettled).any(|kept| kept == block);
        if !state.is_settled() && !self.set(Members::Unsettled).has(block) && !is_kept() {
            return Err("a pageblock that is not settled is in the set of unsettled ones, or a CPU keeps it");
        }
        if state.is_settled() && orders > state.mark() {
            return Err("a settled pageblock's state has the largest order of its free blocks");
        }
        let is_there =
            |order: usize| order < PAGEBLOCK_ORDER && self.set_of(state.type_index(), order).has(block);
        if state.set_order().is_none_or(is_there) {
            Ok(())
        } else {
            Err("a pageblock is in the set of its largest free block")
        }
    }
}
