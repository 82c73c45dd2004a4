//! Waits for zone locks as they happen, without a recording: for programs that show what a machine does now.

use pageset_trace::{Caller, EventKind, LockWaits};

use crate::cpus::CpuList;
use crate::error::RecordError;
use crate::tracefs::Tracefs;
use crate::watch::{Watch, Watched};

/// Waits for spinning locks since a watch began. Times are sums over all CPUs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WaitTotals {
    /// By [`Caller::ALL`]: all but the last are waits for zone locks.
    pub callers: [Waited; Caller::ALL.len()],
    /// Those whose call chain says nothing.
    pub unknown: Waited,
    /// Events that were missed.
    pub lost: u64,
}

/// Waits, and their time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Waited {
    /// How many.
    pub waits: u64,
    /// Their time in nanoseconds.
    pub wait_ns: u64,
}

impl WaitTotals {
    fn add(&mut self, caller: Option<Caller>, wait_ns: u64) {
        let waited = match caller {
            Some(caller) => &mut self.callers[usize::from(caller.code()) - 1],
            None => &mut self.unknown,
        };
        waited.waits += 1;
        waited.wait_ns = waited.wait_ns.saturating_add(wait_ns);
    }
}

/// Watches waits in a tracing instance of its own, which goes when it is dropped.
pub struct LockWatch {
    watch: Watch,
    waits: LockWaits,
    totals: WaitTotals,
}

impl LockWatch {
    /// Begins to watch all CPUs.
    ///
    /// # Errors
    /// What [`Session::prepare`](crate::Session::prepare) says, or the kernel shows no call chains.
    pub fn begin() -> Result<Self, RecordError> {
        let tracefs = Tracefs::find()?;
        let kinds = &[EventKind::ContentionBegin, EventKind::ContentionEnd];
        let watch = Watch::prepare(&tracefs, &CpuList::online(), Watched { kinds, with_call_chains: true })?;
        watch.begin()?;
        Ok(Self { watch, waits: LockWaits::default(), totals: WaitTotals::default() })
    }

    /// All waits that have ended since it began, but those of the last 5 ms.
    ///
    /// # Errors
    /// The system refuses.
    pub fn totals(&mut self) -> Result<WaitTotals, RecordError> {
        for event in self.watch.read()? {
            match event.kind {
                EventKind::ContentionBegin => self.waits.begin(event),
                EventKind::ContentionEnd => {
                    if let Some(wait) = self.waits.end(event).filter(|wait| wait.is_spin) {
                        self.totals.add(wait.caller, wait.wait_ns);
                    }
                }
                _ => {}
            }
        }
        self.totals.lost = self.watch.lost();
        Ok(self.totals)
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
