//! The number of frames that users and arrays have, and its limit.

use std::sync::atomic::{
    AtomicU64,
    Ordering::{Relaxed, SeqCst},
};

use crate::bell::Bell;

/// The pool's capacity. A frame that a user or an array has is *out*, and is charged to the capacity.
pub(crate) struct Capacity {
    /// The most frames that users and arrays may have.
    limit: AtomicU64,
    /// The number of frames that users and arrays have. A thread that changes the number of charged frames
    /// rings the bell afterwards.
    out: AtomicU64,
    /// The bell that wakes the pool's thread when the number of charged frames changes.
    pub(crate) bell: Bell,
}

impl Capacity {
    pub(crate) fn new(limit: u64) -> Self {
        Self { limit: AtomicU64::new(limit), out: AtomicU64::new(0), bell: Bell::default() }
    }

    pub(super) fn limit(&self) -> u64 {
        self.limit.load(Relaxed)
    }

    pub(super) fn set_limit(&self, frames: u64) {
        self.limit.store(frames, Relaxed);
    }

    /// The number of frames that users and arrays have.
    pub(super) fn out(&self) -> u64 {
        self.out.load(SeqCst)
    }

    /// The number of further frames that users and arrays may get.
    pub(super) fn left(&self) -> u64 {
        self.limit().saturating_sub(self.out.load(Relaxed))
    }

    /// Charges frames that are about to go to a user or an array. Changes nothing and returns `false` if the
    /// capacity has no room for all these frames. A refused charge does not raise the number of charged
    /// frames even for a moment, so a refused charge cannot make another thread's charge fail.
    pub(super) fn try_charge(&self, frames: u64) -> bool {
        let limit = self.limit();
        let within = |out: u64| out.checked_add(frames).filter(|out| *out <= limit);
        let is_charged = self.out.fetch_update(SeqCst, Relaxed, within).is_ok();
        if is_charged {
            self.bell.ring();
        }
        is_charged
    }

    /// Charges frames that a user already holds, even beyond the capacity.
    pub(super) fn charge(&self, frames: u64) {
        self.out.fetch_add(frames, SeqCst);
        self.bell.ring();
    }

    /// Sets the number of frames that users and arrays have.
    pub(super) fn set_out(&self, frames: u64) {
        self.out.store(frames, SeqCst);
        self.bell.ring();
    }

    /// Ends the charge of frames that came back to the base.
    pub(super) fn uncharge(&self, frames: u64) {
        self.out.fetch_sub(frames, SeqCst);
        self.bell.ring();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use super::*;

    #[test]
    fn a_charge_beyond_the_capacity_takes_nothing_from_others() {
        let capacity = Capacity::new(8);
        let (begun, ends) = (AtomicBool::new(false), AtomicBool::new(false));
        let refused = std::thread::scope(|scope| {
            scope.spawn(|| {
                while !ends.load(Relaxed) {
                    assert!(!capacity.try_charge(9));
                    begun.store(true, Relaxed);
                }
            });
            while !begun.load(Relaxed) {
                std::thread::yield_now();
            }
            let charges = 0..crate::sys::TEST_ROUNDS * 50;
            let is_refused = |_: &u32| {
                let is_charged = capacity.try_charge(8);
                if is_charged {
                    capacity.uncharge(8);
                }
                !is_charged
            };
            let refused = charges.filter(is_refused).count();
            ends.store(true, Relaxed);
            refused
        });
        assert_eq!((refused, capacity.out()), (0, 0), "there was room, but for the other's charge");
        assert!(!capacity.try_charge(u64::MAX) && capacity.try_charge(1) && !capacity.try_charge(u64::MAX));
    }
}
