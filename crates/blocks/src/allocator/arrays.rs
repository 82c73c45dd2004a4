//! A CPU's own small arrays of blocks, for hosts that let one at a time use them: most requests take no atomic operation then.

use core::fmt;

use pageset_core::{
    AllocError, COSTLY_ORDER, ConfigError, CpuId, FreeError, MigrateType, Order, Pfn, Request, TickOutcome,
    ZoneId,
};

use super::array::{ARRAY_ORDERS, Array, ORDERS, most, place};
use super::home::Home;
use super::in_use::FrameUse;
use super::keep::Together;
use super::{BlockAllocator, FRAMES};
use crate::cpu_lists::{TYPES, count};
use crate::free_bits::FreeBits;
use crate::state::{BlockState, State};

/// The blocks that one CPU freed last, for its next requests. It has an array for each type, and for each order up to 3 and a pageblock's.
///
/// The arrays hold blocks of one zone only, the one that [`Request::new`] tries first on this CPU: `Normal` of the CPU's node, or the next
/// lower kind if the node has no such zone. Blocks of other zones, and of other orders, go to the allocator directly.
///
/// A kernel has one `CpuArrays` for each CPU. `&mut` means: only this CPU uses it, and with interrupts off if an interrupt handler uses it
/// too. A program has one for each thread. An allocation is then a read, and a free is a write. An array that is empty gets half of what
/// it can hold by one exchange, and one that is full gives half of it back. An array holds at most 128 pages, and at most two pageblocks.
///
/// # Out of memory
/// To the allocator, blocks in arrays are in use, and [`drain_all`](BlockAllocator::drain_all) does not reach them. Before a host reports
/// that memory is short, and before it takes pageblocks out of service, each CPU [drains](Self::drain) its own arrays. `drain` takes
/// `&mut self`, so a kernel asks the other CPUs by an interrupt. Arrays that are dropped give everything back.
///
/// # Double frees
/// **This is the one misuse that is no error value by default.** A block that is freed a second time, while it lies in an array, is put
/// into an array again, and may be handed out to two users. The allocator finds and [counts](crate::BlockCounters::double_frees) it when
/// an array gives back a block that is free already. If both copies stay in use, or the block has got another user by then, it is never
/// found.
///
/// Where debug assertions are on, [`free`](Self::free) looks at all blocks of these arrays first. Then a block that lies here, or is free in
/// its pageblock, is [`FreeError::DoubleFree`]. A block in the arrays of another CPU is still not found. A release build has the same look
/// with `debug-assertions = true` in `[profile.release.package.pageset-blocks]`.
///
/// Likewise [`free_range`](BlockAllocator::free_range) takes a block in an array for one in use. All other mistakes are errors, as without arrays.
pub struct CpuArrays<'a> {
    allocator: &'a BlockAllocator<'a>,
    /// The allocator's, for each free.
    states: &'a [BlockState],
    free: &'a [FreeBits],
    cpu: CpuId,
    /// Where the CPU's requests go first. If it is unknown, nothing is kept here.
    home: Home,
    arrays: [[Array; ORDERS]; TYPES],
    /// By order, to what pageblocks blocks went last.
    recent: [Recent; COSTLY_ORDER + 1],
    /// Whether an array was filled or emptied since the last tick.
    is_busy: bool,
    /// Frames at the last tick.
    frames_before: u32,
}

/// A pageblock to which a block of some order went, and what follows for all that are like it.
///
/// Most blocks of an order come from pageblocks of one type and owner. So a free compares with these, and knows the array before it knows
/// the pageblock: what the next allocation reads does not wait for the block that is freed now, of which the caller may have known
/// nothing since long. (Measured: 3 ns of a pair of `mix`.)
///
/// # Invariants
/// A pageblock like `state` takes back blocks of the order without another look than at the block's bits. `type_index` is its type's.
#[derive(Clone, Copy)]
struct Recent {
    state: State,
    type_index: usize,
    /// Whether it is this CPU's: to look at the bits of another CPU's pageblock would fetch its line.
    is_own: bool,
}

