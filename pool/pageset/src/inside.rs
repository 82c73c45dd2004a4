//! Tracks which pools each thread is inside of. A thread is inside of a pool while it runs an operation of
//! the pool that takes locks. A signal handler may interrupt its thread inside of a pool, and then call the
//! same pool. The handler would wait for a lock of its own thread for ever, so the pool refuses the handler's
//! call.

use std::marker::PhantomData;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed, Ordering::SeqCst, compiler_fence};

/// The most pools that one thread can be inside of at once. A fork marks two things at once: the list of
/// pools, and one pool of the list. A thread enters further pools only in signal handlers that interrupt
/// operations.
const DEPTH: usize = 8;

/// The addresses of the pools that this thread is inside of. Only this thread and its signal handlers use
/// this value.
struct Place {
    depth: AtomicUsize,
    pools: [AtomicUsize; DEPTH],
}

// The first value of the thread-local is a constant, and the thread-local has no destructor. A signal handler
// may therefore use the thread-local as long as the thread lives.
thread_local! {
    static PLACE: Place = const { Place { depth: AtomicUsize::new(0), pools: [const { AtomicUsize::new(0) }; DEPTH] } };
}

/// A mark that this thread is inside of a pool. The mark lasts until it is dropped, on the same thread.
#[must_use]
pub(crate) struct Inside {
    depth: usize,
    /// The content of the slot before this thread entered the pool. A signal handler may interrupt the thread
    /// after the thread has written the slot and before the thread changes `depth`. An interrupting handler
    /// uses the same slot, and restores the slot's content when the handler leaves its pool.
    before: usize,
    on_this_thread: PhantomData<*const ()>,
}

impl Inside {
    /// Enters the pool with this address. `None` if this thread is inside of the pool already, or is inside
    /// of [`DEPTH`] pools.
    pub(crate) fn of(pool: usize) -> Option<Self> {
        PLACE.with(|place| {
            let depth = place.depth.load(Relaxed);
            let free = place.pools.get(depth)?;
            if place.pools[..depth].iter().any(|inside| inside.load(Relaxed) == pool) {
                return None;
            }
            let before = free.load(Relaxed);
            free.store(pool, Relaxed);
            // A handler that interrupts the thread between these two stores uses the same slot, and restores
            // this pool's address at its end.
            compiler_fence(SeqCst);
            place.depth.store(depth + 1, Relaxed);
            Some(Self { depth, before, on_this_thread: PhantomData })
        })
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        PLACE.with(|place| {
            place.depth.store(self.depth, Relaxed);
            // A handler that interrupts the thread between these two stores may use this slot, and restores
            // the slot's content at its end.
            compiler_fence(SeqCst);
            if let Some(ours) = place.pools.get(self.depth) {
                ours.store(self.before, Relaxed);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_enters_a_pool_once_and_others_meanwhile() {
        let first = Inside::of(4096);
        assert!(first.is_some() && Inside::of(4096).is_none());
        let second = Inside::of(8192);
        assert!(second.is_some() && Inside::of(8192).is_none());
        std::thread::scope(|scope| {
            scope.spawn(|| assert!(Inside::of(4096).is_some(), "another thread"));
        });
        drop(second);
        assert!(Inside::of(8192).is_some() && Inside::of(4096).is_none());
        drop(first);
        assert!(Inside::of(4096).is_some());
    }

    #[test]
    fn more_pools_than_there_is_room_for_are_refused() {
        let held: Vec<_> = (1..=DEPTH).map(Inside::of).collect();
        assert!(held.iter().all(Option::is_some) && Inside::of(4096).is_none());
        // Leave the pools in the opposite order of entering them.
        held.into_iter().rev().for_each(drop);
        assert!(Inside::of(4096).is_some());
    }
}
