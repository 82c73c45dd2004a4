//! Measures how long CPUs held zone locks, and how long CPUs waited for zone locks.
//!
//! An event has a lock's address, but not its name. The functions of a recorded call chain show whether the
//! lock is a zone lock, and which caller waited for the lock. Without a call chain, the next event of the
//! waiting task decides. If this event moves a block to or from a free list, the lock was a zone lock. A lock
//! is either always or never a zone lock. It counts as a zone lock if such an event follows more than half of
//! its waits without a call chain.

use std::collections::HashMap;

use pageset_trace::{Caller, Event, EventKind, LockWait};
use serde::{Serialize, Serializer};

use super::who::TaskSlot;
use crate::recorded::{RecordedKinds, needs};

/// Maximum number of locks that are counted separately. No kernel has so many contended locks, but a damaged
/// or malicious recording may name more locks.
const LOCKS_MAX: usize = 64 << 10;
/// Two blocks that a task moves within this time count as moved under one hold of the lock. After a longer
/// gap, the lock was taken again. A kernel moves a block in 0.1 to 2 us.
const GAP_NS_MAX: u64 = 20_000;
/// Maximum number of pairs of a lock and a task with separate counts. Waits of all further pairs are counted
/// together.
const PAIRS_MAX: usize = 1 << 20;

/// The zone locks of a recording. Times are sums over all CPUs, in nanoseconds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ZoneLocks {
    /// Time that CPUs held zone locks to move blocks. Each hold counts from its first to its last moved
    /// block, plus an estimate for one more block.
    pub held_ns: Option<u64>,
    /// Waits for zone locks whose call chain shows the caller, in the order of [`Caller::ALL`]. Callers
    /// without waits are left out.
    pub by_caller: Vec<CallerWaits>,
    /// All waits for spinning locks.
    pub waits: Option<ZoneLockWaits>,
}

/// JSON has the waits, or `null` if they are not known.
impl Serialize for ZoneLocks {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Waits<'a> {
            waits: u64,
            wait_ns: u64,
            by_caller: &'a [CallerWaits],
        }
        let Self { by_caller, waits, .. } = self;
        let waits = waits.as_ref().map(|of| Waits { waits: of.waits, wait_ns: of.wait_ns, by_caller });
        waits.serialize(serializer)
    }
}

/// Waits for zone locks, and for other spinning locks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ZoneLockWaits {
    /// Number of waits for zone locks.
    pub waits: u64,
    /// Nanoseconds that the waits for zone locks took.
    pub wait_ns: u64,
    /// Waits for zone locks by call site, sorted by time, longest time first. `None` stands for an unknown
    /// call site.
    pub sites: Vec<(Option<u16>, WaitSum)>,
    /// Waits for other spinning locks, sorted by time, longest time first.
    pub others: Vec<OtherLock>,
    /// Addresses of the locks that count as zone locks because of the events after their waits, in ascending
    /// order.
    pub addresses: Vec<u64>,
    /// Number of waits for spinning locks other than zone locks.
    pub other_waits: u64,
    /// Nanoseconds that the waits counted in `other_waits` took.
    pub other_wait_ns: u64,
    /// The part of `other_wait_ns` that belongs to the lock with the longest total time of waits.
    pub other_longest_wait_ns: u64,
}

/// The waits for zone locks whose call chain contains one caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct CallerWaits {
    /// The caller.
    #[serde(serialize_with = "name_of")]
    pub caller: Caller,
    /// The number of waits.
    pub waits: u64,
    /// Time of the waits in nanoseconds.
    pub wait_ns: u64,
}

fn name_of<S: Serializer>(caller: &Caller, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(caller.name())
}

/// Waits for a spinning lock other than a zone lock, at one call site.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OtherLock {
    /// The lock's address. `None` stands for all locks without a separate entry.
    pub address: Option<u64>,
    /// The call site. `None` if the call site is not known.
    pub site: Option<u16>,
    /// The waits.
    pub waits: WaitSum,
}

/// The number of callers that can wait for zone locks.
const CALLERS: usize = Caller::ALL.len() - 1;

/// The number of waits, and the sum of their times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WaitSum {
    /// The number of waits.
    pub waits: u64,
    /// Time of the waits in nanoseconds.
    pub wait_ns: u64,
}

impl WaitSum {
    fn add(&mut self, wait_ns: u64) {
        self.plus(Self { waits: 1, wait_ns });
    }

    fn plus(&mut self, other: Self) {
        self.waits = self.waits.saturating_add(other.waits);
        self.wait_ns = self.wait_ns.saturating_add(other.wait_ns);
    }
}

