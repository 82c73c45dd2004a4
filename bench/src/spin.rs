//! A spin lock with nothing in it but the atomic: what a lock costs at least.

use std::sync::atomic::{AtomicBool, Ordering};

use pageset_core::lock_api::{GuardSend, RawMutex};

/// A test-and-set lock: one exchange to take it, one store to give it back.
#[derive(Debug)]
pub struct Spin(AtomicBool);

// SAFETY: an exchange of false for true succeeds for one caller only until `unlock` stores false, and its acquire sees
// what was written before the release of that store.
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
                std::hint::spin_loop();
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

    #[inline]
    fn is_locked(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
