//! The interface between the allocator and its host.

use crate::event::EventSink;

/// The host's part: a lock type and an event sink.
///
/// There is no clock, no heap and no "current CPU" here. The CPU is an argument of every operation, and time
/// reaches the allocator through [`tick`](crate::PageAllocator::tick).
pub trait Platform: Sync {
    /// The lock type of zones and page sets. In a kernel it disables interrupts, and its guard state holds
    /// the saved flags.
    type RawLock: lock_api::RawMutex;
    /// The event sink's type. `()` compiles to nothing.
    type Events: EventSink;

    /// The event sink.
    fn events(&self) -> &Self::Events;
}

/// A lock of the platform around a `T`.
pub(crate) type Lock<P, T> = lock_api::Mutex<<P as Platform>::RawLock, T>;
