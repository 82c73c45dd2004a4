//! Blocks pass between the arrays and the core, half an array at a time.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use pageset_core::{Order, Pfn, Request};

use super::Inner;
use crate::arrays::{Class, Entry};
use crate::error::AllocError;
use crate::sys::membarrier;

/// Most blocks that pass at once: half of the largest array, rounded up.
pub(super) const BATCH_MAX: usize = 64;

/// What happened off the fast path, and the capacity. The fast path itself counts in its arrays' heads.
pub(crate) struct Counts {
    /// Frames that may be out of the core.
    pub(super) capacity: AtomicU64,
    /// Frames that are: handed out, or in arrays.
    pub(super) out: AtomicU64,
    /// Frames handed out by slow paths.
    pub(super) slow_alloc: AtomicU64,
    /// Frames of blocks that left an array for the core by a pop, which is no allocation.
    pub(super) flushed: AtomicU64,
    pub(super) refills: AtomicU64,
    pub(super) flushes: AtomicU64,
    pub(super) array_drains: AtomicU64,
    pub(super) bad_frees: AtomicU64,
    pub(super) cleared: AtomicU64,
    pub(super) returned: AtomicU64,
    pub(super) return_nanos: AtomicU64,
    pub(super) prezeroed: AtomicU64,
}

impl Counts {
    pub(crate) fn new(capacity: u64) -> Self {
        let zero = || AtomicU64::new(0);
        Self {
            capacity: AtomicU64::new(capacity),
            out: zero(),
            slow_alloc: zero(),
            flushed: zero(),
            refills: zero(),
            flushes: zero(),
            array_drains: zero(),
            bad_frees: zero(),
            cleared: zero(),
            returned: zero(),
            return_nanos: zero(),
            prezeroed: zero(),
        }
    }

    pub(super) fn note_cleared(&self, frames: u32) {
        self.cleared.fetch_add(u64::from(frames), Relaxed);
    }

    pub(super) fn note_bad_free(&self) {
        self.bad_frees.fetch_add(1, Relaxed);
    }

    /// Claims part of the capacity; `false` if there is not so much left.
    pub(super) fn claim(&self, frames: u64) -> bool {
        let before = self.out.fetch_add(frames, Relaxed);
        let is_within = before + frames <= self.capacity.load(Relaxed);
        if !is_within {
            self.out.fetch_sub(frames, Relaxed);
        }
        is_within
    }

    pub(super) fn is_all_free(&self) -> bool {
        self.out.load(Relaxed) == 0
    }

    pub(super) fn unclaim(&self, frames: u64) {
        self.out.fetch_sub(frames, Relaxed);
    }
}

/// A request for a block of the pool. All memory is of one type, so that nothing is stolen from anybody.
pub(super) fn request(order: Order) -> Request {
    Request::new(order).movable()
}

impl Inner {
    /// Allocates from the core, and fills this CPU's array on the way.
    #[cold]
    #[inline(never)]
    pub(super) fn alloc_slow(&self, order: Order) -> Result<Entry, AllocError> {
        if self.hot.is_in_child() {
            return Err(AllocError::Forked);
        }
        self.bell.ring();
        let class = Class::of(order).filter(|class| self.caps.of(*class) > 1 && self.has_array());
        let taken = class.and_then(|class| self.refill(class));
        let block = match taken {
            Some(entry) => entry,
            None => self.alloc_one(order)?,
        };
        self.counts.slow_alloc.fetch_add(u64::from(order.frames()), Relaxed);
        Ok(block)
    }

    /// Allocates one block from the core; empties the arrays if there is none.
    pub(super) fn alloc_one(&self, order: Order) -> Result<Entry, AllocError> {
        let attempt = || {
            let frames = u64::from(order.frames());
            if !self.counts.claim(frames) {
                let has_limit = self.counts.capacity.load(Relaxed) < u64::from(self.frames);
                return Err(if has_limit {
                    AllocError::OverCapacity
                } else {
                    AllocError::OutOfMemory { order }
                });
            }
            self.core.alloc(self.cpu(), &request(order)).map_err(|_| {
                self.counts.unclaim(frames);
                AllocError::OutOfMemory { order }
            })
        };
        let pfn = attempt().or_else(|error| {
            self.drain_arrays();
            self.dissolve_depot();
            // What is out of the core for a moment comes back.
            let _all_there = self.returning.lock();
            attempt().map_err(|_| error)
        })?;
        let frame = pfn.0 as u32;
        Ok(Entry::with_zero(frame, self.ledger.take(frame..frame + order.frames())))
    }

    /// Fetches half an array's blocks. Returns one; the others go into the array. `None` if memory or capacity is short.
    fn refill(&self, class: Class) -> Option<Entry> {
        let wanted = (self.caps.of(class) as usize).div_ceil(2).min(BATCH_MAX);
        self.counts.refills.fetch_add(1, Relaxed);
        if class == Class::Order0 {
            let mut singles = self.take_singles(wanted);
            if singles.as_slice().is_empty() {
                // Near the capacity.
                singles = self.take_singles(1);
            }
            return self.keep(class, singles.as_slice().iter().copied());
        }
        let mut pages = [None; BATCH_MAX];
        let pages = &mut pages[..wanted];
        let got = self.take_blocks(class.order(), pages);
        self.keep(class, pages.iter().take(got).flatten().map(|pfn| self.entry(*pfn, class)))
    }

