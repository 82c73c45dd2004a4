//! Finds waits for locks: when each wait began and ended, whether the lock is a zone lock, and which CPU held
//! the lock.
//!
//! No event names a lock. A lock counts as a zone lock if the call chain shows that the page allocator waits.
//! Without a call chain, a lock counts as a zone lock if the waiter moves blocks next. The holder of a zone
//! lock is taken to be the last other CPU that moved blocks during the wait, if these blocks are from the
//! waiter's zone.

use std::collections::BTreeMap;

use pageset_trace::{Caller, Event, EventKind, LockWaits};

/// The longest time that the export assumes from taking a zone lock to moving the first block under the lock,
/// in nanoseconds.
const GAP_NS_MAX: u64 = 20_000;

/// A wait that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Wait {
    pub(super) since_ns: u64,
    pub(super) until_ns: u64,
    pub(super) lock: u64,
    pub(super) pid: u32,
    /// The CPU where the wait ended.
    pub(super) cpu: u16,
    pub(super) kind: LockKind,
    /// The reason for taking the lock, if the call chain was recorded.
    pub(super) caller: Option<Caller>,
    /// The CPU and task that probably held the zone lock during the wait. `None` if the holder is not known.
    pub(super) holder: Option<Mover>,
}

/// The kind of lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LockKind {
    /// The lock of a zone.
    Zone,
    /// Another spinning lock.
    Spin,
    /// A lock whose waiters do not spin.
    Other,
}

/// A CPU and task that moved a block between a free list and a page set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Mover {
    pub(super) cpu: u16,
    pub(super) pid: u32,
    zone: Option<usize>,
    at_ns: u64,
}

/// Matches the beginning of each wait with its end.
#[derive(Debug, Default)]
pub(super) struct Waits {
    open: LockWaits,
    /// For each CPU, the last wait for a spinning lock that ended on this CPU. The waiter's next event shows
    /// whether the lock was a zone lock.
    ended: BTreeMap<u16, Wait>,
    /// The last two different CPUs that moved a block, the latest first.
    movers: [Option<Mover>; 2],
}

impl Waits {
    /// Adds an event. Returns a wait once later events can add nothing about the wait.
    #[inline]
    pub(super) fn record(&mut self, event: &Event, zone: Option<usize>) -> Option<Wait> {
        match event.kind {
            EventKind::ContentionBegin => {
                self.open.begin(event);
                None
            }
            EventKind::ContentionEnd => self.end(event),
            _ => {
                let moves = matches!(
                    event.kind,
                    EventKind::MmPageAllocZoneLocked
                        | EventKind::MmPagePcpuDrain
                        | EventKind::MmPageAllocExtfrag
                );
                let over = if self.ended.is_empty() { None } else { self.ended.remove(&event.cpu) };
                let over = over.map(|wait| resolve(wait, event, zone, moves));
                if moves {
                    let mover = Mover { cpu: event.cpu, pid: event.pid, zone, at_ns: event.ts_ns };
                    if self.movers[0].is_some_and(|last| last.cpu != event.cpu) {
                        self.movers[1] = self.movers[0];
                    }
                    self.movers[0] = Some(mover);
                }
                over
            }
        }
    }

    fn end(&mut self, event: &Event) -> Option<Wait> {
        let over = self.open.end(event)?;
        let since_ns = event.ts_ns - over.wait_ns;
        let on_another = self.movers.iter().flatten().find(|mover| mover.cpu != event.cpu);
        let wait = Wait {
            since_ns,
            until_ns: event.ts_ns,
            lock: event.pfn,
            pid: event.pid,
            cpu: event.cpu,
            kind: match (over.is_spin, over.caller) {
                (true, Some(caller)) if caller.is_of_zone() => LockKind::Zone,
                (true, _) => LockKind::Spin,
                (false, _) => LockKind::Other,
            },
            caller: over.caller,
            holder: on_another.filter(|mover| mover.at_ns >= since_ns).copied(),
        };
        if over.is_spin {
            self.ended.insert(event.cpu, wait).map(without_holder)
        } else {
            Some(without_holder(wait))
        }
    }

    /// The number of waits with a beginning but no end, or with an end but no beginning.
    pub(super) fn unpaired(&self) -> u64 {
        self.open.unpaired()
    }

