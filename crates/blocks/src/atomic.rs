//! Atomics: the language's, or those of a model checker, which sees every one of their steps.

#[cfg(not(any(loom, shuttle)))]
pub(crate) use core::sync::atomic::{AtomicU32, AtomicUsize};
#[cfg(loom)]
pub(crate) use loom::sync::atomic::{AtomicU32, AtomicUsize};
#[cfg(all(shuttle, not(loom)))]
pub(crate) use shuttle::sync::atomic::{AtomicU32, AtomicUsize};

pub(crate) use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst};
