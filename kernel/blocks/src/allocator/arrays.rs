//! Small arrays of free blocks that belong to one CPU. Most requests to them need no exchange.

use core::fmt;

use pageset_core::{
    AllocError, COSTLY_ORDER, ConfigError, CpuId, FreeError, Order, Pfn, Request, TickOutcome, ZoneId,
};

use super::array::{ARRAY_ORDERS, Array, ORDERS, most, place};
use super::home::Home;
use super::{BlockAllocator, FRAMES};
use crate::access::Access;
use crate::cpu_share::{TYPES, count};
use crate::ids::{FrameId, places};
use crate::row::ROW_FRAMES;
use crate::rows::Rows;
use crate::state::{BlockState, State};

/// Blocks that one CPU freed last or fetched in advance. The CPU's next requests get these blocks. For each
/// type, there are arrays of the orders 0 to 3 and 9.
///
/// The arrays hold blocks of one zone, the *home zone*: the zone that [`Request::new`] tries first on this
/// CPU. The home zone is the zone `Normal` of the CPU's node, or the next lower kind if the node has no zone
/// `Normal`. Blocks of other zones and orders go to the allocator directly.
///
/// A kernel has one `CpuArrays` for each CPU, and a program has one for each thread. `alloc` and `free` take
/// `&mut self`, so only one thread uses the arrays at a time. Therefore a call that only changes an array
/// needs no exchange. If an interrupt handler uses the arrays, too, a kernel calls their methods with
/// interrupts off. An empty array fetches free blocks of one row, up to half of its capacity. A full array
/// returns its older half to the allocator. A full array of pageblocks returns the pageblock that is being
/// freed. An array of order 0 to 3 holds at most 64 pages. The array for pageblocks holds at most two
/// pageblocks.
///
/// # Out of memory
/// For the allocator, blocks in arrays are in use, and [`drain_all`](BlockAllocator::drain_all) does not
/// reach them. Before your kernel reports that memory is short, or takes pageblocks out of service, it must
/// make each CPU [drain](Self::drain) its own arrays. `drain` takes `&mut self`, so a kernel asks the other
/// CPUs by an interrupt. Dropping the arrays returns all blocks.
///
/// # Double frees
/// **By default, `free` does not notice one misuse**: a second free of a block that lies in an array, except
/// for a pageblock in these arrays. `free` returns `Ok`. The block then enters an array a second time, and
/// may be handed out to two users. The allocator [counts](crate::BlockCounters::double_frees) the double free
/// when an array returns a block that is free already. If both copies stay in use, or the block has another
/// user by then, the double free is never detected.
///
/// With debug assertions, [`free`](Self::free) first looks at all blocks of these arrays. If the block lies
/// in one of them, the free fails with [`FreeError::DoubleFree`]. A block in the arrays of another CPU is
/// still not found. A release build does the same with `debug-assertions = true` in
/// `[profile.release.package.pageset-blocks]`.
///
/// For [`free_range`](BlockAllocator::free_range) and other calls of the allocator, a block that lies in an
/// array is in use. Mistakes of other kinds are errors, as without arrays.
pub struct CpuArrays<'a> {
    allocator: &'a BlockAllocator<'a>,
    /// The states of the home zone's pageblocks. `rows` has the rows of the same pageblocks. Each free reads
    /// both.
    states: &'a [BlockState],
    rows: &'a [Rows],
    cpu: CpuId,
    /// The zone of the arrays. If the CPU's requests can use no zone, the arrays stay empty.
    home: Home,
    arrays: [[Array; ORDERS]; TYPES],
    /// A recent pageblock's state, and the index of its type.
    ///
    /// A free uses the type in `recent` to find the array, and checks afterwards that the block's pageblock
    /// has the same state. So the processor need not wait for the pageblock's state before it goes on with
    /// the array.
    recent: (State, usize),
    /// Whether an empty array had to fetch blocks, or a full one to return some, since the last tick.
    is_busy: bool,
    /// Frames in the arrays at the last tick.
    frames_before: u32,
}

impl<'a> CpuArrays<'a> {
    /// Empty arrays for one CPU. If the allocator does not know the CPU, they stay empty and each request is
    /// an error.
    #[must_use]
    pub fn new(allocator: &'a BlockAllocator<'a>, cpu: CpuId) -> Self {
        let (home, blocks) = Home::of(allocator, cpu);
        Self {
            allocator,
            states: &allocator.states[places(&blocks)],
            rows: &allocator.rows[places(&blocks)],
            cpu,
            home,
            arrays: [(); TYPES].map(|()| ARRAY_ORDERS.map(Array::empty)),
            recent: (State::ABSENT, 0),
            is_busy: false,
            frames_before: 0,
        }
    }

    /// Allocates a block, from an array if the array has one. O(1). An empty array of order 0 to 3 fetches
    /// blocks, up to half of its capacity, at about the cost of [one allocation](BlockAllocator::alloc)
    /// without arrays.
    ///
    /// # Errors
    /// The errors of [`BlockAllocator::alloc`]. After an error, these arrays are empty.
    #[inline]
    pub fn alloc(&mut self, request: &Request) -> Result<Pfn, AllocError> {
        match self.array_for(request).and_then(Array::pop) {
            Some(block) => Ok(self.home.pfn(block)),
            // The request is copied here only.
            None => self.refill(*request),
        }
    }