    /// Returns the waits whose lock is still undecided at the end of the recording.
    pub(super) fn finish(&mut self) -> impl Iterator<Item = Wait> + use<> {
        std::mem::take(&mut self.ended).into_values().map(without_holder)
    }
}

fn resolve(wait: Wait, next: &Event, zone: Option<usize>, moves: bool) -> Wait {
    let is_soon = next.ts_ns.checked_sub(wait.until_ns).is_some_and(|gap| gap <= GAP_NS_MAX);
    let may_be_zone = wait.caller.is_none_or(Caller::is_of_zone);
    if moves && is_soon && next.pid == wait.pid && may_be_zone {
        let holder = wait.holder.filter(|holder| holder.zone == zone);
        Wait { kind: LockKind::Zone, holder, ..wait }
    } else {
        without_holder(wait)
    }
}

fn without_holder(wait: Wait) -> Wait {
    Wait { holder: None, ..wait }
}

#[cfg(test)]
mod tests {
    use EventKind::{ContentionBegin, ContentionEnd, MmPageAlloc, MmPagePcpuDrain};

    use super::*;

    fn event(kind: EventKind, ts_ns: u64, cpu: u16, lock: u64) -> Event {
        Event { pid: 10 + u32::from(cpu), pfn: lock, gfp: 1, ..Event::new(kind, ts_ns, cpu) }
    }

    fn found(events: &[(EventKind, u64, u16, u64)]) -> (Vec<Wait>, u64) {
        let mut waits = Waits::default();
        let all = events.iter().map(|(kind, ts_ns, cpu, lock)| event(*kind, *ts_ns, *cpu, *lock));
        let mut over: Vec<Wait> = all.filter_map(|event| waits.record(&event, Some(2))).collect();
        over.extend(waits.finish());
        (over, waits.unpaired())
    }

    #[test]
    fn who_moved_blocks_while_somebody_waited_held_the_zones_lock() {
        let (waits, unpaired) = found(&[
            (MmPagePcpuDrain, 90, 1, 0),
            (ContentionBegin, 100, 0, 7),
            (MmPagePcpuDrain, 120, 1, 0),
            (ContentionEnd, 150, 0, 7),
            (MmPagePcpuDrain, 160, 0, 0),
        ]);
        assert_eq!((waits.len(), unpaired), (1, 0));
        assert_eq!((waits[0].since_ns, waits[0].until_ns, waits[0].kind), (100, 150, LockKind::Zone));
        assert_eq!(waits[0].holder.map(|holder| (holder.cpu, holder.pid)), Some((1, 11)));
    }

    #[test]
    fn a_lock_after_which_no_block_moves_is_another() {
        let (waits, _) = found(&[
            (ContentionBegin, 100, 0, 7),
            (MmPagePcpuDrain, 120, 1, 0),
            (ContentionEnd, 150, 0, 7),
            (MmPageAlloc, 160, 0, 0),
        ]);
        assert_eq!((waits[0].kind, waits[0].holder), (LockKind::Spin, None));
    }

    #[test]
    fn a_block_moved_before_the_wait_shows_no_holder() {
        let (waits, _) = found(&[
            (MmPagePcpuDrain, 90, 1, 0),
            (ContentionBegin, 100, 0, 7),
            (ContentionEnd, 150, 0, 7),
            (MmPagePcpuDrain, 160, 0, 0),
        ]);
        assert_eq!((waits[0].kind, waits[0].holder), (LockKind::Zone, None));
    }

    #[test]
    fn call_chains_decide_whatever_comes_next() {
        for (caller, kind) in [(Caller::Refill, LockKind::Zone), (Caller::Elsewhere, LockKind::Spin)] {
            let mut waits = Waits::default();
            let begin = Event { order: caller.code(), ..event(ContentionBegin, 100, 0, 7) };
            assert_eq!(waits.record(&begin, None), None);
            assert_eq!(waits.record(&event(ContentionEnd, 150, 0, 7), None), None);
            let over = waits.record(&event(MmPagePcpuDrain, 160, 0, 0), Some(2)).unwrap();
            assert_eq!((over.kind, over.caller), (kind, Some(caller)));
        }
    }

    #[test]
    fn halves_of_waits_are_counted() {
        let (waits, unpaired) = found(&[(ContentionEnd, 1, 0, 7), (ContentionBegin, 2, 0, 7)]);
        assert_eq!((waits.len(), unpaired), (0, 2));
    }
}
