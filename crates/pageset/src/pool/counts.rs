//! The capacity, and what happened off the fast path.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// What happened off the fast path, and the capacity. The fast path itself counts in its arrays' heads.
pub(crate) struct Counts {
    /// Frames that may be out of the core.
    pub(super) capacity: AtomicU64,
    /// Frames that are: handed out, or in arrays.
    pub(super) out: AtomicU64,
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

    /// Claims frames of which somebody has hold already.
    pub(super) fn reclaim(&self, frames: u64) {
        self.out.fetch_add(frames, Relaxed);
    }

    pub(super) fn unclaim(&self, frames: u64) {
        self.out.fetch_sub(frames, Relaxed);
    }
}
