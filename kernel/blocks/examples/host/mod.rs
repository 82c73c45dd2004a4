//! A host for `pageset-core` that keeps no events.

use pageset_core::Platform;

pub(crate) struct Host;

impl Platform for Host {
    type RawLock = parking_lot::RawMutex;
    type Events = ();

    fn events(&self) -> &() {
        &()
    }
}
