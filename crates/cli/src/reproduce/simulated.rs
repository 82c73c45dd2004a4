//! Studies whose values come from simulations: what a table's row is run as, and which result is which column.
//!
//! A study is data: [`Experiment`]s with one [`Case`] for each row. `runs` simulates each different run once, `compare`
//! puts results beside what is published, `fitted` has the few parameters that were chosen so that a base row comes out,
//! and `fit` chooses them again.

mod compare;
mod fit;
mod fitted;
mod runs;

use anyhow::Result;
use pageset_report::comparison::{Band, Comparison, Quantity};

use super::study::Options;
use crate::simulate::RunSpec;
pub(crate) use fitted::Fitted;

/// One published table, to be simulated.
#[derive(Clone, Debug)]
pub(crate) struct Experiment {
    /// Name in JSON, and in the file of fitted parameters.
    pub(crate) id: String,
    /// What the table shows.
    pub(crate) title: String,
    /// The columns, and which result is compared with each.
    pub(crate) columns: Vec<(Quantity, Metric)>,
    /// The rows, from top to bottom; the first is a base row.
    pub(crate) cases: Vec<Case>,
    /// Parameters that are chosen on base rows.
    pub(crate) fits: Vec<Fit>,
}

/// One row of a table.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    /// Name of the row.
    pub(crate) name: String,
    /// The row whose changes count; `None` for a base row.
    pub(crate) base: Option<usize>,
    /// What is simulated.
    pub(crate) run: RunSpec,
    /// The published values, one for each column.
    pub(crate) published: Vec<Option<f64>>,
    /// The variation that the text states for this row and its base.
    pub(crate) band: Option<Band>,
}

/// Which result of a simulation is compared with a column. Results are named as in `pageset simulate --format json`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Metric {
    /// The result itself.
    Result(&'static str),
    /// Two results added.
    Sum(&'static str, &'static str),
    /// In percent of the base row's.
    OfBase(&'static str),
    /// The result for each unit of work, in percent of the base row's.
    PerWorkOfBase(&'static str),
    /// Time for the same work, in percent of the base row's.
    TimeOfBase,
    /// Work done in the same time, scaled so that the base row is as published: our unit is another.
    Score,
    /// Time for the same work, scaled in the same way.
    Time,
}

/// A parameter of a workload that is chosen so that a result of a base row is as published.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fit {
    /// The base row. The value is used in all rows that are compared with it.
    pub(crate) case: usize,
    /// The parameter.
    pub(crate) parameter: &'static str,
    /// Smallest and largest value that is tried.
    pub(crate) range: (u64, u64),
    /// The column whose value is met.
    pub(crate) column: usize,
}

/// What came out of all experiments of a study.
#[derive(Debug, Default)]
pub(crate) struct Simulated {
    /// One for each experiment.
    pub(crate) tables: Vec<Comparison>,
    /// Runs that failed: which, and why.
    pub(crate) failures: Vec<String>,
}

/// Runs all experiments. With `options.fit` their parameters are chosen first, and written there.
pub(crate) fn run(experiments: &[Experiment], options: &Options) -> Result<Simulated> {
    let mut fitted = Fitted::bundled()?;
    if let Some(path) = &options.fit {
        fit::all(experiments, &mut fitted, options.jobs)?;
        fitted.write(path)?;
    }
    let experiments: Vec<_> = experiments.iter().map(|experiment| fitted.applied(experiment)).collect();
    let results = runs::all(&experiments, options.jobs)?;
    let tables = experiments.iter().map(|experiment| compare::compare(experiment, &fitted, &results));
    Ok(Simulated { tables: tables.collect(), failures: results.failures() })
}
