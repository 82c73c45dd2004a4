//! Atomics, giving way, and which thread this is: the standard library's, or those of shuttle, which runs another thread at each
//! atomic.

#[cfg(shuttle)]
pub(super) use shuttle::sync::atomic::{AtomicU32, AtomicU64, Ordering};
#[cfg(shuttle)]
pub(super) use shuttle::thread::yield_now;

#[cfg(not(shuttle))]
pub(super) use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
#[cfg(not(shuttle))]
pub(super) use std::thread::yield_now;

/// A number for this thread and its signal handlers, not 0. Another thread may have the same, though hardly any does.
#[cfg(not(shuttle))]
#[inline]
pub(super) fn this_thread() -> u32 {
    std::thread_local!(static HERE: u64 = const { 0 });
    // Of two threads, the address differs in these bits unless a multiple of 64 GiB lies between them.
    HERE.with(|here| (std::ptr::from_ref(here).addr() >> 3) as u32 | 1)
}

/// Shuttle's threads are all the same to the standard library, and have no handlers.
#[cfg(shuttle)]
pub(super) fn this_thread() -> u32 {
    thread_local!(static NEXT: std::cell::Cell<u32> = const { std::cell::Cell::new(1) });
    NEXT.with(|next| next.replace(next.get().wrapping_add(2)) | 1)
}
