//! Wakes the pool's thread.

use std::sync::MutexGuard;
use std::sync::atomic::{
    AtomicBool, AtomicU8,
    Ordering::{Relaxed, SeqCst},
};
use std::thread::Thread;

use crate::lock::Lock;

/// In the state `UNHEARD`, a ring has no effect. The pool's thread will scan again anyway, or the pool has no
/// thread.
const UNHEARD: u8 = 0;
/// The thread is scanning, and no thread has rung since the scan began.
const LISTENING: u8 = 1;
/// The thread sleeps until a thread rings.
const ASLEEP: u8 = 2;

/// Wakes the pool's thread when a slow path has changed the number of charged frames, or the policy for idle
/// memory. Charged frames are the frames that users and arrays have.
///
/// Race: the pool's thread is about to sleep, while a slow path changes the number of charged frames and then
/// rings. The pool's thread listens, then scans, and then sleeps unless a ring came meanwhile. Either the
/// scan sees the changed number of charged frames, or the pool's thread sees the ring. All threads must see
/// the accesses of the number of charged frames and of the bell's state in one order, so these accesses are
/// sequentially consistent.
#[derive(Default)]
pub(crate) struct Bell {
    thread: Lock<Option<Thread>>,
    state: AtomicU8,
    /// Whether the thread is to end.
    pub(crate) ends: AtomicBool,
}

impl Bell {
    /// Wakes the pool's thread if the thread sleeps. A thread that is about to sleep scans again instead.
    #[inline]
    pub(crate) fn ring(&self) {
        if self.state.load(SeqCst) != UNHEARD {
            self.ring_heard();
        }
    }

    #[cold]
    fn ring_heard(&self) {
        if self.state.swap(UNHEARD, SeqCst) == ASLEEP {
            self.thread.lock().as_ref().map(Thread::unpark);
        }
    }

    /// Holds the lock that a ring of the bell takes to wake the pool's thread. The holder must take no other
    /// lock of the same pool.
    pub(crate) fn hold(&self) -> MutexGuard<'_, Option<Thread>> {
        self.thread.lock()
    }

    /// Begins a scan. From now on, the thread notices every ring.
    pub(crate) fn listen(&self) {
        self.state.store(LISTENING, SeqCst);
    }

    /// Notes that the scan found something to do. The thread will scan again, so rings are not needed.
    pub(crate) fn stop_listening(&self) {
        self.state.store(UNHEARD, SeqCst);
    }

    /// Changes to the state `ASLEEP` after a scan that found nothing. Returns `false` if a ring came since
    /// the scan began.
    pub(crate) fn fall_asleep(&self) -> bool {
        self.state.compare_exchange(LISTENING, ASLEEP, SeqCst, Relaxed).is_ok()
    }

    /// Leaves the state `ASLEEP`. Returns whether a ring came.
    pub(crate) fn wake_up(&self) -> bool {
        self.state.swap(UNHEARD, SeqCst) == UNHEARD
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_rings_while_the_thread_looks_keeps_it_awake() {
        let bell = Bell::default();
        bell.ring();
        bell.listen();
        assert!(bell.fall_asleep(), "the ring came before the scan");
        assert!(!bell.wake_up(), "by itself");
        bell.listen();
        bell.ring();
        assert!(!bell.fall_asleep());
        bell.listen();
        assert!(bell.fall_asleep());
        bell.ring();
        assert!(bell.wake_up());
    }
}
