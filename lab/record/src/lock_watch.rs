//! Watches waits for zone locks without a recording, for programs that show the current activity.

use std::collections::HashMap;

use pageset_trace::{Caller, EventKind, LockName, LockWaits};

use crate::cpus::CpuList;
use crate::error::RecordError;
use crate::tracefs::Tracefs;
use crate::watch::{Watch, Watched};

/// Maximum number of tasks that are distinguished.
const TASKS_MAX: usize = 1 << 16;
/// Maximum number of pairs of a lock and a call site that are distinguished.
const LOCKS_MAX: usize = 1 << 16;

/// Waits for spinning locks since the beginning of a watch. Times are sums over all CPUs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WaitTotals {
    /// Waits by caller, in the order of [`Caller::ALL`]. All entries except the last are waits for zone
    /// locks.
    pub callers: [Waited; Caller::ALL.len()],
    /// Waits whose call chain does not show the caller.
    pub unknown: Waited,
    /// Number of events that were missed.
    pub lost: u64,
}

/// Number and total time of waits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Waited {
    /// Number of waits.
    pub waits: u64,
    /// Total time of the waits, in nanoseconds.
    pub wait_ns: u64,
}

impl WaitTotals {
    fn add(&mut self, caller: Option<Caller>, wait_ns: u64) {
        let waited = match caller {
            Some(caller) => &mut self.callers[usize::from(caller.code()) - 1],
            None => &mut self.unknown,
        };
        waited.add(wait_ns);
    }
}

impl Waited {
    fn add(&mut self, wait_ns: u64) {
        self.plus(Self { waits: 1, wait_ns });
    }

    pub(crate) fn plus(&mut self, other: Self) {
        self.waits = self.waits.saturating_add(other.waits);
        self.wait_ns = self.wait_ns.saturating_add(other.wait_ns);
    }
}

/// Waits by the names of call sites and locks.
#[derive(Debug, Default)]
pub(crate) struct NamedWaits {
    /// Waits for zone locks, by call site.
    pub(crate) sites: HashMap<Option<String>, Waited>,
    /// Waits for other locks. `locks` also counts a wait for a zone lock if the wait's call chain does not
    /// show the lock.
    pub(crate) locks: HashMap<LockName, Waited>,
}

/// Watches waits in its own tracing instance, which is removed on drop.
pub struct LockWatch {
    watch: Watch,
    waits: LockWaits,
    totals: WaitTotals,
    /// Waits for zone locks by task. The key is `None` for waits in interrupts, and for waits of tasks beyond
    /// the limit.
    by_task: HashMap<Option<u32>, Waited>,
    /// Waits for zone locks by call site.
    by_site: HashMap<Option<u16>, Waited>,
    /// Waits for other locks by address and call site. Waits beyond the limit have address 0 and no call
    /// site.
    others: HashMap<(u64, Option<u16>), Waited>,
}

impl LockWatch {
    /// Begins to watch all CPUs.
    ///
    /// # Errors
    /// The errors of [`Session::prepare`](crate::Session::prepare), and an error if the kernel records no
    /// call chains.
    pub fn begin() -> Result<Self, RecordError> {
        let tracefs = Tracefs::find()?;
        let kinds = &[EventKind::ContentionBegin, EventKind::ContentionEnd];
        let watch = Watch::prepare(&tracefs, &CpuList::online(), Watched { kinds, with_call_chains: true })?;
        watch.begin()?;
        Ok(Self {
            watch,
            waits: LockWaits::default(),
            totals: WaitTotals::default(),
            by_task: HashMap::new(),
            by_site: HashMap::new(),
            others: HashMap::new(),
        })
    }

    /// All waits that have ended since the beginning, except waits that ended within the last 5 ms.
    ///
    /// # Errors
    /// An error of the system.
    pub fn totals(&mut self) -> Result<WaitTotals, RecordError> {
        for event in self.watch.read()? {
            match event.kind {
                EventKind::ContentionBegin => self.waits.begin(event),
                EventKind::ContentionEnd => {
                    if let Some(wait) = self.waits.end(event).filter(|wait| wait.is_spin) {
                        self.totals.add(wait.caller, wait.wait_ns);
                        if wait.caller.is_some_and(|caller| caller.is_of_zone()) {
                            let tid = Some(event.pid).filter(|_| !event.in_interrupt());
                            let is_listed = self.by_task.len() < TASKS_MAX || self.by_task.contains_key(&tid);
                            let tid = tid.filter(|_| is_listed);
                            self.by_task.entry(tid).or_default().add(wait.wait_ns);
                            self.by_site.entry(wait.call_site).or_default().add(wait.wait_ns);
                        } else {
                            let lock = (event.pfn, wait.call_site);
                            let is_listed = self.others.len() < LOCKS_MAX || self.others.contains_key(&lock);
                            let lock = if is_listed { lock } else { (0, None) };
                            self.others.entry(lock).or_default().add(wait.wait_ns);
                        }
                    }
                }
                _ => {}
            }
        }
        self.totals.lost = self.watch.lost();
        Ok(self.totals)
    }
}

impl LockWatch {
    /// Waits for zone locks by task number, as they were at the last call of [`LockWatch::totals`].
    pub(crate) const fn by_task(&self) -> &HashMap<Option<u32>, Waited> {
        &self.by_task
    }

    /// Waits by the names of call sites and locks, as they were at the last call of [`LockWatch::totals`].
    pub(crate) fn by_name(&self) -> NamedWaits {
        let names = self.watch.call_sites().unwrap_or_default();
        let mut named = NamedWaits::default();
        for (site, waited) in &self.by_site {
            let name = site.and_then(|site| names.function(site)).map(str::to_owned);
            named.sites.entry(name).or_default().plus(*waited);
        }
        for ((address, site), waited) in &self.others {
            named.locks.entry(names.lock(*address, *site)).or_default().plus(*waited);
        }
        named
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_are_counted_by_caller() {
        let mut totals = WaitTotals::default();
        for (caller, wait_ns) in [(Some(Caller::Refill), 5), (Some(Caller::Refill), 6), (None, 7)] {
            totals.add(caller, wait_ns);
        }
        assert_eq!(totals.callers[0], Waited { waits: 2, wait_ns: 11 });
        assert_eq!(totals.unknown, Waited { waits: 1, wait_ns: 7 });
    }
}
