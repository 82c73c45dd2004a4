//! Results beside the published values.

use pageset_report::comparison::{Comparison, Pair};
use pageset_report::{Origin, Spread};

use super::experiment::{Case, Experiment, Metric};
use super::fitted::Fitted;
use super::runs::Results;
use crate::simulate::RunResult;

pub(super) fn compare(experiment: &Experiment, fitted: &Fitted, results: &Results) -> Comparison {
    let quantities = experiment.columns.iter().map(|(quantity, _)| quantity.clone()).collect();
    let mut comparison = Comparison::new(&experiment.id, &experiment.title, machines(experiment), quantities);
    let mut numbers = Vec::with_capacity(experiment.cases.len());
    for (index, case) in experiment.cases.iter().enumerate() {
        let base = case.base.map_or(case, |base| &experiment.cases[base]);
        let pairs = experiment.columns.iter().enumerate().map(|(column, (_, metric))| {
            let values = values(*metric, case, base, results);
            let ours = values.map(|values| values.mean);
            let spread = values.filter(|values| values.runs > 1).map(|values| values.stddev);
            let pair = Pair::new(case.published[column], ours, Origin::Simulated);
            let is_fitted = experiment.fits.iter().any(|fit| fit.case == index && fit.column == column);
            let is_given = case.base.is_none() && metric.is_relative();
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
    for (quantity, metric) in &experiment.columns {
        if matches!(metric, Metric::Scaled(_)) {
            comparison.scale_to_base(&quantity.key);
        }
    }
    comparison
}

impl Metric {
    /// Whether base rows have 100 by definition.
    fn is_relative(self) -> bool {
        matches!(self, Self::OfBase(_) | Self::PerWorkOfBase(_))
    }
}

/// The values of a case for one column, over all seeds. A relative value refers to the base row with the same
/// seed.
pub(super) fn values(metric: Metric, case: &Case, base: &Case, results: &Results) -> Option<Spread> {
    let pairs = results.get(&case.run)?.into_iter().zip(results.get(&base.run)?);
    let values: Vec<_> = pairs.map(|(ours, base)| value(metric, ours, base)).collect();
    Spread::of(&values)
}

fn value(metric: Metric, ours: &RunResult, base: &RunResult) -> f64 {
    match metric {
        Metric::Result(figure) | Metric::Scaled(figure) => figure(ours),
        Metric::Sum(one, other) => one(ours) + other(ours),
        Metric::OfBase(figure) => 100.0 * figure(ours) / figure(base),
        Metric::PerWorkOfBase(figure) => {
            let per_work = |result: &RunResult| figure(result) / result.score_per_s;
            100.0 * per_work(ours) / per_work(base)
        }
    }
}

/// The simulated machines and their CPUs.
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
