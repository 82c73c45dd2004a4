//! Compares several recordings. If there are three or more recordings, the recording that differs most comes
//! first.

use pageset_replay::advise::Waiting;
use pageset_replay::report_data::ReportData;
use pageset_report::page::{Bar, Bars, Part, Section};
use pageset_report::{Cell, Column, Row, Table, command_line};

use super::settings;

/// A figure of a recording that is compared with the figures of other recordings.
#[derive(Clone, Copy)]
struct Figure {
    title: &'static str,
    unit: &'static str,
    /// A difference between two recordings' figures, in `unit`, that is too small to notice. `little` is
    /// added to the figures of both recordings before the ratio of the sums is computed.
    little: f64,
    /// Returns the recording's figure, rounded to a whole number of `unit`. `None` if the recording does not
    /// have the figure.
    of: fn(&ReportData) -> Option<u64>,
}

// The values of `little` are guesses. 500 visits a second take a thousandth of a CPU's time, if a visit takes
// 2 us and moves 50 pages.
const FIGURES: [Figure; 6] = [
    Figure {
        title: "Refills and drains",
        unit: "a second",
        little: 500.0,
        of: |report_data| per_second(report_data, report_data.examined.advice.findings.visits),
    },
    Figure {
        title: "Pages from zones",
        unit: "pages a second",
        little: 25_000.0,
        of: |report_data| per_second(report_data, report_data.examined.advice.findings.zone_pages),
    },
    Figure {
        title: "Waits for zone locks",
        unit: "us a second",
        little: 1000.0,
        of: |report_data| {
            let is_measured =
                matches!(report_data.examined.advice.findings.waiting, Some(Waiting::Measured { .. }));
            let waits = report_data.examined.survey.kernel.zone_locks.waits.as_ref();
            let wait_us = waits.map(|waits| waits.wait_ns / 1000);
            per_second(report_data, wait_us.filter(|_| is_measured))
        },
    },
    HELD_SAMPLED,
    Figure {
        title: "Pages that came from zones",
        unit: "% of those allocated",
        little: 10.0,
        of: |report_data| percent(report_data.examined.advice.findings.zone_percent()),
    },
    Figure {
        title: "Pages freed by another CPU than the CPU that allocated them",
        unit: "%",
        little: 10.0,
        of: |report_data| percent(report_data.examined.advice.findings.remote_percent),
    },
];

fn percent(percent: Option<f64>) -> Option<u64> {
    Some(percent?.round() as u64)
}

/// The most pages that page sets held in any sample. The recorder takes a sample every 20 ms.
const HELD_SAMPLED: Figure = Figure {
    title: "Held in page sets at most, as sampled",
    unit: "pages",
    little: 256.0,
    of: |report_data| report_data.samples.held_peak(),
};
/// The most pages that page sets held in a replay. A replay sees every event, so the most pages in a replay
/// differ from the largest sample of the same recording.
const HELD_REPLAYED: Figure = Figure {
    title: "Held in page sets at most, as replayed",
    of: |report_data| report_data.examined.advice.findings.held_pages_peak,
    ..HELD_SAMPLED
};

/// The figures that are compared. Held pages come from samples if all recordings have samples, and otherwise
/// from replays: a value from samples is not comparable with a value from a replay.
fn figures(dossiers: &[ReportData]) -> [Figure; 6] {
    let mut figures = FIGURES;
    if dossiers.iter().any(|report_data| report_data.samples.held_peak().is_none()) {
        figures[3] = HELD_REPLAYED;
    }
    figures
}

/// The text about a comparison does not mention a difference of less than this percentage. Guess: two runs of
/// one load differ by about 5 %.
const TOLD_PERCENT: f64 = 5.0;

fn per_second(report_data: &ReportData, count: Option<u64>) -> Option<u64> {
    let (seconds, count) = (report_data.examined.advice.findings.seconds, count?);
    (seconds > 0.0).then(|| (count as f64 / seconds).round() as u64)
}

/// Returns the order of the recordings on the page, and the section that compares them.
pub(super) fn section(dossiers: &[ReportData], names: &[String]) -> (Vec<usize>, Section) {
    let figures = figures(dossiers);
    let values: Vec<Vec<Option<u64>>> =
        figures.iter().map(|figure| dossiers.iter().map(figure.of).collect()).collect();
    let order = if dossiers.len() > 2 { outliers_first(&values) } else { (0..dossiers.len()).collect() };
    let mut section = Section::new("Comparison");
    if dossiers.len() > 2 {
        section.push(Part::Text(
            "The recording that differs most from the median of all recordings comes first.".to_owned(),
        ));
    }
    if let [first, second] = dossiers {
        let figures = figures.iter().zip(&values);
        let figures = figures.map(|(figure, values)| (*figure, values[0], values[1]));
        let mut sentences = differences(figures, &names[0], &names[1]).into_iter();
        section.push(Part::Lead(sentences.next().unwrap_or_default()));
        sentences.for_each(|sentence| section.push(Part::Text(sentence)));
        made_differently(first, second).into_iter().for_each(|each| section.push(Part::Text(each)));
    }
    let known = figures.iter().zip(&values).filter(|(_, values)| values.iter().any(Option::is_some));
    let bars = known.map(|(figure, values)| {
        let bar = |at: &usize| Some(Bar { name: names[*at].clone(), value: values[*at]?, range: None });
        let bars = order.iter().filter_map(bar).collect();
        Bars { title: figure.title.to_owned(), unit: figure.unit.to_owned(), bars }
    });
    section.push(Part::Bars(bars.collect()));
    section.push(Part::narrow_table(table(dossiers, names, &order)));
    (order, section)
}

