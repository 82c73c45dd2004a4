//! Lets shuttle choose the thread at every step that touches shared data.

use pageset_core::lock_api::{GuardSend, RawMutex};
use shuttle::sync::atomic::{AtomicBool, Ordering};
use shuttle::thread;

use crate::host::Scheduler;

/// A lock for tests under shuttle. At each operation on the lock, shuttle may switch to another thread.
pub(crate) struct ShuttleLock(AtomicBool);

// SAFETY: between two unlocks, `swap` returns `false` to only one caller. So only one caller holds the lock.
unsafe impl RawMutex for ShuttleLock {
    const INIT: Self = Self(AtomicBool::new(false));
    type Guard = GuardSend;

    fn lock(&self) -> GuardSend {
        loop {
            if let Some(guard) = self.try_lock() {
                return guard;
            }
            thread::yield_now();
        }
    }

    fn try_lock(&self) -> Option<GuardSend> {
        (!self.0.swap(true, Ordering::Acquire)).then_some(GuardSend::new())
    }

    unsafe fn unlock(&self, _: GuardSend) {
        self.0.store(false, Ordering::Release);
    }

    fn is_locked(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Leaves the scheduling to shuttle.
pub(crate) struct Shuttle;

impl Scheduler for Shuttle {
    type RawLock = ShuttleLock;

    fn step() {
        AtomicBool::new(false).load(Ordering::Relaxed);
    }

    fn relax() {
        thread::yield_now();
    }
}

/// Runs `test` under `schedules` schedules. In half of the schedules, shuttle chooses the thread of each step
/// at random. In the other half, threads have priorities that change a few times (Burckhardt et al., 2010).
/// With priorities, one thread can make many steps while another thread makes no step.
pub(crate) fn check(schedules: usize, test: impl Fn() + Send + Sync + Clone + 'static) {
    shuttle::check_random(test.clone(), schedules.div_ceil(2));
    shuttle::check_pct(test, schedules.div_ceil(2), 3);
}

/// The number of schedules for each of `cases` cases. The number of schedules is `SHUTTLE_ITERATIONS` divided
/// by `cases`, or `default` if the variable `SHUTTLE_ITERATIONS` is not set.
pub(crate) fn schedules(cases: usize, default: usize) -> usize {
    let given = std::env::var("SHUTTLE_ITERATIONS").ok().and_then(|number| number.parse::<usize>().ok());
    given.map_or(default, |all| (all / cases).max(1))
}
