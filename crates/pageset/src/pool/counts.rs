//! The capacity, and what happened off the fast path.

use std::sync::atomic::{
    AtomicU64,
    Ordering::{Relaxed, SeqCst},
};

use crate::background::Bell;

/// What happened off the fast path, and the capacity. The fast path itself counts in its arrays' heads.
pub(crate) struct Counts {
    /// Frames that may be out of the core.
    pub(super) capacity: AtomicU64,
    /// Frames that are: handed out, or in arrays. Whoever changes it rings the bell afterwards.
    out: AtomicU64,
    /// How the pool's thread hears that frames come and go.
    pub(crate) bell: Bell,
    /// Frames handed out by slow paths.
    pub(super) slow_alloc: AtomicU64,
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
            bell: Bell::default(),
            slow_alloc: zero(),
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

    pub(super) fn note_bad_frees(&self, blocks: u64) {
        self.bad_frees.fetch_add(blocks, Relaxed);
    }

    /// Frames that are out: handed out, or in arrays.
    pub(super) fn out(&self) -> u64 {
        self.out.load(SeqCst)
    }

    /// Claims part of the capacity; `false` if there is not so much left. A claim that fails changes nothing, not even for
    /// a moment, in which another one would find less than there is.
    pub(super) fn claim(&self, frames: u64) -> bool {
        let capacity = self.capacity.load(Relaxed);
        let within = |out: u64| out.checked_add(frames).filter(|out| *out <= capacity);
        let is_claimed = self.out.fetch_update(SeqCst, Relaxed, within).is_ok();
        if is_claimed {
            self.bell.ring();
        }
        is_claimed
    }

    /// Claims frames of which somebody has hold already.
    pub(super) fn reclaim(&self, frames: u64) {
        self.out.fetch_add(frames, SeqCst);
        self.bell.ring();
    }

    pub(super) fn unclaim(&self, frames: u64) {
        self.out.fetch_sub(frames, SeqCst);
        self.bell.ring();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use super::*;

    #[test]
    fn a_claim_beyond_the_capacity_takes_nothing_from_others() {
        let counts = Counts::new(8);
        let (begun, ends) = (AtomicBool::new(false), AtomicBool::new(false));
        let refused = std::thread::scope(|scope| {
            scope.spawn(|| {
                while !ends.load(Relaxed) {
                    assert!(!counts.claim(9));
                    begun.store(true, Relaxed);
                }
            });
            while !begun.load(Relaxed) {
                std::thread::yield_now();
            }
            let claims = 0..if cfg!(miri) { 100 } else { 1_000_000 };
            let is_refused = |_: &u32| {
                let is_claimed = counts.claim(8);
                if is_claimed {
                    counts.unclaim(8);
                }
                !is_claimed
            };
            let refused = claims.filter(is_refused).count();
            ends.store(true, Relaxed);
            refused
        });
        assert_eq!((refused, counts.out()), (0, 0), "there was room, but for the other's claim");
        assert!(!counts.claim(u64::MAX) && counts.claim(1) && !counts.claim(u64::MAX));
    }
}
