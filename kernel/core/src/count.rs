//! Counts that CPUs read without a lock. Each count is one machine word, because 32-bit machines lack 64-bit
//! atomics.
//!
//! A word can count all frames, because the tables take nine bytes of the same address space for each frame.
//! A watermark that does not fit into a word is stored as the largest value. The largest value has the same
//! meaning as the watermark, because no zone has so many free frames. Counts of events wrap around on 32-bit
//! machines.

use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// A count that is stored in one machine word.
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

    /// Sets the count to `count`, or to the largest value if `count` does not fit.
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