    /// Frees a block, to an array if the array has room. O(1). A full array of order 0 to 3 first returns its
    /// older half to the allocator. If the array of pageblocks is full, the freed pageblock goes to the
    /// allocator.
    ///
    /// # Errors
    /// The errors of [`BlockAllocator::free`], except for [double frees](Self#double-frees).
    #[inline]
    pub fn free(&mut self, pfn: Pfn, order: Order) -> Result<(), FreeError> {
        if cfg!(debug_assertions) && self.has(pfn) {
            return Err(FreeError::DoubleFree(pfn));
        }
        if self.keep(pfn, order) { Ok(()) } else { self.free_past_array(pfn, order) }
    }

    /// Whether this frame lies in a block of these arrays. O(blocks here).
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

    /// Frames of all blocks in these arrays.
    #[must_use]
    pub fn frames(&self) -> u32 {
        let of_type = |arrays: &[Array; ORDERS]| -> u32 {
            arrays.iter().zip(ARRAY_ORDERS).map(|(array, order)| array.len() << order.index()).sum()
        };
        self.arrays.iter().map(of_type).sum()
    }

    /// Returns all blocks to the allocator.
    pub fn drain(&mut self) {
        for type_index in 0..TYPES {
            for order in ARRAY_ORDERS {
                self.give_back(type_index, order, usize::MAX);
            }
        }
    }

    /// Returns all blocks to the allocator if the arrays were idle since the last tick: no array fetched or
    /// returned blocks, and the arrays hold as many frames as at that tick. Also does the CPU's [periodic
    /// work](BlockAllocator::tick), whether the arrays were idle or not. So the arrays of an idle CPU are
    /// empty after two ticks.
    ///
    /// # Errors
    /// The errors of [`BlockAllocator::tick`].
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

    /// Puts a block of a small order into an array. Returns `false` if the array has no room, if no block of
    /// this order is in use there, or if the pageblock's type or isolation differs from `recent`. Also
    /// returns `false` if the frame after the block is withheld.
    #[inline(always)]
    fn keep(&mut self, pfn: Pfn, order: Order) -> bool {
        let (block, frame) = self.home.frame(pfn);
        let (Some(state), Some(rows)) = (self.states.get(block), self.rows.get(block)) else {
            return false;
        };
        let (recent, type_index) = self.recent;
        let row = rows.row(frame / ROW_FRAMES);
        order.index() <= COSTLY_ORDER
            && state.get().is_like(recent)
            && row.is_plain_block(frame % ROW_FRAMES, order)
            && self.array(type_index, order).is_some_and(|array| array.push((block * FRAMES + frame) as u32))
    }

    /// Frees a block that [`keep`](Self::keep) refused. Puts the block into an array if the array can hold
    /// the block by now. If not, returns the block to the allocator.
    #[inline(never)]
    fn free_past_array(&mut self, pfn: Pfn, order: Order) -> Result<(), FreeError> {
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

    /// Returns the type of a block in use, and the block's place in the zone. Returns `None` if the block may
    /// not enter an array.
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
        let mut blocks = match allocator.alloc_row(cpu, &request, most(request.order) as usize / 2) {
            Ok(blocks) => blocks,
            Err(error) => return self.alloc_again(&request, error),
        };
        let first = blocks.next();
        // The lowest block is pushed last, so that it is used next.
        for pfn in blocks.rev() {
            let (block, frame) = home.frame(pfn);
            // If the home zone has no memory left, the allocator takes blocks from another zone. Blocks of
            // another zone do not belong in the array.
            if block >= blocks_here || allocator.zones[home.zone.index()].frame(pfn).is_none() {
                allocator.free(cpu, pfn, request.order).ok();
            } else {
                array.push((block * FRAMES + frame) as u32);
            }
        }
        first.ok_or(AllocError::OutOfMemory { order: request.order })
    }

    /// Drains the arrays and tries once more.
    #[cold]
    fn alloc_again(&mut self, request: &Request, error: AllocError) -> Result<Pfn, AllocError> {
        if self.frames() == 0 {
            return Err(error);
        }
        self.drain();
        self.allocator.alloc(self.cpu, request)
    }

    /// Returns up to `blocks` blocks of an array to the allocator, beginning with the block that was freed
    /// first.
    fn give_back(&mut self, type_index: usize, order: Order, blocks: usize) {
        let (allocator, cpu, zone) = (self.allocator, self.cpu, self.home.zone);
        let Some(array) = self.array(type_index, order) else { return };
        let oldest = array.oldest(blocks);
        match order {
            // The separate call lets the compiler build a version with a constant order for the most frequent
            // case.
            Order::ZERO => allocator.free_from_array(cpu, zone, oldest, Order::ZERO),
            _ => allocator.free_from_array(cpu, zone, oldest, order),
        }
        let given = oldest.len();
        array.forget_oldest(given);
    }
}

impl<A: Access> BlockAllocator<'_, A> {
    /// Frees blocks that an array returns. If a block is free already, some caller freed it twice.
    #[inline(always)]
    fn free_from_array(&self, cpu: CpuId, zone: ZoneId, places: &[u32], order: Order) {
        let zone = &self.zones[zone.index()];
        let first = FrameId::of(zone.blocks.start, 0);
        let firsts = places.iter().map(|place| FrameId(first.0 + *place as usize));
        self.free_blocks(cpu, zone, order, firsts, |id| {
            let freed = self.free(cpu, zone.pfn(id), order);
            // The allocator refuses a block with a frame that is out of service. The refusal is no sign of a
            // double free.
            if !matches!(freed, Ok(()) | Err(FreeError::Leaked(_))) {
                count::<A>(&self.share_at(zone.id, cpu).counters.double_frees);
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
