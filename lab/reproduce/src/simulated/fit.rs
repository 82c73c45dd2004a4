//! Chooses parameters so that simulated base rows have their published values.

use std::path::Path;

use anyhow::{Result, anyhow};
use pageset_replay::file::Existing;
use pageset_report::Progress;
use pageset_report::Seeds;
use pageset_study::jobs::{self, Stage};

use super::experiment::{Case, Experiment, Fit, FitTarget};
use super::fitted::{Fitted, FittedValue, set};
use super::runs::Results;
use super::search::{Range, nearest};
use super::{compare, ratio};
use crate::study::Options;

/// If [`Options::fit`] names a file, chooses the parameters of the given experiments again, and writes them
/// to this file. Otherwise, returns the `known` parameters.
pub(crate) fn fitted(
    experiments: &[Experiment],
    known: Fitted,
    options: &Options,
    progress: &mut dyn Progress,
) -> Result<Fitted> {
    let Some(path) = &options.fit else { return Ok(known) };
    let mut fitted = if path.exists() {
        Fitted::read(path)?
    } else {
        // `fitted` creates the file before the search, because the search takes long and then replaces the
        // file. So the search cannot replace a file that another program creates during the search.
        known.write(path, Existing::Refuse)?;
        known
    };
    all(experiments, &mut fitted, path, options, progress)?;
    // The lenders are fitted now, so `ratio::fit` can fit the rows that take parameters from lenders.
    ratio::fit(experiments, &mut fitted, path, options.jobs, progress)?;
    Ok(fitted)
}

/// Fits all base rows, several rows at once. Writes the parameters of each row to the file as soon as the
/// search has chosen them.
fn all(
    experiments: &[Experiment],
    fitted: &mut Fitted,
    file: &Path,
    options: &Options,
    progress: &mut dyn Progress,
) -> Result<()> {
    let rows_of = |experiment| BaseRow::of(experiment, fitted, options.seeds());
    let rows: Vec<_> = experiments.iter().flat_map(rows_of).collect();
    let mut stage = Stage::begin(progress, "fitting", "base rows", rows.len());
    jobs::each(&rows, options.jobs, BaseRow::fit, |_, values| {
        values?.into_iter().for_each(|value| fitted.insert(value));
        fitted.write(file, Existing::Replace)?;
        Ok(stage.step()?)
    })
}

/// A base row, and the parameters to choose so that the row agrees with its published values.
struct BaseRow<'a> {
    experiment: &'a Experiment,
    case: &'a Case,
    fits: Vec<Fit>,
    /// The values that the parameters had before the search.
    former: Vec<Option<u64>>,
    /// The seeds of the simulations. The search uses the mean over all seeds, because the study prints this
    /// mean, and the result of a single seed may be far from the mean.
    seeds: Seeds,
}

impl<'a> BaseRow<'a> {
    /// Returns the base rows of an experiment that have parameters to choose.
    fn of(experiment: &'a Experiment, former: &Fitted, seeds: Seeds) -> Vec<Self> {
        let rows = experiment.cases.iter().enumerate().map(|(index, case)| {
            let fits: Vec<_> = experiment
                .fits
                .iter()
                .filter(|fit| fit.case == index && fit.target == FitTarget::Value)
                .cloned()
                .collect();
            let former = |fit: &Fit| former.get(&experiment.id, &case.name, &fit.parameter);
            Self { experiment, case, former: fits.iter().map(former).collect(), fits, seeds }
        });
        rows.filter(|row| !row.fits.is_empty()).collect()
    }

    fn fit(&self) -> Result<Vec<FittedValue>> {
        let Settled { values, reached } = self.settle(&[], &mut self.former.clone())?;
        let fitted = self.fits.iter().zip(values).zip(reached).map(|((fit, value), reached)| FittedValue {
            table: self.experiment.id.clone(),
            row: self.case.name.clone(),
            parameter: fit.parameter.clone(),
            value,
            column: self.experiment.columns[fit.column].0.heading.clone(),
            published: self.case.published[fit.column].unwrap_or_default(),
            reached,
        });
        Ok(fitted.collect())
    }

    /// Chooses all parameters that follow the `given` parameters. A parameter also affects the results that
    /// other parameters are fitted to. So for each value that the search tries for a parameter, the search
    /// chooses all later parameters again. The search for a parameter begins at the parameter's value in
    /// `known`, which is the value of the last search.
    fn settle(&self, given: &[u64], known: &mut [Option<u64>]) -> Result<Settled> {
        let Some(fit) = self.fits.get(given.len()) else {
            return Ok(Settled { values: given.to_vec(), reached: self.results(given)? });
        };
        let wanted = self.case.published[fit.column].ok_or_else(|| {
            anyhow!("{}: nothing is published in row {}", self.experiment.id, self.case.name)
        })?;
        let rounding = self.experiment.columns[fit.column].0.rounding();
        let range = Range { ends: fit.range, guess: known[given.len()], rises: fit.rises };
        let settled = nearest(range, wanted, rounding, |value| {
            let settled = self.settle(&[given, &[value]].concat(), known)?;
            Ok((settled.reached[given.len()], settled))
        })?;
        known[given.len()] = Some(settled.values[given.len()]);
        Ok(settled)
    }

