//! The pool's thread: it looks at idle memory, and sleeps while there is none.

use std::io;
use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::{
    AtomicBool,
    Ordering::{Relaxed, SeqCst},
};
use std::thread::{self, JoinHandle, Thread};
use std::time::Duration;

use crate::pool::Inner;

/// How long the thread sleeps when nothing is idle, but pages are out that may be freed into arrays unnoticed.
const SLEEP_WITH_USERS: Duration = Duration::from_secs(1);

/// The running thread.
pub(crate) struct Background {
    thread: JoinHandle<()>,
    inner: Arc<Inner>,
}

/// How the thread is woken by slow paths and by the end of the pool.
#[derive(Default)]
pub(crate) struct Bell {
    thread: OnceLock<Thread>,
    is_asleep: AtomicBool,
    ends: AtomicBool,
}

impl Bell {
    /// Wakes the thread if it sleeps for want of anything to do.
    #[inline]
    pub(crate) fn ring(&self) {
        if self.is_asleep.load(Relaxed) && self.is_asleep.swap(false, SeqCst) {
            self.thread.get().map(Thread::unpark);
        }
    }
}

impl Background {
    pub(crate) fn start(inner: &Arc<Inner>) -> io::Result<Self> {
        let of_thread = Arc::clone(inner);
        let thread = thread::Builder::new().name("pageset".into()).spawn(move || run(&of_thread))?;
        Ok(Self { thread, inner: Arc::clone(inner) })
    }

    /// Ends the thread and waits for it.
    pub(crate) fn stop(self) {
        self.inner.bell.ends.store(true, SeqCst);
        self.thread.thread().unpark();
        // A panic of the thread has been printed; there is nothing to add.
        let _ = self.thread.join();
    }

    /// Forgets a thread that is not there, in a child process.
    pub(crate) fn forget(self) {
        std::mem::forget(self.thread);
    }
}

fn run(inner: &Inner) {
    let bell = &inner.bell;
    bell.thread.get_or_init(thread::current);
    while !bell.ends.load(SeqCst) {
        if inner.look().more {
            thread::park_timeout(inner.returns.interval);
            continue;
        }
        bell.is_asleep.store(true, SeqCst);
        if inner.is_all_free() {
            thread::park();
        } else {
            thread::park_timeout(SLEEP_WITH_USERS.max(inner.returns.interval));
        }
        if !bell.ends.load(SeqCst) && !bell.is_asleep.swap(false, SeqCst) {
            // Somebody began to allocate: look again when there is something to see.
            thread::park_timeout(inner.returns.interval);
        }
    }
}
