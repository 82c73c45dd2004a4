//! The sizes of this CPU's caches. From the size of the second-level cache, the crate chooses how much of a
//! page should stay in the cache.

/// Sizes of the caches of one core.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caches {
    /// Bytes of the first-level data cache.
    pub l1_bytes: usize,
    /// Bytes of the second-level cache.
    pub l2_bytes: usize,
}

impl Caches {
    /// The sizes to use if the CPU does not report its cache sizes: a guess for small cores.
    pub const GUESS: Self = Self { l1_bytes: 32 << 10, l2_bytes: 512 << 10 };

    /// The sizes that the CPU reports, or [`Caches::GUESS`] if the CPU does not report both sizes. `detect`
    /// asks only x86-64 CPUs.
    #[must_use]
    pub fn detect() -> Self {
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        {
            let level = crate::arch::cache_bytes;
            if let (Some(l1_bytes), Some(l2_bytes)) = (level(1), level(2)) {
                return Self { l1_bytes, l2_bytes };
            }
        }
        Self::GUESS
    }
}
