//! Blocks pass between the arrays and the depot, half an array at a time; what the depot does not have comes from the
//! core.

use std::sync::atomic::Ordering::Relaxed;

use pageset_core::{FreeError, Order, Pfn};

use super::Inner;
use crate::arrays::{BATCH_MAX, Batch, Class, Entry, StackAt, ZeroState};
use crate::depot::{Depot, Given, Parts};
use crate::error::AllocError;
use crate::rseq;
use crate::sys::{cpu, membarrier};

/// Turns for which a thread waits for the depot before it sleeps: some microseconds.
const SPINS: u32 = 100;

/// Words of bits that are taken from the depot at once, so that their frames are looked up without its lock: all of a batch
/// mostly, since one word is 64 pages.
const TOGETHER: usize = 12;

/// What was taken from the depot, before it is known what is in it.
struct Taken {
    parts: [Parts; TOGETHER],
    count: usize,
    /// Blocks in all parts.
    blocks: usize,
}

impl Taken {
    const NONE: Self = Self { parts: [Parts { first: 0, bits: 0, count: 0 }; TOGETHER], count: 0, blocks: 0 };

    #[inline]
    fn push(&mut self, parts: Parts) {
        self.parts[self.count] = parts;
        self.count += 1;
        self.blocks += parts.count as usize;
    }
}

impl Inner {
    /// Allocates from the depot and fills this CPU's array on the way, or from the core.
    #[cold]
    #[inline(never)]
    pub(super) fn alloc_slow(&self, order: Order) -> Result<Entry, AllocError> {
        if self.is_in_child() {
            return Err(AllocError::Forked);
        }
        let class = Class::of(order).filter(|class| self.caps.of(*class) > 1 && self.has_array());
        let block = match class.and_then(|class| self.refill(class)) {
            Some(entry) => entry,
            None => self.alloc_one(order)?,
        };
        self.counts.note_slow_alloc(order.frames());
        Ok(block)
    }

    /// Allocates one block from the core. If it has none, all that is free elsewhere goes there.
    pub(super) fn alloc_one(&self, order: Order) -> Result<Entry, AllocError> {
        let attempt = || {
            let frames = u64::from(order.frames());
            if !self.capacity.try_charge(frames) {
                let has_limit = self.capacity.limit() < u64::from(self.frames);
                return Err(if has_limit {
                    AllocError::OverCapacity
                } else {
                    AllocError::OutOfMemory { order }
                });
            }
            self.core.alloc(order).ok_or_else(|| {
                self.capacity.uncharge(frames);
                AllocError::OutOfMemory { order }
            })
        };
        let frame = attempt()
            .or_else(|_| {
                self.release_whole(0);
                attempt()
            })
            .or_else(|_| {
                self.drain_arrays();
                self.dissolve_depot();
                // What is out of the core for a moment comes back.
                let _all_there = self.returning.lock();
                attempt()
            })?;
        Ok(Entry::with_zero(frame, self.ledger.take(frame..frame + order.frames())))
    }

    /// Fetches half an array's blocks. Returns one; the others go into the array. `None` if memory or capacity is short.
    fn refill(&self, class: Class) -> Option<Entry> {
        let mut batch = self.take(class, self.caps.of(class).div_ceil(2) as usize);
        if batch.len() == 0 {
            // Near the capacity.
            batch = self.take(class, 1);
        }
        let first = batch.pop_back()?;
        match self.area {
            Some(area) => rseq::push_many(&self.hot, area, StackAt::of_class(class), &mut batch),
            None => self.locked_arrays().into_iter().for_each(|cpu| cpu.try_push_many(class, &mut batch)),
        }
        if batch.len() > 0 {
            // This thread was moved to a CPU whose array is fuller, or somebody else is at this one.
            self.give(class, batch.as_slice());
        }
        Some(first)
    }

