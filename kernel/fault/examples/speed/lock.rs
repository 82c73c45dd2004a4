//! A spin lock like the spin locks of kernels. With a lock that puts threads to sleep, the program would
//! measure the system's futex instead.

use std::hint::spin_loop;
use std::sync::atomic::{AtomicBool, Ordering};

use pageset_core::lock_api::{GuardSend, RawMutex};

/// A test-and-test-and-set lock.
pub(crate) struct Spin(AtomicBool);

// SAFETY: between two unlocks, `swap` returns `false` to only one caller. So only one caller holds the lock.
unsafe impl RawMutex for Spin {
    const INIT: Self = Self(AtomicBool::new(false));
    type Guard = GuardSend;

    #[inline]
    fn lock(&self) -> GuardSend {
        loop {
            if let Some(guard) = self.try_lock() {
                return guard;
            }
            while self.is_locked() {
                spin_loop();
            }
        }
    }

    #[inline]
    fn try_lock(&self) -> Option<GuardSend> {
        (!self.0.swap(true, Ordering::Acquire)).then_some(GuardSend::new())
    }

    #[inline]
    unsafe fn unlock(&self, _: GuardSend) {
        self.0.store(false, Ordering::Release);
    }

    fn is_locked(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
