//! Observes the machine: takes a reading per interval, and makes a view of each interval.

use std::time::Duration;

use crate::counters::{Counters, CpuCounts};
use crate::reading::{Proc, ReadError, Reading};
use crate::unchanged::Unchanged;
use crate::view::{Counted, View, cpus};
use crate::zone_lock::ZoneLockWatch;

/// The last reading, and the data of earlier readings that the next view needs.
pub struct Monitor {
    proc: Proc,
    last: Reading,
    unchanged: Unchanged,
    counters: Result<Counters, String>,
    counts: Vec<CpuCounts>,
    zone_locks: ZoneLockWatch,
    /// Busy time of the running kernel's CPUs. `None` if the readings are not of `/proc`.
    busy: Option<Duration>,
}

impl Monitor {
    /// Takes the first reading. Starts to count tracepoints and to record waits for locks, if the kernel
    /// allows it.
    ///
    /// # Errors
    /// The errors of [`Proc::read`]. If the kernel refuses to count or record, `start` does not fail, but
    /// each view reports the refusal.
    pub fn start(proc: Proc) -> Result<Self, ReadError> {
        let last = proc.read()?;
        let mut unchanged = Unchanged::default();
        unchanged.note(&last);
        let mut counters = Counters::open(&cpus(&last));
        let counts = counters.as_mut().map(|counters| counters.read(&cpus(&last))).unwrap_or_default();
        // The watch records only waits of the running kernel, so do not watch if the readings are of other
        // files.
        let zone_locks = if proc.is_of_this_machine() {
            ZoneLockWatch::begin()
        } else {
            ZoneLockWatch::none("the readings are not of the running kernel")
        };
        let busy = busy(&proc);
        Ok(Self { proc, last, unchanged, counters, counts, zone_locks, busy })
    }

    /// Takes a reading, and returns the activity since the last step or since the start.
    ///
    /// # Errors
    /// The errors of [`Proc::read`]. The next step then starts from the last successful reading.
    pub fn step(&mut self) -> Result<View, ReadError> {
        let reading = self.proc.read()?;
        self.unchanged.note(&reading);
        let mut view = View::between(&self.last, &reading, &self.unchanged);
        let busy = busy(&self.proc);
        view.busy_ns = self
            .busy
            .zip(busy)
            .and_then(|(before, now)| u64::try_from(now.checked_sub(before)?.as_nanos()).ok());
        self.busy = busy;
        match &mut self.counters {
            Ok(counters) => {
                let counts = counters.read(&cpus(&reading));
                view.counted = Some(Counted::between(&self.counts, &counts, view.interval_ns));
                self.counts = counts;
            }
            Err(reason) => view.missing.push(format!("No exact rates: {reason}.")),
        }
        match self.zone_locks.step(view.interval_ns, view.totals.cpus) {
            Ok(zone_lock) => view.zone_lock = zone_lock,
            Err(reason) => view.missing.push(format!("No waits for zone locks: {reason}.")),
        }
        self.last = reading;
        Ok(view)
    }
}

fn busy(proc: &Proc) -> Option<Duration> {
    proc.is_of_this_machine().then(pageset_record::busy)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_step_is_from_the_reading_before() {
        let directory = tempfile::tempdir().unwrap();
        let write = |count: u32| {
            let text = format!("Node 0, zone Normal\n pages free 9\n managed 10\n cpu: 0\n count: {count}\n");
            fs::write(directory.path().join("zoneinfo"), text).unwrap();
        };
        fs::write(directory.path().join("vmstat"), "pgfree 3\n").unwrap();
        write(4);
        let mut monitor = Monitor::start(Proc::at(directory.path())).unwrap();
        write(7);
        assert_eq!(monitor.step().unwrap().pagesets[0].change, Some(3));
        fs::write(directory.path().join("zoneinfo"), "").unwrap();
        monitor.step().unwrap_err();
        write(5);
        let view = monitor.step().unwrap();
        assert_eq!(view.pagesets[0].change, Some(-2));
        assert!(view.missing.iter().any(|line| line.contains("No waits for zone locks")));
    }
}
