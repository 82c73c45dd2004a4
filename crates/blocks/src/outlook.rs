//! What a CPU saw of its zone when it looked last: that memory is far above the watermarks, and how many whole pageblocks the CPU
//! may keep then.
//!
//! The zone's counts change whenever a CPU takes whole pageblocks. Who goes from one pageblock of its own to the next need not look
//! at them: it took that memory out of the zone before. Near the watermarks everybody looks each time.

use crate::atomic::{AtomicU32, Relaxed, constant};

/// One CPU's view of one zone: how many whole pageblocks it may keep; 0 if it has to look.
#[derive(Debug)]
pub(crate) struct Outlook(AtomicU32);

impl Outlook {
    constant! {
        pub(crate) fn new() -> Self {
            Self(AtomicU32::new(0))
        }
    }

    /// The CPU has looked, and there is plenty.
    pub(crate) fn note_plenty(&self, spares_max: usize) {
        self.0.store(u32::try_from(spares_max).unwrap_or(u32::MAX), Relaxed);
    }

    /// The zone is not as it was, or memory is short: the CPU has to look.
    pub(crate) fn forget(&self) {
        if self.0.load(Relaxed) != 0 {
            self.0.store(0, Relaxed);
        }
    }

    /// Whole pageblocks that the CPU may keep at hand, if it need not look.
    pub(crate) fn spares_max(&self) -> Option<usize> {
        let most = self.0.load(Relaxed);
        (most > 0).then_some(most as usize)
    }

    /// Whether the zone was so far above its watermarks that no request need look at them.
    #[inline]
    pub(crate) fn is_plenty(&self) -> bool {
        self.0.load(Relaxed) != 0
    }

    /// Damages it.
    #[cfg(all(test, not(any(loom, miri))))]
    pub(crate) fn set(&self, word: u32) {
        self.0.store(word, Relaxed);
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn who_has_not_looked_knows_nothing() {
        let outlook = Outlook::new();
        assert_eq!((outlook.spares_max(), outlook.is_plenty()), (None, false));
        outlook.note_plenty(usize::MAX);
        assert_eq!((outlook.spares_max(), outlook.is_plenty()), (Some(u32::MAX as usize), true));
        outlook.forget();
        assert_eq!((outlook.spares_max(), outlook.is_plenty()), (None, false));
    }
}
