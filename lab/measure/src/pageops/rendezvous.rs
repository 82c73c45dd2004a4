//! The point at which the CPUs that measure wait for each other.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// A barrier. A thread that panics leaves the barrier, so that the other threads do not wait for this thread
/// for ever. With [`std::sync::Barrier`], the other threads would wait for ever.
#[derive(Debug)]
pub(super) struct Rendezvous {
    state: Mutex<State>,
    opened: Condvar,
}

#[derive(Debug)]
struct State {
    /// Number of threads that have to arrive before the barrier opens.
    members: usize,
    waiting: usize,
    /// Number of times that the barrier has opened.
    rounds: u64,
}

impl Rendezvous {
    pub(super) fn new(members: usize) -> Self {
        let state = State { members, waiting: 0, rounds: 0 };
        Self { state: Mutex::new(state), opened: Condvar::new() }
    }

    /// Makes a thread's membership, which ends when the thread drops the membership, even by a panic.
    pub(super) fn enter(&self) -> Member<'_> {
        Member(self)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // If another thread panicked with the lock held, the state is still valid.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn open_if_all_wait(&self, state: &mut State) {
        if state.waiting >= state.members {
            state.waiting = 0;
            state.rounds += 1;
            self.opened.notify_all();
        }
    }
}

/// One of the threads that wait for each other.
pub(super) struct Member<'a>(&'a Rendezvous);

impl Member<'_> {
    /// Waits until all members wait.
    pub(super) fn wait(&self) {
        let mut state = self.0.state();
        let round = state.rounds;
        state.waiting += 1;
        self.0.open_if_all_wait(&mut state);
        let waited = self.0.opened.wait_while(state, |state| state.rounds == round);
        drop(waited.unwrap_or_else(PoisonError::into_inner));
    }
}

impl Drop for Member<'_> {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.members -= 1;
        self.0.open_if_all_wait(&mut state);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
    use std::thread;

    use super::*;

    #[test]
    fn all_go_on_together() {
        let (rendezvous, passed) = (Rendezvous::new(3), AtomicU32::new(0));
        thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    let member = rendezvous.enter();
                    for round in 0..100 {
                        member.wait();
                        assert!(passed.fetch_add(1, Relaxed) >= 3 * round);
                        member.wait();
                    }
                });
            }
        });
        assert_eq!(passed.into_inner(), 300);
    }

    #[test]
    fn nobody_waits_for_a_thread_that_has_panicked() {
        let rendezvous = Rendezvous::new(2);
        let ended = thread::scope(|scope| {
            let failing = scope.spawn(|| {
                let member = rendezvous.enter();
                member.wait();
                panic!("a measurement fails");
            });
            let other = scope.spawn(|| {
                let member = rendezvous.enter();
                (0..10).for_each(|_| member.wait());
            });
            [failing.join().is_ok(), other.join().is_ok()]
        });
        assert_eq!(ended, [false, true]);
    }
}
