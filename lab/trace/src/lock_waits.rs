//! Matches the beginnings and ends of waits for contended locks.

use std::collections::HashMap;

use crate::event::{Caller, Event};

/// Maximum number of unfinished waits. Only a damaged or malicious recording has more waiting tasks.
const OPEN_MAX: usize = 64 << 10;

/// The tracepoint's flag for spinning locks. Source:
/// `/sys/kernel/tracing/events/lock/contention_begin/format`.
const FLAG_SPIN: u32 = 1;

/// A finished wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LockWait {
    /// Length of the wait.
    pub wait_ns: u64,
    /// Whether the lock is a spinning lock.
    pub is_spin: bool,
    /// The part of the kernel that waited, if the call chain was recorded.
    pub caller: Option<Caller>,
    /// The call site, as in [`Event::call_site`].
    pub call_site: Option<u16>,
}

/// Matches the beginning of each wait with its end.
#[derive(Debug, Default)]
pub struct LockWaits {
    open: HashMap<Waiter, Open>,
    unpaired: u64,
}

/// A task and the lock that the task waits for. A task may have two entries: the task's own wait, and the
/// wait of an interrupt that came during the task's wait.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Waiter {
    pid: u32,
    /// The CPU of an idle task, because all idle tasks have pid 0. The value is 0 for any other task, because
    /// the task may begin to wait on one CPU and continue on another.
    cpu: u16,
    lock: u64,
}

#[derive(Debug)]
struct Open {
    since_ns: u64,
    is_spin: bool,
    caller: Option<Caller>,
    call_site: Option<u16>,
}

impl Waiter {
    fn of(event: &Event) -> Self {
        Self { pid: event.pid, cpu: if event.pid == 0 { event.cpu } else { 0 }, lock: event.pfn }
    }
}

impl LockWaits {
    /// Records an [`EventKind::ContentionBegin`](crate::EventKind::ContentionBegin).
    pub fn begin(&mut self, event: &Event) {
        if self.open.len() >= OPEN_MAX {
            self.unpaired += 1;
            return;
        }
        let is_spin = event.gfp & FLAG_SPIN != 0;
        let open =
            Open { since_ns: event.ts_ns, is_spin, caller: event.caller(), call_site: event.call_site() };
        let replaced = self.open.insert(Waiter::of(event), open);
        self.unpaired += u64::from(replaced.is_some());
    }

    /// Records an [`EventKind::ContentionEnd`](crate::EventKind::ContentionEnd). Returns the wait if its
    /// beginning is known.
    pub fn end(&mut self, event: &Event) -> Option<LockWait> {
        let Some(Open { since_ns, is_spin, caller, call_site }) = self.open.remove(&Waiter::of(event)) else {
            self.unpaired += 1;
            return None;
        };
        Some(LockWait { wait_ns: event.ts_ns.saturating_sub(since_ns), is_spin, caller, call_site })
    }

    /// Number of beginnings without an end, and of ends without a beginning, so far.
    #[must_use]
    pub fn unpaired(&self) -> u64 {
        self.unpaired + self.open.len() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::EventKind;

    fn event(kind: EventKind, ts_ns: u64, cpu: u16, pid: u32, lock: u64, flags: u32) -> Event {
        Event { pid, pfn: lock, gfp: flags, ..Event::new(kind, ts_ns, cpu) }
    }

    #[test]
    fn a_wait_lasts_from_its_beginning_to_its_end() {
        let (begin, end) = (EventKind::ContentionBegin, EventKind::ContentionEnd);
        let mut waits = LockWaits::default();
        let mut with_caller = Event { order: Caller::Drain.code(), ..event(begin, 10, 0, 7, 1, FLAG_SPIN) };
        with_caller.set_call_site(300);
        waits.begin(&with_caller);
        waits.begin(&event(begin, 20, 0, 7, 2, 32));
        let other = waits.end(&event(end, 25, 1, 7, 2, 0));
        assert_eq!(other, Some(LockWait { wait_ns: 5, is_spin: false, caller: None, call_site: None }));
        let spin = waits.end(&event(end, 110, 0, 7, 1, 0));
        assert_eq!(
            spin,
            Some(LockWait { wait_ns: 100, is_spin: true, caller: Some(Caller::Drain), call_site: Some(300) })
        );
        waits.begin(&event(begin, 200, 0, 0, 1, FLAG_SPIN));
        assert_eq!(
            waits.end(&event(end, 210, 1, 0, 1, 0)),
            None,
            "the idle task of another CPU is another task"
        );
        assert_eq!(waits.unpaired(), 2);
    }

    #[test]
    fn open_waits_are_bounded() {
        let mut waits = LockWaits::default();
        for lock in 0..OPEN_MAX as u64 + 5 {
            waits.begin(&event(EventKind::ContentionBegin, 0, 0, 1, lock, 0));
        }
        assert_eq!((waits.open.len(), waits.unpaired), (OPEN_MAX, 5));
    }
}