    /// Simulates the base row with the given values of the parameters. Returns for each parameter the
    /// simulated value that should equal the published value.
    fn results(&self, values: &[u64]) -> Result<Vec<f64>> {
        let mut case = self.case.clone();
        for (fit, value) in self.fits.iter().zip(values) {
            set(&mut case.run, &fit.parameter, *value);
        }
        let results = Results::of(&case.run, self.seeds);
        let result = |fit: &Fit| {
            let (_, compared) = self.experiment.columns[fit.column];
            compare::values(compared, &case, &case, &results).map(|values| values.mean).ok_or_else(|| {
                let failures = results.failures().join(" ");
                anyhow!("{}: no result with the parameters {values:?}. {failures}", self.experiment.id)
            })
        };
        self.fits.iter().map(result).collect()
    }
}

/// A value for each parameter, and the results of a simulation with these values.
#[derive(Clone, Debug)]
struct Settled {
    values: Vec<u64>,
    reached: Vec<f64>,
}

#[cfg(test)]
mod tests {
    use pageset_report::comparison::Quantity;
    use pageset_study::simulate::RunSpec;

    use super::super::experiment::Compared;
    use super::*;
    use crate::metric::Metric;

    /// Tests that the search finds known parameters again. The published values of this test are the
    /// simulated results with the known parameters.
    #[test]
    fn parameters_that_move_each_other_are_found_together() {
        let score = (Quantity::relative("score", "score", "", 0), Compared::ScaledToBase(Metric::Score));
        let lru = (Quantity::share("lru", "LRU", 0), Compared::AsIs(Metric::LruLockPercent));
        let run = RunSpec {
            warmup_ms: Some(1),
            duration_ms: Some(5),
            ..RunSpec::new("epyc-2", "page_fault1", "linux-4.18")
        };
        let case = Case {
            name: "31".to_owned(),
            base: None,
            run,
            published: vec![None; 2],
            variation_percent: None,
        };
        let work = Fit {
            case: 0,
            parameter: "fault_ns".to_owned(),
            range: (100, 10_000),
            column: 0,
            target: FitTarget::Value,
            rises: false,
        };
        let hold = Fit {
            case: 0,
            parameter: "lru_page_ns".to_owned(),
            range: (5, 500),
            column: 1,
            target: FitTarget::Value,
            rises: true,
        };
        let mut experiment = Experiment {
            id: "t".to_owned(),
            title: "t".to_owned(),
            columns: vec![score, lru],
            cases: vec![case],
            fits: vec![work, hold],
            ..Experiment::default()
        };
        let nothing = Fitted::default();
        let known = BaseRow::of(&experiment, &nothing, Seeds::one(1))[0].results(&[900, 70]).unwrap();
        experiment.cases[0].published = known.iter().copied().map(Some).collect();
        let found = BaseRow::of(&experiment, &nothing, Seeds::one(1))[0].fit().unwrap();
        for (value, known) in found.iter().zip(known) {
            assert!((value.reached / known - 1.0).abs() < 0.03, "{value:?}");
        }
        assert!((800..1000).contains(&found[0].value) && (60..80).contains(&found[1].value), "{found:?}");
    }

    #[test]
    fn a_row_without_the_published_value_is_an_error() {
        let case = Case {
            name: "31".to_owned(),
            base: None,
            run: RunSpec::new("epyc-2", "page_fault1", "linux-4.18"),
            published: vec![None],
            variation_percent: None,
        };
        let experiment = Experiment {
            id: "t".to_owned(),
            title: "t".to_owned(),
            columns: vec![(Quantity::share("lru", "LRU", 0), Compared::AsIs(Metric::LruLockPercent))],
            cases: vec![case],
            fits: vec![Fit {
                case: 0,
                parameter: "fault_ns".to_owned(),
                range: (1, 2),
                column: 0,
                target: FitTarget::Value,
                rises: false,
            }],
            ..Experiment::default()
        };
        let error = BaseRow::of(&experiment, &Fitted::default(), Seeds::one(1))[0].fit().unwrap_err();
        assert_eq!(error.to_string(), "t: nothing is published in row 31");
    }
}
