//! Chooses parameters so that base rows come out as published.

use std::path::Path;

use anyhow::{Context as _, Result, anyhow};

use super::fitted::{FittedValue, set};
use super::runs::Results;
use super::{Experiment, Fit, Fitted, compare};
use crate::jobs;
use crate::progress::Progress;

/// Values tried for one parameter. Each halves the range, on a logarithmic scale: of a range of 1 to 200, 2 % are left.
const STEPS: usize = 8;

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

/// The parameters of one experiment.
fn fit(experiment: &Experiment) -> Result<Vec<FittedValue>> {
    let Settled { values, reached } = settle(experiment, &[])?;
    let base = experiment.base();
    let fitted = experiment.fits.iter().zip(values).zip(reached).map(|((fit, value), reached)| FittedValue {
        table: experiment.id.clone(),
        row: base.name.clone(),
        parameter: fit.parameter.to_owned(),
        value,
        column: experiment.columns[fit.column].0.heading.clone(),
        published: base.published[fit.column].unwrap_or_default(),
        reached,
    });
    Ok(fitted.collect())
}

/// A value for each parameter, and what they give.
#[derive(Clone, Debug)]
struct Settled {
    values: Vec<u64>,
    reached: Vec<f64>,
}

/// Chooses the parameters after the `given` ones: halves the range of the next until the value that comes nearest is
/// found, and for each value that it tries chooses all later ones anew, since each moves the others' results.
fn settle(experiment: &Experiment, given: &[u64]) -> Result<Settled> {
    let Some(fit) = experiment.fits.get(given.len()) else {
        return Ok(Settled { values: given.to_vec(), reached: results(experiment, given)? });
    };
    let wanted = experiment.base().published[fit.column]
        .ok_or_else(|| anyhow!("{}: nothing is published in its base row", experiment.id))?;
    let distance = |settled: &Settled| (settled.reached[given.len()] - wanted).abs();
    let (mut low, mut high) = fit.range;
    let mut nearest: Option<Settled> = None;
    for _ in 0..STEPS {
        // The geometric middle: parameters are times, of which a quotient counts.
        let middle = ((low.max(1) as f64) * (high.max(1) as f64)).sqrt().round() as u64;
        let settled = settle(experiment, &[given, &[middle]].concat())?;
        let is_too_small = (settled.reached[given.len()] < wanted) == fit.rises;
        if nearest.as_ref().is_none_or(|nearest| distance(&settled) < distance(nearest)) {
            nearest = Some(settled);
        }
        if middle <= low || middle >= high {
            break;
        }
        if is_too_small {
            low = middle;
        } else {
            high = middle;
        }
    }
    nearest.context("at least one value was tried")
}

/// What the base row gives for each fit with these values.
fn results(experiment: &Experiment, values: &[u64]) -> Result<Vec<f64>> {
    let mut case = experiment.base().clone();
    for (fit, value) in experiment.fits.iter().zip(values) {
        set(&mut case.run, fit.parameter, *value);
    }
    let results = Results::of(&case.run);
    let result = |fit: &Fit| {
        let (_, metric) = experiment.columns[fit.column];
        compare::value(metric, &case, &case, &results).ok_or_else(|| {
            let failures = results.failures().join(" ");
            anyhow!("{}: no value with {values:?}. {failures}", experiment.id)
        })
    };
    experiment.fits.iter().map(result).collect()
}
