//! Compares a forecast with a measurement, for a load that was recorded under two kernels or settings.

use pageset_core::Policy;
use pageset_trace::TraceReader;
use serde::Serialize;

use crate::kernel_policy::policy_of_kernel;
use crate::recorded::needs;
use crate::replay::{
    Candidate, Interval, KernelTotals, Outcome, Replay, ReplayError, ReplayOptions, VmSettings, replay,
};

/// The recordings under one kernel and setting, and the refills and drains that the kernel made during these
/// recordings.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Side {
    /// The policy of the recorded kernel.
    pub policy: &'static str,
    /// The command of the first recording, with its arguments. The list is empty if no command is known.
    pub command: Vec<String>,
    /// The kernel's own counts in each recording.
    pub runs: Vec<KernelTotals>,
}

/// One quantity: the values that the first side predicts, and the values that the second side had.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Change {
    /// The name of the quantity.
    pub quantity: &'static str,
    /// Mean of the first side's runs.
    pub from: f64,
    /// Mean of the second side's runs.
    pub to: f64,
    /// Mean of the predictions, one from each run of the first side.
    pub predicted: f64,
    /// Noise of the second side: the range of its runs' values, divided by the mean of these values.
    pub noise: f64,
    /// The mean of the lower ends of the predictions' intervals, and the mean of the upper ends. `None` for
    /// quantities without an interval.
    pub interval: Option<(f64, f64)>,
    /// The largest value that the load allows: each allocated and each freed block causes a visit, and each
    /// visit moves as many pages as the mean of the predicted visits.
    pub most: f64,
    /// Each run of the second side is compared with each interval. The first number counts the comparisons
    /// where the run lies inside the interval. The second number counts all comparisons.
    pub covered: Option<(u64, u64)>,
}

impl Change {
    /// Returns the upper end of the interval. `None` if there is no interval, or if its upper end is larger
    /// than the load allows.
    #[must_use]
    pub fn upper_end(&self) -> Option<f64> {
        self.interval.map(|(_, high)| high).filter(|high| *high <= self.most)
    }

    /// Returns the measured factor: the second side's value divided by the first side's value.
    #[must_use]
    pub fn real_ratio(&self) -> f64 {
        ratio(self.to, self.from)
    }

    /// Returns the predicted factor: the predicted value divided by the first side's value.
    #[must_use]
    pub fn predicted_ratio(&self) -> f64 {
        ratio(self.predicted, self.from)
    }

    /// Returns the factor between prediction and measurement: the larger value divided by the smaller value.
    #[must_use]
    pub fn off_by(&self) -> f64 {
        let ratio = ratio(self.predicted, self.to);
        ratio.max(1.0 / ratio)
    }
}

/// Returns the ratio of two counts. Half is added to both counts, so that a count of 0 causes no division by
/// zero.
fn ratio(a: f64, b: f64) -> f64 {
    (a + 0.5) / (b + 0.5)
}

/// The comparison of two sides: forecasts from one side, and measurements from the other side.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Against {
    /// The side whose load is replayed.
    pub from: Side,
    /// The side that the replay is compared with.
    pub to: Side,
    /// The second side's settings, where they differ from the first side's settings.
    pub settings: String,
    /// One [`Change`] each for refills, refilled pages, drains, drained pages and visits.
    pub changes: Vec<Change>,
}

