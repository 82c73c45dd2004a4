//! Decides when a virtual CPU gets a lock.
//!
//! CPUs ask for locks in the order of virtual time ([`Engine::sync`]), but a CPU that holds a lock runs ahead
//! of the other CPUs. So when a second CPU asks for the lock, the first CPU may already have released the
//! lock, at a later virtual time than the second CPU's clock. If the lock is already released, the second CPU
//! is not suspended. The second CPU's clock moves to the time of the release plus the time of passing the
//! lock on. The second CPU is suspended only if the holder is suspended too, for example because the holder
//! waits for another lock or has computed for a long time.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use super::LockClass;
use super::raw::{Hold, VirtualLock};
use crate::engine::Engine;

/// The value in place of the number of a CPU or of a slot, if a lock has no such CPU or slot.
const NONE: u32 = u32::MAX;

/// The queues of all locks that a simulation has used.
#[derive(Debug)]
pub(crate) struct LockTable {
    queues: RefCell<Vec<Queue>>,
    /// The number of this lock table. A lock stores its slot together with the number of its table. A lock
    /// that stores the number of another table was last used in another simulation, and gets a new slot in
    /// this table.
    epoch: u64,
    zones: Range<usize>,
    page_sets: Range<usize>,
}

/// Number of low bits of `VirtualLock::place` that hold the lock's slot. The higher bits hold the epoch, the
/// number of the lock's table.
const SLOT_BITS: u32 = 24;

impl LockTable {
    /// Makes an empty table. `zones` and `page_sets` are the address ranges of the allocator's zones and page
    /// sets. A lock that was made without a class gets its class from the range that the lock's address is
    /// in.
    pub(crate) fn new(zones: Range<usize>, page_sets: Range<usize>) -> Self {
        static EPOCHS: AtomicU64 = AtomicU64::new(1);
        let epoch = EPOCHS.fetch_add(1, Ordering::Relaxed);
        Self { queues: RefCell::default(), epoch, zones, page_sets }
    }

    #[inline]
    fn class(&self, lock: &VirtualLock) -> LockClass {
        lock.class().unwrap_or_else(|| self.find_class(lock))
    }

    #[cold]
    fn find_class(&self, lock: &VirtualLock) -> LockClass {
        let address = std::ptr::from_ref(lock).addr();
        let class = if self.zones.contains(&address) {
            LockClass::Zone
        } else if self.page_sets.contains(&address) {
            LockClass::PageSet
        } else {
            LockClass::Other
        };
        lock.set_class(class);
        class
    }

    #[inline]
    fn slot(&self, lock: &VirtualLock) -> u32 {
        let place = lock.place.load(Ordering::Relaxed);
        if place >> SLOT_BITS == self.epoch {
            return (place & ((1 << SLOT_BITS) - 1)) as u32;
        }
        self.register(lock)
    }

    #[cold]
    fn register(&self, lock: &VirtualLock) -> u32 {
        let mut queues = self.queues.borrow_mut();
        let slot = queues.len();
        assert!(slot < 1 << SLOT_BITS, "a simulation has at most {} locks", 1 << SLOT_BITS);
        queues.push(Queue::new());
        lock.place.store(self.epoch << SLOT_BITS | slot as u64, Ordering::Relaxed);
        slot as u32
    }
}

/// The state of one lock: its holds that end later in virtual time, and the suspended CPUs that wait for the
/// lock.
#[derive(Debug)]
struct Queue {
    /// The CPU that got the lock last through this queue; `NONE` if no CPU has.
    last: u32,
    /// Holds of the lock whose ends lie ahead of the clock of the CPU that asked for the lock last. The
    /// earliest hold comes first.
    holds: VecDeque<PastHold>,
    /// Total time that drains held this lock so far.
    drained_ps: u64,
    /// CPUs that are suspended until the lock's holder passes the lock on to them.
    parked: VecDeque<Parked>,
}

