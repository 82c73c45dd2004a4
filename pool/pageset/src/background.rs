//! The pool's thread: it looks at idle memory, and sleeps while there is none.

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

/// How long the thread sleeps when nothing is idle, but pages are out that may be freed into arrays unnoticed.
const SLEEP_WITH_USERS: Duration = Duration::from_secs(1);

/// The running thread.
pub(crate) struct Background {
    thread: JoinHandle<()>,
    inner: Shared<Inner>,
}

/// Nobody has to be told: the thread looks again soon in any case, or there is none.
const UNHEARD: u8 = 0;
/// The thread looks at what is idle, and has not been told of anything since it began to look.
const LISTENING: u8 = 1;
/// The thread sleeps until it is told of something.
const ASLEEP: u8 = 2;

/// How slow paths tell the thread that there will be something to see.
///
/// Whoever changes how many frames are out rings afterwards. The thread listens before it looks, and falls asleep only if
/// nobody rang since: so either it sees the change, or it hears the bell. That needs one order of the four accesses, which
/// is why they are sequentially consistent, the change of the frames included.
#[derive(Default)]
pub(crate) struct Bell {
    thread: OnceLock<Thread>,
    state: AtomicU8,
    ends: AtomicBool,
}

impl Bell {
    /// Wakes the thread if it sleeps for want of anything to do, and keeps it awake if it is about to.
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

    /// The thread begins to look: who rings from now on is heard.
    fn listen(&self) {
        self.state.store(LISTENING, SeqCst);
    }

    /// The thread saw what there will be to do: nobody need tell it.
    fn stop_listening(&self) {
        self.state.store(UNHEARD, SeqCst);
    }

    /// The thread saw nothing to do. `false` if somebody rang since it began to look.
    fn fall_asleep(&self) -> bool {
        self.state.compare_exchange(LISTENING, ASLEEP, SeqCst, Relaxed).is_ok()
    }

    /// The thread woke up. Says whether somebody rang.
    fn wake_up(&self) -> bool {
        self.state.swap(UNHEARD, SeqCst) == UNHEARD
    }
}

impl Background {
    pub(crate) fn start(inner: &Shared<Inner>) -> io::Result<Self> {
        let of_thread = inner.clone();
        let start = || thread::Builder::new().name("pageset".into()).spawn(move || run(&of_thread));
        let thread = without_signals(start)?;
        // A thread that begins makes system calls that it never makes again. A program that denies them once its pool is
        // built must not meet one that has not begun yet.
        inner.capacity.bell.thread.wait();
        Ok(Self { thread, inner: inner.clone() })
    }

    /// Ends the thread and waits for it.
    pub(crate) fn stop(self) {
        self.inner.capacity.bell.ends.store(true, SeqCst);
        self.thread.thread().unpark();
        // A panic of the thread has been printed; there is nothing to add.
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
            // Somebody began to allocate: look again when there is something to see.
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
