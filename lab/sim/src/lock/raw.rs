//! The lock itself: a flag, and a reference to the lock's queue.
#![expect(unsafe_code, reason = "lock_api's RawMutex is an unsafe trait")]

use std::cell::RefCell;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use pageset_core::lock_api::RawMutex;

use super::LockClass;
use crate::engine::{Engine, current};

/// The flag of a lock that is free.
const FREE: u8 = 0;
/// The flag of a lock that a CPU holds, while no suspended CPU waits for the lock.
const TAKEN: u8 = 1;
/// The flag of a lock that a CPU holds, while suspended CPUs wait for the lock.
pub(super) const WANTED: u8 = 2;

/// The number in place of the class of a lock that was made without a class. `pageset-core` creates its locks
/// from a constant, which cannot contain the class.
const UNKNOWN: u8 = u8::MAX;

/// A raw lock. A CPU takes the lock at once, or waits in the virtual time of the simulation that runs on this
/// OS thread.
///
/// Outside a simulation no CPU can wait. Taking a held lock outside a simulation panics, because the lock's
/// holder is suspended and would never release the lock.
#[derive(Debug)]
pub struct VirtualLock {
    flag: AtomicU8,
    class: AtomicU8,
    /// The place of the lock's queue in the simulation's lock table; see [`LockTable`](super::LockTable).
    pub(super) place: AtomicU64,
}

/// One acquisition of a lock.
#[derive(Debug)]
pub struct Hold {
    /// The slot of the lock's queue; `u32::MAX` if the lock has no queue.
    pub(super) slot: u32,
    /// Virtual time at which the CPU got the lock, in picoseconds.
    pub(super) since: u64,
    /// A `Hold` must stay with the CPU that took the lock, so a `Hold` is not `Send`.
    _not_send: PhantomData<*const ()>,
}

impl Hold {
    /// A hold of a lock without a queue.
    pub(super) const PLAIN: Self = Self::new(u32::MAX, 0);

    pub(super) const fn new(slot: u32, since: u64) -> Self {
        Self { slot, since, _not_send: PhantomData }
    }
}

impl VirtualLock {
    /// Makes a free lock of a class.
    #[must_use]
    pub const fn of(class: LockClass) -> Self {
        Self { flag: AtomicU8::new(FREE), class: AtomicU8::new(class as u8), place: AtomicU64::new(0) }
    }

    /// Returns the lock's class. Returns `None` if the lock was made without a class and has not been used
    /// yet.
    #[inline]
    pub(super) fn class(&self) -> Option<LockClass> {
        LockClass::ALL.get(usize::from(self.class.load(Ordering::Relaxed))).copied()
    }

    pub(super) fn set_class(&self, class: LockClass) {
        self.class.store(class as u8, Ordering::Relaxed);
    }

    /// Takes the lock if the lock is free. Returns whether this call took the lock.
    #[inline]
    pub(super) fn take(&self) -> bool {
        self.flag.compare_exchange(FREE, TAKEN, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    /// Records whether suspended CPUs wait for the lock, which a CPU must hold.
    pub(super) fn set_wanted(&self, wanted: bool) {
        self.flag.store(if wanted { WANTED } else { TAKEN }, Ordering::Relaxed);
    }
}

// SAFETY: only two functions give a lock to a CPU. `take` succeeds for only one caller between two stores of
// `FREE`. `Engine::release` takes the lock from its holder and gives it to one waiting CPU, while the flag
// stays set. `Hold` is not `Send`.
unsafe impl RawMutex for VirtualLock {
    const INIT: Self =
        Self { flag: AtomicU8::new(FREE), class: AtomicU8::new(UNKNOWN), place: AtomicU64::new(0) };
    type Guard = Hold;

    #[inline]
    fn lock(&self) -> Hold {
        current::with(|engine| match engine {
            Some(engine) => engine.acquire(self),
            None if self.take() => Hold::PLAIN,
            None => panic!("a virtual lock is taken outside a simulation while a suspended CPU holds it"),
        })
    }

    #[inline]
    fn try_lock(&self) -> Option<Hold> {
        current::with(|engine| match engine {
            Some(engine) => engine.try_acquire(self),
            None => self.take().then_some(Hold::PLAIN),
        })
    }

    #[inline]
    unsafe fn unlock(&self, hold: Hold) {
        let is_plain = hold.slot == u32::MAX && self.flag.load(Ordering::Relaxed) == TAKEN;
        let passed_on =
            current::with(|engine| engine.is_some_and(|engine| engine.release(self, &hold, is_plain)));
        if !passed_on {
            self.flag.store(FREE, Ordering::Release);
        }
    }

    fn is_locked(&self) -> bool {
        self.flag.load(Ordering::Relaxed) != FREE
    }
}

/// A spin lock that guards no value. A workload takes this lock where a kernel would take a lock.
#[derive(Debug)]
pub struct Spin {
    lock: VirtualLock,
    hold: RefCell<Option<Hold>>,
}

impl Spin {
    /// Makes a free lock of a class.
    #[must_use]
    pub const fn new(class: LockClass) -> Self {
        Self { lock: VirtualLock::of(class), hold: RefCell::new(None) }
    }

    /// Takes the lock. Waits while another CPU holds the lock. If the lock protects an LRU list, the CPU also
    /// pays for fetching the list's head and counters.
    pub fn lock(&self) {
        let hold = self.lock.lock();
        self.hold.replace(Some(hold));
        if self.lock.class() == Some(LockClass::Lru) {
            current::with(|engine| engine.into_iter().for_each(Engine::fetch_behind_lock));
        }
    }

    /// Releases the lock.
    ///
    /// # Panics
    /// Panics if the lock is not held.
    pub fn unlock(&self) {
        let hold = self.hold.take().expect("a CPU unlocks a spin lock that no CPU holds");
        // SAFETY: `lock` stored this hold when it took the lock. The hold has just been taken out of the
        // cell, so the lock is released only once.
        unsafe { self.lock.unlock(hold) };
    }
}

#[cfg(test)]
mod tests {
    use super::super::mutex;
    use super::*;

    #[test]
    fn outside_a_simulation_it_excludes() {
        let lock = mutex(LockClass::Other, 1);
        let held = lock.lock();
        assert!(lock.is_locked() && lock.try_lock().is_none());
        drop(held);
        assert_eq!(*lock.try_lock().unwrap(), 1);
    }

    #[test]
    #[should_panic(expected = "suspended CPU holds it")]
    fn outside_a_simulation_nobody_waits() {
        let lock = mutex(LockClass::Other, 1);
        let _held = lock.lock();
        let _again = lock.lock();
    }
}