    /// Returns one of some blocks, and puts the others into this CPU's array.
    fn keep(&self, class: Class, mut entries: impl Iterator<Item = Entry>) -> Option<Entry> {
        let first = entries.next();
        if let Some(cpu) = self.locked_arrays()
            && let Some(entry) = cpu.try_push_all(class, &mut entries)
        {
            self.give_back(entry, class);
        }
        for entry in entries {
            // With locks, what is left belongs to nobody's array: somebody else was at it, or filled it.
            if self.area.is_none() || !self.push(class, entry) {
                // With sequences, this thread was moved to a CPU whose array is full.
                self.give_back(entry, class);
            }
        }
        first
    }

    /// Takes blocks of one order from the core into the first slots. Returns how many; capacity is claimed for them.
    fn take_blocks(&self, order: Order, pages: &mut [Option<Pfn>]) -> usize {
        let frames = u64::from(order.frames());
        if !self.counts.claim(frames * pages.len() as u64) {
            return 0;
        }
        let (cpu, request) = (self.cpu(), request(order));
        let mut got = 0;
        for slot in pages.iter_mut() {
            let Ok(pfn) = self.core.alloc(cpu, &request) else { break };
            *slot = Some(pfn);
            got += 1;
        }
        self.counts.unclaim(frames * (pages.len() - got) as u64);
        got
    }

    fn entry(&self, pfn: Pfn, class: Class) -> Entry {
        let frame = pfn.0 as u32;
        Entry::with_zero(frame, self.ledger.take(frame..frame + class.frames()))
    }

    /// Frees a block that its array had no room for, with half of the array; or a run of frames.
    #[cold]
    #[inline(never)]
    pub(super) fn free_slow(&self, frame: u32, class: Option<Class>, frames: u32) {
        if self.hot.is_in_child() {
            return;
        }
        self.bell.ring();
        match class {
            Some(Class::Order0) => self.flush_singles(Entry::dirty(frame)),
            Some(class) => {
                self.give_back(Entry::dirty(frame), class);
                self.flush(class);
            }
            None => self.free_run(frame, frames),
        }
    }

    /// Frees frames that are no block of a class.
    pub(super) fn free_run(&self, frame: u32, frames: u32) {
        let (start, cpu) = (u64::from(frame), self.cpu());
        let order = u8::try_from(frames.trailing_zeros()).ok().and_then(Order::new);
        let outcome = match order.filter(|order| order.frames() == frames && Pfn(start).is_aligned(*order)) {
            Some(order) => self.core.free(cpu, Pfn(start), order),
            None => self.core.free_range(cpu, start..start + u64::from(frames)),
        };
        match outcome {
            Ok(()) => self.counts.unclaim(u64::from(frames)),
            Err(_) => self.counts.note_bad_free(),
        }
    }

    /// Moves half of this CPU's array to the core.
    fn flush(&self, class: Class) {
        let wanted = self.caps.of(class) / 2;
        let mut moved = 0;
        while moved < wanted {
            let Some(entry) = self.pop(class) else { break };
            self.give_back(entry, class);
            moved += 1;
        }
        self.counts.flushed.fetch_add(u64::from(moved) * u64::from(class.frames()), Relaxed);
        self.counts.flushes.fetch_add(1, Relaxed);
    }

    /// Gives a block of an array back to the core.
    pub(super) fn give_back(&self, entry: Entry, class: Class) {
        if class == Class::Order0 {
            return self.give_singles(&[entry]);
        }
        let frame = entry.frame();
        // Before somebody else can have it.
        self.ledger.put(frame..frame + class.frames(), entry.zero());
        match self.core.free(self.cpu(), Pfn(u64::from(frame)), class.order()) {
            Ok(()) => self.counts.unclaim(u64::from(class.frames())),
            // Freed twice through `from_raw`; the core knows it better.
            Err(_) => self.counts.note_bad_free(),
        }
    }

    /// Empties the arrays of all CPUs. Returns the frames that went back to the core.
    ///
    /// With sequences, the other set of arrays is put into use, and every sequence under way begins again there; then
    /// nobody is at the old set any more.
    pub(crate) fn drain_arrays(&self) -> u64 {
        if self.hot.is_in_child() {
            return 0;
        }
        let _one_at_a_time = self.drain.lock();
        if self.cached_in_arrays() == 0 {
            return 0;
        }
        self.counts.array_drains.fetch_add(1, Relaxed);
        let mut drained = 0;
        let mut take = |class: Class, entry| {
            self.give_back(entry, class);
            drained += u64::from(class.frames());
        };
        if self.area.is_some() {
            let old = self.hot.swap();
            if !membarrier::restart_all() {
                // Announced when the pool was built, so this does not happen; if it does, the old set is not touched
                // until it is in use again.
                self.hot.swap();
                return 0;
            }
            for cpu in old {
                for class in Class::ALL {
                    cpu.stack(class).empty(|entry| take(class, entry));
                }
            }
        } else {
            self.hot.current().iter().for_each(|cpu| cpu.empty_locked(&mut take));
        }
        drained
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
