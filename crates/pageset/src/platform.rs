//! The core's world in user space.

use pageset_core::Platform;

/// Locks that spin for a moment and then sleep; no event sink.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UserPlatform;

impl Platform for UserPlatform {
    type RawLock = parking_lot::RawMutex;
    type Events = ();

    #[inline]
    fn events(&self) -> &() {
        &()
    }
}
