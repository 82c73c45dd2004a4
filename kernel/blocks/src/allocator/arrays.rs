//! A CPU's own small arrays of blocks, for hosts that let one at a time use them: most requests take no atomic operation then.

use core::fmt;

use pageset_core::{
    AllocError, COSTLY_ORDER, ConfigError, CpuId, FreeError, Order, Pfn, Request, TickOutcome, ZoneId,
};

use super::array::{ARRAY_ORDERS, Array, ORDERS, most, place};
use super::home::Home;
use super::{BlockAllocator, FRAMES};
use crate::access::Access;
use crate::cpu_lists::{TYPES, count};
use crate::row::ROW_FRAMES;
use crate::rows::Rows;
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
/// Where debug assertions are on, [`free`](Self::free) looks at all blocks of these arrays first. Then a block that lies here is
/// [`FreeError::DoubleFree`]. A block in the arrays of another CPU is still not found. A release build has the same look
/// with `debug-assertions = true` in `[profile.release.package.pageset-blocks]`.
/// Likewise [`free_range`](BlockAllocator::free_range) takes a block in an array for one in use. All other mistakes are errors, as without arrays.
pub struct CpuArrays<'a> {
    allocator: &'a BlockAllocator<'a>,
    /// The allocator's, those of the home zone, for each free.
    states: &'a [BlockState],
    rows: &'a [Rows],
    cpu: CpuId,
    /// Where the CPU's requests go first. If it is unknown, nothing is kept here.
    home: Home,
    arrays: [[Array; ORDERS]; TYPES],
    /// A pageblock like those in service whose blocks are freed at the moment, and the number of its type.
    ///
    /// A free compares its block's pageblock with this one. So it knows the array before it knows the pageblock: what the next
    /// allocation reads does not wait for the block that is freed now, of which the caches may have nothing.
    recent: (State, usize),
    /// Whether an array was filled or emptied since the last tick.
    is_busy: bool,
    /// Frames at the last tick.
    frames_before: u32,
}

impl<'a> CpuArrays<'a> {
    /// Empty arrays for one CPU. For a CPU that the allocator does not know they stay empty, and each request is an error.
    #[must_use]
    pub fn new(allocator: &'a BlockAllocator<'a>, cpu: CpuId) -> Self {
        let (home, blocks) = Home::of(allocator, cpu);
        Self {
            allocator,
            states: &allocator.states[blocks.clone()],
            rows: &allocator.rows[blocks],
            cpu,
            home,
            arrays: [(); TYPES].map(|()| ARRAY_ORDERS.map(Array::empty)),
            recent: (State::ABSENT, 0),
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
        if cfg!(debug_assertions) && self.has(pfn) {
            return Err(FreeError::DoubleFree(pfn));
        }
        if self.keep(pfn, order) { Ok(()) } else { self.free_past(pfn, order) }
    }

    /// Whether this frame lies in a block of an array here. O(blocks here).
    fn has(&self, pfn: Pfn) -> bool {
        let (block, frame) = self.home.frame(pfn);
        let Some(_) = self.states.get(block) else { return false };
        let place = (block * FRAMES + frame) as u32;
        let has = |array: &Array, of: Order| {
            let with_frame = |first: &u32| place.checked_sub(*first).is_some_and(|at| at < of.frames());
            array.oldest(usize::MAX).iter().any(with_frame)
        };
        let of_type = |arrays: &[Array; ORDERS]| {
            arrays.iter().zip(ARRAY_ORDERS).any(|(array, order)| has(array, order))
        };
        self.arrays.iter().any(of_type)
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

    /// Puts a block of a small order into an array, if there is room, and it is a block in use like those that are freed at the moment.
    #[inline(always)]
    fn keep(&mut self, pfn: Pfn, order: Order) -> bool {
        let (block, frame) = self.home.frame(pfn);
        let (Some(state), Some(rows)) = (self.states.get(block), self.rows.get(block)) else { return false };
        let (recent, type_index) = self.recent;
        let row = rows.row(frame / ROW_FRAMES);
        order.index() <= COSTLY_ORDER
            && state.get().is_like(recent)
            && row.is_plain_block(frame % ROW_FRAMES, order)
            && self.array(type_index, order).is_some_and(|array| array.push((block * FRAMES + frame) as u32))
    }

    /// Frees what is not for the arrays, or for which they have no room yet.
    #[inline(never)]
    fn free_past(&mut self, pfn: Pfn, order: Order) -> Result<(), FreeError> {
        let Some((type_index, index)) = self.look(pfn, order) else {
            return self.allocator.free(self.cpu, pfn, order);
        };
        let (allocator, cpu) = (self.allocator, self.cpu);
        let Some(array) = self.array(type_index, order) else { return allocator.free(cpu, pfn, order) };
        if order == Order::PAGEBLOCK && array.has(index) {
            return Err(FreeError::DoubleFree(pfn));
        }
        if array.push(index) {
            return Ok(());
        }
        self.is_busy = true;
        if order < Order::PAGEBLOCK {
            self.give_back(type_index, order, most(order) as usize / 2);
            if self.array(type_index, order).is_some_and(|array| array.push(index)) {
                return Ok(());
            }
        }
        allocator.free(cpu, pfn, order)
    }

    /// The type of a block in use that may go to an array, and its place in the zone.
    fn look(&mut self, pfn: Pfn, order: Order) -> Option<(usize, u32)> {
        let (block, frame) = self.home.frame(pfn);
        let state = self.states.get(block)?.get();
        let is_block = if order.index() <= COSTLY_ORDER {
            let (row, at) = (frame / ROW_FRAMES, frame % ROW_FRAMES);
            self.rows[block].row(row).with_put_at(at, order).is_some()
        } else {
            order == Order::PAGEBLOCK && frame == 0 && state.is_block_of(order)
        };
        if !is_block || state.is_isolated() {
            return None;
        }
        self.recent = (state, state.type_index());
        Some((state.type_index(), (block * FRAMES + frame) as u32))
    }

    #[inline(never)]
    fn refill(&mut self, request: Request) -> Result<Pfn, AllocError> {
        let (allocator, cpu) = (self.allocator, self.cpu);
        self.is_busy = true;
        let (home, blocks_here) = (self.home, self.states.len());
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
            let (block, frame) = home.frame(pfn);
            // Blocks of another zone come one by one.
            if block >= blocks_here || allocator.zones[home.zone.index()].frame(pfn).is_none() {
                allocator.free(cpu, pfn, request.order).ok();
            } else {
                array.push((block * FRAMES + frame) as u32);
            }
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

impl<A: Access> BlockAllocator<'_, A> {
    /// Frees blocks that an array gives back: one that is free already was freed twice.
    #[inline(always)]
    fn free_from_array(&self, cpu: CpuId, zone: ZoneId, places: &[u32], order: Order) {
        let zone = &self.zones[zone.index()];
        let first = zone.blocks.start * FRAMES;
        let indices = places.iter().map(|place| first + *place as usize);
        self.free_indices(cpu, zone, order, indices, |index| {
            let freed = self.free(cpu, zone.pfn(index), order);
            // Frames that are out of service stay so.
            if !matches!(freed, Ok(()) | Err(FreeError::Leaked(_))) {
                count::<A>(&self.lists_at(zone.id, cpu).counters.double_frees);
            }
        });
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
