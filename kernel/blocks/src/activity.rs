//! Whether a CPU uses a zone. An idle CPU keeps no pageblock reserved.

use crate::access::{Access, Shared, update};
use crate::atomic::{AtomicU32, Relaxed, constant};

const IDLE: u32 = 0;
/// The CPU was active before the last tick.
const RECENT: u32 = 1;
const ACTIVE: u32 = 2;
/// The CPU is off-line. It never becomes active, so it keeps no pageblock.
const OFFLINE: u32 = 3;

/// Whether a CPU was active in a zone lately. Frees are not noted, and neither are allocations from the row
/// that the CPU used last, so that these stay cheap.
#[derive(Debug)]
pub(crate) struct Activity(AtomicU32);

impl Activity {
    constant! {
        pub(crate) fn new() -> Self {
            Self(AtomicU32::new(IDLE))
        }
    }

    /// Notes that the CPU is active.
    #[inline]
    pub(crate) fn note<A: Access>(&self) {
        if self.0.load(Relaxed) != ACTIVE {
            self.change::<A>(|now| matches!(now, IDLE | RECENT).then_some(ACTIVE));
        }
    }

    /// Notes that a tick passes. Returns whether the CPU was active since the last tick.
    pub(crate) fn age(&self) -> bool {
        let age = |now: u32| match now {
            ACTIVE => Some(RECENT),
            RECENT => Some(IDLE),
            _ => None,
        };
        self.change::<Shared>(age) == Some(ACTIVE)
    }

    /// Makes the CPU count as idle.
    pub(crate) fn forget(&self) {
        self.change::<Shared>(|now| matches!(now, RECENT | ACTIVE).then_some(IDLE));
    }

    /// Returns whether the CPU was active since the last tick but one.
    #[cfg(test)]
    fn is_recent(&self) -> bool {
        matches!(self.0.load(Relaxed), RECENT | ACTIVE)
    }

    pub(crate) fn set_offline(&self) {
        self.0.store(OFFLINE, Relaxed);
    }

    pub(crate) fn set_online(&self) {
        self.change::<Shared>(|now| (now == OFFLINE).then_some(IDLE));
    }

    /// Changes the word by `change`. Returns the word before, or `None` if nothing changed.
    fn change<A: Access>(&self, change: impl Fn(u32) -> Option<u32>) -> Option<u32> {
        update::<A, _>(&self.0, Relaxed, change).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_ticks_without_work_make_a_cpu_idle() {
        let activity = Activity::new();
        assert!(!activity.is_recent());
        activity.note::<Shared>();
        assert!(activity.age() && activity.is_recent());
        assert!(!activity.age() && !activity.is_recent());
        activity.note::<Shared>();
        activity.forget();
        assert!(!activity.is_recent());
    }

    #[test]
    fn a_cpu_that_is_off_line_is_never_active() {
        let activity = Activity::new();
        activity.set_offline();
        activity.note::<Shared>();
        assert!(!activity.is_recent() && !activity.age());
        activity.set_online();
        activity.note::<Shared>();
        assert!(activity.is_recent());
    }
}
