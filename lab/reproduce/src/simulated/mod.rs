//! Runs studies with simulated values.
//!
//! A study consists of [`Experiment`]s, one for each table, with a [`Case`] for each row (`experiment`).
//! `runs` simulates each different run once, and `compare` compares the results with the published values. A
//! few parameters are *fitted*: a fitted parameter makes a simulated value of a base row equal to the
//! published value. `fitted` has the fitted parameters, and `fit` chooses them again with `search`. `ratio`
//! chooses a parameter so that the ratio between values of two tables is the published ratio. `panels` draws
//! figures. `changes` and `variability` make further tables.

mod changes;
mod compare;
mod experiment;
mod fit;
mod fitted;
mod panels;
mod ratio;
mod runs;
mod search;
mod variability;

use anyhow::Result;
use pageset_report::Spread;
use pageset_report::comparison::Comparison;

use super::study::Options;
pub(crate) use changes::changes;
pub(crate) use experiment::{Borrowed, Case, Compared, Experiment, Fit, FitTarget};
pub(crate) use fit::fitted;
pub use fitted::Fitted;
use pageset_report::Progress;
pub(crate) use panels::Panels;
pub(crate) use variability::variability;

/// The results of all experiments of a study.
#[derive(Debug, Default)]
pub(crate) struct Simulated {
    /// For each experiment, the comparison of our values with the published values.
    pub(crate) tables: Vec<Comparison>,
    /// Sentences about runs that failed, each with the reason.
    pub(crate) failures: Vec<String>,
    /// The experiments with their fitted parameters, and the results of their runs.
    ran: Option<(Vec<Experiment>, runs::Results)>,
}

impl Simulated {
    /// Returns the mean and the deviation of a row's figure over all seeds. The figure does not have to be a
    /// column of the row's table.
    pub(crate) fn spread(&self, experiment: usize, case: usize, compared: Compared) -> Option<Spread> {
        let (experiments, results) = self.ran.as_ref()?;
        let cases = &experiments.get(experiment)?.cases;
        let case = cases.get(case)?;
        let base = case.base.map_or(case, |base| &cases[base]);
        compare::values(compared, case, base, results)
    }

    /// Returns the study's reasons and the runs that failed. In a quick run, one sentence that says where the
    /// reasons are replaces the reasons.
    pub(crate) fn explanations(&self, reasons: &[impl AsRef<str>], options: &Options) -> Vec<String> {
        options.reasons(reasons).into_iter().chain(self.failures.iter().cloned()).collect()
    }
}

/// Runs all experiments with their fitted parameters.
pub(crate) fn run(
    experiments: &[Experiment],
    fitted: &Fitted,
    options: &Options,
    progress: &mut dyn Progress,
) -> Result<Simulated> {
    let experiments: Vec<_> = experiments.iter().map(|experiment| fitted.applied(experiment)).collect();
    let results = runs::all(&experiments, options.seeds(), options.jobs, progress)?;
    let tables = experiments.iter().map(|experiment| compare::compare(experiment, fitted, &results));
    let (tables, failures) = (tables.collect(), results.failures());
    Ok(Simulated { tables, failures, ran: Some((experiments, results)) })
}

#[cfg(test)]
mod tests {
    use super::fitted::FittedValue;
    use pageset_report::Origin;
    use pageset_report::comparison::Quantity;
    use pageset_study::simulate::RunSpec;

    use super::*;
    use crate::metric::Metric;

    /// Returns a parameter that is fitted on the published value of the first row in this column.
    fn fit(parameter: &str, column: usize) -> Fit {
        let (parameter, target) = (parameter.to_owned(), FitTarget::Value);
        Fit { case: 0, parameter, range: (1, 2), column, target, rises: false }
    }

    /// Returns an experiment with three rows on the smallest machine.
    fn experiment() -> Experiment {
        let case = |name: &str, base, batch| Case {
            name: name.to_owned(),
            base,
            run: RunSpec {
                batch: Some(batch),
                warmup_ms: Some(1),
                duration_ms: Some(2),
                ..RunSpec::new("epyc-2", "page_fault1", "linux-4.18")
            },
            published: vec![Some(1000.0), Some(100.0)],
            variation_percent: None,
        };
        Experiment {
            id: "test".to_owned(),
            title: "A test".to_owned(),
            columns: vec![
                (Quantity::relative("score", "score", "", 0), Compared::ScaledToBase(Metric::Score)),
                (Quantity::relative("time", "time", "", 0), Compared::PercentOfBase(Metric::TimePerUnit)),
            ],
            cases: vec![case("31", None, 31), case("63", Some(0), 63), case("again", Some(0), 31)],
            ..Experiment::default()
        }
    }

    #[test]
    fn base_rows_are_scaled_and_marked_whatever_the_jobs() {
        let run = |jobs| {
            let options = Options { is_quick: false, jobs, fit: None, seeds: None, ..Options::default() };
            run(&[experiment()], &Fitted::default(), &options, &mut ()).unwrap()
        };
        let simulated = run(1);
        assert_eq!(simulated.failures, Vec::<String>::new());
        let table = &simulated.tables[0];
        let scores: Vec<_> = table.pairs(0).map(|pair| (pair.ours.map(f64::round), pair.origin)).collect();
        assert_eq!(scores[0], (Some(1000.0), Origin::Fitted));
        assert_eq!(scores[2], (Some(1000.0), Origin::Simulated), "the same run");
        assert!(table.pairs(0).all(|pair| pair.spread.is_some_and(|spread| spread > 0.0)), "seeds differ");
        assert!(table.pairs(1).all(|pair| pair.ours.is_some_and(|time| (50.0..150.0).contains(&time))));
        assert_eq!(simulated.tables, run(3).tables);
    }

