//! Chooses parameters so that base rows come out as published.

use std::path::Path;

use anyhow::{Context as _, Result, anyhow};

use super::fitted::{FittedValue, set};
use super::runs::Results;
use super::{Experiment, Fit, Fitted, Metric, compare};
use crate::jobs;
use crate::progress::Progress;

/// Values tried for one parameter. Each halves the range, on a logarithmic scale.
const STEPS: usize = 7;
/// Rounds over the parameters of a table that has more than one: each moves the other's target.
const ROUNDS: usize = 3;
/// After the first round, a parameter is sought between this part and this multiple of what was found.
const NARROW: u64 = 2;
/// Values tried for one parameter after the first round.
const NARROW_STEPS: usize = 3;

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

/// The parameters of one experiment, one after another; if there are several on one row, in rounds.
fn fit(experiment: &Experiment) -> Result<Vec<FittedValue>> {
    let mut experiment = experiment.clone();
    let mut found = Fitted::default();
    let mut values: Vec<FittedValue> = Vec::new();
    let rounds = if experiment.fits.len() > 1 { ROUNDS } else { 1 };
    for _ in 0..rounds {
        let before = std::mem::take(&mut values);
        for (index, mut fit) in experiment.fits.clone().into_iter().enumerate() {
            let mut steps = STEPS;
            if let Some(FittedValue { value, .. }) = before.get(index) {
                let (low, high) = fit.range;
                fit.range = ((value / NARROW).max(low), (value * NARROW).min(high));
                steps = NARROW_STEPS;
            }
            let value = search(&experiment, fit, steps)?;
            found.insert(value.clone());
            experiment = found.applied(&experiment);
            values.push(value);
        }
    }
    Ok(values)
}

/// Halves the range until the value that comes nearest is found. A result that rises with its parameter and one that
/// falls are both found, since the ends are tried first.
fn search(experiment: &Experiment, fit: Fit, steps: usize) -> Result<FittedValue> {
    let case = &experiment.cases[fit.case];
    let (quantity, metric) = &experiment.columns[fit.column];
    let wanted = case.published[fit.column]
        .ok_or_else(|| anyhow!("{}: nothing is published in row {}", experiment.id, case.name))?;
    let mut tried: Vec<(u64, f64)> = Vec::new();
    let mut reach = |value: u64| -> Result<f64> {
        let reached = result(experiment, fit, *metric, value)?;
        tried.push((value, reached));
        Ok(reached)
    };
    let (mut low, mut high) = fit.range;
    let rises = reach(low)? < reach(high)?;
    for _ in 0..steps {
        let middle = ((low.max(1) as f64) * (high.max(1) as f64)).sqrt().round() as u64;
        if middle <= low || middle >= high {
            break;
        }
        if (reach(middle)? < wanted) == rises {
            low = middle;
        } else {
            high = middle;
        }
    }
    let distance = |reached: f64| (reached - wanted).abs();
    let (value, reached) = tried
        .into_iter()
        .min_by(|one, other| distance(one.1).total_cmp(&distance(other.1)))
        .context("the ends were tried")?;
    Ok(FittedValue {
        table: experiment.id.clone(),
        row: case.name.clone(),
        parameter: fit.parameter.to_owned(),
        value,
        column: quantity.heading.clone(),
        published: wanted,
        reached,
    })
}

/// The base row's value of a column with the parameter set.
fn result(experiment: &Experiment, fit: Fit, metric: Metric, value: u64) -> Result<f64> {
    let mut case = experiment.cases[fit.case].clone();
    set(&mut case.run, fit.parameter, value);
    let results = Results::of(&case.run);
    compare::value(metric, &case, &case, &results).ok_or_else(|| {
        let failures = results.failures().join(" ");
        anyhow!("{}: no value with {}={value}. {failures}", experiment.id, fit.parameter)
    })
}