/// Finds how long CPUs held zone locks and waited for zone locks.
#[derive(Debug, Default)]
pub(super) struct ZoneLockCounter {
    locks: HashMap<u64, Lock>,
    beyond: Lock,
    callers: [WaitSum; CALLERS],
    /// Waits for zone locks by call site, according to call chains.
    by_site: HashMap<Option<u16>, WaitSum>,
    /// Waits for other locks by address and call site, according to call chains.
    elsewhere: HashMap<(Option<u64>, Option<u16>), WaitSum>,
    /// Waits for zone locks by task, according to call chains.
    by_task: HashMap<TaskSlot, WaitSum>,
    /// Number of pairs of a lock and a task with separate counts. Only waits without a call chain are counted
    /// by lock and task.
    pairs: usize,
    /// The last event of each CPU. The lock may still be held at the CPU's next event.
    last: Vec<Last>,
    gaps: u64,
    gaps_ns: u64,
    /// How many times a lock was held to move at least one block.
    holds: u64,
}

#[derive(Clone, Debug, Default)]
struct Lock {
    /// Number of waits without a call chain.
    waits: u64,
    wait_ns: u64,
    /// Number of waits among `waits` after which the waiter's next event moved a block.
    moved: u64,
    /// Waits whose call chain shows that the lock is not a zone lock.
    elsewhere: WaitSum,
    /// Waits without a call chain, by task.
    by_task: HashMap<TaskSlot, WaitSum>,
}

#[derive(Clone, Copy, Debug, Default)]
enum Last {
    #[default]
    Other,
    Obtained {
        lock: u64,
        pid: u32,
        at_ns: u64,
    },
    Moved {
        pid: u32,
        at_ns: u64,
    },
}

impl ZoneLockCounter {
    /// Adds an event of any kind except the end of a wait.
    #[inline]
    pub(super) fn record(&mut self, event: &Event) {
        // Skip the event of a fallback. The event of a fallback comes before the event of the moved block,
        // shows nothing about locks, and is missing in many recordings.
        if event.kind == EventKind::MmPageAllocExtfrag {
            return;
        }
        let moves = matches!(event.kind, EventKind::MmPageAllocZoneLocked | EventKind::MmPagePcpuDrain);
        if moves {
            self.moved(event);
        } else if let Some(last) = self.last.get_mut(usize::from(event.cpu)) {
            *last = Last::Other;
        }
    }

    fn moved(&mut self, event: &Event) {
        let (pid, at_ns) = (event.pid, event.ts_ns);
        match std::mem::replace(self.last(event.cpu), Last::Moved { pid, at_ns }) {
            Last::Moved { pid: before, at_ns: since } if is_next(before, since, event) => {
                self.gaps += 1;
                self.gaps_ns = self.gaps_ns.saturating_add(at_ns - since);
            }
            Last::Obtained { lock, pid: waiter, at_ns: since } => {
                self.holds += 1;
                if is_next(waiter, since, event)
                    && let Some(lock) = self.locks.get_mut(&lock)
                {
                    lock.moved += 1;
                }
            }
            _ => self.holds += 1,
        }
    }

    /// Adds a task's wait for a spinning lock. The wait has ended.
    pub(super) fn obtained(&mut self, event: &Event, wait: LockWait, task: TaskSlot) {
        let of_zone = wait.caller.filter(|caller| caller.is_of_zone());
        if let Some(caller) = of_zone {
            self.callers[usize::from(caller.code()) - 1].add(wait.wait_ns);
            self.by_site.entry(wait.call_site).or_default().add(wait.wait_ns);
            self.by_task.entry(task).or_default().add(wait.wait_ns);
            return;
        }
        let room = self.locks.len() < LOCKS_MAX;
        let lock = match self.locks.get_mut(&event.pfn) {
            Some(lock) => lock,
            None if room => self.locks.entry(event.pfn).or_default(),
            None => &mut self.beyond,
        };
        if wait.caller.is_some() {
            lock.elsewhere.add(wait.wait_ns);
            let at = (Some(event.pfn), wait.call_site);
            let is_listed = self.elsewhere.len() < LOCKS_MAX || self.elsewhere.contains_key(&at);
            let at = if is_listed { at } else { (None, None) };
            self.elsewhere.entry(at).or_default().add(wait.wait_ns);
            return;
        }
        lock.waits += 1;
        lock.wait_ns = lock.wait_ns.saturating_add(wait.wait_ns);
        let is_new = !lock.by_task.contains_key(&task);
        let task = if is_new && self.pairs >= PAIRS_MAX { TaskSlot::UNLISTED } else { task };
        self.pairs += usize::from(is_new);
        lock.by_task.entry(task).or_default().add(wait.wait_ns);
        *self.last(event.cpu) = Last::Obtained { lock: event.pfn, pid: event.pid, at_ns: event.ts_ns };
    }