impl<'a> CpuArrays<'a> {
    /// Empty arrays for one CPU. For a CPU that the allocator does not know they stay empty, and each request is an error.
    #[must_use]
    pub fn new(allocator: &'a BlockAllocator<'a>, cpu: CpuId) -> Self {
        Self {
            allocator,
            states: &allocator.states,
            free: &allocator.free,
            cpu,
            home: Home::of(allocator, cpu),
            arrays: [(); TYPES].map(|()| ARRAY_ORDERS.map(Array::empty)),
            recent: core::array::from_fn(|order| Recent::own(ARRAY_ORDERS[order], cpu)),
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
            // A copy, which is made here only.
            None => self.refill(*request),
        }
    }

    /// Frees a block, to an array if it has room for it. O(1) but for the exchanges of a half array once for as many frees.
    ///
    /// # Errors
    /// As [`BlockAllocator::free`], but for [double frees](Self#double-frees).
    #[inline]
    pub fn free(&mut self, pfn: Pfn, order: Order) -> Result<(), FreeError> {
        if cfg!(debug_assertions) && self.is_free(pfn) {
            return Err(FreeError::DoubleFree(pfn));
        }
        if self.keep(pfn, order) { Ok(()) } else { self.free_past(pfn, order) }
    }

    /// Whether this frame lies in a block of an array here, or is free in its pageblock. O(blocks here).
    fn is_free(&self, pfn: Pfn) -> bool {
        let Some(index) = self.home.frame(pfn) else { return false };
        let has = |array: &Array, of: Order| {
            let with_frame = |first: &u32| index.checked_sub(*first).is_some_and(|at| at < of.frames());
            array.oldest(usize::MAX).iter().any(with_frame)
        };
        let of_type = |arrays: &[Array; ORDERS]| {
            arrays.iter().zip(ARRAY_ORDERS).any(|(array, order)| has(array, order))
        };
        self.arrays.iter().any(of_type) || self.allocator.frame_use(index as usize) == FrameUse::Free
    }

    /// Frames of all blocks here.
    #[must_use]
    pub fn frames(&self) -> u32 {
        let of_type = |arrays: &[Array; ORDERS]| -> u32 {
            arrays.iter().zip(ARRAY_ORDERS).map(|(array, order)| array.len() << order.index()).sum()
        };
        self.arrays.iter().map(of_type).sum()
    }