    /// Takes up to `wanted` blocks, the lowest to be used first. Capacity is claimed for those it returns.
    pub(super) fn take(&self, class: Class, wanted: usize) -> Batch {
        let mut batch = Batch::new();
        let wanted = wanted.min(BATCH_MAX);
        let frames = u64::from(class.frames());
        if !self.capacity.try_charge(wanted as u64 * frames) {
            return batch;
        }
        let cpu = cpu::current();
        let mut taken = Taken::NONE;
        let mut depot = self.lock_depot();
        depot.exchanges.refills += 1;
        depot.take_passed(class, wanted, |entries| batch.fill(entries));
        while batch.len() + taken.blocks < wanted {
            if class == Class::Order9 {
                if let Some(frame) = depot.take_whole() {
                    batch.push_front(Entry::dirty(frame));
                    continue;
                }
            } else if let limit = wanted - batch.len() - taken.blocks
                && let Some(parts) = depot.take(cpu, class, limit as u32)
            {
                if taken.count == TOGETHER {
                    self.note_taken(class, &mut taken, &mut batch);
                }
                taken.push(parts);
                continue;
            }
            match self.core.alloc(Order::PAGEBLOCK) {
                Some(first) => depot.add(first),
                None if depot.share(class) => {}
                None => break,
            }
        }
        drop(depot);
        // What is known of them can be looked up when nobody waits for the lock: they are ours.
        if class == Class::Order9 {
            batch.change(|entry| Entry::with_zero(entry.frame(), self.ledger.take_pageblock(entry.frame())));
        }
        self.note_taken(class, &mut taken, &mut batch);
        if batch.len() < wanted {
            self.take_scattered(class, wanted, &mut batch);
            self.capacity.uncharge((wanted - batch.len()) as u64 * frames);
        }
        batch
    }

    /// Adds what the depot gave to a batch.
    fn note_taken(&self, class: Class, taken: &mut Taken, batch: &mut Batch) {
        for parts in &taken.parts[..taken.count] {
            if class == Class::Order0 {
                let zero = self.ledger.take_bits(parts.first, parts.bits);
                for frame in parts.frames(class) {
                    batch.push_front(Entry::with_zero(frame, ZeroState::of_bit(zero >> (frame % 64))));
                }
            } else {
                for frame in parts.frames(class) {
                    batch
                        .push_front(Entry::with_zero(frame, self.ledger.take(frame..frame + class.frames())));
                }
            }
        }
        *taken = Taken::NONE;
    }

    /// Takes blocks from the core, where no whole pageblock is free any more.
    #[cold]
    fn take_scattered(&self, class: Class, wanted: usize, batch: &mut Batch) {
        while batch.len() < wanted
            && let Some(frame) = self.core.alloc(class.order())
        {
            batch.push_front(Entry::with_zero(frame, self.ledger.take(frame..frame + class.frames())));
        }
    }

    /// Frees a block that its array had no room for, with half of the array; or a run of frames.
    #[cold]
    #[inline(never)]
    pub(super) fn free_slow(&self, frame: u32, class: Option<Class>, frames: u32) {
        if self.is_in_child() {
            return;
        }
        match class {
            Some(class) if class != Class::Order9 || self.caps.of(class) > 1 => self.flush(class, frame),
            _ => self.free_run(frame, frames),
        }
    }

    /// Frees frames that are no block of a class.
    fn free_run(&self, frame: u32, frames: u32) {
        let order = u8::try_from(frames.trailing_zeros()).ok().and_then(Order::new);
        match order.filter(|order| order.frames() == frames && Pfn(u64::from(frame)).is_aligned(*order)) {
            Some(order) => match self.core.free(frame, order) {
                Ok(()) => self.capacity.uncharge(u64::from(frames)),
                Err(_) => self.counts.note_bad_frees(1),
            },
            None => self.free_part(frame, frames),
        }
    }

    /// Moves half of this CPU's array to the depot to make room for a block.
    fn flush(&self, class: Class, frame: u32) {
        let wanted = self.caps.of(class) as usize / 2;
        let mut batch = Batch::new();
        match self.area {
            Some(area) => rseq::pop_many(&self.hot, area, StackAt::of_class(class), wanted, &mut batch),
            None => {
                let cpu = self.locked_arrays();
                cpu.into_iter().for_each(|cpu| cpu.try_pop_many(class, wanted, &mut batch));
            }
        }
        if batch.len() == 0 || !self.push(class, Entry::dirty(frame)) {
            self.give(class, &[Entry::dirty(frame)]);
        }
        self.give(class, batch.as_slice());
    }

