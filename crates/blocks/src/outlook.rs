//! What a CPU saw of its zone when it looked last: how many whole pageblocks it may keep, and whether memory is short.
//!
//! The zone's counts change whenever a CPU takes whole pageblocks. Who goes from one pageblock of its own to the next need not look
//! at them: it took that memory out of the zone before.

use crate::atomic::{AtomicU32, Relaxed, constant};

/// The zone was far above its watermarks.
const ROOMY: u32 = 1 << 31;

/// One CPU's view of one zone; 0 if it has to look.
#[derive(Debug)]
pub(crate) struct Outlook(AtomicU32);

impl Outlook {
    constant! {
        pub(crate) fn new() -> Self {
            Self(AtomicU32::new(0))
        }
    }

    /// The CPU has looked.
    pub(crate) fn note(&self, spares_max: usize, room: Room) {
        let roomy = match room {
            Room::Plenty => ROOMY,
            Room::Short => 0,
        };
        self.0.store((spares_max as u32).min(ROOMY - 1) | roomy, Relaxed);
    }

    /// The zone is not as it was: the CPU has to look.
    pub(crate) fn forget(&self) {
        if self.0.load(Relaxed) != 0 {
            self.0.store(0, Relaxed);
        }
    }

    /// Whole pageblocks that the CPU may keep at hand, if it has looked.
    pub(crate) fn spares_max(&self) -> Option<usize> {
        let most = self.0.load(Relaxed) & !ROOMY;
        (most > 0).then_some(most as usize)
    }

    /// Whether the zone was so far above its watermarks that no request need look at them.
    #[inline]
    pub(crate) fn is_roomy(&self) -> bool {
        self.0.load(Relaxed) & ROOMY != 0
    }

    /// Damages it.
    #[cfg(all(test, not(any(loom, miri))))]
    pub(crate) fn set(&self, word: u32) {
        self.0.store(word, Relaxed);
    }
}

/// How much memory a zone has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Room {
    /// Far more than its watermarks.
    Plenty,
    /// So little that requests have to compare.
    Short,
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn who_has_not_looked_knows_nothing() {
        let outlook = Outlook::new();
        assert_eq!((outlook.spares_max(), outlook.is_roomy()), (None, false));
        outlook.note(7, Room::Short);
        assert_eq!((outlook.spares_max(), outlook.is_roomy()), (Some(7), false));
        outlook.note(usize::MAX, Room::Plenty);
        assert_eq!((outlook.spares_max(), outlook.is_roomy()), (Some(ROOMY as usize - 1), true));
        outlook.forget();
        assert_eq!((outlook.spares_max(), outlook.is_roomy()), (None, false));
    }
}