    /// Gives back everything.
    pub fn drain(&mut self) {
        for type_index in 0..TYPES {
            for order in ARRAY_ORDERS {
                self.give_back(type_index, order, usize::MAX);
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

    /// Puts a block into an array, if there is room, and it is known at once that it may go there.
    #[inline]
    fn keep(&mut self, pfn: Pfn, order: Order) -> bool {
        let Some(index) = self.home.frame(pfn) else { return false };
        let Some(recent) = self.recent.get(order.index()) else { return self.keep_pageblock(index, order) };
        let (block, frame) = (index as usize / FRAMES, index as usize % FRAMES);
        let (Some(state), Some(free)) = (self.states.get(block), self.free.get(block)) else { return false };
        let is_aligned = frame & (order.frames() as usize - 1) == 0;
        let is_plain = is_aligned && state.get().is_like(recent.state);
        if !is_plain || recent.is_own && free.is_free(frame) {
            return false;
        }
        let arrays = self.arrays.get_mut(recent.type_index);
        arrays.is_some_and(|arrays| arrays[order.index()].push(index))
    }

    /// As [`look`](Self::look) has it for pageblocks, but apart. (Measured: by way of it, a pair takes 6.3 ns instead of 4.8.)
    #[inline(never)]
    fn keep_pageblock(&mut self, index: u32, order: Order) -> bool {
        let (block, frame) = (index as usize / FRAMES, index as usize % FRAMES);
        let Some(state) = self.states.get(block).map(BlockState::get) else { return false };
        let is_plain = order == Order::PAGEBLOCK && frame == 0 && state.is_pageblock_in_use();
        let array = self.arrays.get_mut(state.type_index()).map(|arrays| &mut arrays[ORDERS - 1]);
        is_plain && array.is_some_and(|array| !array.has(index) && array.push(index))
    }

    /// Frees what is not for the arrays, or for which they have no room yet, or what is not known at once.
    #[inline(never)]
    fn free_past(&mut self, pfn: Pfn, order: Order) -> Result<(), FreeError> {
        let Some((state, index)) = self.look(pfn, order) else {
            return self.allocator.free(self.cpu, pfn, order);
        };
        let type_index = state.type_index();
        let Some(array) = self.array(type_index, order) else {
            return self.allocator.free(self.cpu, pfn, order);
        };
        if order == Order::PAGEBLOCK {
            return match array.has(index) {
                true => Err(FreeError::DoubleFree(pfn)),
                false => self.allocator.free(self.cpu, pfn, order),
            };
        }
        let mut is_kept = array.push(index);
        if !is_kept {
            self.is_busy = true;
            self.give_back(type_index, order, most(order) as usize / 2);
            is_kept = self.array(type_index, order).is_some_and(|array| array.push(index));
        }
        let is_own = state.owner() == self.cpu;
        // INVARIANT: `look` says so of blocks below pageblocks.
        self.recent[order.index()] = Recent { state, type_index, is_own };
        if is_kept { Ok(()) } else { self.allocator.free(self.cpu, pfn, order) }
    }

    /// The pageblock around a block that may go to an array, and the index of its first frame.
    fn look(&self, pfn: Pfn, order: Order) -> Option<(State, u32)> {
        let index = self.home.frame(pfn)?;
        let (block, frame) = (index as usize / FRAMES, index as usize % FRAMES);
        let state = self.states[block].get();
        let is_plain = if order < Order::PAGEBLOCK {
            let is_aligned = frame & (order.frames() as usize - 1) == 0;
            let is_free = || state.owner() == self.cpu && self.free[block].is_free(frame);
            is_aligned && state.takes_back(order) && !is_free()
        } else {
            order == Order::PAGEBLOCK && frame == 0 && state.is_pageblock_in_use()
        };
        is_plain.then_some((state, index))
    }

    #[inline(never)]
    fn refill(&mut self, request: Request) -> Result<Pfn, AllocError> {
        let (allocator, cpu) = (self.allocator, self.cpu);
        self.is_busy = true;
        let home = self.home;
        let Some(array) = self.array_for(&request) else {
            return allocator.alloc(cpu, &request).or_else(|error| self.alloc_again(&request, error));
        };
        if request.order == Order::PAGEBLOCK {
            return allocator.alloc(cpu, &request).or_else(|error| self.alloc_again(&request, error));
        }
        let mut blocks = match allocator.alloc_word(cpu, &request, most(request.order) as usize / 2) {
            Ok(blocks) => blocks,
            Err(error) => return self.alloc_again(&request, error),
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
        let oldest = array.oldest(blocks);
        match order {
            // Apart, so that the compiler knows the order of most blocks.
            Order::ZERO => allocator.free_from_array(cpu, zone, oldest, Order::ZERO),
            _ => allocator.free_from_array(cpu, zone, oldest, order),
        }
        let given = oldest.len();
        array.forget_oldest(given);
    }
}

impl Recent {
    /// Pageblocks that are split into blocks of an order, and the CPU's own.
    const fn own(order: Order, cpu: CpuId) -> Self {
        let migratetype = MigrateType::Movable;
        let state = State::split(order, migratetype).of_owner(cpu);
        Self { state, type_index: migratetype.index(), is_own: true }
    }
}

impl BlockAllocator<'_> {
    /// Frees blocks that an array gives back, those together that lie together.
    #[inline(always)]
    fn free_from_array(&self, cpu: CpuId, zone: ZoneId, blocks: &[u32], order: Order) {
        let mut indices = blocks.iter().map(|block| *block as usize);
        let mut next = indices.next();
        while let Some(first) = next {
            let mut together = Together::of(first);
            next = indices.find(|index| !together.add(*index));
            let is_split = order < Order::PAGEBLOCK;
            if !(is_split && self.put_heads(cpu, together.place(), order, together.frames)) {
                together.indices().for_each(|index| self.free_alone_from_array(cpu, zone, index, order));
            }
        }
    }

    /// Frees a block that an array gives back: one that is free already was freed twice.
    #[cold]
    fn free_alone_from_array(&self, cpu: CpuId, zone: ZoneId, index: usize, order: Order) {
        let freed = self.free(cpu, self.zones[zone.index()].pfn(index), order);
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
