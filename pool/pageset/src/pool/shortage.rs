//! Calls the program's function that frees pages when an allocation finds no memory.

use std::cell::Cell;
use std::fmt;
use std::sync::Arc;

use super::{Inner, Pool};
use crate::PAGE_BYTES;
use crate::error::AllocError;

/// A program's function that frees pages.
#[derive(Clone)]
pub(crate) struct OnShortage(pub(crate) Arc<dyn Fn(usize) -> bool + Send + Sync>);

impl fmt::Debug for OnShortage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OnShortage")
    }
}

thread_local! {
    /// Whether this thread runs the program's function now. An allocation inside the program's function does
    /// not call the program's function again, and fails instead.
    static IS_CALLED: Cell<bool> = const { Cell::new(false) };
}

/// Marks that this thread runs the program's function that frees pages. Dropping the value, even by a panic,
/// ends the mark.
struct Called;

impl Drop for Called {
    fn drop(&mut self) {
        IS_CALLED.set(false);
    }
}

impl Inner {
    /// Repeats `attempt` until it no longer fails for lack of memory, or until the program frees no pages.
    /// Between two attempts, this thread holds no lock of the pool.
    pub(super) fn or_reclaimed<T>(
        &self,
        page_count: usize,
        mut attempt: impl FnMut() -> Result<T, AllocError>,
    ) -> Result<T, AllocError> {
        loop {
            let outcome = attempt();
            if !matches!(&outcome, Err(error) if error.is_shortage()) || !self.reclaim(page_count) {
                return outcome;
            }
        }
    }

    /// Asks the program to free pages. Returns `false` if the program frees no pages, or gave the pool no
    /// function that frees pages.
    #[cold]
    fn reclaim(&self, page_count: usize) -> bool {
        let Some(OnShortage(call)) = &self.on_shortage else { return false };
        if IS_CALLED.replace(true) {
            return false;
        }
        let _called = Called;
        call(page_count.saturating_mul(PAGE_BYTES))
    }
}

impl Pool {
    /// Limits the bytes that users and the CPUs' arrays may have together, up to the size of the pool. For a
    /// pool that can grow, build a larger pool with a smaller [capacity](crate::Builder::capacity), and raise
    /// the capacity later. Unused address space costs nearly nothing, and the pool uses its lowest pages
    /// first. If more memory is in use than the new capacity, allocations fail until enough memory is freed,
    /// except for blocks in this CPU's array. [`resize`](Self::resize) also gives memory back to the system.
    /// O(1).
    pub fn set_capacity(&self, bytes: usize) {
        if let Ok((inner, _inside)) = self.enter() {
            inner.capacity.set_limit((bytes.min(inner.memory.bytes()) / PAGE_BYTES) as u64);
        }
    }
}
