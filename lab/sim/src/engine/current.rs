//! The simulation that this OS thread is running.
//!
//! Locks and event sinks look up their simulation in this module, because a lock or event sink cannot hold a
//! reference to its simulation. A raw lock is created by a constant, and its methods get no context argument.
//! An event sink must be `Sync`, and a simulation is not `Sync`.
#![expect(
    unsafe_code,
    reason = "a thread-local cannot hold a borrow; this file proves that the borrow is alive"
)]

use std::cell::Cell;
use std::ptr::NonNull;

use super::Engine;

thread_local! {
    static CURRENT: Cell<Option<NonNull<Engine>>> = const { Cell::new(None) };
}

/// A guard that makes the previous simulation current again when the guard is dropped.
struct Restore(Option<NonNull<Engine>>);

impl Drop for Restore {
    fn drop(&mut self) {
        CURRENT.set(self.0);
    }
}

/// Runs `body` with `engine` as this thread's simulation.
pub(crate) fn enter<R>(engine: &Engine, body: impl FnOnce() -> R) -> R {
    let _restore = Restore(CURRENT.replace(Some(NonNull::from(engine))));
    body()
}

/// Runs `body` outside the simulation, so that the allocator's operations cost no virtual time and suspend no
/// CPU. The scheduler calls `outside` to read the allocator's state.
pub(crate) fn outside<R>(body: impl FnOnce() -> R) -> R {
    let _restore = Restore(CURRENT.replace(None));
    body()
}

/// Runs `body` with this thread's simulation, if there is one.
///
/// `body` may suspend the virtual CPU that it runs on. While a virtual CPU is suspended, other virtual CPUs
/// may call this function.
#[inline]
pub(crate) fn with<R>(body: impl FnOnce(Option<&Engine>) -> R) -> R {
    let engine = CURRENT.get();
    // SAFETY: `enter` made the pointer from a borrow, and holds the borrow until it has removed the pointer.
    // `body` may suspend its virtual CPU. A suspended CPU is resumed or unwound before `enter` returns,
    // because `run` owns the CPU's coroutine and drops all coroutines before it leaves `enter`.
    body(engine.map(|engine| unsafe { engine.as_ref() }))
}
