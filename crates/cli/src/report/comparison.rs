//! Several recordings side by side: of three or more, the one that differs most comes first.

use pageset_lab::advise::Waiting;
use pageset_lab::dossier::Dossier;
use pageset_report::page::{Bar, Bars, Part, Section};
use pageset_report::{Cell, Column, Row, Table};

/// A figure of a recording, in units that are shown as whole numbers; `None` if the recording does not have it.
type Figure = fn(&Dossier) -> Option<u64>;

/// Figures that are compared, with what they are counted in.
const FIGURES: [(&str, &str, Figure); 4] = [
    ("Refills and drains", "a second", |dossier| {
        per_second(dossier, dossier.examined.advice.findings.visits)
    }),
    ("Pages from zones", "pages a second", |dossier| {
        per_second(dossier, dossier.examined.advice.findings.zone_pages)
    }),
    ("Waits for zone locks", "us a second", |dossier| {
        let is_measured = matches!(dossier.examined.advice.findings.waiting, Some(Waiting::Measured { .. }));
        let wait_us = dossier.examined.survey.kernel.zone_locks.wait_ns / 1000;
        per_second(dossier, Some(wait_us).filter(|_| is_measured))
    }),
    ("Held in page sets at most", "pages", |dossier| dossier.examined.advice.findings.held_pages_peak),
];

fn per_second(dossier: &Dossier, count: Option<u64>) -> Option<u64> {
    let (seconds, count) = (dossier.examined.advice.findings.seconds, count?);
    (seconds > 0.0).then(|| (count as f64 / seconds).round() as u64)
}

/// The recordings in the order in which they are shown, and what they have in common.
pub(super) fn section(dossiers: &[Dossier], names: &[String]) -> (Vec<usize>, Section) {
    let values: Vec<Vec<Option<u64>>> =
        FIGURES.iter().map(|figure| dossiers.iter().map(figure.2).collect()).collect();
    let order = if dossiers.len() > 2 { outliers_first(&values) } else { (0..dossiers.len()).collect() };
    let mut section = Section::new("Comparison");
    if dossiers.len() > 2 {
        section.push(Part::Text(
            "The recording that differs most from the median of all stands first.".to_owned(),
        ));
    }
    let known = FIGURES.iter().zip(&values).filter(|(_, values)| values.iter().any(Option::is_some));
    let bars = known.map(|((title, unit, _), values)| {
        let bar = |at: &usize| Some(Bar { name: names[*at].clone(), value: values[*at]?, range: None });
        let bars = order.iter().filter_map(bar).collect();
        Bars { title: (*title).to_owned(), unit: (*unit).to_owned(), bars }
    });
    section.push(Part::Bars(bars.collect()));
    section.push(Part::Table(table(dossiers, names, &order)));
    (order, section)
}

/// Places by how far the figure that differs most is from the median, as a ratio.
fn outliers_first(values: &[Vec<Option<u64>>]) -> Vec<usize> {
    let medians: Vec<u64> = values.iter().map(|values| median(values)).collect();
    let count = values.first().map_or(0, Vec::len);
    let distance = |at: usize| {
        let of_one = values.iter().zip(&medians).filter_map(|(values, median)| {
            Some(((values[at]? as f64 + 1.0) / (*median as f64 + 1.0)).ln().abs())
        });
        of_one.fold(0.0, f64::max)
    };
    let mut order: Vec<usize> = (0..count).collect();
    order.sort_by(|left, right| distance(*right).total_cmp(&distance(*left)));
    order
}

fn median(values: &[Option<u64>]) -> u64 {
    let mut sorted: Vec<u64> = values.iter().copied().flatten().collect();
    sorted.sort_unstable();
    sorted.get(sorted.len() / 2).copied().unwrap_or(0)
}

fn table(dossiers: &[Dossier], names: &[String], order: &[usize]) -> Table {
    let columns = vec![
        Column::label("recording", "recording"),
        Column::label("kernel", "kernel"),
        Column::measure("seconds", "length").with_unit("s"),
        Column::count("events", "events"),
        Column::count("lost_events", "lost"),
        Column::count("visits", "refills and drains"),
        Column::count("zone_pages", "pages from zones"),
        Column::ratio("zone_percent", "of those allocated").with_unit("%"),
        Column::ratio("waiting_percent", "waiting for zone locks").with_unit("%"),
        Column::ratio("remote_percent", "freed elsewhere").with_unit("%"),
        Column::count("held_pages_peak", "pages held at most"),
    ];
    let mut table = Table::new("Recordings", columns);
    for at in order {
        let advice = &dossiers[*at].examined.advice;
        let findings = &advice.findings;
        let percent = |percent: Option<f64>| percent.map_or(Cell::Absent, |percent| Cell::real(percent, 2));
        table.push(Row::new([
            names[*at].as_str().into(),
            advice.kernel.clone().into(),
            Cell::real(findings.seconds, 3),
            findings.events.into(),
            findings.lost_events.into(),
            findings.visits.into(),
            findings.zone_pages.into(),
            percent(findings.zone_percent()),
            percent(findings.waiting.map(Waiting::percent)),
            percent(findings.remote_percent),
            findings.held_pages_peak.into(),
        ]));
    }
    if dossiers
        .iter()
        .any(|dossier| matches!(dossier.examined.advice.findings.waiting, Some(Waiting::AtMost { .. })))
    {
        table.note("Where waits were not recorded, waiting is at most what stands there: no longer than others held the locks.");
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_differs_most_comes_first() {
        let all = |values: [u64; 4]| values.map(Some).to_vec();
        assert_eq!(outliers_first(&[all([10, 11, 10, 10]), all([5, 5, 500, 4])]), [2, 3, 1, 0]);
        assert_eq!(
            outliers_first(&[vec![None, Some(7), Some(7), Some(9)]]),
            [3, 0, 1, 2],
            "unknown is no outlier"
        );
        assert_eq!(median(&[Some(3), None, Some(1), Some(2)]), 2);
    }
}
