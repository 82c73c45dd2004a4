//! What nearly every allocation is: a bit of the pageblock at hand.

use pageset_core::{
    AllocError, CpuId, MigrateType, NodeChoice, Order, PAGEBLOCK_ORDER, Pfn, Request, ZoneId,
};

use super::free::Back;
use super::reserve::Reserve;
use super::{BlockAllocator, FRAMES};
use crate::cpu_lists::{CpuHome, CpuLists, Wanted, count};
use crate::free_bits::{IsFree, WORD_FRAMES};
use crate::stack::BlockIndex;

impl BlockAllocator<'_> {
    /// Allocates a block. Of two requests at once, from the same CPU or others, each gets its own.
    ///
    /// # Errors
    /// See [`AllocError`]. A block that lies below the watermark is an error even if there are free frames.
    #[inline(always)]
    pub fn alloc(&self, cpu: CpuId, request: &Request) -> Result<Pfn, AllocError> {
        match self.alloc_at_hand(cpu, request) {
            Some(pfn) => Ok(pfn),
            None => self.alloc_near(cpu, request),
        }
    }

    #[inline(always)]
    pub(super) fn alloc_at_hand(&self, cpu: CpuId, request: &Request) -> Option<Pfn> {
        let lists = self.lists_at(self.home_zone(cpu, request)?, cpu);
        let frame = match request.order.index() {
            0..PAGEBLOCK_ORDER => {
                let frame = self.take_at_hand(lists, Wanted::of(request))?;
                self.note_line(frame / FRAMES, cpu);
                frame
            }
            PAGEBLOCK_ORDER => self.take_last_spare(lists, request.migratetype)? * FRAMES,
            _ => return None,
        };
        Some(Pfn((frame as u64).wrapping_add(lists.offset)))
    }

    /// The zone that such a request uses first, if that is simple to say.
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

    /// A block from the word that the CPU's last one came from.
    #[inline(always)]
    fn take_at_hand(&self, lists: &CpuLists, wanted: Wanted) -> Option<usize> {
        let cursor = lists.cursor(wanted);
        if let Some((block, word)) = cursor.take_freed()
            && let Some(frame) = self.take_in(block, word, wanted)
        {
            return Some(frame);
        }
        let (block, word) = cursor.get()?;
        self.take_in(block, word, wanted)
    }

    #[inline(always)]
    fn take_in(&self, block: BlockIndex, word: usize, wanted: Wanted) -> Option<usize> {
        let frame = self.take_bits(block, word, wanted.order)?;
        self.still(block, frame, wanted)
    }

    /// A free block of a word, or of the words from there on that a larger block takes.
    #[inline(always)]
    pub(super) fn take_bits(&self, block: BlockIndex, word: usize, order: Order) -> Option<usize> {
        let frame = self.free.get(block)?.take(word, order);
        if frame.is_none() {
            self.note_miss(block, order);
        }
        frame
    }

    /// Who freed the rest of a pageblock, while a larger block was tried that was free in part, did not see that part.
    #[inline]
    pub(super) fn note_miss(&self, block: BlockIndex, order: Order) {
        if order.frames() as usize > WORD_FRAMES {
            self.settle(block);
        }
    }

    /// The frame's index, if its pageblock is still what it was: a cursor may be old, and the pageblock another's, of another
    /// order.
    #[inline(always)]
    pub(super) fn still(&self, block: BlockIndex, frame: usize, wanted: Wanted) -> Option<usize> {
        if self.states[block].get().serves(wanted.order, wanted.migratetype) {
            return Some(block * FRAMES + frame);
        }
        self.return_frames(block, frame, wanted.order);
        None
    }

    /// From another word of the pageblock at hand, or wherever there is one.
    #[inline(never)]
    fn alloc_near(&self, cpu: CpuId, request: &Request) -> Result<Pfn, AllocError> {
        if let Some(zone) = self.home_zone(cpu, request)
            && request.order < Order::PAGEBLOCK
        {
            let needy = self.needy(zone, cpu, request, Reserve::Closed);
            needy.lists.activity.note();
            let kept = || self.take_kept(needy.lists, needy.wanted);
            // Who asks often has a pageblock at hand, which is faster than what it keeps.
            let needs_many = needy.lists.cursor(needy.wanted).needs_many();
            let first = if needs_many { None } else { kept() };
            let left = first.or_else(|| self.take_rest(needy)).or_else(|| self.take_few(needy));
            let more = left.or_else(|| {
                // No watermark is near: what follows needs no other zone.
                if needy.lists.outlook.is_plenty() { self.take_from_another(needy) } else { None }
            });
            let found = more.or_else(|| if needs_many { kept() } else { None });
            if let Some(frame) = found {
                return Ok(self.zones[zone.index()].pfn(frame));
            }
        }
        self.alloc_slow(cpu, request)
    }

    /// Puts back what was taken from a pageblock that is not what it was thought to be.
    #[cold]
    pub(super) fn return_frames(&self, block: usize, frame: usize, order: Order) {
        let put = self.free[block].put(frame, order);
        self.note_returned(block, order, put.map(|free| Back::of_block(frame, order, free)));
    }

    /// Looks after a pageblock to which frames were put back, or were not, since they were free.
    pub(super) fn note_returned(&self, block: usize, order: Order, put: Result<Back, IsFree>) {
        match put {
            Ok(back) if !self.states[block].get().is_split() => {
                // They were there although the pageblock is no more split: a CPU freed them twice, and did not take them back yet.
                self.take_back(block, order, back);
            }
            Ok(_) => {}
            // Nobody else can have put back what was taken here, unless it was nobody's to take.
            Err(IsFree) => count(&self.lists_of(block).counters.double_frees),
        }
        self.settle(block);
    }
}

impl Wanted {
    #[inline]
    pub(super) const fn of(request: &Request) -> Self {
        Self { order: request.order, migratetype: request.migratetype }
    }

    /// The type that requests of this type use if nothing else is left, next first.
    pub(super) const fn fallbacks(self) -> [MigrateType; 2] {
        match self.migratetype {
            MigrateType::Movable => [MigrateType::Reclaimable, MigrateType::Unmovable],
            MigrateType::Reclaimable => [MigrateType::Unmovable, MigrateType::Movable],
            _ => [MigrateType::Reclaimable, MigrateType::Movable],
        }
    }
}
