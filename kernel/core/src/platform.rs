//! The interface between the allocator and its host.

use crate::event::EventSink;

/// The host of an allocator provides two things: a lock type and an event sink.
///
/// The host provides no clock, no heap and no "current CPU". The CPU is an argument of each operation that
/// depends on the CPU, and [`tick`](crate::PageAllocator::tick) tells the allocator that time has passed.
pub trait Platform: Sync {
    /// The lock type of all locks of the allocator. A kernel's lock disables interrupts and keeps the saved
    /// interrupt flags.
    type RawLock: lock_api::RawMutex;
    /// The event sink's type. `()` compiles to nothing.
    type Events: EventSink;

    /// The event sink.
    fn events(&self) -> &Self::Events;
}

/// A `T` that the platform's lock type protects.
pub(crate) type Lock<P, T> = lock_api::Mutex<<P as Platform>::RawLock, T>;