    /// Frees blocks, whether they came from the depot or from the core: they are passed on as they are if there is room.
    pub(super) fn give(&self, class: Class, entries: &[Entry]) {
        let mut depot = self.lock_depot();
        depot.exchanges.flushes += 1;
        let is_passed = depot.pass_on(class, entries);
        let refused = if is_passed { 0 } else { self.settle(&mut depot, class, entries) };
        drop(depot);
        if refused > 0 {
            self.counts.note_bad_frees(refused);
        }
        self.capacity.uncharge((entries.len() as u64 - refused) * u64::from(class.frames()));
    }

    /// Frees blocks one by one. Returns how many are free already.
    fn settle(&self, depot: &mut Depot, class: Class, entries: &[Entry]) -> u64 {
        for entry in entries.iter().filter(|entry| entry.zero() == ZeroState::Zero) {
            // Before somebody else can have it.
            self.ledger.put(entry.frame()..entry.frame() + class.frames(), ZeroState::Zero);
        }
        match class {
            Class::Order9 => self.give_pageblocks(depot, entries),
            // Apart, so that the compiler knows the class of most blocks.
            Class::Order0 => self.give_together(depot, Class::Order0, entries),
            _ => self.give_together(depot, class, entries),
        }
    }

    /// Frees blocks that were to be passed on, one by one.
    fn settle_passed(&self) {
        let mut depot = self.lock_depot();
        for class in Class::ALL {
            let entries = depot.empty_passed(class);
            let refused = self.settle(&mut depot, class, &entries);
            if refused > 0 {
                // Freed twice: somebody's frames, which were taken for free until now.
                self.counts.note_bad_frees(refused);
                self.capacity.charge(refused * u64::from(class.frames()));
            }
        }
    }

