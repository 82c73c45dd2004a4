//! A CPU's own small arrays of blocks, for hosts that let one at a time use them: most requests take no atomic operation then.

use core::fmt;

use pageset_core::{
    AllocError, COSTLY_ORDER, ConfigError, CpuId, FreeError, Order, PAGEBLOCK_ORDER, Pfn, Request,
    TickOutcome, ZoneId,
};

use super::home::Home;
use super::keep::Together;
use super::{BlockAllocator, FRAMES};
use crate::cpu_lists::{TYPES, count};
use crate::free_bits::WORD_FRAMES;
use crate::state::State;

/// Orders that have arrays: those up to [`COSTLY_ORDER`], and a pageblock's behind them.
const ORDERS: usize = COSTLY_ORDER + 2;
/// Blocks of an array at most.
const BLOCKS_MAX: usize = 64;
/// Pageblocks of an array at most.
const PAGEBLOCKS_MAX: u32 = 2;

/// One CPU's arrays of one zone's blocks, up to order 3 and of a pageblock's order: those that it freed last, for its next
/// requests.
///
/// A kernel has one for each CPU, in memory that only this CPU uses, while it cannot be interrupted by another user of it. A
/// program has one for each thread. Both are what `&mut` says. An allocation is a read and a free is a write then. An array
/// that is empty gets half of what it holds by one exchange, and one that is full gives half of it back.
///
/// An array holds at most 128 pages, and at most two pageblocks.
///
/// To the allocator, blocks in arrays are in use. So a host [drains](Self::drain) the arrays of other CPUs before it reports
/// that memory is short, and before it takes pageblocks out of service. Arrays that are dropped give everything back.
///
/// A block that is freed twice may be handed out twice while one of the two is in an array. It is found when it is given back, and [counted](crate::BlockCounters::double_frees). All other mistakes are errors, as without arrays.
pub struct CpuArrays<'a> {
    allocator: &'a BlockAllocator<'a>,
    cpu: CpuId,
    /// Where the CPU's requests go first. If it is unknown, nothing is kept here.
    home: Home,
    arrays: [[Array; ORDERS]; TYPES],
    /// Whether an array was filled or emptied since the last tick.
    is_busy: bool,
    /// Frames at the last tick.
    frames_before: u32,
}

/// The order of each array's blocks.
const ARRAY_ORDERS: [Order; ORDERS] = {
    let mut orders = [Order::PAGEBLOCK; ORDERS];
    let mut index = 0;
    while index <= COSTLY_ORDER {
        orders[index] = match Order::new(index as u8) {
            Some(order) => order,
            None => Order::MAX,
        };
        index += 1;
    }
    orders
};

/// Which array has blocks of an order.
#[inline]
const fn place(order: Order) -> Option<usize> {
    match order.index() {
        index @ 0..=COSTLY_ORDER => Some(index),
        PAGEBLOCK_ORDER => Some(ORDERS - 1),
        _ => None,
    }
}

/// Blocks of one type and order by the indices of their first frames, the last freed at the end.
struct Array {
    len: u32,
    /// How many there may be.
    most: u32,
    blocks: [u32; BLOCKS_MAX],
}

impl Array {
    /// Nothing yet.
    const fn empty(order: Order) -> Self {
        Self { len: 0, most: most(order), blocks: [0; BLOCKS_MAX] }
    }

    #[inline]
    fn pop(&mut self) -> Option<u32> {
        self.len = self.len.checked_sub(1)?;
        self.blocks.get(self.len as usize).copied()
    }

    fn has(&self, block: u32) -> bool {
        self.blocks.iter().take(self.len as usize).any(|other| *other == block)
    }

    /// `false` if there is no room.
    #[inline]
    fn push(&mut self, block: u32) -> bool {
        let has_room = self.len < self.most;
        if has_room && let Some(slot) = self.blocks.get_mut(self.len as usize) {
            *slot = block;
            self.len += 1;
        }
        has_room
    }
}

/// Blocks that an array of this order holds at most: twice what it gets and gives at once, which is a word, or half of one.
/// Pageblocks come and go one by one.
const fn most(order: Order) -> u32 {
    if order.index() == PAGEBLOCK_ORDER {
        return PAGEBLOCKS_MAX;
    }
    let of_two_words = 2 * WORD_FRAMES as u32 / order.frames();
    if of_two_words < BLOCKS_MAX as u32 { of_two_words } else { BLOCKS_MAX as u32 }
}

