//! The lock of a world with one thread: a flag.
#![expect(
    unsafe_code,
    reason = "lock_api's RawMutex is an unsafe trait; this file is the crate's only unsafe code"
)]

use std::cell::Cell;

use pageset_core::Platform;
use pageset_core::lock_api::{GuardNoSend, RawMutex};

/// A lock that notices when it is taken twice. It is not `Sync`, so what it protects stays on one thread.
#[derive(Debug)]
pub(super) struct Flag(Cell<bool>);

// SAFETY: `lock` and `try_lock` give a guard only if the flag was clear, and set it; `unlock` clears it. The type is
// not `Sync`, so no other thread can look at the flag in between.
unsafe impl RawMutex for Flag {
    const INIT: Self = Self(Cell::new(false));
    type Guard = GuardNoSend;

    #[inline]
    fn lock(&self) -> GuardNoSend {
        self.try_lock().expect("one thread takes no lock twice")
    }

    #[inline]
    fn try_lock(&self) -> Option<GuardNoSend> {
        (!self.0.replace(true)).then_some(GuardNoSend::new())
    }

    #[inline]
    unsafe fn unlock(&self, _: GuardNoSend) {
        self.0.set(false);
    }

    fn is_locked(&self) -> bool {
        self.0.get()
    }
}

/// The world of a replay: the recording says which CPU acts, one after another; nobody listens to events.
#[derive(Clone, Copy, Debug)]
pub(super) struct OneThread;

impl Platform for OneThread {
    type RawLock = Flag;
    type Events = ();

    fn events(&self) -> &() {
        &()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_flag_excludes() {
        let lock = pageset_core::lock_api::Mutex::<Flag, u8>::new(1);
        let held = lock.lock();
        assert!(lock.is_locked() && lock.try_lock().is_none());
        drop(held);
        assert_eq!(*lock.try_lock().unwrap(), 1);
    }
}
