//! The only seam between the allocator and the world it runs in.

use crate::event::EventSink;

/// What a host supplies: a kind of lock, and somewhere for events to go.
///
/// There is no clock, no heap and no "current CPU" here: the CPU is an argument of every operation, and time reaches
/// the allocator as [`tick`](crate::PageAllocator::tick).
pub trait Platform: Sync {
    /// The lock of zones and of per-CPU page sets. In a kernel it disables interrupts; the guard state is the place
    /// to keep the saved flags.
    type RawLock: lock_api::RawMutex;
    /// Where events go; `()` compiles to nothing.
    type Events: EventSink;

    /// The event sink.
    fn events(&self) -> &Self::Events;
}

/// A lock of the platform's around `T`.
pub(crate) type Lock<P, T> = lock_api::Mutex<<P as Platform>::RawLock, T>;