/// A hold that its CPU has already released. The release may lie ahead of the clocks of other CPUs.
#[derive(Clone, Copy, Debug)]
struct PastHold {
    begin: u64,
    end: u64,
    /// Total time that drains held the lock before this hold began.
    drained_before: u64,
    is_drain: bool,
}

#[derive(Clone, Copy, Debug)]
struct Parked {
    cpu: u32,
    since: u64,
    drained_then: u64,
}

impl Queue {
    const fn new() -> Self {
        Self { last: NONE, holds: VecDeque::new(), drained_ps: 0, parked: VecDeque::new() }
    }

    /// Removes from `holds` all holds that ended at `now` or before.
    #[inline]
    fn forget(&mut self, now: u64) {
        while self.holds.front().is_some_and(|hold| hold.end <= now) {
            self.holds.pop_front();
        }
    }

    /// Returns the total time that drains held the lock before `now`. The caller must have called `forget`
    /// with `now`.
    #[inline]
    fn drained_until(&self, now: u64) -> u64 {
        match self.holds.front() {
            None => self.drained_ps,
            Some(hold) if hold.is_drain => hold.drained_before + now.saturating_sub(hold.begin),
            Some(hold) => hold.drained_before,
        }
    }
}

impl Engine {
    /// Takes a lock for the running CPU. Waits while another CPU holds the lock.
    pub(crate) fn acquire(&self, lock: &VirtualLock) -> Hold {
        let class = self.locks.class(lock);
        let held = &self.cpu().held;
        if cfg!(debug_assertions) {
            held.check(class);
        }
        let hold = match class {
            LockClass::PageSet if lock.take() => Hold::PLAIN,
            LockClass::PageSet => {
                self.park(lock);
                Hold::PLAIN
            }
            _ => self.acquire_queued(lock, class),
        };
        if cfg!(debug_assertions) {
            held.took(class);
        }
        hold
    }

    /// Takes a lock for the running CPU, if the lock is free at this moment of virtual time.
    #[inline]
    pub(crate) fn try_acquire(&self, lock: &VirtualLock) -> Option<Hold> {
        let class = self.locks.class(lock);
        if cfg!(debug_assertions) {
            self.cpu().held.check(class);
        }
        let hold = match class {
            LockClass::PageSet => lock.take().then_some(Hold::PLAIN),
            _ => self.try_acquire_queued(lock, class),
        };
        if cfg!(debug_assertions) && hold.is_some() {
            self.cpu().held.took(class);
        }
        hold
    }

    fn try_acquire_queued(&self, lock: &VirtualLock, class: LockClass) -> Option<Hold> {
        self.sync();
        let slot = self.locks.slot(lock);
        let is_free = {
            let queue = &mut self.locks.queues.borrow_mut()[slot as usize];
            queue.forget(self.cpu().clock.get());
            queue.holds.is_empty()
        };
        (is_free && !lock_is_taken(lock)).then(|| self.acquire_queued(lock, class))
    }

    fn acquire_queued(&self, lock: &VirtualLock, class: LockClass) -> Hold {
        self.sync();
        let slot = self.locks.slot(lock);
        if !lock.take() {
            self.park(lock);
            return Hold::new(slot, self.cpu().clock.get());
        }
        let (me, cpu) = (self.cpu_index(), self.cpu());
        let now = cpu.clock.get();
        let queue = &mut self.locks.queues.borrow_mut()[slot as usize];
        queue.forget(now);
        let line = if queue.last == NONE { 0 } else { self.variation.of(self.line(queue.last, me)) };
        let waiters = queue.holds.len() as u64;
        let free_at = queue.holds.back().map_or(now, |hold| hold.end);
        let since = if waiters == 0 {
            now + self.model.uncontended(self.prices.atomic, line)
        } else {
            free_at + self.model.hand_over(line, self.prices.lock_pass, waiters)
        };
        let behind_drains = queue.drained_ps - queue.drained_until(now);
        queue.last = me;
        self.begin_hold(me, class, since, line, (waiters > 0).then_some((since - now, behind_drains)));
        Hold::new(slot, since)
    }

