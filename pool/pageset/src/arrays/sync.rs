//! Atomics, yielding, and a number for this thread. Except in tests with shuttle, the standard library
//! provides the atomics and the yielding. In tests with shuttle, shuttle provides both, and may switch to
//! another thread at each atomic operation.

#[cfg(shuttle)]
pub(super) use shuttle::sync::atomic::{AtomicU32, AtomicU64, Ordering};
#[cfg(shuttle)]
pub(super) use shuttle::thread::yield_now;

#[cfg(not(shuttle))]
pub(super) use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
#[cfg(not(shuttle))]
pub(super) use std::thread::yield_now;

/// A number that identifies this thread and the signal handlers that run on this thread. A thread's number is
/// at least 1. Very rarely, two threads have the same number.
#[cfg(not(shuttle))]
#[inline]
pub(super) fn this_thread() -> u32 {
    std::thread_local!(static HERE: u64 = const { 0 });
    // The address of a thread-local differs between threads. The number's bits of the address also differ,
    // unless two addresses are a multiple of 32 GiB apart.
    HERE.with(|here| (std::ptr::from_ref(here).addr() >> 3) as u32 | 1)
}

/// Returns a new number for each call, because the standard library sees shuttle's threads as one thread.
/// Shuttle's threads have no signal handlers, so no thread needs to recognise its own number.
#[cfg(shuttle)]
pub(super) fn this_thread() -> u32 {
    thread_local!(static NEXT: std::cell::Cell<u32> = const { std::cell::Cell::new(1) });
    NEXT.with(|next| next.replace(next.get().wrapping_add(2)) | 1)
}
