//! Counts that are read without a lock. Each is one machine word, since 32-bit machines lack 64-bit atomics.
//!
//! A word can count frames, because each frame has nine bytes of tables in the same address space. A
//! watermark that does not fit is stored as the largest value. No zone has that many free frames, so the
//! watermark keeps its meaning. Event counts wrap around on 32-bit machines.

use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// A count in one word.
#[derive(Debug)]
pub(crate) struct Count(AtomicUsize);

impl Count {
    pub(crate) const fn new() -> Self {
        Self(AtomicUsize::new(0))
    }

    #[inline]
    pub(crate) fn get(&self) -> u64 {
        self.0.load(Relaxed) as u64
    }

    /// Sets the count, or the largest value if it does not fit.
    #[inline]
    pub(crate) fn set(&self, count: u64) {
        self.0.store(usize::try_from(count).unwrap_or(usize::MAX), Relaxed);
    }

    /// Counts one more event.
    #[inline]
    pub(crate) fn add_one(&self) {
        self.0.fetch_add(1, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_is_kept_as_far_as_a_word_reaches() {
        let count = Count::new();
        count.set(u64::from(u32::MAX) - 1);
        count.add_one();
        assert_eq!(count.get(), u64::from(u32::MAX));
        count.set(u64::MAX);
        assert_eq!(count.get(), usize::MAX as u64);
    }
}
