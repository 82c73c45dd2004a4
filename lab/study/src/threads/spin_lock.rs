//! A readers-writer spin lock that guards no value. Workloads take a `SpinLock` where a kernel would take a
//! lock.

use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use crate::target::Hold;

/// The state of a lock that one thread holds exclusively. Any state except `ALONE` is the number of threads
/// that share the lock.
const ALONE: u32 = u32::MAX;
/// Number of times that a thread reads the lock before it yields its CPU to other threads. Guess: 200 reads
/// take about a microsecond.
const SPINS: u32 = 200;

/// A spin lock without a queue: the thread that first sees the lock free gets it.
#[derive(Debug, Default)]
pub(super) struct SpinLock(AtomicU32);

impl SpinLock {
    pub(super) fn lock(&self, hold: Hold) {
        let mut spins = 0_u32;
        while !self.try_lock(hold) {
            spins += 1;
            if spins.is_multiple_of(SPINS) {
                std::thread::yield_now();
            } else {
                std::hint::spin_loop();
            }
        }
    }

    fn try_lock(&self, hold: Hold) -> bool {
        let now = self.0.load(Relaxed);
        let next = match hold {
            Hold::Exclusive if now == 0 => ALONE,
            Hold::Shared if now < ALONE - 1 => now + 1,
            _ => return false,
        };
        self.0.compare_exchange_weak(now, next, Acquire, Relaxed).is_ok()
    }

    pub(super) fn unlock(&self, hold: Hold) {
        match hold {
            Hold::Exclusive => self.0.store(0, Release),
            Hold::Shared => drop(self.0.fetch_sub(1, Release)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_holds_it_or_several_share_it() {
        let spin_lock = SpinLock::default();
        spin_lock.lock(Hold::Shared);
        spin_lock.lock(Hold::Shared);
        assert!(!spin_lock.try_lock(Hold::Exclusive));
        spin_lock.unlock(Hold::Shared);
        spin_lock.unlock(Hold::Shared);
        spin_lock.lock(Hold::Exclusive);
        assert!(!spin_lock.try_lock(Hold::Shared) && !spin_lock.try_lock(Hold::Exclusive));
        spin_lock.unlock(Hold::Exclusive);
        spin_lock.lock(Hold::Shared);
    }
}
