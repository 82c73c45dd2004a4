//! How long CPUs wait for zone locks, by caller.

use pageset_record::{LockWatch, WaitTotals, Waited};
use pageset_trace::Caller;
use serde::Serialize;

use crate::difference::per_s;

/// Waits for spin locks in an interval, summed by the caller that the call chain shows.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ZoneLockView {
    /// Waits for zone locks per second, on all CPUs together.
    pub waits_per_s: f64,
    /// The part of all CPUs' time that the counted waits took, in percent.
    pub wait_percent: f64,
    /// Waits by caller. The row `elsewhere` has waits for spin locks that are not zone locks. The row
    /// `unknown` has waits without a usable call chain. `waits_per_s` and `wait_percent` of the view do not
    /// count the rows `elsewhere` and `unknown`.
    pub callers: Vec<CallerView>,
    /// Number of events of waits that the watch has missed since the start.
    pub lost: u64,
}

/// Waits of one caller.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CallerView {
    /// The part of the kernel that waited.
    pub caller: &'static str,
    /// Waits per second.
    pub waits_per_s: f64,
    /// The part of all CPUs' time that the counted waits took, in percent.
    pub wait_percent: f64,
}

impl ZoneLockView {
    /// Computes the waits between two totals, for an interval and a number of CPUs. `None` if no time has
    /// passed.
    #[must_use]
    pub fn between(earlier: &WaitTotals, later: &WaitTotals, interval_ns: u64, cpus: usize) -> Option<Self> {
        per_s(0, interval_ns)?;
        let all_ns = interval_ns as f64 * cpus.max(1) as f64;
        let row = |caller, earlier: Waited, later: Waited| {
            let waits = later.waits.saturating_sub(earlier.waits);
            let wait_ns = later.wait_ns.saturating_sub(earlier.wait_ns);
            let wait_percent = 100.0 * wait_ns as f64 / all_ns;
            CallerView { caller, waits_per_s: per_s(waits, interval_ns).unwrap_or(0.0), wait_percent }
        };
        let known = Caller::ALL.into_iter().zip(earlier.callers).zip(later.callers);
        let mut callers: Vec<_> =
            known.map(|((caller, earlier), later)| row(caller.name(), earlier, later)).collect();
        callers.push(row("unknown", earlier.unknown, later.unknown));
        let of_zones = callers.iter().zip(Caller::ALL).filter(|(_, caller)| caller.is_of_zone());
        let (waits_per_s, wait_percent) = of_zones.fold((0.0, 0.0), |(waits, percent), (row, _)| {
            (waits + row.waits_per_s, percent + row.wait_percent)
        });
        Some(Self { waits_per_s, wait_percent, callers, lost: later.lost })
    }
}

/// Either a watch with its totals so far, or the reason why there is no watch.
pub(crate) struct ZoneLockWatch(Result<(LockWatch, WaitTotals), String>);

impl ZoneLockWatch {
    /// Starts the watch, if the kernel allows it.
    pub(crate) fn begin() -> Self {
        Self(
            LockWatch::begin().map(|watch| (watch, WaitTotals::default())).map_err(|error| error.to_string()),
        )
    }

    /// Makes a watch that does not run, with the reason.
    pub(crate) fn none(reason: &str) -> Self {
        Self(Err(reason.to_owned()))
    }

    /// Returns the waits since the last step.
    ///
    /// # Errors
    /// The reason why the waits are not known.
    pub(crate) fn step(&mut self, interval_ns: u64, cpus: usize) -> Result<Option<ZoneLockView>, String> {
        let (watch, earlier) = self.0.as_mut().map_err(|reason| reason.clone())?;
        let later = watch.totals().map_err(|error| error.to_string())?;
        let earlier = std::mem::replace(earlier, later);
        Ok(ZoneLockView::between(&earlier, &later, interval_ns, cpus))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_are_parts_of_the_time_of_all_cpus() {
        let earlier = WaitTotals::default();
        let mut later = WaitTotals { lost: 3, ..WaitTotals::default() };
        later.callers[0] = Waited { waits: 4, wait_ns: 20_000_000 };
        later.callers[1] = Waited { waits: 2, wait_ns: 40_000_000 };
        later.callers[5] = Waited { waits: 100, wait_ns: 1_000_000_000 };
        let view = ZoneLockView::between(&earlier, &later, 2_000_000_000, 2).unwrap();
        assert_eq!((view.waits_per_s, view.wait_percent, view.lost), (3.0, 1.5, 3));
        let names: Vec<_> = view.callers.iter().map(|caller| caller.caller).collect();
        assert_eq!(names, ["refill", "drain", "alloc", "free", "other", "elsewhere", "unknown"]);
        assert_eq!(view.callers[5].waits_per_s, 50.0);
        assert_eq!(ZoneLockView::between(&earlier, &later, 0, 2), None);
    }
}