impl<'a> CpuArrays<'a> {
    /// Empty arrays for one CPU. For a CPU that the allocator does not know they stay empty, and each request is an error.
    #[must_use]
    pub fn new(allocator: &'a BlockAllocator<'a>, cpu: CpuId) -> Self {
        Self {
            allocator,
            cpu,
            home: Home::of(allocator, cpu),
            arrays: [(); TYPES].map(|()| ARRAY_ORDERS.map(Array::empty)),
            is_busy: false,
            frames_before: 0,
        }
    }

    /// Allocates a block, from an array if it has one. O(1) but for the [allocator's](BlockAllocator::alloc) own cost once for each
    /// half of an array.
    ///
    /// # Errors
    /// As [`BlockAllocator::alloc`]. These arrays are empty then.
    #[inline]
    pub fn alloc(&mut self, request: &Request) -> Result<Pfn, AllocError> {
        match self.array_for(request).and_then(Array::pop) {
            Some(block) => Ok(self.home.pfn(block)),
            None => self.refill(request),
        }
    }

    /// Frees a block, to an array if it has room for it. O(1) but for the exchanges of a half array once for as many frees.
    ///
    /// # Errors
    /// As [`BlockAllocator::free`].
    #[inline]
    pub fn free(&mut self, pfn: Pfn, order: Order) -> Result<(), FreeError> {
        if self.keep(pfn, order) { Ok(()) } else { self.free_past(pfn, order) }
    }

    /// Frames of all blocks here.
    #[must_use]
    pub fn frames(&self) -> u32 {
        let of_type = |arrays: &[Array; ORDERS]| -> u32 {
            arrays.iter().zip(ARRAY_ORDERS).map(|(array, order)| array.len << order.index()).sum()
        };
        self.arrays.iter().map(of_type).sum()
    }

    /// Gives back everything.
    pub fn drain(&mut self) {
        for type_index in 0..TYPES {
            for order in ARRAY_ORDERS {
                self.give_back(type_index, order, BLOCKS_MAX);
            }
        }
    }

    /// Gives back everything if nothing happened here since the last tick. Then does the CPU's
    /// [periodic work](BlockAllocator::tick). So arrays of a CPU that does nothing are empty after two ticks.
    ///
    /// # Errors
    /// As [`BlockAllocator::tick`].
    pub fn tick(&mut self) -> Result<TickOutcome, ConfigError> {
        let frames = self.frames();
        if !self.is_busy && frames == self.frames_before {
            self.drain();
        }
        self.is_busy = false;
        self.frames_before = frames;
        self.allocator.tick(self.cpu)
    }

    #[inline]
    fn array(&mut self, type_index: usize, order: Order) -> Option<&mut Array> {
        self.arrays.get_mut(type_index)?.get_mut(place(order)?)
    }

    /// The array that a request may use.
    #[inline]
    fn array_for(&mut self, request: &Request) -> Option<&mut Array> {
        if self.home.serves(request) { self.array(request.migratetype.index(), request.order) } else { None }
    }

    /// Puts a block into an array, if it is one that may go there and there is room.
    #[inline]
    fn keep(&mut self, pfn: Pfn, order: Order) -> bool {
        let Some((state, block)) = self.look(pfn, order) else { return false };
        let Some(array) = self.array(state.type_index(), order) else { return false };
        let is_here = order == Order::PAGEBLOCK && array.has(block);
        !is_here && array.push(block)
    }

    /// Frees what is not for the arrays, or for which they have no room yet.
    #[inline(never)]
    fn free_past(&mut self, pfn: Pfn, order: Order) -> Result<(), FreeError> {
        let Some((state, block)) = self.look(pfn, order) else {
            return self.allocator.free(self.cpu, pfn, order);
        };
        let type_index = state.type_index();
        if order == Order::PAGEBLOCK {
            let is_here = self.array(type_index, order).is_some_and(|array| array.has(block));
            return if is_here {
                Err(FreeError::DoubleFree(pfn))
            } else {
                self.allocator.free(self.cpu, pfn, order)
            };
        }
        self.is_busy = true;
        self.give_back(type_index, order, most(order) as usize / 2);
        match self.array(type_index, order).is_some_and(|array| array.push(block)) {
            true => Ok(()),
            false => self.allocator.free(self.cpu, pfn, order),
        }
    }