    /// The depot's lock. It is held for less than a microsecond, for which it is not worth to sleep: a thread that slept
    /// comes back after 5 to 50. (Measured on two CPUs that free in random order.)
    fn lock_depot(&self) -> parking_lot::MutexGuard<'_, Depot> {
        for _ in 0..SPINS {
            if let Some(depot) = self.depot.try_lock() {
                return depot;
            }
            std::hint::spin_loop();
        }
        self.depot.lock()
    }

    /// Frees pageblocks. Returns how many are free already: the core knows the owners of those that it handed out itself.
    fn give_pageblocks(&self, depot: &mut Depot, entries: &[Entry]) -> u64 {
        let mut free = |entry: &Entry| {
            depot.give_whole(entry.frame(), || self.core.is_allocated(entry.frame(), Order::PAGEBLOCK))
        };
        entries.iter().filter(|entry| !free(entry)).count() as u64
    }

    /// Frees blocks of an order below that of pageblocks. Pages that were allocated together are often freed together: one
    /// look for all in a row that lie in one word. Returns how many are free already.
    #[inline(always)]
    fn give_together(&self, depot: &mut Depot, class: Class, entries: &[Entry]) -> u64 {
        let mut rest = entries;
        let mut refused = 0;
        while let Some((first, others)) = rest.split_first() {
            let mut parts = Parts::one(first.frame(), class);
            let together = others.iter().take_while(|entry| parts.add(entry.frame(), class)).count();
            rest = &others[together..];
            refused += self.give_parts(depot, class, parts);
        }
        refused
    }

    /// Frees blocks that lie in one word. Returns how many are free already.
    #[inline(always)]
    fn give_parts(&self, depot: &mut Depot, class: Class, parts: Parts) -> u64 {
        match depot.give(class, parts) {
            Given::Kept { refused } => u64::from(refused),
            given => self.give_to_core(class, parts, given),
        }
    }

    /// Frees blocks that the depot does not have. Returns how many are free already.
    #[cold]
    fn give_to_core(&self, class: Class, parts: Parts, given: Given) -> u64 {
        let is_refused = |frame: &u32| match given {
            Given::Part => !self.free_cut(class, *frame),
            _ => self.free_block(class, *frame).is_err(),
        };
        parts.frames(class).filter(is_refused).count() as u64
    }

    fn free_block(&self, class: Class, frame: u32) -> Result<(), FreeError> {
        self.core.free(frame, class.order())
    }

    /// Frees a block that the core may know as a part of a larger one; `false` if it is free already. Only under the depot's
    /// lock, which keeps others from cutting the same block meanwhile.
    fn free_cut(&self, class: Class, frame: u32) -> bool {
        let outcome = self.free_block(class, frame).or_else(|error| match error {
            FreeError::WrongOrder { .. } | FreeError::NotABlock(_) => {
                self.core.free_range(frame..frame + class.frames())
            }
            other => Err(other),
        });
        outcome.is_ok()
    }

    /// Frees part of what is allocated: frames at the edge of somebody's pages, or what is left of them.
    pub(crate) fn free_part(&self, frame: u32, frames: u32) {
        if frames == 0 || self.is_in_child() {
            return;
        }
        // The core has to know the pageblock's other parts, and nobody may cut the same block meanwhile.
        let mut depot = self.depot.lock();
        depot.dissolve(frame, |frames| self.free_in_core(frames));
        match self.core.free_range(frame..frame + frames) {
            Ok(()) => self.capacity.uncharge(u64::from(frames)),
            Err(_) => self.counts.note_bad_frees(1),
        }
    }

    /// Moves what is free in the depot to the core's lists, so that larger blocks can be made of it.
    pub(super) fn dissolve_depot(&self) {
        let mut depot = self.depot.lock();
        depot.release_whole(0, |first| self.core.release(first, Order::PAGEBLOCK));
        depot.dissolve_all(|frames| self.free_in_core(frames));
    }

    /// Moves whole pageblocks of the depot, but for so many, to the core's lists.
    pub(super) fn release_whole(&self, kept: usize) {
        self.depot.lock().release_whole(kept, |first| self.core.release(first, Order::PAGEBLOCK));
    }

    /// Frees frames that the depot had, where the core took them for allocated.
    fn free_in_core(&self, frames: std::ops::Range<u32>) {
        let outcome = self.core.free_range(frames);
        debug_assert_eq!(outcome, Ok(()), "the depot's frames are allocated in the core");
    }

    /// Empties the arrays of all CPUs into the depot, and there into pageblocks.
    ///
    /// With sequences, the other set of arrays is put into use, and every sequence under way begins again there; then
    /// nobody is at the old set any more.
    pub(crate) fn drain_arrays(&self) {
        let _one_at_a_time = self.drain.lock();
        self.settle_passed();
        if self.cached_in_arrays() == 0 {
            return;
        }
        self.counts.array_drains.fetch_add(1, Relaxed);
        let mut entries: [Vec<Entry>; Class::COUNT] = Default::default();
        let mut take = |class: Class, entry| entries[class as usize].push(entry);
        if self.area.is_some() {
            let old = self.hot.swap();
            if !membarrier::restart_all() {
                // Announced when the pool was built, so this does not happen; if it does, the old set is not touched
                // until it is in use again.
                self.hot.swap();
                return;
            }
            for cpu in old {
                for class in Class::ALL {
                    cpu.stack(class).empty(|entry| take(class, entry));
                }
            }
        } else {
            self.hot.current().iter().for_each(|cpu| cpu.empty_locked(&mut take));
        }
        for (class, entries) in Class::ALL.into_iter().zip(&entries) {
            let refused = self.settle(&mut self.lock_depot(), class, entries);
            if refused > 0 {
                self.counts.note_bad_frees(refused);
            }
            self.capacity.uncharge((entries.len() as u64 - refused) * u64::from(class.frames()));
        }
    }

    /// Frames in the arrays of all CPUs at this moment.
    pub(crate) fn cached_in_arrays(&self) -> u64 {
        let of_class = |class: Class| {
            let blocks: u64 = self.hot.all().map(|cpu| u64::from(cpu.stack(class).count())).sum();
            blocks * u64::from(class.frames())
        };
        Class::ALL.into_iter().map(of_class).sum()
    }

    /// Frames popped from arrays since the pool was built.
    pub(super) fn popped(&self) -> u64 {
        let of_class = |class: Class| {
            let pops: u64 = self.hot.all().map(|cpu| cpu.stack(class).pops()).sum();
            pops * u64::from(class.frames())
        };
        Class::ALL.into_iter().map(of_class).sum()
    }
}
