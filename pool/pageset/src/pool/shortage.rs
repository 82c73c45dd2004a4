//! What a program does when its pool has no memory left.

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
    /// Whether this thread is inside of such a function: what that allocates may fail, and does not call it again.
    static IS_CALLED: Cell<bool> = const { Cell::new(false) };
}

/// Until it is dropped, the function is called on this thread. It may panic.
struct Called;

impl Drop for Called {
    fn drop(&mut self) {
        IS_CALLED.set(false);
    }
}

impl Inner {
    /// What `attempt` allocates, of so many pages, again and again as long as the program frees something. No lock is held between two
    /// attempts.
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

    /// Asks the program for pages. `false` if it has none, or if there is nobody to ask.
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
    /// From now on, at most so many bytes are handed out, caches included: never more than the pool has. A pool that is built larger than
    /// it needs to be, with a [capacity](crate::Builder::capacity), grows so: address space that was never used costs nearly nothing, and
    /// the lowest pages are used first. If more is handed out already, allocations fail until enough is freed.
    /// [`resize`](Self::resize) gives the memory back, too. O(1).
    pub fn set_capacity(&self, bytes: usize) {
        if let Ok((inner, _inside)) = self.enter() {
            inner.capacity.set_limit((bytes.min(inner.memory.bytes()) / PAGE_BYTES) as u64);
        }
    }
}