    /// The pageblock around a block that may go to an array, and the index of its first frame.
    #[inline]
    fn look(&self, pfn: Pfn, order: Order) -> Option<(State, u32)> {
        let index = self.home.frame(pfn)?;
        let (block, frame) = (index as usize / FRAMES, index as usize % FRAMES);
        let state = self.allocator.states[block].get();
        let is_plain = if order < Order::PAGEBLOCK {
            let is_aligned = frame & (order.frames() as usize - 1) == 0;
            // To look at the bits of another CPU's pageblock would fetch its line.
            let is_free = || state.owner() == self.cpu && self.allocator.free[block].is_free(frame);
            is_aligned && state.takes_back(order) && !is_free()
        } else {
            order == Order::PAGEBLOCK && frame == 0 && state.is_pageblock_in_use()
        };
        is_plain.then_some((state, index))
    }

    #[inline(never)]
    fn refill(&mut self, request: &Request) -> Result<Pfn, AllocError> {
        let (allocator, cpu) = (self.allocator, self.cpu);
        self.is_busy = true;
        let home = self.home;
        let Some(array) = self.array_for(request) else {
            return allocator.alloc(cpu, request).or_else(|error| self.alloc_again(request, error));
        };
        if request.order == Order::PAGEBLOCK {
            return allocator.alloc(cpu, request).or_else(|error| self.alloc_again(request, error));
        }
        let mut blocks = match allocator.alloc_word(cpu, request, most(request.order) as usize / 2) {
            Ok(blocks) => blocks,
            Err(error) => return self.alloc_again(request, error),
        };
        let first = blocks.next();
        // The lowest is used next.
        for pfn in blocks.rev() {
            match home.frame(pfn) {
                Some(block) => array.push(block),
                // Blocks of another zone come one by one.
                None => allocator.free(cpu, pfn, request.order).is_ok(),
            };
        }
        first.ok_or(AllocError::OutOfMemory { order: request.order })
    }

    /// A second try, with what the arrays have.
    #[cold]
    fn alloc_again(&mut self, request: &Request, error: AllocError) -> Result<Pfn, AllocError> {
        if self.frames() == 0 {
            return Err(error);
        }
        self.drain();
        self.allocator.alloc(self.cpu, request)
    }

    /// Gives back so many blocks of an array, those first that were freed first.
    fn give_back(&mut self, type_index: usize, order: Order, blocks: usize) {
        let (allocator, cpu, zone) = (self.allocator, self.cpu, self.home.zone);
        let Some(array) = self.array(type_index, order) else { return };
        let len = (array.len as usize).min(BLOCKS_MAX);
        let given = blocks.min(len);
        let mut rest = &array.blocks[..given];
        while !rest.is_empty() {
            let mut together = Together::default();
            let alike = rest.iter().take_while(|block| together.add(**block as usize)).count();
            let (now, later) = rest.split_at(alike);
            let is_split = order < Order::PAGEBLOCK;
            if !(is_split && allocator.put_heads(cpu, together.place(), order, together.frames)) {
                now.iter().for_each(|block| allocator.free_from_array(cpu, zone, *block, order));
            }
            rest = later;
        }
        array.blocks.copy_within(given..len, 0);
        array.len = (len - given) as u32;
    }
}

impl BlockAllocator<'_> {
    /// Frees a block that an array gives back: one that is free already was freed twice.
    #[cold]
    fn free_from_array(&self, cpu: CpuId, zone: ZoneId, index: u32, order: Order) {
        let freed = self.free(cpu, self.zones[zone.index()].pfn(index as usize), order);
        // Frames that are out of service stay so.
        if !matches!(freed, Ok(()) | Err(FreeError::Leaked(_))) {
            count(&self.lists_at(zone, cpu).counters.double_frees);
        }
    }
}

impl Drop for CpuArrays<'_> {
    fn drop(&mut self) {
        self.drain();
    }
}

impl fmt::Debug for CpuArrays<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CpuArrays")
            .field("cpu", &self.cpu)
            .field("frames", &self.frames())
            .finish_non_exhaustive()
    }
}
