//! Gathers all data of a recording for a report. The data are the advice and its sources, a timeline, and
//! groups of CPUs that share a node and a cache.
//!
//! `samples` has the contents of page sets and zones over time. `neighbours` has the order of CPUs in the
//! report.

mod neighbours;
mod samples;

use pageset_report::Progress;
use pageset_trace::{SettingChange, Sysctls, TraceReader};

use crate::advise::{Examined, Simulate, examine};
use crate::{SurveyOptions, Timeline, survey, timeline};

pub use neighbours::{Neighbours, neighbours};
pub use samples::{CpuSamples, Extremes, Samples, ZoneSamples};

/// Everything that a report says about one recording.
#[derive(Clone, Debug)]
pub struct ReportData {
    /// Advice, survey and replay.
    pub examined: Examined,
    /// Settings that changed during the recording, by time. If a setting changed, the verdict covers only the
    /// longest part under one setting. `timeline` and `samples` cover the whole recording.
    pub changes: Vec<SettingChange>,
    /// Settings when the recording began. `None` if the recording does not describe its machine.
    pub settings: Option<Sysctls>,
    /// Zone visits and waits of each CPU over time.
    pub timeline: Timeline,
    /// The contents of page sets and zones over time, from samples.
    pub samples: Samples,
    /// The machine's CPUs, in the report's order.
    pub neighbours: Vec<Neighbours>,
}

/// Reads a recording twice, or three times if a setting changed during the recording, and gathers all data
/// for a report. `open` opens the recording each time.
///
/// # Errors
/// An error if the recording cannot be read, has counts instead of events, or does not describe its machine,
/// or [`Cancelled`](pageset_report::Cancelled).
pub fn report_data<R: TraceReader>(
    mut open: impl FnMut() -> anyhow::Result<R>,
    simulate: Simulate,
    progress: &mut dyn Progress,
) -> anyhow::Result<ReportData> {
    let examined = examine(&mut open, simulate, progress)?;
    if examined.info.counts.is_some() {
        let path = examined.info.path.display();
        return Err(anyhow::anyhow!(
            "{path}: it has counts, and a report is drawn from events; `pageset stat` and `pageset advise` print counts"
        ));
    }
    let mut reader = open()?;
    let info = reader.info().clone();
    let whole = if info.setting_changes.is_empty() {
        None
    } else {
        // The verdict and its survey are about a part of the recording, so survey the whole recording too.
        let amount = reader.amount();
        progress.begin("reading all", amount.unit(), amount.total());
        let mut going = Ok(());
        let whole = survey(&mut reader, &SurveyOptions::default(), |events| {
            going = going.and_then(|()| progress.update(amount.done(events)));
        })?;
        going?;
        reader = open()?;
        Some(whole)
    };
    let surveyed = whole.as_ref().unwrap_or(&examined.survey);
    progress.begin("placing in time", "events", Some(surveyed.events));
    let mut going = Ok(());
    let timeline = timeline(&mut reader, surveyed, |events| {
        going = going.and_then(|()| progress.update(events));
    })?;
    going?;
    Ok(ReportData {
        samples: Samples::new(&info, &timeline),
        settings: info.machine.as_ref().map(|machine| machine.sysctls.clone()),
        changes: info.setting_changes,
        neighbours: neighbours(examined.info.machine.as_ref(), timeline.cpus.len()),
        examined,
        timeline,
    })
}
