//! Makes a table that helps to choose a row of a published table, for example a batch size. The table names
//! the first row that is about as good as the best row, and shows how much worse some other rows are. The
//! table shows the row to choose by the published values, and the row to choose by the simulated values.

use std::collections::BTreeSet;

use pageset_report::comparison::{Band, Comparison, Pair};
use pageset_report::{Cell, Column, Row, Table};

use super::form::ChoiceForm;
use crate::metric::Better;
use crate::simulated::Experiment;

/// A row that could be chosen.
struct Candidate<'a> {
    name: &'a str,
    pair: &'a Pair,
}

/// Makes the table of choices, with a row for each base row and each column that decides a choice.
/// `experiments` are the study's tables as descriptions, and `tables` are these tables with our values.
pub(super) fn table(form: &ChoiceForm, experiments: &[Experiment], tables: &[Comparison]) -> Table {
    let mut columns = vec![Column::label("table", "table"), Column::label("line", "line")];
    for (who, heading) in [("published", "published"), ("ours", "ours")] {
        columns.push(Column::label(&format!("{who}_choice"), &format!("{heading}: first that is enough")));
        columns.extend(form.rows.iter().map(|row| {
            Column::ratio(&format!("{who}_lost_{row}_percent"), &format!("lost with {row}")).with_unit("%")
        }));
    }
    columns.push(Column::ratio("ours_costs_percent", "our choice loses, as published").with_unit("%"));
    let mut table = Table::new("Which row to choose, and how much worse other rows are", columns);
    for (experiment, comparison) in experiments.iter().zip(tables) {
        for (column, (quantity, compared)) in experiment.columns.iter().enumerate() {
            let is_asked = form.columns.iter().any(|key| *key.get_ref() == quantity.key);
            let (true, Some(better)) = (is_asked, compared.metric().better()) else { continue };
            let Band::Percent(band) = quantity.band else { continue };
            let pairs: Vec<_> = comparison.pairs(column).collect();
            let bases: BTreeSet<_> =
                (0..pairs.len()).map(|row| experiment.cases[row].base.unwrap_or(row)).collect();
            for base in bases {
                let members =
                    (0..pairs.len()).filter(|row| experiment.cases[*row].base.unwrap_or(*row) == base);
                let options: Vec<_> = members
                    .map(|row| Candidate { name: &experiment.cases[row].name, pair: pairs[row] })
                    .collect();
                table.push(line(form, experiment, &options, better, band));
            }
        }
    }
    table.note(
        "First that is enough: the first row from the top that is at most 2 % worse than the best row, or worse by no more \
         than both deviations together (printed deviations for published values, deviations between seeds for ours). \
         Lost: how much worse a row is than the best. The last column says how much worse than the best published row \
         the row is that our values call enough.",
    );
    table
}

