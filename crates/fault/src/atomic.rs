//! The atomics of this crate; under `--cfg loom` those of the model checker.

#[cfg(not(loom))]
pub(crate) use core::sync::atomic::{AtomicBool, AtomicI64, AtomicU8, AtomicU32, AtomicU64, Ordering, fence};
#[cfg(loom)]
pub(crate) use loom::sync::atomic::{AtomicBool, AtomicI64, AtomicU8, AtomicU32, AtomicU64, Ordering, fence};

/// A value alone on its cache lines, so that its neighbours' writers do not slow its readers down.
/// 128 bytes: x86-64 fetches lines in pairs.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct Padded<T>(pub(crate) T);