    fn last(&mut self, cpu: u16) -> &mut Last {
        let cpu = usize::from(cpu);
        if self.last.len() <= cpu {
            self.last.resize(cpu + 1, Last::Other);
        }
        &mut self.last[cpu]
    }

    /// Returns the totals, and the waits for zone locks by task.
    pub(super) fn finish(mut self, recorded: &RecordedKinds) -> (ZoneLocks, HashMap<TaskSlot, WaitSum>) {
        let of_one = self.gaps_ns.checked_div(self.gaps).unwrap_or(0);
        let held_ns = self.gaps_ns.saturating_add(self.holds.saturating_mul(of_one));
        let by_caller = Caller::ALL.into_iter().zip(self.callers).filter(|(_, found)| found.waits > 0);
        let by_caller =
            by_caller.map(|(caller, WaitSum { waits, wait_ns })| CallerWaits { caller, waits, wait_ns });
        let by_caller = by_caller.collect();
        let mut found = ZoneLockWaits::default();
        for known in &self.callers {
            found.waits += known.waits;
            found.wait_ns = found.wait_ns.saturating_add(known.wait_ns);
        }
        let known = self.locks.iter().map(|(address, lock)| (Some(*address), lock));
        for (address, lock) in known.chain([(None, &self.beyond)]) {
            let mut other = lock.elsewhere;
            let inferred = WaitSum { waits: lock.waits, wait_ns: lock.wait_ns };
            // Recordings in text form have no addresses of locks, so several locks may share the entry
            // without an address.
            if lock.moved * 2 > lock.waits {
                found.addresses.extend(address);
                found.waits += lock.waits;
                found.wait_ns = found.wait_ns.saturating_add(lock.wait_ns);
                self.by_site.entry(None).or_default().plus(inferred);
                for (task, waited) in &lock.by_task {
                    let sum = self.by_task.entry(*task).or_default();
                    sum.waits += waited.waits;
                    sum.wait_ns = sum.wait_ns.saturating_add(waited.wait_ns);
                }
            } else {
                if inferred.waits > 0 {
                    self.elsewhere.entry((address, None)).or_default().plus(inferred);
                }
                other.waits += lock.waits;
                other.wait_ns = other.wait_ns.saturating_add(lock.wait_ns);
            }
            found.other_waits += other.waits;
            found.other_wait_ns = found.other_wait_ns.saturating_add(other.wait_ns);
            found.other_longest_wait_ns = found.other_longest_wait_ns.max(other.wait_ns);
        }
        found.addresses.sort_unstable();
        found.sites = self.by_site.into_iter().filter(|(_, waits)| waits.waits > 0).collect();
        found.sites.sort_unstable_by_key(|(site, waits)| (std::cmp::Reverse(waits.wait_ns), *site));
        let others = self.elsewhere.into_iter();
        found.others = others.map(|((address, site), waits)| OtherLock { address, site, waits }).collect();
        found
            .others
            .sort_unstable_by_key(|lock| (std::cmp::Reverse(lock.waits.wait_ns), lock.address, lock.site));
        let locks = ZoneLocks {
            held_ns: recorded.known(needs::VISITS, held_ns),
            by_caller,
            waits: recorded.known(needs::ZONE_WAITS, found),
        };
        (locks, self.by_task)
    }
}

/// Whether an event is of the same task, and comes so soon that the task probably still held the lock.
fn is_next(pid: u32, since_ns: u64, event: &Event) -> bool {
    pid == event.pid && event.ts_ns.checked_sub(since_ns).is_some_and(|gap| gap <= GAP_NS_MAX)
}

#[cfg(test)]
mod tests {
    use EventKind::{MmPageAlloc, MmPageAllocZoneLocked, MmPagePcpuDrain};

    use super::*;

    fn event(kind: EventKind, ts_ns: u64, cpu: u16) -> Event {
        Event { pid: 5, ..Event::new(kind, ts_ns, cpu) }
    }

    fn end(ts_ns: u64, lock: u64) -> Event {
        Event { pfn: lock, ..event(EventKind::ContentionEnd, ts_ns, 0) }
    }