fn line(
    form: &ChoiceForm,
    experiment: &Experiment,
    options: &[Candidate<'_>],
    better: Better,
    band: f64,
) -> Row {
    let (line, _) = parts(options[0].name);
    let published =
        Judged::new(options, better, band, |pair| Some((pair.published?, pair.variation_percent)));
    let ours = Judged::new(options, better, band, |pair| {
        let ours = pair.ours?;
        Some((ours, pair.spread.map(|spread| 100.0 * spread / ours)))
    });
    let cell = |lost: Option<f64>| lost.map_or(Cell::Absent, |lost| Cell::real(lost, 1));
    let lost = |judged: &Judged, name: &str| {
        let at = options.iter().position(|option| parts(option.name).1 == name);
        cell(at.and_then(|at| judged.lost[at]))
    };
    let mut cells = vec![Cell::from(experiment.id.as_str()), Cell::from(line)];
    for judged in [&published, &ours] {
        cells.push(judged.enough.map_or(Cell::Absent, |at| parts(options[at].name).1.into()));
        cells.extend(form.rows.iter().map(|name| lost(judged, name)));
    }
    cells.push(cell(ours.enough.and_then(|at| published.lost[at])));
    Row::new(cells)
}

/// Splits the name of a row. The last word of the name is the choice, and the words before the last word name
/// the line of the CSV.
fn parts(name: &str) -> (&str, &str) {
    name.rsplit_once(' ').unwrap_or(("", name))
}

/// The loss of each row: how much worse the row is than the best row, in percent of the best row. `enough` is
/// the index of the first row whose loss counts as no loss.
struct Judged {
    lost: Vec<Option<f64>>,
    enough: Option<usize>,
}

impl Judged {
    /// Computes each row's loss: how much worse the row is than the best row, in percent of the best row.
    /// `value` returns a row's value, and the standard deviation of this value in percent. A loss counts as
    /// no loss if it is at most `band` percent, or at most the combined standard deviation of the row's value
    /// and the best row's value.
    fn new(
        options: &[Candidate<'_>],
        better: Better,
        band: f64,
        value: impl Fn(&Pair) -> Option<(f64, Option<f64>)>,
    ) -> Self {
        let values: Vec<_> = options.iter().map(|option| value(option.pair)).collect();
        let known = values.iter().flatten();
        let best = match better {
            Better::More => known.max_by(|left, right| left.0.total_cmp(&right.0)),
            Better::Less => known.min_by(|left, right| left.0.total_cmp(&right.0)),
        };
        let Some(&(best, varies)) = best else {
            return Self { lost: vec![None; values.len()], enough: None };
        };
        let lost = |value: f64| match better {
            Better::More => 100.0 * (best - value) / best,
            Better::Less => 100.0 * (value - best) / best,
        };
        let is_enough = |&(value, deviation): &(f64, Option<f64>)| {
            lost(value) <= band.max(varies.unwrap_or(0.0).hypot(deviation.unwrap_or(0.0)))
        };
        Self {
            lost: values.iter().map(|value| value.map(|(value, _)| lost(value))).collect(),
            enough: values.iter().position(|value| value.as_ref().is_some_and(is_enough)),
        }
    }
}

#[cfg(test)]
mod tests {
    use pageset_report::Origin;

    use super::super::StudyFile;
    use super::*;

    fn judged(better: Better, values: &[(f64, Option<f64>)]) -> (Vec<f64>, Option<usize>) {
        let pairs: Vec<_> = values
            .iter()
            .map(|(value, variation_percent)| Pair {
                variation_percent: *variation_percent,
                ..Pair::new(Some(*value), None, Origin::Simulated)
            })
            .collect();
        let options: Vec<_> = pairs.iter().map(|pair| Candidate { name: "1", pair }).collect();
        let judged =
            Judged::new(&options, better, 2.0, |pair| Some((pair.published?, pair.variation_percent)));
        (judged.lost.into_iter().flatten().collect(), judged.enough)
    }

    #[test]
    fn the_first_row_within_the_band_of_the_best_is_enough() {
        let values = [(90.0, None), (98.5, None), (100.0, None), (95.0, None)];
        assert_eq!(judged(Better::More, &values), (vec![10.0, 1.5, 0.0, 5.0], Some(1)));
        assert_eq!(judged(Better::Less, &[(110.0, None), (100.0, None)]), (vec![10.0, 0.0], Some(1)));
    }

    #[test]
    fn a_loss_within_the_printed_deviations_is_enough() {
        assert_eq!(judged(Better::More, &[(90.0, Some(7.0)), (100.0, Some(8.0))]).1, Some(0));
        assert_eq!(judged(Better::More, &[(90.0, Some(1.0)), (100.0, Some(2.0))]).1, Some(1));
        assert_eq!(judged(Better::More, &[]), (vec![], None));
    }

    /// Tests that the book's page shows the same published choices as the command. The published choices need
    /// no simulation.
    #[test]
    fn the_page_has_the_published_choices() {
        let study = StudyFile::bundled().find(|study| study.files.name == "batch-size").unwrap();
        let experiments = study.experiments(false).unwrap();
        let published = experiments.iter().map(|experiment| {
            let quantities = experiment.columns.iter().map(|(quantity, _)| quantity.clone()).collect();
            let mut comparison = Comparison::new(&experiment.id, &experiment.title, "", quantities);
            for case in &experiment.cases {
                let pair = |value: &Option<f64>| Pair {
                    variation_percent: case.variation_percent,
                    ..Pair::new(*value, None, Origin::Simulated)
                };
                let pairs = case.published.iter().map(pair).collect();
                match case.base {
                    None => _ = comparison.push_base(&case.name, pairs),
                    Some(base) => comparison.push(&case.name, base, pairs),
                }
            }
            comparison
        });
        let tables: Vec<_> = published.collect();
        let table = table(study.form.choice.as_ref().unwrap().get_ref(), &experiments, &tables);
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
        let page = std::fs::read_to_string(path.join("../../docs/book/src/guide/which-batch.md")).unwrap();
        let rows = serde_json::to_value(table).unwrap();
        let lost =
            |row: &serde_json::Value, batch: u32| row[format!("published_lost_{batch}_percent")].as_f64();
        let mut complete = Vec::new();
        for row in rows["rows"].as_array().unwrap() {
            let (id, enough) = (row["table"].as_str().unwrap(), row["published_choice"].as_str().unwrap());
            let losses = [31, 63, 127].map(|batch| lost(row, batch));
            if let Some(machine) = id.strip_prefix("phase1-") {
                let losses = losses.map(|lost| format!("{:.1}", lost.unwrap())).join(" | ");
                let line = format!("| `{machine}` | {enough} | {losses} |");
                assert!(page.contains(&line), "{line}");
            } else if losses.iter().all(Option::is_some) {
                complete.push(enough.to_owned());
            }
        }
        let with_31 = complete.iter().filter(|enough| *enough == "31").count();
        let page = page.split_whitespace().collect::<Vec<_>>().join(" ");
        let row_count = complete.len();
        let sentence = format!(
            "{row_count} rows with all three batches. A batch of 31 is enough in {with_31} of the {row_count} rows."
        );
        assert!(page.contains(&sentence), "{sentence}");
    }

    #[test]
    fn a_rows_name_ends_with_the_row() {
        assert_eq!(parts("lkp-skl-4sp1 31"), ("lkp-skl-4sp1", "31"));
        assert_eq!(parts("31"), ("", "31"));
    }
}
