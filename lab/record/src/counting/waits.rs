//! Measures the times of waits for zone locks while waits are rare. Each wait costs a record with its call
//! chain.

use std::collections::HashMap;

use pageset_trace::{Caller, ZoneWaits};

use crate::lock_watch::{LockWatch, NamedWaits, WaitTotals, Waited};

/// Rate of waits on a CPU, per second, at which measuring stops. The rate is a guess: if a wait costs 2 us,
/// 5000 waits per second cost one percent of the CPU's time.
const TOO_MANY: f64 = 5000.0;

/// Measures waits until they become too frequent.
pub(crate) struct Waits {
    watch: Option<LockWatch>,
    totals: WaitTotals,
    missing: Option<String>,
}

impl Waits {
    /// Starts to measure. If waits cannot be measured, adds the reason to `not_recorded`.
    pub(crate) fn begin(not_recorded: &mut Vec<String>) -> Self {
        let watch = match LockWatch::begin() {
            Ok(watch) => Some(watch),
            Err(error) => {
                not_recorded.push(format!("how long zone locks are waited for: {error}"));
                None
            }
        };
        Self { watch, totals: WaitTotals::default(), missing: None }
    }

    /// Counts the waits that have ended, and gives up if there are too many waits. `rate` is the number of
    /// waits per second on the CPU with the most waits.
    pub(crate) fn look(&mut self, rate: f64) {
        let Some(watch) = &mut self.watch else { return };
        let is_over = match watch.totals() {
            Ok(totals) => {
                self.totals = totals;
                (rate > TOO_MANY).then(|| "there were too many".to_owned())
            }
            Err(error) => Some(error.to_string()),
        };
        if let Some(why) = is_over {
            self.missing = Some(format!("how long zone locks are waited for: {why}"));
            self.watch = None;
        }
    }

    /// The reason why measuring stopped before the end. `None` if measuring did not stop.
    pub(crate) fn missing(&self) -> Option<String> {
        self.missing.clone()
    }

    /// Waits of each task. Waits without a known task have the key `None`.
    pub(crate) fn by_task(&self) -> HashMap<Option<u32>, Waited> {
        self.watch.as_ref().map(|watch| watch.by_task().clone()).unwrap_or_default()
    }

    /// Waits for zone locks by call site, and waits for other locks. `None` if measuring stopped, or if some
    /// waits were missed.
    pub(crate) fn by_name(&self) -> Option<NamedWaits> {
        let watch = self.watch.as_ref().filter(|_| self.totals.lost == 0)?;
        Some(watch.by_name())
    }

    /// The number and time of all waits for zone locks. `None` if measuring stopped, or if some waits were
    /// missed.
    pub(crate) fn counts(&self) -> Option<ZoneWaits> {
        self.watch.as_ref()?;
        let of_zone =
            Caller::ALL.into_iter().zip(self.totals.callers).filter(|(caller, _)| caller.is_of_zone());
        let (mut waits, mut wait_ns) = (0, 0);
        for (_, waited) in of_zone {
            waits += waited.waits;
            wait_ns += waited.wait_ns;
        }
        let (lost, unknown) = (self.totals.lost, self.totals.unknown);
        (lost == 0).then_some(ZoneWaits {
            waits,
            wait_ns,
            unknown_waits: unknown.waits,
            unknown_wait_ns: unknown.wait_ns,
        })
    }
}