/// The differences of the second recording from the first, the largest first. `little` is added to both
/// values before the values are compared, because a ratio of two small values may be large.
fn differences(
    figures: impl Iterator<Item = (Figure, Option<u64>, Option<u64>)>,
    first: &str,
    second: &str,
) -> Vec<String> {
    let mut told = Vec::new();
    for (Figure { title, unit, little, .. }, before, after) in figures {
        let Some((before, after)) = before.zip(after) else { continue };
        let percent = 100.0 * (after as f64 - before as f64) / before as f64;
        let by = if percent.is_finite() && !unit.starts_with('%') {
            format!(" ({percent:+.0} %)")
        } else {
            String::new()
        };
        let distance = ((after as f64 + little) / (before as f64 + little)).ln().abs();
        if distance < (1.0 + TOLD_PERCENT / 100.0).ln() {
            continue;
        }
        let verb = if after > before { "more" } else { "fewer" };
        let is_time = unit.starts_with("us");
        let verb = if is_time && after < before { "less" } else { verb };
        told.push((distance, format!("{title}: {verb}, from {before} to {after} {unit}{by}.")));
    }
    told.sort_by(|left, right| right.0.total_cmp(&left.0));
    let mut sentences: Vec<String> = told.into_iter().map(|(_, sentence)| sentence).collect();
    match sentences.first_mut() {
        Some(lead) => *lead = format!("From {first} to {second}: {lead}"),
        None => sentences.push(format!(
            "{first} and {second} do not differ by {TOLD_PERCENT:.0} % or more in any figure that is large enough to notice."
        )),
    }
    sentences
}

/// Differences between the two recordings in kernel, settings and command.
fn made_differently(first: &ReportData, second: &ReportData) -> Vec<String> {
    let (before, after) = (&first.examined.advice, &second.examined.advice);
    let mut all = Vec::new();
    if let Some((from, to)) =
        before.kernel.as_ref().zip(after.kernel.as_ref()).filter(|(from, to)| from != to)
    {
        all.push(format!("The kernel differs: {from}, then {to}."));
    }
    let (from, to) = (&first.settings, &second.settings);
    if let Some((from, to)) = from.as_ref().zip(to.as_ref()) {
        let to = settings::named(to);
        for (name, from) in settings::named(from) {
            let value = to.iter().find(|(known, _)| *known == name).map(|(_, value)| value);
            if let Some(to) = value.filter(|to| **to != from) {
                all.push(format!("A setting differs: vm.{name} was {from}, then {to}."));
            }
        }
    }
    if !before.command.is_empty() && !after.command.is_empty() && before.command != after.command {
        let (from, to) = (command_line(&before.command), command_line(&after.command));
        all.push(format!("The command differs: {from}, then {to}."));
    }
    all
}

/// Sorts recordings by their largest deviation from the median, as a ratio.
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

fn table(dossiers: &[ReportData], names: &[String], order: &[usize]) -> Table {
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
        Column::count("held_pages_sampled", "pages held at most, as sampled"),
        Column::count("held_pages_peak", "pages held at most, as replayed"),
    ];
    let mut table = Table::new("Recordings", columns);
    for at in order {
        let advice = &dossiers[*at].examined.advice;
        let findings = &advice.findings;
        let percent = |percent: Option<f64>| Cell::real(percent, 2);
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
            dossiers[*at].samples.held_peak().into(),
            findings.held_pages_peak.into(),
        ]));
    }
    if dossiers.iter().any(|report_data| {
        matches!(report_data.examined.advice.findings.waiting, Some(Waiting::AtMost { .. }))
    }) {
        table.note(
            "If waits were not recorded, the number is an upper bound: the time that the locks were held.",
        );
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_difference_leads() {
        let figures = |after: [Option<u64>; 4]| {
            let before = [Some(10_000), Some(1_000_000), Some(0), None];
            (0..4).map(move |at| (FIGURES[at], before[at], after[at]))
        };
        assert_eq!(
            differences(figures([Some(10_300), Some(250_000), Some(7000), Some(9)]), "a", "b"),
            [
                "From a to b: Waits for zone locks: more, from 0 to 7000 us a second.",
                "Pages from zones: fewer, from 1000000 to 250000 pages a second (-75 %)."
            ]
        );
        let nothing = ["a and b do not differ by 5 % or more in any figure that is large enough to notice."];
        let unknown = differences(figures([Some(10_000), Some(1_000_001), Some(0), None]), "a", "b");
        assert_eq!(unknown, nothing, "a figure that one recording does not have is not a difference");
        let rare = differences(figures([Some(10_000), Some(1_000_000), Some(40), None]), "a", "b");
        assert_eq!(
            rare, nothing,
            "from 0 to 40 us a second is too small a difference to mention, though its ratio is infinite"
        );
    }

    #[test]
    fn what_differs_most_comes_first() {
        let all = |values: [u64; 4]| values.map(Some).to_vec();
        assert_eq!(outliers_first(&[all([10, 11, 10, 10]), all([5, 5, 500, 4])]), [2, 3, 1, 0]);
        assert_eq!(
            outliers_first(&[vec![None, Some(7), Some(7), Some(9)]]),
            [3, 0, 1, 2],
            "a recording without the figure does not differ from the others"
        );
        assert_eq!(median(&[Some(3), None, Some(1), Some(2)]), 2);
    }
}
