//! Chooses parameters so that base rows come out as published.

use std::path::Path;

use anyhow::{Context as _, Result, anyhow};

use super::fitted::{FittedValue, set};
use super::runs::Results;
use super::{Experiment, Fit, Fitted, compare};
use crate::jobs;
use crate::progress::Progress;

/// Values tried for one parameter in the first round. Each halves the range, on a logarithmic scale.
const STEPS: usize = 7;
/// Rounds over the parameters of a table that has more than one, at most: each moves the other's target.
const ROUNDS: usize = 6;
/// After the first round, a parameter is sought so far around what was found.
const NARROW: f64 = 1.3;
/// Values tried for one parameter after the first round: they leave steps of 2 %.
const NARROW_STEPS: usize = 5;
/// A part of the published value that is near enough: values of whole percents are not known better.
const NEAR: f64 = 0.01;

/// Fits all experiments, several at once, and writes each one that is done.
pub(super) fn all(experiments: &[Experiment], fitted: &mut Fitted, file: &Path, jobs: usize) -> Result<()> {
    let with_fits: Vec<_> = experiments.iter().filter(|experiment| !experiment.fits.is_empty()).collect();
    let mut progress = Progress::new("fitting", Some(with_fits.len() as u64)).counting("tables");
    let mut done = 0;
    jobs::each(
        &with_fits,
        jobs,
        |experiment| fit(experiment),
        |_, values| {
            values?.into_iter().for_each(|value| fitted.insert(value));
            fitted.write(file)?;
            done += 1;
            progress.update(done);
            Ok(())
        },
    )
}

/// The parameters of one experiment, one after another; if there are several, in rounds, of which the best is kept.
fn fit(experiment: &Experiment) -> Result<Vec<FittedValue>> {
    let mut search = Search::new(experiment)?;
    let mut best: Option<(f64, Vec<u64>, Vec<f64>)> = None;
    let rounds = if search.targets.len() > 1 { ROUNDS } else { 1 };
    for round in 0..rounds {
        for index in 0..search.targets.len() {
            search.improve(index, round == 0)?;
        }
        let reached = search.reached(&search.values)?;
        let error = search.error(&reached);
        if best.as_ref().is_none_or(|(least, ..)| error < *least) {
            best = Some((error, search.values.clone(), reached));
        }
        if error <= NEAR {
            break;
        }
    }
    let (_, values, reached) = best.context("there is at least one round")?;
    Ok(search.fitted(&values, &reached))
}

/// A search for the values of all parameters of one table.
struct Search<'a> {
    experiment: &'a Experiment,
    targets: Vec<Target>,
    /// The present value of each parameter.
    values: Vec<u64>,
}

/// One parameter and what it is to reach.
struct Target {
    fit: Fit,
    wanted: f64,
    /// Whether the result rises with the parameter.
    rises: bool,
}

impl<'a> Search<'a> {
    /// Begins in the middle of all ranges.
    fn new(experiment: &'a Experiment) -> Result<Self> {
        let mut targets = Vec::new();
        for fit in experiment.fits.iter().copied() {
            let wanted = experiment.base().published[fit.column]
                .ok_or_else(|| anyhow!("{}: nothing is published in its base row", experiment.id))?;
            targets.push(Target { fit, wanted, rises: false });
        }
        let values = targets.iter().map(|target| middle(target.fit.range)).collect();
        Ok(Self { experiment, targets, values })
    }

    /// Moves one parameter to where its result comes nearest, the others where they are: at first within its whole
    /// range, later near its present value. Whether the result rises or falls is seen at the ends of the whole range,
    /// where chance does not hide it.
    fn improve(&mut self, index: usize, is_first: bool) -> Result<()> {
        let (low, high) = self.targets[index].fit.range;
        let (mut low, mut high, steps) = if is_first {
            self.targets[index].rises = self.result(index, low)? < self.result(index, high)?;
            (low, high, STEPS)
        } else {
            let present = self.values[index] as f64;
            let narrowed = |value: f64| (value.round() as u64).clamp(low, high);
            (narrowed(present / NARROW), narrowed(present * NARROW), NARROW_STEPS)
        };
        let Target { wanted, rises, .. } = self.targets[index];
        let mut nearest: Option<(f64, u64)> = None;
        for _ in 0..steps {
            let value = middle((low, high));
            let reached = self.result(index, value)?;
            let distance = (reached - wanted).abs();
            if nearest.is_none_or(|(least, _)| distance < least) {
                nearest = Some((distance, value));
            }
            if value <= low || value >= high {
                break;
            }
            if (reached < wanted) == rises {
                low = value;
            } else {
                high = value;
            }
        }
        self.values[index] = nearest.context("at least one value was tried")?.1;
        Ok(())
    }

    /// What one parameter's value gives, with the others where they are.
    fn result(&self, index: usize, value: u64) -> Result<f64> {
        let mut values = self.values.clone();
        values[index] = value;
        Ok(self.reached(&values)?[index])
    }

    /// The base row's results with these values.
    fn reached(&self, values: &[u64]) -> Result<Vec<f64>> {
        let mut case = self.experiment.base().clone();
        for (target, value) in self.targets.iter().zip(values) {
            set(&mut case.run, target.fit.parameter, *value);
        }
        let results = Results::of(&case.run);
        let reached = |target: &Target| {
            let (_, metric) = self.experiment.columns[target.fit.column];
            compare::value(metric, &case, &case, &results).ok_or_else(|| {
                let failures = results.failures().join(" ");
                anyhow!("{}: no value with {values:?}. {failures}", self.experiment.id)
            })
        };
        self.targets.iter().map(reached).collect()
    }

    /// The largest part of a published value that is missing or too much.
    fn error(&self, reached: &[f64]) -> f64 {
        let errors =
            self.targets.iter().zip(reached).map(|(target, reached)| (reached / target.wanted - 1.0).abs());
        errors.fold(0.0, f64::max)
    }

    fn fitted(&self, values: &[u64], reached: &[f64]) -> Vec<FittedValue> {
        let found = self.targets.iter().zip(values).zip(reached);
        let value = |((target, value), reached): ((&Target, &u64), &f64)| FittedValue {
            table: self.experiment.id.clone(),
            row: self.experiment.base().name.clone(),
            parameter: target.fit.parameter.to_owned(),
            value: *value,
            column: self.experiment.columns[target.fit.column].0.heading.clone(),
            published: target.wanted,
            reached: *reached,
        };
        found.map(value).collect()
    }
}

/// The geometric middle: parameters are times, of which a quotient counts.
fn middle((low, high): (u64, u64)) -> u64 {
    ((low.max(1) as f64) * (high.max(1) as f64)).sqrt().round() as u64
}
