//! A minimal spin lock: its cost is the least that a lock can cost.

use core::sync::atomic::{AtomicBool, Ordering};

use pageset_core::lock_api::{GuardSend, RawMutex};

/// A test-and-set lock: one exchange takes it, one store releases it.
#[derive(Debug)]
pub struct Spin(AtomicBool);

// SAFETY: only one caller's exchange of false for true succeeds until `unlock` stores false. Its acquire
// pairs with the release of that store.
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
                core::hint::spin_loop();
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