    /// Suspends the running CPU until the lock's holder passes the lock on to the running CPU.
    #[cold]
    fn park(&self, lock: &VirtualLock) {
        let slot = self.locks.slot(lock);
        let (cpu, since) = (self.cpu_index(), self.cpu().clock.get());
        {
            let queue = &mut self.locks.queues.borrow_mut()[slot as usize];
            queue.forget(since);
            let drained_then = queue.drained_until(since);
            queue.parked.push_back(Parked { cpu, since, drained_then });
        }
        lock.set_wanted(true);
        self.spin();
    }

    /// Records that a CPU holds a lock from `since` on.
    fn begin_hold(&self, cpu: u32, class: LockClass, since: u64, line: u64, waited: Option<(u64, u64)>) {
        let processor = &self.cpus[cpu as usize];
        processor.clock.set(since);
        let scratch = &processor.scratch;
        scratch.lock_line.set(line);
        scratch.lock_wait.set(waited.map_or(0, |(wait, _)| wait));
        let mut tally = self.tally.borrow_mut();
        tally.locks[class as usize].took(waited.map(|(wait, _)| wait));
        if let Some((wait, behind_drains)) = waited {
            scratch.waited.set(scratch.waited.get() + wait);
            scratch.waited_for_drains.set(scratch.waited_for_drains.get() + behind_drains);
        }
        self.note(since ^ u64::from(cpu) << 48 ^ (class as u64) << 60);
    }

    /// Releases a lock. Returns `true` if the lock was passed on to a suspended CPU, so that the lock stays
    /// taken.
    #[inline]
    pub(crate) fn release(&self, lock: &VirtualLock, hold: &Hold, is_plain: bool) -> bool {
        if cfg!(debug_assertions) {
            self.cpu().held.gave(self.locks.class(lock));
        }
        !is_plain && self.release_queued(lock, hold)
    }

    fn release_queued(&self, lock: &VirtualLock, hold: &Hold) -> bool {
        let class = self.locks.class(lock);
        let cpu = self.cpu();
        if class == LockClass::Zone && cpu.scratch.blocks_in_hold.get() == 0 {
            // The allocator reported no blocks that the CPU moved under this lock, for example because the
            // CPU freed a block directly to the zone.
            self.charge(self.prices.give_block);
        }
        let end = cpu.clock.get();
        let slot = self.locks.slot(lock);
        let queue = &mut self.locks.queues.borrow_mut()[slot as usize];
        if hold.slot != NONE {
            let mut tally = self.tally.borrow_mut();
            tally.locks[class as usize].hold_ps += end - hold.since;
            let is_drain = class == LockClass::Zone && cpu.scratch.is_drain.get();
            if is_drain {
                let wait = cpu.scratch.lock_wait.get();
                tally.drains.took((wait > 0).then_some(wait));
                tally.drains.hold_ps += end - hold.since;
            }
            let drained_before = queue.drained_ps;
            queue.drained_ps += if is_drain { end - hold.since } else { 0 };
            queue.holds.push_back(PastHold { begin: hold.since, end, drained_before, is_drain });
        }
        let Some(next) = queue.parked.pop_front() else { return false };
        let waiters = queue.parked.len() as u64 + 1;
        let last = std::mem::replace(&mut queue.last, next.cpu);
        let line = if last == NONE { 0 } else { self.variation.of(self.line(last, next.cpu)) };
        let hand_over = match class {
            LockClass::PageSet => line,
            _ => self.model.hand_over(line, self.prices.lock_pass, waiters),
        };
        let since = next.since.max(end) + hand_over;
        let behind_drains = queue.drained_ps.saturating_sub(next.drained_then);
        lock.set_wanted(!queue.parked.is_empty());
        self.begin_hold(next.cpu, class, since, line, Some((since - next.since, behind_drains)));
        self.hand_over(next.cpu, since);
        true
    }
}

fn lock_is_taken(lock: &VirtualLock) -> bool {
    pageset_core::lock_api::RawMutex::is_locked(lock)
}
