//! Simulates the build of the 2023 series once more, with copies of a recorded build instead of modelled
//! processes.
//!
//! The copies are no further table of the text. So their directions are not counted. The output shows their
//! directions beside the model's, step by step.

use pageset_report::comparison::{Change, Comparison, Direction, Quantity};
use pageset_report::{Cell, Column, Row, Table};

use super::simulated::{Experiment, Metric, Simulated};
use crate::simulate::RunSpec;

/// The workload: a bundled recording of a build with large compilers.
const WORKLOAD: &str = "bundled:k618_2c_make_openssl_j4";
/// Virtual time before measuring, and measured. A recorded CPU takes 4 s for its acts, and each CPU begins at
/// a random place in them.
const WARMUP_MS: u64 = 1000;
const DURATION_MS: u64 = 4000;
/// Columns of the build's table that copies have too. Copies have no columns of time or waiting, because each
/// copy keeps the recorded time between its events.
const COLUMNS: [&str; 2] = ["free_high_rel", "alloc_zone_rel"];

/// The cause of the copies' drains. Measured with `pageset stat`, with `high_order_runs` of
/// `pageset-replay`'s examples, and with a player that was changed for it: linux-6.6, patch1, patch9 and
/// patch10, seed 1, on 112 CPUs.
const CLEANING_UP: &str = "Those of the copies are not the build's. In its 4 s the recording frees 7 blocks of orders 1 to 3, each after \
     a page, and the recording of a build of Lua none: neither has a run of them. When a copy's CPU has played all, it frees at once what \
     the recording leaves in memory, and among that are some 650 blocks of files, of order 2 nearly all. Nobody frees them so on a real \
     machine. A player that keeps them has no drain of free_high at all, and alloc_zone is 23.9 with patch9 and 24.2 with patch10. So \
     the copies say nothing of free_high, nor of what patch10 costs.";

/// The note of a quick run, which plays no copies.
pub(super) const LEFT_OUT: &str =
    "A quick run plays no copies of a recorded build: each takes half a minute of CPU time.";

/// Makes an experiment with the rows of `build`, as copies of the recording on the same CPUs. No parameter is
/// fitted.
pub(super) fn experiment(build: &Experiment) -> Experiment {
    let is_shared = |quantity: &Quantity| COLUMNS.contains(&quantity.key.as_str());
    let mut copies = build.clone();
    copies.id = format!("{}-copies", build.id);
    copies.title = "kbuild as copies of a recorded build".to_owned();
    copies.fits.clear();
    let shared: Vec<bool> = build.columns.iter().map(|(quantity, _)| is_shared(quantity)).collect();
    let mut keep = shared.iter();
    copies.columns.retain(|_| keep.next() == Some(&true));
    for case in &mut copies.cases {
        let mut keep = shared.iter();
        case.published.retain(|_| keep.next() == Some(&true));
        case.run = RunSpec {
            cpus: case.run.cpus,
            warmup_ms: Some(WARMUP_MS),
            duration_ms: Some(DURATION_MS),
            ..RunSpec::new(&case.run.machine, WORKLOAD, &case.run.policy)
        };
    }
    copies
}

/// Makes a table with published values, copies and model side by side, and the direction of each from the row
/// before. `drains` are the base row's drains because of high-order frees, of copies and model.
pub(super) fn table(copies: &Comparison, model: &Comparison, drains: [Option<f64>; 2]) -> Table {
    let columns = vec![
        Column::label("count", "count"),
        Column::label("kernel", "kernel"),
        Column::ratio("published", "published"),
        Column::label("published_step", "step"),
        Column::ratio("copies", "copies"),
        Column::ratio("copies_spread", "+/-"),
        Column::label("copies_step", "step"),
        Column::ratio("model", "model"),
        Column::ratio("model_spread", "+/-"),
        Column::label("model_step", "step"),
    ];
    let mut table =
        Table::new("kbuild, step by step: copies of a recorded build, and modelled processes", columns);
    let mut sentences = Vec::new();
    for (index, quantity) in copies.quantities().iter().enumerate() {
        let Some(of_model) = model.quantities().iter().position(|other| other.key == quantity.key) else {
            continue;
        };
        let mut steps = Steps::default();
        for (row, name) in copies.row_names().enumerate() {
            let mut cells = vec![Cell::from(quantity.heading.as_str()), Cell::from(name)];
            let step = copies.step(row, index);
            let published = copies.pairs(index).nth(row).and_then(|pair| pair.published);
            cells.extend([number(published, quantity), word(step.map(|step| step.published))]);
            for (source, column) in [(copies, index), (model, of_model)] {
                let pair = source.pairs(column).nth(row);
                let ours = source.step(row, column).map(|step| step.ours);
                cells.push(number(pair.and_then(|pair| pair.ours), quantity));
                cells.push(number(pair.and_then(|pair| pair.spread), quantity));
                cells.push(word(ours));
            }
            steps.add([step, model.step(row, of_model)]);
            table.push(Row::new(cells));
        }
        sentences.push(steps.sentence(&quantity.heading));
    }
    table.note(format!(
        "In % of base, for each unit of work. Step: which way the value goes from the row before; a change of 2 %, or within the \
         seeds' deviation, is none. {}",
        sentences.join(" ")
    ));
    table.note(
        "Both are simulated. Copies: every two CPUs play the recording k618_2c_make_openssl_j4 of a machine of two, each from another \
         place in it, with the recorded time between events; nothing is fitted. Model: the rows of the first table. Directions of \
         copies are in no count.",
    );
    let [of_copies, of_model] =
        drains.map(|drains| drains.map_or_else(|| "no known".to_owned(), |drains| format!("{drains:.0}")));
    table.note(format!(
        "The base row has {of_copies} drains of free_high in the copies, and {of_model} in the model. {CLEANING_UP}"
    ));
    table
}

