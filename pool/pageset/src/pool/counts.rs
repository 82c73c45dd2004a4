//! Counters of events off the fast path. The fast path has its own counters in the heads of its arrays.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Counters of events off the fast path.
#[derive(Default)]
pub(crate) struct Counts {
    /// Frames that slow paths handed out.
    pub(super) slow_alloc: AtomicU64,
    pub(super) array_drains: AtomicU64,
    pub(super) array_drains_refused: AtomicU64,
    pub(super) bad_frees: AtomicU64,
    pub(super) cleared: AtomicU64,
    pub(super) returned: AtomicU64,
    pub(super) return_nanos: AtomicU64,
    pub(super) prezeroed: AtomicU64,
}

impl Counts {
    pub(super) fn note_slow_alloc(&self, frames: u32) {
        self.slow_alloc.fetch_add(u64::from(frames), Relaxed);
    }

    pub(super) fn note_cleared(&self, frames: u32) {
        self.cleared.fetch_add(u64::from(frames), Relaxed);
    }

    pub(super) fn note_bad_frees(&self, blocks: u64) {
        self.bad_frees.fetch_add(blocks, Relaxed);
    }
}
