//! The usual allocation: a block of the pageblock that the CPU reserves.

use pageset_core::{AllocError, CpuId, NodeChoice, Order, Pfn, Request, Watermark, ZoneId};

use super::refill::Needy;
use super::reserve::Reserve;
use super::unit::Places;
use super::{BlockAllocator, FRAMES};
use crate::access::Access;
use crate::cpu_lists::{CpuHome, CpuLists, Wanted};
use crate::index::BlockIndex;
use crate::row::{ROW_FRAMES, ROW_ORDER};
use crate::state::BlockState;
use crate::zone::Zone;

impl<A: Access> BlockAllocator<'_, A> {
    /// Allocates a block. Two requests at the same time, on one CPU or on two, get different blocks.
    ///
    /// # Errors
    /// See [`AllocError`]. If the block would take the zone below its watermark, that is an error even though
    /// frames are free.
    #[inline(always)]
    pub fn alloc(&self, cpu: CpuId, request: &Request) -> Result<Pfn, AllocError> {
        match self.alloc_at_hand(cpu, request) {
            Some(pfn) => Ok(pfn),
            None => self.alloc_near(cpu, request),
        }
    }

    #[inline(always)]
    pub(super) fn alloc_at_hand(&self, cpu: CpuId, request: &Request) -> Option<Pfn> {
        if request.order.index() > ROW_ORDER {
            return None;
        }
        let zone = self.home_zone(cpu, request)?;
        let lists = self.lists_at(zone, cpu);
        let wanted = Wanted::of(request);
        if let Some(index) = lists.take_freed(wanted.order)
            && self.take_again(index, zone, cpu, request)
        {
            self.note_line(index / FRAMES, cpu);
            return Some(Pfn((index as u64).wrapping_add(lists.offset)));
        }
        let (block, row) = lists.at_hand(wanted).get()?;
        let frame = self.rows.get(block)?.take_in_row(row, wanted.order)?;
        self.note_line(block, cpu);
        let index = self.still(block, frame, wanted)?;
        Some(Pfn((index as u64).wrapping_add(lists.offset)))
    }

    /// Takes the block that the CPU freed last, if that block is still free. The block is in the CPU's
    /// caches, and most programs that free a block soon need one.
    ///
    /// Refuses a block whose neighbour of the same order is free. The two form a larger free block, and
    /// breaking it up could cost a larger request its place.
    ///
    /// If the CPU does not reserve the pageblock, no watermark was checked for this block yet. So this checks
    /// the watermark.
    #[inline(always)]
    fn take_again(&self, index: usize, zone: ZoneId, cpu: CpuId, request: &Request) -> bool {
        let wanted = Wanted::of(request);
        let (block, frame) = (index / FRAMES, index % FRAMES);
        let Some(state) = self.states.get(block).map(BlockState::get) else { return false };
        let rows = &self.rows[block];
        if !state.serves(wanted.migratetype)
            || rows.is_merged(frame, wanted.order)
            || !(state.is_reserved_by(cpu) || self.zones[zone.index()].can_spare(request))
            || !rows.take_at_in_row(frame, wanted.order)
        {
            return false;
        }
        self.note_taken(block, wanted.order.frames());
        self.still(block, frame, wanted).is_some()
    }

    /// The zone that a request tries first. `None` if that takes more than one look to find out.
    #[inline(always)]
    pub(super) fn home_zone(&self, cpu: CpuId, request: &Request) -> Option<ZoneId> {
        let home = self.homes.get(cpu.index())?;
        let is_at_home = match request.nodes {
            NodeChoice::Local => true,
            NodeChoice::Prefer(node) => node == home.node,
            NodeChoice::Only(_) => false,
        };
        let zone = home.zones[request.highest_zone.index()];
        let is_simple = is_at_home && request.zones_below.is_none() && request.migratetype.is_mergeable();
        (is_simple && zone != CpuHome::NO_ZONE).then_some(zone)
    }

    /// Checks, after a block was taken, that its pageblock still serves this type, and returns the frame's
    /// index. The CPU's hint may be out of date: the pageblock may have another type, be out of service, or
    /// be about to become whole. Then the block goes back.
    ///
    /// Race: this CPU takes the block and then reads the state, while another CPU changes the state and then
    /// looks at the frames. If the other CPU is first, this CPU sees the new state and loses. If this CPU is
    /// first, the other CPU finds the frame taken.
    #[inline(always)]
    pub(super) fn still(&self, block: BlockIndex, frame: usize, wanted: Wanted) -> Option<usize> {
        if self.states[block].get().serves(wanted.migratetype) {
            return Some(block * FRAMES + frame);
        }
        self.return_block(block, frame, wanted.order);
        None
    }

    #[cold]
    pub(super) fn return_block(&self, block: BlockIndex, frame: usize, order: Order) {
        self.rows[block].put(frame, order).ok();
        self.settle(block);
    }

    /// Takes the CPU's spare pageblock or a block from another row of its pageblock. If there is none, tries
    /// all zones.
    #[inline(never)]
    fn alloc_near(&self, cpu: CpuId, request: &Request) -> Result<Pfn, AllocError> {
        let Some(zone) = self.home_zone(cpu, request) else { return self.alloc_slow(cpu, request, false) };
        let needy = self.needy(zone, cpu, request, Reserve::Closed);
        needy.lists.activity.note::<A>();
        let found = match request.order {
            Order::PAGEBLOCK => self.take_spare(needy.lists, request.migratetype).map(|block| block * FRAMES),
            Order::MAX => None,
            _ => self.take_rest(needy),
        };
        match found {
            Some(index) => Ok(Pfn((index as u64).wrapping_add(needy.lists.offset))),
            None => self.alloc_slow(cpu, request, true),
        }
    }

    /// Takes a block of the pageblock that the CPU reserves. No watermark is checked: the pageblock's memory
    /// left the zone's count when the CPU reserved it.
    pub(super) fn take_rest(&self, needy: Needy<'_>) -> Option<usize> {
        let at_hand = needy.lists.at_hand(needy.wanted);
        let (block, row) = at_hand.get()?;
        let state = self.states.get(block)?.get();
        if !state.is_reserved_by(needy.cpu) || !state.serves(needy.wanted.migratetype) {
            return None;
        }
        let Some(frame) = self.rows[block].take_any(needy.wanted.order) else {
            self.note_missed(block, needy.wanted.order);
            return None;
        };
        at_hand.advance::<A>(block, row, frame / ROW_FRAMES);
        self.note_line(block, needy.cpu);
        self.still(block, frame, needy.wanted)
    }

    /// A CPU, its share of a zone, and its request.
    pub(super) fn needy(&self, zone: ZoneId, cpu: CpuId, request: &Request, reserve: Reserve) -> Needy<'_> {
        Needy {
            zone,
            cpu,
            lists: self.lists_at(zone, cpu),
            wanted: Wanted::of(request),
            reserve,
            places: Places::All,
        }
    }

    /// Each CPU's share of a zone.
    pub(super) fn lists_in(&self, zone: ZoneId) -> impl Iterator<Item = &CpuLists> {
        (0..self.cpus()).map(move |cpu| self.lists_at(zone, CpuId(cpu as u32)))
    }
}

impl Zone {
    /// Whether the zone, by its count of free frames, keeps its minimum watermark after a block for this
    /// request is taken.
    #[inline]
    fn can_spare(&self, request: &Request) -> bool {
        let floor = self.floor(request, Watermark::Min);
        self.free_at_least() >= floor.saturating_add(u64::from(request.order.frames()))
    }
}

impl Wanted {
    #[inline]
    pub(super) const fn of(request: &Request) -> Self {
        Self { order: request.order, migratetype: request.migratetype }
    }
}