/// Number of the base row's drains because of high-order frees: in the copies, then in the model.
pub(super) fn base_drains(simulated: &Simulated, experiments: [usize; 2]) -> [Option<f64>; 2] {
    experiments.map(|experiment| {
        let drains = Metric::Result(|result| result.free_high as f64);
        simulated.spread(experiment, 0, drains).map(|spread| spread.mean)
    })
}

/// Number of published changes, and how many of them have the same direction in the copies and in the model.
#[derive(Default)]
struct Steps {
    published: u64,
    met: [u64; 2],
}

impl Steps {
    fn add(&mut self, steps: [Option<Change>; 2]) {
        let is_change = |step: &Change| step.published != Direction::Same;
        self.published += u64::from(steps[0].is_some_and(|step| is_change(&step)));
        for (met, step) in self.met.iter_mut().zip(steps) {
            *met += u64::from(step.is_some_and(|step| is_change(&step) && step.agrees()));
        }
    }

    fn sentence(&self, heading: &str) -> String {
        let Self { published, met: [copies, model] } = self;
        format!("{heading}: of {published} published steps, copies have {copies} and the model {model}.")
    }
}

fn number(value: Option<f64>, quantity: &Quantity) -> Cell {
    value.map_or(Cell::Absent, |value| Cell::real(value, quantity.decimals))
}

fn word(step: Option<Direction>) -> Cell {
    match step {
        None => "".into(),
        Some(Direction::Up) => "up".into(),
        Some(Direction::Same) => "same".into(),
        Some(Direction::Down) => "down".into(),
    }
}

#[cfg(test)]
mod tests {
    use pageset_report::Origin;
    use pageset_report::comparison::Pair;

    use super::super::pcp_auto_tuning;
    use super::*;
    use crate::simulate::simulate;

    #[test]
    fn copies_have_the_rows_of_the_build_and_two_of_its_columns() {
        let build = &pcp_auto_tuning::experiments().unwrap()[0];
        let copies = experiment(build);
        let keys: Vec<_> = copies.columns.iter().map(|(quantity, _)| quantity.key.as_str()).collect();
        assert_eq!(keys, COLUMNS);
        assert!(copies.fits.is_empty() && copies.borrowed.is_empty());
        let patch10 = copies.cases.last().unwrap();
        assert_eq!((patch10.name.as_str(), patch10.base), ("patch10", Some(0)));
        assert_eq!(patch10.published, [Some(29.0), Some(32.3)]);
        assert_eq!((patch10.run.cpus, patch10.run.policy.as_str()), (Some(112), "patch10"));
        assert!(patch10.run.settings.is_empty(), "a recording has no parameters");
    }

    #[test]
    fn the_recording_is_built_in_and_two_cpus_play_it() {
        let run = RunSpec {
            warmup_ms: Some(1),
            duration_ms: Some(5),
            ..RunSpec::new("epyc-2", WORKLOAD, "linux-6.6")
        };
        let result = simulate(&run).unwrap();
        assert_eq!(result.played.unwrap().lost_events, 0);
        assert!(result.allocated_pages > 0);
    }

    /// Makes a comparison of one count, whose base row is 100.
    fn counted(published: &[f64], ours: &[f64]) -> Comparison {
        let quantity = Quantity::relative("free_high_rel", "free_high", "% of base", 1);
        let mut comparison = Comparison::new("t", "t", "m", vec![quantity]);
        for (row, (published, ours)) in published.iter().zip(ours).enumerate() {
            let pair = vec![Pair::new(Some(*published), Some(*ours), Origin::Simulated)];
            match row {
                0 => _ = comparison.push_base("base", pair),
                _ => comparison.push(format!("patch{row}"), 0, pair),
            }
        }
        comparison
    }

    #[test]
    fn steps_of_both_stand_beside_the_published_ones() {
        let published = [100.0, 50.0, 10.0, 10.0, 30.0];
        let copies = counted(&published, &[100.0, 40.0, 60.0, 60.0, 80.0]);
        let model = counted(&published, &[100.0, 2.0, 1.0, 2.0, 2.0]);
        let table = table(&copies, &model, [Some(382.4), None]);
        let json = serde_json::to_value(&table).unwrap();
        let steps = |key: &str| -> Vec<_> {
            let rows = json["rows"].as_array().unwrap();
            rows.iter().map(|row| row[key].as_str().unwrap().to_owned()).collect()
        };
        assert_eq!(steps("published_step"), ["", "down", "down", "same", "up"]);
        assert_eq!(steps("copies_step"), ["", "down", "up", "same", "up"]);
        assert_eq!(steps("model_step"), ["", "down", "down", "up", "same"]);
        let notes = table.notes().join(" ");
        assert!(notes.contains("free_high: of 3 published steps, copies have 2 and the model 2."), "{notes}");
        assert!(
            notes.contains("has 382 drains of free_high in the copies, and no known in the model"),
            "{notes}"
        );
    }
}
