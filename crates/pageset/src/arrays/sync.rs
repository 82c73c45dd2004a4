//! Atomics and giving way: the standard library's, or those of shuttle, which runs another thread at each of them.

#[cfg(shuttle)]
pub(super) use shuttle::sync::atomic::{AtomicU32, AtomicU64, Ordering};
#[cfg(shuttle)]
pub(super) use shuttle::thread::yield_now;

#[cfg(not(shuttle))]
pub(super) use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
#[cfg(not(shuttle))]
pub(super) use std::thread::yield_now;
