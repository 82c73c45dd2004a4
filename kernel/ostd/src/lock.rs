//! The lock of zones and page sets.
#![expect(unsafe_code, reason = "`RawMutex` is an unsafe trait")]

use core::hint::spin_loop;
use core::sync::atomic::{AtomicBool, Ordering};

use pageset_core::lock_api::{GuardNoSend, RawMutex};

// ANCHOR: lock
/// A spin lock. It does not disable interrupts: they are already off during each operation that takes it.
#[derive(Debug)]
pub struct SpinLock(AtomicBool);

// SAFETY: the lock is held from a successful exchange of false for true, which acquires, until the store of
// false, which releases it.
unsafe impl RawMutex for SpinLock {
    const INIT: Self = Self(AtomicBool::new(false));
    type Guard = GuardNoSend;

    #[inline]
    fn lock(&self) -> GuardNoSend {
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
    fn try_lock(&self) -> Option<GuardNoSend> {
        let taken = self.0.compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed);
        taken.is_ok().then_some(GuardNoSend::new())
    }

    #[inline]
    unsafe fn unlock(&self, _: GuardNoSend) {
        self.0.store(false, Ordering::Release);
    }

    fn is_locked(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
// ANCHOR_END: lock
