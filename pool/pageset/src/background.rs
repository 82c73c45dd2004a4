//! The pool's thread, which scans for idle memory, and sleeps while no memory is idle.

use std::io;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::pool::Inner;
use crate::sys::share::Shared;
use crate::sys::thread::{be_ordinary, without_signals};

/// The longest sleep after a scan that leaves nothing to do while users or arrays have pages. If the interval
/// between scans is longer than `SLEEP_WITH_USERS`, the thread sleeps for the interval. The sleep must have
/// an end, because a user may free pages into arrays without waking the thread.
const SLEEP_WITH_USERS: Duration = Duration::from_secs(1);

/// The running thread.
pub(crate) struct Background {
    /// The thread returns its end of the start channel, so that the joining thread frees the channel.
    /// ThreadSanitizer does not see the atomics of the standard library, and would report a race if the
    /// pool's thread freed memory that the starting thread allocated.
    thread: JoinHandle<SyncSender<()>>,
    inner: Shared<Inner>,
}

impl Background {
    pub(crate) fn start(inner: &Shared<Inner>) -> io::Result<Self> {
        let of_thread = inner.clone();
        // The stop of an earlier thread of the pool may have left the flag `ends` set.
        inner.capacity.bell.ends.store(false, SeqCst);
        let (begun, has_begun) = sync_channel(1);
        let work = move || {
            be_ordinary();
            *of_thread.capacity.bell.hold() = Some(thread::current());
            // Send the message that the starting thread waits for.
            let _ = begun.send(());
            run(&of_thread);
            begun
        };
        let thread = without_signals(|| thread::Builder::new().name("pageset".into()).spawn(work))?;
        // Wait until the thread runs. A new thread makes some system calls at its start. As soon as its pool
        // is built, the program may install a filter that denies the calls of a thread's start.
        let _ = has_begun.recv();
        Ok(Self { thread, inner: inner.clone() })
    }

    /// Forgets the parent's thread in a child of `fork` that takes the pool over. The parent's thread does
    /// not exist in the child.
    #[expect(unsafe_code, reason = "no other code drops the share of the parent's thread")]
    pub(crate) fn abandon(self) {
        let Self { thread, inner } = self;
        // Do not join or detach the thread, because the thread does not exist in the child.
        std::mem::forget(thread);
        // SAFETY: the parent's thread had a counted reference to `inner`. The child of the fork does not have
        // this thread, so only this call drops the thread's reference.
        unsafe { inner.drop_lost() };
    }

    /// Ends the thread and waits for it.
    pub(crate) fn stop(self) {
        self.inner.capacity.bell.ends.store(true, SeqCst);
        self.thread.thread().unpark();
        // A panic of the thread has already been printed.
        let _ = self.thread.join();
    }
}

fn run(inner: &Inner) {
    let bell = &inner.capacity.bell;
    let interval = || inner.returns().interval;
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
            // The number of frames of users and arrays or the policy has changed, so memory can become idle:
            // scan again after the interval.
            thread::park_timeout(interval());
        }
    }
}