    /// Tests that a run uses newly fitted values. Regression: after `--fit`, phase two of the study of batch
    /// sizes was simulated with the built-in values.
    #[test]
    fn values_that_were_just_chosen_are_used_and_told() {
        let [mut chosen_here, mut borrowing] = [experiment(), experiment()];
        chosen_here.id = "phase2-will-it-scale.page_fault2.processes".to_owned();
        for case in chosen_here.cases.iter_mut().chain(&mut borrowing.cases) {
            case.name = case.name.replace("31", "lkp-skl-4sp1 31");
            case.run.workload = "page_fault2".to_owned();
        }
        let parameter = "copy_fault_ns".to_owned();
        chosen_here.fits = vec![fit(&parameter, 0)];
        let (table, row) = (chosen_here.id.clone(), chosen_here.cases[0].name.clone());
        borrowing.borrowed =
            vec![Borrowed { case: 1, parameter: parameter.clone(), table: table.clone(), row: row.clone() }];
        let built_in = Fitted::bundled().unwrap();
        assert!(built_in.get(&table, &row, &parameter).is_some_and(|value| value != 12_345));
        let (column, published, reached) = (String::new(), 1.0, 1.0);
        let mut fitted = built_in;
        fitted.insert(FittedValue {
            table,
            row,
            parameter: parameter.clone(),
            value: 12_345,
            column,
            published,
            reached,
        });

        let value = |experiment: &Experiment, case: usize| {
            fitted.applied(experiment).cases[case].run.settings.get(&parameter).copied()
        };
        assert_eq!([0, 1, 2].map(|case| value(&chosen_here, case)), [Some(12_345); 3]);
        assert_eq!([0, 1, 2].map(|case| value(&borrowing, case)), [None, Some(12_345), None]);
        let options = Options { is_quick: false, jobs: 1, fit: None, seeds: None, ..Options::default() };
        let simulated = run(&[chosen_here], &fitted, &options, &mut ()).unwrap();
        assert_eq!(simulated.failures, Vec::<String>::new());
        let notes = simulated.tables[0].to_table().notes().join("\n");
        assert!(notes.contains("copy_fault_ns = 12345"), "{notes}");
    }

    /// Regression: a quick run once measured for a quarter of the time, less than a cycle of most workloads.
    /// So a base row that was fitted to 14.0 had the value 5.4.
    #[test]
    fn a_quick_run_measures_a_row_as_long_as_the_full_one() {
        let run = |is_quick| {
            let options = Options { is_quick, jobs: 1, fit: None, seeds: Some(1), ..Options::default() };
            run(&[experiment()], &Fitted::default(), &options, &mut ()).unwrap()
        };
        assert_eq!(run(true).tables, run(false).tables);
    }

    #[test]
    fn a_fitted_row_says_what_it_gives_in_this_run() {
        let mut experiment = experiment();
        let parameter = "fault_ns".to_owned();
        experiment.fits = vec![fit(&parameter, 1)];
        let mut fitted = Fitted::default();
        fitted.insert(FittedValue {
            table: experiment.id.clone(),
            row: experiment.cases[0].name.clone(),
            parameter: parameter.clone(),
            value: 700,
            column: "time".to_owned(),
            published: 87.0,
            reached: 86.9,
        });
        let options = Options { is_quick: true, jobs: 1, fit: None, seeds: None, ..Options::default() };
        let simulated = run(&[experiment], &fitted, &options, &mut ()).unwrap();
        let notes = simulated.tables[0].to_table().notes().join("\n");
        // Row 31 is a base row and is compared with itself, so its value is 100 %.
        assert!(notes.contains("fault_ns = 700, on time of row 31: published 87, 100.0 here"), "{notes}");
    }

    #[test]
    fn a_quick_run_gives_no_reasons_of_the_full_one() {
        let options = |is_quick| Options { is_quick, jobs: 1, fit: None, seeds: None, ..Options::default() };
        let simulated = Simulated { failures: vec!["A run failed.".to_owned()], ..Simulated::default() };
        let reason = "Ours gains 1 %.";
        assert_eq!(simulated.explanations(&[reason], &options(false)), [reason, "A run failed."]);
        let quick = simulated.explanations(&[reason], &options(true)).join(" ");
        assert!(!quick.contains(reason) && quick.ends_with("A run failed."), "{quick}");
    }

    #[test]
    fn a_run_that_fails_is_told_and_missing() {
        let mut experiment = experiment();
        experiment.cases[1].run.workload = "doom".to_owned();
        let options = Options { is_quick: true, jobs: 2, fit: None, seeds: None, ..Options::default() };
        let simulated = run(&[experiment], &Fitted::default(), &options, &mut ()).unwrap();
        assert_eq!(simulated.tables[0].agreement().missing, 2);
        assert!(simulated.failures[0].contains("unknown workload `doom`"), "{:?}", simulated.failures);
    }
}
