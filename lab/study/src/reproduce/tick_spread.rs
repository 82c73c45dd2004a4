//! The 2026 post that spreads the CPUs' ticks: how often, and how long, CPUs wait for zone locks to drain
//! page sets.

use anyhow::{Context as _, Result};
use pageset_report::Progress;
use pageset_report::comparison::Quantity;
use pageset_report::plot::{Axis, Mark};
use pageset_sim::TickPhase;

use super::published::{Published, published};
use super::simulated::{self, Case, Experiment, Fitted, Metric, Panels, changes};
use super::study::{Findings, Options, Study};
use crate::simulate::RunSpec;

/// The study.
#[derive(Debug)]
pub(crate) struct TickSpread;

/// For each row: its published name, and when its CPUs tick.
const STATES: [(&str, TickPhase); 2] = [("aligned", TickPhase::Aligned), ("spread", TickPhase::Spread)];
const MACHINE: &str = "arm-72";
const POLICY: &str = "linux-6.19";

impl Study for TickSpread {
    fn name(&self) -> &'static str {
        "tick-spread"
    }

    fn summary(&self) -> &'static str {
        "the 2026 post that spreads the ticks of 72 CPUs: waits for the zone lock"
    }

    fn run(&self, options: &Options, progress: &mut dyn Progress) -> Result<Findings> {
        let experiment = experiment(&published!("tick-spread/contention.csv")?)?;
        let simulated = simulated::run(&[experiment], &Fitted::default(), options, progress)?;
        let panels = Panels {
            title: "Ticks at one moment and spread: published and simulated",
            axis: Axis::categories("ticks", STATES.map(|(name, _)| name)),
            mark: Mark::Bars,
            columns: &["contentions_rel", "total_wait_rel", "max_wait_rel"],
        };
        Ok(Findings {
            figures: vec![(self.name().to_owned(), panels.draw(&simulated.tables))],
            more: vec![changes(&simulated.tables)],
            notes: NOTES.map(str::to_owned).to_vec(),
            explanations: simulated.explanations(&EXPLANATIONS, options),
            tables: simulated.tables,
            machine: format!("simulated: {MACHINE}"),
            policies: vec![POLICY.to_owned()],
            timeline: None,
            seeds: Some(options.seeds()),
        })
    }
}

const NOTES: [&str; 4] = [
    "Nothing was fitted here. The text counted waits in free_pcppages_bulk, so ours are those for a zone's lock that was taken to \
     drain a page set, by a tick or a free. It does not say for how long it counted: values are in percent of the aligned row's. \
     Printed are 240 and 133 waits, 34.01 and 24.61 ms in all, 0.965 and 1.35 ms the longest.",
    "The text has the same rows for a kernel with KASAN. They are not simulated: our model has no sanitizer.",
    "The text prints no variation, so nothing says whether its values and ours differ by chance.",
    "The text gives 72 CPUs and aarch64. The machine's costs are those of another, as its file says.",
];

const EXPLANATIONS: [&str; 2] = [
    "A wait takes 142 to 185 us in the text. Ours differ: a hold of the zone's lock drains at most a batch here, and the text does \
     not say what held it for longer.",
    "stress-vm is our model of stress-ng's default; the text does not say which method and how much memory it used.",
];

fn experiment(table: &Published) -> Result<Experiment> {
    let relative = |key, heading| Quantity::relative(key, heading, "% of aligned", 1);
    let columns = vec![
        (relative("contentions_rel", "waits"), Metric::OfBase(|run| run.drain_waits as f64)),
        (relative("total_wait_rel", "time waited"), Metric::OfBase(|run| run.drain_wait_ns as f64)),
        (relative("max_wait_rel", "longest wait"), Metric::OfBase(|run| run.drain_wait_max_ns as f64)),
        (
            Quantity::relative("mean_wait_us", "mean wait", "us", 1),
            Metric::Result(|run| run.drain_wait_ns as f64 / run.drain_waits as f64 / 1e3),
        ),
    ];
    let printed = |state| {
        let mut rows = table.rows_with("kernel", "no_kasan");
        let row = rows.find(|row| row.text("state").is_ok_and(|text| text == state));
        let row = row.with_context(|| format!("no row no_kasan {state}"))?;
        let number = |column| row.number(column)?.with_context(|| format!("{state}: no {column}"));
        Ok::<_, anyhow::Error>([number("contentions")?, number("total_wait_ms")?, number("max_wait_ms")?])
    };
    let base = printed(STATES[0].0)?;
    let mut cases = Vec::new();
    for (name, phase) in STATES {
        let values = printed(name)?;
        let relative = values.into_iter().zip(base).map(|(value, base)| Some(100.0 * value / base));
        let [waits, total_wait_ms, _] = values;
        cases.push(Case {
            name: name.to_owned(),
            base: (!cases.is_empty()).then_some(0),
            run: RunSpec { tick_phase: Some(phase), ..RunSpec::new(MACHINE, "stress-vm", POLICY) },
            published: relative.chain([Some(1e3 * total_wait_ms / waits)]).collect(),
            variation_percent: None,
        });
    }
    Ok(Experiment {
        id: "stress-vm".to_owned(),
        title: "stress-ng --vm on 72 CPUs: waits for zone locks by drains".to_owned(),
        columns,
        cases,
        fits: Vec::new(),
        borrowed: Vec::new(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_those_without_kasan_in_percent_of_aligned() {
        let experiment = experiment(&published!("tick-spread/contention.csv").unwrap()).unwrap();
        assert_eq!(experiment.cases[0].published[..3], [Some(100.0); 3]);
        let spread = &experiment.cases[1];
        let rounded = [0, 1, 2, 3].map(|column| spread.published[column].unwrap().round());
        assert_eq!(rounded, [55.0, 72.0, 140.0, 185.0]);
        assert_eq!(spread.run.tick_phase, Some(TickPhase::Spread));
    }
}
