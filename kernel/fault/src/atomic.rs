//! The atomic types of this crate. Under `--cfg loom` or `--cfg shuttle`, a model checker's atomic types
//! replace the atomic types of `core`. The model checker decides at each atomic operation which thread runs
//! next (`cargo xtask ci night loom`, `cargo xtask ci night shuttle`).

#[cfg(loom)]
use loom::sync::atomic as chosen;
#[cfg(shuttle)]
use shuttle::sync::atomic as chosen;

#[cfg(not(any(loom, shuttle)))]
use core::sync::atomic as chosen;

pub(crate) use chosen::{AtomicBool, AtomicI64, AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering, fence};

/// A value alone on its cache lines, so that writes to adjacent values do not slow readers of the padded
/// value. The alignment is 128 bytes, because some x86-64 processors fetch cache lines in pairs.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct Padded<T>(pub(crate) T);
