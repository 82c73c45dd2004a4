//! The page's section of forecasts for other kernels and settings.

use pageset_replay::report_data::ReportData;
use pageset_replay::{INTERVAL_COVERAGE, Interval, Outcome};
use pageset_report::page::{Bar, Bars, Part, Section};

use crate::advise;

pub(super) fn section(report_data: &ReportData, heading: String) -> Section {
    let advice = &report_data.examined.advice;
    let mut section = Section::new(heading);
    if advice.forecasts.is_empty() {
        section.push(Part::Text(
            "There is no forecast. The verdict says which events the recording lacks.".to_owned(),
        ));
        return section;
    }
    section.push(Part::Text(match &advice.policy {
        Some(policy) => format!(
            "The recording is replayed under the recorded kernel's policy, {policy}, which stands first, and \
             under other policies. A line over a bar shows an 80 % interval. {INTERVAL_COVERAGE}"
        ),
        None => {
            "No policy is known for the recorded kernel, so the first row is another kernel's.".to_owned()
        }
    }));
    section.push(Part::Bars(multiples(report_data)));
    section.push(Part::Bars(vec![settings(report_data)]));
    section.push(Part::Table(advise::table(advice)));
    section
}

/// Bars with the main figures of the replay under each kernel.
fn multiples(report_data: &ReportData) -> Vec<Bars> {
    let (advice, replay) = (&report_data.examined.advice, report_data.examined.replay.as_ref());
    let outcomes = replay.iter().flat_map(|replay| &replay.outcomes);
    let others = advice.forecasts.iter().zip(outcomes).filter(|(forecast, _)| forecast.kernel.is_some());
    let own = replay.and_then(|replay| replay.own.as_ref());
    let outcomes: Vec<&Outcome> = own.into_iter().chain(others.map(|(_, outcome)| outcome)).collect();
    let bars =
        |title: &str, unit: &str, value: fn(&Outcome) -> u64, range: fn(&Outcome) -> Option<Interval>| {
            let bar = |outcome: &&Outcome| Bar {
                name: outcome.policy.clone(),
                value: value(outcome),
                range: range(outcome).map(|range| (range.0, range.1)),
            };
            Bars { title: title.to_owned(), unit: unit.to_owned(), bars: outcomes.iter().map(bar).collect() }
        };
    vec![
        bars("Visits to zones", "visits", Outcome::visits, |outcome| {
            outcome.interval.map(|interval| interval.visits)
        }),
        bars(
            "Pages fetched from zones",
            "pages",
            |outcome| outcome.refilled_pages,
            |outcome| outcome.interval.map(|interval| interval.refilled_pages),
        ),
        bars("Held in page sets at most", "pages", |outcome| outcome.pcp_pages_peak, |_| None),
        bars("Held after a minute without work", "pages", |outcome| outcome.pcp_pages_idle, |_| None),
    ]
}

/// Bars with the visits to the zones under each setting. The recorded setting comes first.
fn settings(report_data: &ReportData) -> Bars {
    let advice = &report_data.examined.advice;
    let recorded =
        advice.findings.visits.map(|value| Bar { name: "as recorded".to_owned(), value, range: None });
    let settings = advice.forecasts.iter().filter(|forecast| forecast.kernel.is_none()).map(|forecast| Bar {
        name: advise::name(forecast),
        value: forecast.visits,
        range: Some((forecast.visits_range.low, forecast.visits_range.high)),
    });
    Bars {
        title: "Refills and drains under other settings".to_owned(),
        unit: "visits to zones".to_owned(),
        bars: recorded.into_iter().chain(settings).collect(),
    }
}
