//! Waits for contended locks: which beginning belongs to which end.

use std::collections::HashMap;

use pageset_trace::Event;

use super::log2::Log2Counts;

/// Waits that may be open at once; more tasks than a kernel has waiting, unless the recording is hostile.
const OPEN_MAX: usize = 64 << 10;

/// The tracepoint's flag for spinning locks. Source: `/sys/kernel/tracing/events/lock/contention_begin/format`.
const FLAG_SPIN: u32 = 1;

/// How long was waited, in nanoseconds.
#[derive(Debug)]
pub(super) struct Waited {
    /// For spinning locks.
    pub(super) spin: Log2Counts,
    /// For all others.
    pub(super) other: Log2Counts,
    /// Beginnings without an end, and ends without a beginning.
    pub(super) unpaired: u64,
}

/// Pairs beginnings with ends.
#[derive(Debug, Default)]
pub(super) struct Waits {
    open: HashMap<Waiter, Open>,
    spin: Log2Counts,
    other: Log2Counts,
    unpaired: u64,
}

/// Who waits for what. A task may wait for two locks: its own, and that of an interrupt that came meanwhile.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Waiter {
    pid: u32,
    /// For the idle tasks only, which all have the pid 0; others may wake up on another CPU.
    cpu: u16,
    lock: u64,
}

#[derive(Debug)]
struct Open {
    since_ns: u64,
    is_spin: bool,
}

impl Waiter {
    fn of(event: &Event) -> Self {
        Self { pid: event.pid, cpu: if event.pid == 0 { event.cpu } else { 0 }, lock: event.pfn }
    }
}

impl Waits {
    pub(super) fn begin(&mut self, event: &Event) {
        if self.open.len() >= OPEN_MAX {
            self.unpaired += 1;
            return;
        }
        let open = Open { since_ns: event.ts_ns, is_spin: event.gfp & FLAG_SPIN != 0 };
        let replaced = self.open.insert(Waiter::of(event), open);
        self.unpaired += u64::from(replaced.is_some());
    }

    /// Returns how long was waited, if it was for a spinning lock.
    pub(super) fn end(&mut self, event: &Event) -> Option<u64> {
        let Some(open) = self.open.remove(&Waiter::of(event)) else {
            self.unpaired += 1;
            return None;
        };
        let wait_ns = event.ts_ns.saturating_sub(open.since_ns);
        let waits = if open.is_spin { &mut self.spin } else { &mut self.other };
        waits.record(wait_ns);
        open.is_spin.then_some(wait_ns)
    }

    pub(super) fn finish(self) -> Waited {
        Waited { spin: self.spin, other: self.other, unpaired: self.unpaired + self.open.len() as u64 }
    }
}

#[cfg(test)]
mod tests {
    use pageset_trace::EventKind;

    use super::*;

    fn event(kind: EventKind, ts_ns: u64, cpu: u16, pid: u32, lock: u64, flags: u32) -> Event {
        Event { pid, pfn: lock, gfp: flags, ..Event::new(kind, ts_ns, cpu) }
    }

    #[test]
    fn a_wait_lasts_from_its_beginning_to_its_end() {
        let (begin, end) = (EventKind::ContentionBegin, EventKind::ContentionEnd);
        let mut waits = Waits::default();
        waits.begin(&event(begin, 10, 0, 7, 1, FLAG_SPIN));
        waits.begin(&event(begin, 20, 0, 7, 2, 32));
        waits.end(&event(end, 25, 1, 7, 2, 0));
        waits.end(&event(end, 110, 0, 7, 1, 0));
        waits.begin(&event(begin, 200, 0, 0, 1, FLAG_SPIN));
        waits.end(&event(end, 210, 1, 0, 1, 0));
        let waited = waits.finish();
        assert_eq!((waited.spin.total(), waited.spin.sum), (1, 100));
        assert_eq!((waited.other.total(), waited.other.sum), (1, 5));
        assert_eq!(waited.unpaired, 2, "the idle task of another CPU is another task");
    }

    #[test]
    fn open_waits_are_bounded() {
        let mut waits = Waits::default();
        for lock in 0..OPEN_MAX as u64 + 5 {
            waits.begin(&event(EventKind::ContentionBegin, 0, 0, 1, lock, 0));
        }
        assert_eq!((waits.open.len(), waits.unpaired), (OPEN_MAX, 5));
    }
}