    #[test]
    fn a_hold_lasts_from_block_to_block_and_one_block_more() {
        let mut counter = ZoneLockCounter::default();
        for (kind, ts_ns, cpu) in [
            (MmPageAllocZoneLocked, 1000, 0),
            (MmPagePcpuDrain, 1050, 1),
            (MmPageAllocZoneLocked, 1100, 0),
            (MmPageAlloc, 1200, 0),
            (MmPageAllocZoneLocked, 1300, 0),
            (MmPageAllocZoneLocked, 900_000, 0),
        ] {
            counter.record(&event(kind, ts_ns, cpu));
        }
        assert_eq!(
            counter.finish(&RecordedKinds::all()).0.held_ns,
            Some(100 + 4 * 100),
            "expected four holds of the lock, and one gap between blocks"
        );
    }

    fn wait(wait_ns: u64) -> LockWait {
        LockWait { wait_ns, is_spin: true, caller: None, call_site: None }
    }

    #[test]
    fn call_chains_decide_whatever_comes_next() {
        let mut counter = ZoneLockCounter::default();
        for (lock, caller, wait_ns) in
            [(1, Caller::Drain, 5), (1, Caller::Drain, 6), (2, Caller::Refill, 7), (3, Caller::Elsewhere, 8)]
        {
            counter.obtained(
                &end(1000, lock),
                LockWait { wait_ns, is_spin: true, caller: Some(caller), call_site: Some(lock as u16) },
                TaskSlot::UNLISTED,
            );
        }
        counter.record(&event(MmPagePcpuDrain, 1001, 0));
        counter.obtained(&end(2000, 4), wait(100), TaskSlot::UNLISTED);
        counter.record(&event(MmPagePcpuDrain, 2001, 0));
        let locks = counter.finish(&RecordedKinds::all()).0;
        let of = |caller, waits, wait_ns| CallerWaits { caller, waits, wait_ns };
        assert_eq!(locks.by_caller, [of(Caller::Refill, 1, 7), of(Caller::Drain, 2, 11)]);
        let json = serde_json::to_string(&locks).unwrap();
        let drains = r#"{"caller":"drain","waits":2,"wait_ns":11}]}"#;
        assert!(json.starts_with(r#"{"waits":4,"wait_ns":118,"by_caller":[{"#) && json.ends_with(drains));
        let found = locks.waits.unwrap();
        assert_eq!(
            (found.waits, found.wait_ns),
            (4, 118),
            "expected one wait that is recognised by the task's next event"
        );
        assert_eq!((found.other_waits, found.other_wait_ns), (1, 8));
        let waits = |waits, wait_ns| WaitSum { waits, wait_ns };
        let sites = [(None, waits(1, 100)), (Some(1), waits(2, 11)), (Some(2), waits(1, 7))];
        assert_eq!(found.sites, sites, "a wait that is recognised by the task's next event has no call site");
        let other = OtherLock { address: Some(3), site: Some(3), waits: waits(1, 8) };
        assert_eq!(found.others, [other]);
    }

    #[test]
    fn the_lock_after_which_blocks_move_is_a_zones() {
        let mut counter = ZoneLockCounter::default();
        for (at, lock, next) in [
            (1000, 1, MmPagePcpuDrain),
            (2000, 1, MmPageAllocZoneLocked),
            (3000, 1, MmPageAlloc),
            (4000, 2, MmPageAlloc),
            (5000, 2, MmPageAllocZoneLocked),
        ] {
            counter.obtained(&end(at, lock), wait(10 * lock), TaskSlot::UNLISTED);
            counter.record(&event(next, at + 100, 0));
        }
        counter.obtained(&end(6000, 3), wait(7), TaskSlot::UNLISTED);
        counter.record(&event(MmPagePcpuDrain, 6000 + GAP_NS_MAX + 1, 0));
        let found = counter.finish(&RecordedKinds::all()).0.waits.unwrap();
        assert_eq!(
            (found.waits, found.wait_ns),
            (3, 30),
            "expected a zone lock, because blocks move after two of three waits for lock 1"
        );
        assert_eq!((found.other_waits, found.other_wait_ns, found.other_longest_wait_ns), (3, 47, 40));
    }

    #[test]
    fn locks_are_bounded() {
        let mut counter = ZoneLockCounter::default();
        (0..LOCKS_MAX as u64 + 5)
            .for_each(|lock| counter.obtained(&end(lock, lock), wait(1), TaskSlot::UNLISTED));
        assert_eq!(counter.locks.len(), LOCKS_MAX);
        let found = counter.finish(&RecordedKinds::all()).0.waits.unwrap();
        assert_eq!(found.other_waits, LOCKS_MAX as u64 + 5, "none is lost");
    }
}