/// Forecasts the load of each recording in `from` under the kernel and settings of the first recording in
/// `to`. Compares the forecasts with the recordings in `to`. Repeats on either side show how much the
/// kernel's counts vary from run to run.
///
/// # Errors
/// An error if a side has no recording, or if a recording is damaged, does not describe its machine,
/// lacks events, or comes from a kernel whose policy is not known.
pub fn against(
    from: &mut [Box<dyn TraceReader>],
    to: &mut [Box<dyn TraceReader>],
) -> Result<Against, ReplayError> {
    let unknown = || ReplayError::NoMachine("give at least one recording of each side".into());
    let candidate = {
        let (from, to) = (from.first().ok_or_else(unknown)?, to.first().ok_or_else(unknown)?);
        let settings = match (&from.info().machine, &to.info().machine) {
            (Some(from), Some(to)) => VmSettings::between(from, to),
            _ => VmSettings::default(),
        };
        Candidate { policy: policy_of(to.as_ref())?, settings }
    };
    let policy = policy_of(from[0].as_ref())?;
    let commands = [from[0].info().command.clone(), to[0].info().command.clone()];
    let mut to_runs = Vec::new();
    for reader in to {
        let options = ReplayOptions::default();
        to_runs.push(replayed(reader.as_mut(), &options)?.kernel_itself);
    }
    let (mut from_runs, mut predictions) = (Vec::new(), Vec::new());
    for reader in from {
        let options = ReplayOptions { candidates: vec![candidate], ..ReplayOptions::default() };
        let replay = replayed(reader.as_mut(), &options)?;
        from_runs.push(replay.kernel_itself);
        predictions.extend(replay.outcomes);
    }
    let visits_most = mean(predictions.iter().map(|p| p.allocs + p.frees));
    let pages = mean(predictions.iter().map(|p| p.refilled_pages + p.drained_pages));
    let pages_most = visits_most * (pages / mean(predictions.iter().map(Outcome::visits)).max(1.0)).max(1.0);
    let change = |quantity: &'static str,
                  real: fn(&KernelTotals) -> Option<u64>,
                  predicted: Vec<(u64, Option<Interval>)>| {
        let truths: Vec<u64> = to_runs.iter().filter_map(real).collect();
        let to = mean(truths.iter().copied());
        let intervals: Option<Vec<Interval>> = predicted.iter().map(|(_, interval)| *interval).collect();
        let covered = intervals.as_ref().map(|intervals| {
            let all =
                intervals.iter().flat_map(|interval| truths.iter().map(|truth| interval.covers(*truth)));
            (all.clone().filter(|covers| *covers).count() as u64, all.count() as u64)
        });
        let range = truths.iter().max().zip(truths.iter().min()).map_or(0, |(most, fewest)| most - fewest);
        Change {
            quantity,
            from: mean(from_runs.iter().filter_map(real)),
            to,
            predicted: mean(predicted.iter().map(|(value, _)| *value)),
            noise: range as f64 / to.max(1.0),
            interval: intervals.map(|all| (mean(all.iter().map(|i| i.0)), mean(all.iter().map(|i| i.1)))),
            most: if quantity.ends_with("pages") { pages_most } else { visits_most },
            covered,
        }
    };
    let changes = vec![
        change("refills", |run| run.refills, predictions.iter().map(|p| (p.refills, None)).collect()),
        change(
            "refilled_pages",
            |run| run.refilled_pages,
            predictions
                .iter()
                .map(|p| (p.refilled_pages, p.interval.map(|interval| interval.refilled_pages)))
                .collect(),
        ),
        change("drains", |run| run.drains, predictions.iter().map(|p| (p.drains, None)).collect()),
        change(
            "drained_pages",
            |run| run.drained_pages,
            predictions
                .iter()
                .map(|p| (p.drained_pages, p.interval.map(|interval| interval.drained_pages)))
                .collect(),
        ),
        change(
            "visits",
            KernelTotals::visits,
            predictions.iter().map(|p| (p.visits(), p.interval.map(|interval| interval.visits))).collect(),
        ),
    ];
    let [from_command, to_command] = commands;
    Ok(Against {
        from: Side { policy: policy.name, command: from_command, runs: from_runs },
        to: Side { policy: candidate.policy.name, command: to_command, runs: to_runs },
        settings: candidate.settings.to_string(),
        changes,
    })
}

/// Replays a recording. Returns an error unless the recording shows the visits of its kernel.
fn replayed(reader: &mut dyn TraceReader, options: &ReplayOptions) -> Result<Replay, ReplayError> {
    let replay = replay(reader, options, |_| {})?;
    replay.recorded.require(needs::VISITS, reader.info())?;
    Ok(replay)
}

fn policy_of(reader: &dyn TraceReader) -> Result<Policy, ReplayError> {
    let info = reader.info();
    let kernel = info.kernel.as_deref().or(info.machine.as_ref().map(|machine| machine.kernel.as_str()));
    policy_of_kernel(kernel.unwrap_or_default()).copied().ok_or_else(|| {
        let path = info.path.display();
        ReplayError::NoMachine(format!("{path}: no policy is known for kernel {:?}", kernel.unwrap_or("?")))
    })
}

fn mean(values: impl Iterator<Item = u64>) -> f64 {
    let (sum, count) = values.fold((0.0, 0_u32), |(sum, count), value| (sum + value as f64, count + 1));
    sum / f64::from(count.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_above_the_load_is_no_end() {
        let change = |interval| Change {
            quantity: "drained_pages",
            from: 1.0,
            to: 1.0,
            predicted: 1.0,
            noise: 0.0,
            interval,
            most: 40_000.0,
            covered: None,
        };
        assert_eq!(change(Some((11_696.0, 27_750_088_172.0))).upper_end(), None);
        assert_eq!(change(Some((11_696.0, 40_000.0))).upper_end(), Some(40_000.0));
        assert_eq!(change(None).upper_end(), None);
    }
}
