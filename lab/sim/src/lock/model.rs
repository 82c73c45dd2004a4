//! The cost of passing a contended lock to the next CPU.

/// How CPUs wait for a lock that another CPU holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum LockModel {
    /// CPUs wait in a queue, and each spins on its own cache line, as in Linux since 4.2. Passing the lock on
    /// moves two cache lines: the lock's and the next waiter's. CPUs that join the queue also fetch the
    /// lock's cache line. So the more CPUs wait, the longer passing the lock on takes, but only by a little.
    #[default]
    Queued,
    /// CPUs wait in a queue, and all spin on one cache line. Passing the lock on invalidates every waiter's
    /// copy of the line, so the time grows with the number of waiters.
    Ticket,
    /// All waiting CPUs try to set the lock's word whenever the lock looks free. Passing the lock on takes
    /// longer than with `Ticket`, because the failing attempts delay the successful attempt. In the model the
    /// CPU that has waited longest gets the lock, although a real test-and-set lock is unfair.
    TestAndSet,
    /// A CPU waits only until the holder releases the lock. Taking a lock and passing a lock on cost nothing.
    /// `Free` serves tests, and shows an upper bound of the throughput.
    Free,
}

impl LockModel {
    /// Every lock model.
    pub const ALL: [Self; 4] = [Self::Queued, Self::Ticket, Self::TestAndSet, Self::Free];

    /// The name of the lock model on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Ticket => "ticket",
            Self::TestAndSet => "test-and-set",
            Self::Free => "free",
        }
    }

    /// Returns the lock model called `name`.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|model| model.name() == name)
    }

    /// Time to take a free lock. An atomic operation takes `atomic`, and moving the lock's cache line to the
    /// CPU takes `line`.
    #[inline]
    pub(crate) fn uncontended(self, atomic: u64, line: u64) -> u64 {
        if self == Self::Free { 0 } else { atomic + line }
    }

    /// Time from a release to the next acquisition, while `waiters` CPUs wait. Moving the lock's cache line
    /// takes `line`, and the work of passing the lock on takes `pass`.
    ///
    /// How fast the time from a release to the next acquisition grows with the number of waiters is a guess
    /// at the order of magnitude. With `Queued`, each doubling of the number of waiters adds an eighth of a
    /// line transfer. With `Ticket`, each further waiter adds half a line transfer. With `TestAndSet`, each
    /// further waiter adds a whole line transfer.
    #[inline]
    pub(crate) fn hand_over(self, line: u64, pass: u64, waiters: u64) -> u64 {
        let others = waiters.saturating_sub(1);
        match self {
            Self::Queued => 2 * line + pass + line * u64::from(waiters.max(1).ilog2()) / 8,
            Self::Ticket => line + pass + line * others / 2,
            Self::TestAndSet => line + pass + line * others,
            Self::Free => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_grows_slowest_and_test_and_set_fastest() {
        let cost = |model: LockModel, waiters| model.hand_over(100, 20, waiters);
        for model in LockModel::ALL {
            assert!(cost(model, 64) >= cost(model, 1), "{model:?}");
            assert_eq!(LockModel::named(model.name()), Some(model));
        }
        assert!(cost(LockModel::Queued, 64) < cost(LockModel::Ticket, 64));
        assert!(cost(LockModel::Ticket, 64) < cost(LockModel::TestAndSet, 64));
        assert_eq!(cost(LockModel::Free, 64), 0);
    }
}
