//! Simulates a published table a second time, with copies of a recorded build instead of modelled processes.
//!
//! The counts of reproduced directions do not include the second simulation. The table of the second
//! simulation shows the directions of the copies and of the model, step by step.

use pageset_report::comparison::{Change, Comparison, Direction, Quantity};
use pageset_report::{Cell, Column, Row, Table};
use pageset_study::simulate::RunSpec;

use super::form::CopiesForm;
use crate::metric::Metric;
use crate::simulated::{Compared, Experiment, Simulated};

/// Makes an experiment with the rows of `build`, without fitted parameters. In each row, copies of the
/// recording run on the CPUs of the row in place of the workload.
pub(super) fn experiment(form: &CopiesForm, build: &Experiment) -> Experiment {
    let is_shared = |quantity: &Quantity| form.columns.iter().any(|key| *key.get_ref() == quantity.key);
    let mut copies = build.clone();
    copies.id = format!("{}-copies", build.id);
    copies.title = format!("{} as copies of a recorded build", build.id);
    copies.fits.clear();
    let shared: Vec<bool> = build.columns.iter().map(|(quantity, _)| is_shared(quantity)).collect();
    let mut keep = shared.iter();
    copies.columns.retain(|_| keep.next() == Some(&true));
    for case in &mut copies.cases {
        let mut keep = shared.iter();
        case.published.retain(|_| keep.next() == Some(&true));
        case.run = RunSpec {
            cpus: case.run.cpus,
            warmup_ms: Some(form.warmup_ms),
            duration_ms: Some(form.duration_ms),
            ..RunSpec::new(&case.run.machine, &form.workload, &case.run.policy)
        };
    }
    copies
}

/// Makes a table with the published values, the copies' values and the model's values side by side. Beside
/// each value, the table says whether the value is higher or lower than in the previous row. `drains` has two
/// numbers of drains because of high-order frees in the base row: the number of the copies, and the number of
/// the model. The report shows `notes` below the table.
pub(super) fn table(
    copies: &Comparison,
    model: &Comparison,
    drains: [Option<f64>; 2],
    notes: &[String],
) -> Table {
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
    let mut table = Table::new(
        format!("{}, step by step: copies of a recorded build, and modelled processes", model.id()),
        columns,
    );
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
        "Values are per unit of work, in percent of the base row. Step: whether the value goes up or down from the row before. \
         A change of at most 2 %, or within the deviation between seeds, counts as none. {}",
        sentences.join(" ")
    ));
    let [of_copies, of_model] =
        drains.map(|drains| drains.map_or_else(|| "no known".to_owned(), |drains| format!("{drains:.0}")));
    table.note(format!(
        "The base row has {of_copies} drains of free_high in the copies, and {of_model} in the model."
    ));
    notes.iter().for_each(|note| table.note(note));
    table
}

/// Returns the base row's numbers of drains because of high-order frees, in the copies and in the model.
pub(super) fn base_drains(simulated: &Simulated, experiments: [usize; 2]) -> [Option<f64>; 2] {
    experiments.map(|experiment| {
        let drains = Compared::AsIs(Metric::FreeHigh);
        simulated.spread(experiment, 0, drains).map(|spread| spread.mean)
    })
}

/// The number of published changes. `met` has two counts of these changes: changes with the published
/// direction in the copies, and in the model.
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
    use pageset_study::simulate::simulate;

    use super::super::StudyFile;
    use super::*;

    #[test]
    fn copies_have_the_rows_of_the_build_and_two_of_its_columns() {
        let study = StudyFile::bundled().find(|study| study.files.name == "pcp-auto-tuning").unwrap();
        let form = study.form.copies.as_ref().unwrap().get_ref();
        let copies = experiment(form, &study.experiments(false).unwrap()[0]);
        let keys: Vec<_> = copies.columns.iter().map(|(quantity, _)| quantity.key.as_str()).collect();
        assert_eq!(keys, ["free_high_rel", "alloc_zone_rel"]);
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
            ..RunSpec::new("epyc-2", "bundled:k618_2c_make_openssl_j4", "linux-6.6")
        };
        let result = simulate(&run).unwrap();
        assert_eq!(result.played.unwrap().lost_events, 0);
        assert!(result.allocated_pages > 0);
    }

    /// Makes a comparison with one count. The base row has the value 100.
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
        let table = table(&copies, &model, [Some(382.4), None], &[]);
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
