//! Compares simulated results with published values.

use pageset_report::comparison::{Comparison, Pair};
use pageset_report::{Origin, Spread};
use pageset_study::simulate::{RunResult, RunSpec};

use super::experiment::{Case, Compared, Experiment};
use super::fitted::Fitted;
use super::runs::Results;

pub(super) fn compare(experiment: &Experiment, fitted: &Fitted, results: &Results) -> Comparison {
    let quantities = experiment.columns.iter().map(|(quantity, _)| quantity.clone()).collect();
    let mut comparison = Comparison::new(&experiment.id, &experiment.title, machines(experiment), quantities);
    let mut numbers = Vec::with_capacity(experiment.cases.len());
    for (index, case) in experiment.cases.iter().enumerate() {
        let base = case.base.map_or(case, |base| &experiment.cases[base]);
        let pairs = experiment.columns.iter().enumerate().map(|(column, (_, compared))| {
            let values = values(*compared, case, base, results);
            let ours = values.map(|values| values.mean);
            let spread = values.filter(|values| values.runs > 1).map(|values| values.stddev);
            let pair = Pair::new(case.published[column], ours, Origin::Simulated);
            let is_fitted = experiment.fits.iter().any(|fit| fit.case == index && fit.column == column);
            let is_given = case.base.is_none() && compared.is_relative();
            let origin = if is_fitted || is_given { Origin::Fitted } else { Origin::Simulated };
            Pair { origin, spread, variation_percent: case.variation_percent, ..pair }
        });
        let pairs = pairs.collect();
        numbers.push(match case.base {
            None => comparison.push_base(&case.name, pairs),
            Some(base) => {
                comparison.push(&case.name, numbers[base], pairs);
                index
            }
        });
    }
    let here = |case: usize, column: usize| comparison.pairs(column).nth(case).and_then(|pair| pair.ours);
    for sentence in fitted.sentences(experiment, here) {
        comparison.fitted_on(sentence);
    }
    if let Some(group) = &experiment.group {
        comparison.set_group(group);
    }
    if let Some(how) = &experiment.withdrawn {
        comparison.withdraw(how);
    }
    for (quantity, compared) in &experiment.columns {
        if matches!(compared, Compared::ScaledToBase(_)) {
            comparison.scale_to_base(&quantity.key);
        }
    }
    comparison
}

impl Compared {
    /// Whether base rows have the value 100 by definition, because values are in percent of the base row.
    fn is_relative(self) -> bool {
        matches!(self, Self::PercentOfBase(_) | Self::PerWorkPercentOfBase(_))
    }

    /// Returns the value of a row for the comparison with the row's published value. For `ScaledToBase`,
    /// returns the metric's value, and [`Comparison`] scales this value later. `ours` is the run of the row
    /// and its result. `base` is the run of the base row and its result.
    fn value(self, ours: (&RunSpec, &RunResult), base: (&RunSpec, &RunResult)) -> f64 {
        match self {
            Self::AsIs(metric) | Self::ScaledToBase(metric) => metric.of(ours.0, ours.1),
            Self::PercentOfBase(metric) => 100.0 * metric.of(ours.0, ours.1) / metric.of(base.0, base.1),
            Self::PerWorkPercentOfBase(metric) => {
                let per_work = |(run, result)| metric.of(run, result) / result.score_per_s;
                100.0 * per_work(ours) / per_work(base)
            }
        }
    }
}

/// Returns the values of a row in one column, over all seeds. A relative value is in percent of the base
/// row's value with the same seed.
pub(super) fn values(compared: Compared, case: &Case, base: &Case, results: &Results) -> Option<Spread> {
    let pairs = results.get(&case.run)?.into_iter().zip(results.get(&base.run)?);
    let value = |(ours, of_base)| compared.value((&case.run, ours), (&base.run, of_base));
    Spread::of(&pairs.map(value).collect::<Vec<_>>())
}

/// Returns the names of the simulated machines, with the numbers of used CPUs.
fn machines(experiment: &Experiment) -> String {
    let mut names: Vec<String> = Vec::new();
    for case in &experiment.cases {
        let cpus = case.run.cpus.map_or_else(String::new, |cpus| format!(", {cpus} CPUs"));
        let name = format!("{}{cpus}", case.run.machine);
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names.join("; ")
}
