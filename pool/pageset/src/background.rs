//! The pool's thread. It scans for idle memory, and sleeps while there is none.

use std::io;
use std::sync::OnceLock;
use std::sync::atomic::{
    AtomicBool, AtomicU8,
    Ordering::{Relaxed, SeqCst},
};
use std::thread::{self, JoinHandle, Thread};
use std::time::Duration;

use crate::pool::Inner;
use crate::sys::share::Shared;
use crate::sys::thread::{be_ordinary, without_signals};

/// How long the thread sleeps when nothing is idle but users have pages. A user may free pages into arrays
/// without waking the thread.
const SLEEP_WITH_USERS: Duration = Duration::from_secs(1);

/// The running thread.
pub(crate) struct Background {
    thread: JoinHandle<()>,
    inner: Shared<Inner>,
}

/// No ring is needed: the thread scans again soon in any case, or there is no thread.
const UNHEARD: u8 = 0;
/// The thread is scanning, and no thread has rung since the scan began.
const LISTENING: u8 = 1;
/// The thread sleeps until a thread rings.
const ASLEEP: u8 = 2;

/// Wakes the pool's thread when a slow path has changed something.
///
/// Race: a slow path changes the number of frames that are out, then rings. The pool's thread listens, then
/// scans, then falls asleep unless there was a ring since it listened. Either the scan sees the change, or
/// the thread hears the ring. This needs a single order of the four accesses. So all four are sequentially
/// consistent, including the change of the number of frames.
#[derive(Default)]
pub(crate) struct Bell {
    thread: OnceLock<Thread>,
    state: AtomicU8,
    ends: AtomicBool,
}

impl Bell {
    /// Wakes the thread if it sleeps, and keeps it awake if it is about to sleep.
    #[inline]
    pub(crate) fn ring(&self) {
        if self.state.load(SeqCst) != UNHEARD {
            self.ring_heard();
        }
    }

    #[cold]
    fn ring_heard(&self) {
        if self.state.swap(UNHEARD, SeqCst) == ASLEEP {
            self.thread.get().map(Thread::unpark);
        }
    }

    /// Begins a scan: the thread hears every ring from now on.
    fn listen(&self) {
        self.state.store(LISTENING, SeqCst);
    }

    /// Notes that the scan found something to do, so rings are not needed.
    fn stop_listening(&self) {
        self.state.store(UNHEARD, SeqCst);
    }

    /// Falls asleep after a scan that found nothing. Returns `false` if there was a ring since the scan
    /// began.
    fn fall_asleep(&self) -> bool {
        self.state.compare_exchange(LISTENING, ASLEEP, SeqCst, Relaxed).is_ok()
    }

    /// Wakes up. Returns whether there was a ring.
    fn wake_up(&self) -> bool {
        self.state.swap(UNHEARD, SeqCst) == UNHEARD
    }
}

impl Background {
    pub(crate) fn start(inner: &Shared<Inner>) -> io::Result<Self> {
        let of_thread = inner.clone();
        let start = || thread::Builder::new().name("pageset".into()).spawn(move || run(&of_thread));
        let thread = without_signals(start)?;
        // A new thread makes system calls that it never makes again. If a program denies them once its pool
        // is built, the thread must have begun before.
        inner.capacity.bell.thread.wait();
        Ok(Self { thread, inner: inner.clone() })
    }

    /// Ends the thread and waits for it.
    pub(crate) fn stop(self) {
        self.inner.capacity.bell.ends.store(true, SeqCst);
        self.thread.thread().unpark();
        // The thread's panic has already been printed.
        let _ = self.thread.join();
    }
}

fn run(inner: &Inner) {
    be_ordinary();
    let bell = &inner.capacity.bell;
    let interval = || inner.returns().interval;
    bell.thread.get_or_init(thread::current);
    while !bell.ends.load(SeqCst) {
        bell.listen();
        if inner.enter().is_ok_and(|_inside| inner.look().more) {
            bell.stop_listening();
            thread::park_timeout(interval());
            continue;
        }
        let mut has_rung = !bell.fall_asleep();
        if !has_rung {
            if inner.is_all_free() {
                thread::park();
            } else {
                thread::park_timeout(SLEEP_WITH_USERS.max(interval()));
            }
            has_rung = bell.wake_up();
        }
        if has_rung && !bell.ends.load(SeqCst) {
            // A user has allocated: scan again when memory can be idle.
            thread::park_timeout(interval());
        }
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
        assert!(bell.fall_asleep(), "what was before the look was seen by it");
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
