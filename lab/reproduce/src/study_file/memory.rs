//! Makes a table of used memory: at the peak of the load, and after the load has ended.

use pageset_report::{Cell, Column, Row, Table};

use super::form::UsedMemoryForm;
use crate::metric::Metric;
use crate::simulated::{Compared, Experiment, Simulated};

const USED_PEAK: Metric = Metric::UsedPeak;

/// Makes a table of used memory in the runs of `experiment`, beside the published use of memory. `index` is
/// the index of the experiment in the results. The counts of reproduced directions do not include the table
/// of used memory. The report shows `notes` below the table.
pub(super) fn table(
    form: &UsedMemoryForm,
    experiment: &Experiment,
    index: usize,
    simulated: &Simulated,
    notes: &[String],
) -> Table {
    let names = || experiment.cases.iter().map(|case| case.name.as_str());
    let mut columns = vec![Column::label("memory", "memory")];
    columns.extend(names().map(|name| Column::ratio(name, name)));
    let mut table = Table::new(format!("{}: used memory, base at the peak = 100", experiment.id), columns);
    let base = experiment.cases.first().map_or("", |case| &case.name);
    let printed = |value: f64| {
        move |name: &str| match name {
            name if name == base => Cell::real(100.0, 1),
            name if form.rows.iter().any(|row| row == name) => Cell::real(value, 1),
            _ => Cell::Absent,
        }
    };
    let base_pages = simulated.spread(index, 0, Compared::AsIs(USED_PEAK)).map(|spread| spread.mean);
    let ours = |figure: Metric| {
        (0..experiment.cases.len()).map(move |case| {
            let pages = simulated.spread(index, case, Compared::AsIs(figure));
            pages
                .zip(base_pages)
                .map_or(Cell::Absent, |(pages, base)| Cell::real(100.0 * pages.mean / base, 1))
        })
    };
    let spread = (0..experiment.cases.len())
        .filter_map(|case| simulated.spread(index, case, Compared::PercentOfBase(USED_PEAK)))
        .map(|spread| spread.stddev)
        .fold(0.0, f64::max);
    let pages = (0..experiment.cases.len()).map(|case| {
        let pages = simulated.spread(index, case, Compared::AsIs(Metric::PcpPagesPeak));
        pages.map_or(Cell::Absent, |pages| Cell::real(pages.mean / 1000.0, 1))
    });
    let mut push = |name: &str, cells: Vec<Cell>| {
        table.push(Row::new(std::iter::once(Cell::from(name)).chain(cells)));
    };
    push("peak, published", names().map(printed(form.peak_percent)).collect());
    push("peak, ours", ours(USED_PEAK).collect());
    push("base level again", names().map(printed(form.after_percent)).collect());
    push("back, ours", ours(Metric::PcpPagesIdle).collect());
    push("page sets, 1000s", pages.collect());
    table.note(format!(
        "`peak`: pages in use and in page sets. Our values are simulated; their largest standard deviation over seeds is \
         {spread:.1}. `base level again`: at the end of the run, the published text says in words that memory is back at the \
         base's level, which is 100 here. `back`: pages in page sets 30 s after the load is gone, in percent of the base's \
         peak. The last row is the peak of the page sets alone, in thousands of pages."
    ));
    notes.iter().for_each(|note| table.note(note));
    table
}

#[cfg(test)]
mod tests {
    use pageset_study::simulate::RunSpec;

    use super::super::StudyFile;
    use super::*;
    use crate::simulated::{self, Fitted};
    use crate::study::Options;

    #[test]
    fn memory_at_the_peak_and_after_it_stands_beside_what_is_printed() {
        let study = StudyFile::bundled().find(|study| study.files.name == "pcp-auto-tuning").unwrap();
        let form = study.form.used_memory.as_ref().unwrap().get_ref();
        let mut kbuild = study.experiments(false).unwrap().swap_remove(0);
        kbuild.cases.retain(|case| ["base", "patch7"].contains(&case.name.as_str()));
        for case in &mut kbuild.cases {
            case.run = RunSpec {
                cpus: None,
                warmup_ms: Some(5),
                duration_ms: Some(20),
                policy: case.run.policy.clone(),
                ..RunSpec::new("epyc-2", "kbuild", "")
            };
        }
        let options = Options { is_quick: true, jobs: 1, fit: None, seeds: Some(1), ..Options::default() };
        let experiments = [kbuild];
        let simulated = simulated::run(&experiments, &Fitted::default(), &options, &mut ()).unwrap();
        assert_eq!(simulated.failures, Vec::<String>::new());
        let rows = serde_json::to_value(table(form, &experiments[0], 0, &simulated, &[])).unwrap();
        let row = |name: &str| {
            let rows = rows["rows"].as_array().unwrap();
            rows.iter().find(|row| row["memory"] == name).unwrap_or_else(|| panic!("{rows:?}")).clone()
        };
        assert_eq!(row("peak, published")["patch7"], 150.6);
        assert_eq!(row("peak, ours")["base"], 100.0);
        assert!(row("peak, ours")["patch7"].as_f64().unwrap() > 50.0);
        // After the load, only page sets hold memory. Page sets cannot hold more pages than the run used at
        // its peak.
        assert!(row("back, ours")["patch7"].as_f64() <= row("peak, ours")["patch7"].as_f64(), "{rows}");
        assert!(row("page sets, 1000s")["base"].as_f64().unwrap() > 0.0);
    }
}
