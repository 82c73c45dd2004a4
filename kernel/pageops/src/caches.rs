//! The caches of this CPU. They decide how much of a page is worth keeping in them.

/// Sizes of the caches of one core.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caches {
    /// First level, data.
    pub l1_bytes: usize,
    /// Second level.
    pub l2_bytes: usize,
}

impl Caches {
    /// Sizes that are assumed if the CPU does not report them: a guess, for small cores.
    pub const GUESS: Self = Self { l1_bytes: 32 << 10, l2_bytes: 512 << 10 };

    /// The sizes that the CPU reports, else [`Caches::GUESS`]. Only x86-64 reports them.
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
