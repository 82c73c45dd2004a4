//! Whether a CPU uses a zone. An idle CPU keeps no pageblock reserved.

use crate::access::{Access, Shared, update};
use crate::atomic::{AtomicU32, Relaxed, constant};

/// Whether a CPU was active in a zone lately. Frees are not noted. Allocations of the block that the CPU
/// freed last, or from the row that the CPU used last, are not noted either. So frees and such allocations
/// stay cheap.
#[derive(Debug)]
pub(crate) struct Activity(AtomicU32);

#[derive(Clone, Copy)]
enum Since {
    /// The CPU was not active since the last tick.
    Idle,
    Active,
    /// The CPU is off-line. An off-line CPU never becomes active, so each tick returns its pageblocks.
    Offline,
}

impl Activity {
    constant! {
        pub(crate) fn new() -> Self {
            Self(AtomicU32::new(Since::Idle as u32))
        }
    }

    /// Notes that the CPU is active.
    #[inline]
    pub(crate) fn note<A: Access>(&self) {
        if self.0.load(Relaxed) != Since::Active as u32 {
            self.change::<A>(Since::Idle, Since::Active);
        }
    }

    /// Begins to wait for activity. Returns whether the CPU was active since the last call.
    pub(crate) fn age(&self) -> bool {
        self.change::<Shared>(Since::Active, Since::Idle)
    }

    pub(crate) fn set_offline(&self) {
        self.0.store(Since::Offline as u32, Relaxed);
    }

    pub(crate) fn set_online(&self) {
        self.change::<Shared>(Since::Offline, Since::Idle);
    }

    fn change<A: Access>(&self, from: Since, to: Since) -> bool {
        update::<A, _>(&self.0, Relaxed, |now| (now == from as u32).then_some(to as u32)).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_tick_without_work_finds_the_cpu_idle() {
        let activity = Activity::new();
        assert!(!activity.age());
        activity.note::<Shared>();
        assert!(activity.age() && !activity.age());
    }

    #[test]
    fn a_cpu_that_is_off_line_is_never_active() {
        let activity = Activity::new();
        activity.set_offline();
        activity.note::<Shared>();
        assert!(!activity.age());
        activity.set_online();
        activity.note::<Shared>();
        assert!(activity.age());
    }
}
