//! Chooses a parameter so that the ratio of a row's score to its lender's score is the published ratio. The
//! lender is a row of another table that this row takes parameters from. Both rows have the same machine, and
//! their workloads count the same unit of work.
//!
//! The fit uses the ratio because the scores themselves differ: under contention, simulated machines are
//! faster than published machines.

use std::path::Path;

use anyhow::{Context as _, Result};
use pageset_replay::file::Existing;
use pageset_report::Progress;
use pageset_study::jobs::{self, Stage};
use pageset_study::simulate::{RunSpec, simulate};

use super::experiment::{Case, Experiment, Fit, FitTarget};
use super::fitted::{Fitted, FittedValue, set};
use super::search::{Range, nearest};

/// Chooses the parameter's value for each base row that is fitted to a ratio with another table's row. Writes
/// each value to the file as soon as the search has chosen the value.
pub(super) fn fit(
    experiments: &[Experiment],
    fitted: &mut Fitted,
    file: &Path,
    jobs: usize,
    progress: &mut dyn Progress,
) -> Result<()> {
    let mut rows = Vec::new();
    for experiment in experiments {
        for fit in experiment.fits.iter().filter(|fit| fit.target == FitTarget::PercentOfLender) {
            rows.push(Row::new(experiments, experiment, fit, fitted)?);
        }
    }
    if rows.is_empty() {
        return Ok(());
    }
    let mut stage = Stage::begin(progress, "fitting", "base rows", rows.len());
    jobs::each(&rows, jobs, Row::search, |_, value| {
        fitted.insert(value?);
        fitted.write(file, Existing::Replace)?;
        Ok(stage.step()?)
    })
}

/// A base row, and its lender.
struct Row<'a> {
    experiment: &'a Experiment,
    fit: &'a Fit,
    case: Case,
    lender: Case,
}

impl<'a> Row<'a> {
    fn new(
        experiments: &[Experiment],
        experiment: &'a Experiment,
        fit: &'a Fit,
        fitted: &Fitted,
    ) -> Result<Self> {
        let case = fitted.applied(experiment).cases.swap_remove(fit.case);
        let borrowed = experiment.borrowed.iter().find(|borrowed| borrowed.case == fit.case);
        let borrowed =
            borrowed.with_context(|| format!("{}: {} borrows nothing", experiment.id, case.name))?;
        let lender = experiments.iter().find(|lender| lender.id == borrowed.table);
        let lender = lender.with_context(|| format!("no table {}", borrowed.table))?;
        let lender = fitted.applied(lender).cases.into_iter().find(|case| case.name == borrowed.row);
        let lender = lender.with_context(|| format!("{} has no row {}", borrowed.table, borrowed.row))?;
        Ok(Self { experiment, fit, case, lender })
    }

    /// Tries values of the parameter, and returns the value with the ratio nearest to the published ratio.
    fn search(&self) -> Result<FittedValue> {
        let Self { experiment, fit, case, lender } = self;
        let (quantity, _) = &experiment.columns[fit.column];
        let printed = |case: &Case| case.published.get(fit.column).copied().flatten();
        let printed = printed(case).zip(printed(lender));
        let (upper, lower) = printed.with_context(|| format!("{}: a value is not printed", experiment.id))?;
        let wanted = 100.0 * upper / lower;
        let of_lender = simulate(&lender.run)?.score_per_s;
        let guess = case.run.settings.get(&fit.parameter).copied();
        let range = Range { ends: fit.range, guess, rises: fit.rises };
        let (value, reached) = nearest(range, wanted, 0.0, |value| {
            let reached = 100.0 * score(&case.run, &fit.parameter, value)? / of_lender;
            Ok((reached, (value, reached)))
        })?;
        let in_tenths = |percent: f64| (10.0 * percent).round() / 10.0;
        Ok(FittedValue {
            table: experiment.id.clone(),
            row: case.name.clone(),
            parameter: fit.parameter.clone(),
            value,
            column: format!("{} in percent of {}'s", quantity.heading, lender.run.workload),
            published: in_tenths(wanted),
            reached: in_tenths(reached),
        })
    }
}

fn score(run: &RunSpec, parameter: &str, value: u64) -> Result<f64> {
    let mut run = run.clone();
    set(&mut run, parameter, value);
    Ok(simulate(&run)?.score_per_s)
}
