//! Advice about a machine's page sets, from one recording of its load. Most advice is to change nothing.
//!
//! `findings` makes figures from a recording of events, and `counted` from a recording of counts. `spending`
//! computes how much CPU time page sets cost. `options` chooses kernels and settings to try, `forecast` has
//! one forecast for each of them, and `verdict` decides on the advice. `latency` has times of an allocation
//! under the advice. `wording` writes the advice as sentences that name its figures. `run_times` compares
//! runs of a command before and after a change.

mod counted;
mod findings;
mod forecast;
mod latency;
mod options;
mod run_times;
mod spending;
mod verdict;
mod wording;

use std::sync::Mutex;

use pageset_report::Progress;
use pageset_trace::{EventKind, TraceError, TraceInfo, TraceReader};
use serde::Serialize;

use crate::recorded::{Recorded, needs};
use crate::replay::{ReadRecording, replay_read};
use crate::sites::Sites;
use crate::survey::Counted;
use crate::who::Who;
use crate::{
    Candidate, OneSetting, RecordedKinds, Replay, ReplayError, ReplayOptions, Stage, Survey, SurveyOptions,
    policy_of_kernel, survey, untimed,
};

pub use findings::{CountedTime, Doubts, Evidence, Waiting};
pub use forecast::{Forecast, Range};
pub use latency::{Latency, Simulate, Times};
pub use run_times::{Difference, RunTimes};
pub use spending::{Figure, Load, Spending};
pub use verdict::{Matter, SAVED_PERCENT, Verdict, Why};

/// Advice about a machine.
#[derive(Clone, Debug, Serialize)]
pub struct Advice {
    /// Name of the recording.
    pub recording: String,
    /// Release of the recorded kernel.
    pub kernel: Option<String>,
    /// The policy that describes the kernel.
    pub policy: Option<String>,
    /// The recorded command and its arguments; empty if the command is not known.
    pub command: Vec<String>,
    /// The recording's figures.
    pub findings: Evidence,
    /// Forecasts for other settings, and after them forecasts for other kernels.
    pub forecasts: Vec<Forecast>,
    /// The verdict on `findings` and `forecasts`.
    pub verdict: Verdict,
    /// Times of an allocation, if a change of settings or kernel is advised and the recording is a file.
    pub latency: Option<Latency>,
    /// Pages and visits of each task. `None` if the recording does not tell tasks apart.
    pub who: Option<Who>,
    /// Call sites of visits and waits; `None` if the recording has no call chains.
    pub sites: Option<Sites>,
    /// The verdict in words. Each entry is a sentence or two.
    pub sentences: Vec<String>,
    /// Consequences of the advice that are easily overlooked.
    pub warnings: Vec<String>,
}

/// Advice, with the data that the advice is made from.
#[derive(Clone, Debug)]
pub struct Examined {
    /// The advice.
    pub advice: Advice,
    /// The recording's description of itself.
    pub info: TraceInfo,
    /// The survey, which counts the recording's contents.
    pub survey: Survey,
    /// The replay under other settings and kernels; `None` if the recording lacks events for a replay.
    pub replay: Option<Replay>,
}

/// Returns the part of a recording that the advice is about: the longest part without a change of a setting.
/// If a setting changed at an unknown time, the whole recording is chosen, and its events are counted without
/// a forecast.
pub(crate) fn part<R: TraceReader>(reader: R) -> Result<OneSetting<R>, TraceError> {
    if untimed(reader.info()).is_some() { Ok(OneSetting::whole(reader)) } else { OneSetting::new(reader) }
}

fn play(
    read: ReadRecording,
    repeats: &mut [Box<dyn TraceReader>],
    asked: &ReplayOptions,
    progress: &mut dyn Progress,
) -> anyhow::Result<Replay> {
    // The receiver of progress, and whether the stage of playing has begun.
    let told = Mutex::new((&mut *progress, false));
    let replayed = replay_read(read, repeats, asked, |stage| {
        let Stage::Played(done, all) = stage else { return };
        // Race: several threads play and report progress at once. A thread that finds `told` locked skips its
        // report instead of waiting. Skipping a report is safe: `cancel` ends the work, and a later report
        // has the count.
        let Ok(mut told) = told.try_lock() else { return };
        let (progress, is_begun) = &mut *told;
        if !std::mem::replace(is_begun, true) {
            progress.begin("replaying", "allocations and frees", Some(all));
        }
        progress.update(done).ok();
    })?;
    Ok(replayed)
}

/// Reads a recording once. Counts the recording's events. If `asked` is given, also prepares the recording
/// for a replay.
fn read(
    reader: impl TraceReader,
    asked: Option<&ReplayOptions>,
    progress: &mut dyn Progress,
) -> anyhow::Result<(Survey, Option<ReadRecording>)> {
    let amount = reader.amount();
    progress.begin("reading", amount.unit(), amount.total());
    let Some(asked) = asked else {
        let mut going = Ok(());
        let mut reader = reader;
        let surveyed = survey(&mut reader, &SurveyOptions::default(), |events| {
            going = going.and_then(|()| progress.update(amount.done(events)));
        })?;
        going?;
        return Ok((surveyed, None));
    };
    let mut counted = Counted::new(reader, &SurveyOptions::default());
    let mut going = Ok(());
    let read = ReadRecording::read(&mut counted, asked, |events| {
        going = progress.update(amount.done(events));
        if going.is_ok() { Ok(()) } else { Err(ReplayError::Cancelled) }
    });
    going?;
    Ok((counted.finish(), Some(read?)))
}

/// Opens a recording. A recording that has the events of visits must describe its machine. Without this
/// description, the function returns an error that asks for a layout, before all events are read. Without the
/// events of visits there is no forecast, so no layout is needed.
fn open_placed<R: TraceReader>(open: &mut impl FnMut() -> anyhow::Result<R>) -> anyhow::Result<R> {
    let mut reader = open()?;
    if reader.info().machine.is_some() || reader.info().counts.is_some() {
        return Ok(reader);
    }
    let has_visits = |kinds: &RecordedKinds| kinds.has(needs::VISITS);
    if let Some(kinds) = RecordedKinds::when_opened(reader.info()).filter(has_visits) {
        return Err(kinds.no_layout(reader.info()).into());
    }
    let kinds = RecordedKinds::at_the_start(&mut reader)?;
    if has_visits(&kinds) {
        return Err(kinds.no_layout(reader.info()).into());
    }
    // The check has read the first events, so the recording is opened again.
    open()
}

/// Returns the figures of a recording, without a replay.
#[must_use]
pub fn findings(info: &TraceInfo, survey: &Survey) -> Evidence {
    match &info.counts {
        Some(counts) => counted::findings(info, counts, survey.extent.part(info)),
        None => Evidence::new(info, survey, None),
    }
}

/// Reads a recording once, and gives advice. If a recording of events does not describe its machine, `open`
/// is called twice, and only one block of events is read after the first call.
///
/// # Errors
/// The errors of [`examine`].
pub fn advise<R: TraceReader>(
    open: impl FnMut() -> anyhow::Result<R>,
    simulate: Simulate,
    progress: &mut dyn Progress,
) -> anyhow::Result<Advice> {
    Ok(examine(open, simulate, progress)?.advice)
}

/// Does the same as [`advise`] with further recordings of the same load. The intervals of the forecasts come
/// from all recordings.
///
/// # Errors
/// The errors of [`examine`], and an error if a recording is no repeat of the first.
pub fn advise_repeats<R: TraceReader>(
    open: impl FnMut() -> anyhow::Result<R>,
    repeats: &mut [Box<dyn TraceReader>],
    simulate: Simulate,
    progress: &mut dyn Progress,
) -> anyhow::Result<Advice> {
    Ok(examine_repeats(open, repeats, simulate, progress)?.advice)
}

/// Does the same as [`advise`], and also returns the data that the advice is made from.
///
/// # Errors
/// An error if the recording cannot be read, or if advice needs the machine's description and the recording
/// lacks it. The error [`Cancelled`](pageset_report::Cancelled) if `progress` ends the work.
pub fn examine<R: TraceReader>(
    open: impl FnMut() -> anyhow::Result<R>,
    simulate: Simulate,
    progress: &mut dyn Progress,
) -> anyhow::Result<Examined> {
    examine_repeats(open, &mut [], simulate, progress)
}

fn examine_repeats<R: TraceReader>(
    mut open: impl FnMut() -> anyhow::Result<R>,
    repeats: &mut [Box<dyn TraceReader>],
    simulate: Simulate,
    progress: &mut dyn Progress,
) -> anyhow::Result<Examined> {
    let reader = part(open_placed(&mut open)?)?;
    let (info, said) = (reader.info().clone(), reader.said().map(str::to_owned));
    let machine = info.machine.as_ref();
    let release =
        info.kernel.clone().or_else(|| machine.map(|machine| machine.kernel.clone())).unwrap_or_default();
    let policy = policy_of_kernel(&release).copied();
    let settings = policy.zip(machine).map(|(policy, machine)| options::settings(policy, machine));
    let kernels = options::kernels(policy);
    let candidates: Vec<Candidate> = settings.into_iter().flatten().chain(kernels).collect();

    let asked = ReplayOptions { candidates, cancel: progress.cancel(), ..ReplayOptions::default() };
    // A recording in text form shows only at its end whether any kind of event is missing.
    let is_denied = needs::VISITS
        .iter()
        .any(|kind| RecordedKinds::new(&info, &[0; EventKind::COUNT]).of(*kind) == Recorded::No);
    let may_be_replayed = machine.is_some() && !is_denied && untimed(&info).is_none();
    let (surveyed, read) = read(reader, may_be_replayed.then_some(&asked), progress)?;
    let unsaid = surveyed.recorded.unsaid(needs::VISITS);
    if machine.is_none() && (unsaid.is_none() || info.counts.is_some()) {
        return Err(surveyed.recorded.no_layout(&info).into());
    }
    let read = read.filter(|_| unsaid.is_none());
    let replayed = read.map(|read| play(read, repeats, &asked, progress)).transpose()?;

    let findings = match &info.counts {
        Some(counts) => counted::findings(&info, counts, surveyed.extent.part(&info)),
        None => Evidence::new(&info, &surveyed, replayed.as_ref()),
    };
    let outcomes = replayed.iter().flat_map(|replayed| &replayed.outcomes);
    let forecasts: Vec<Forecast> = asked
        .candidates
        .iter()
        .zip(outcomes)
        .filter_map(|(candidate, outcome)| Forecast::new(candidate, outcome, &findings, policy.as_ref()))
        .collect();
    let verdict = verdict::find(&findings, &forecasts);
    let advised = match verdict {
        Verdict::Set { forecast, .. } | Verdict::ChangeKernel { forecast, .. } => Some(&forecasts[forecast]),
        _ => None,
    };
    let latency = policy
        .zip(advised)
        .zip(findings.cpus)
        .and_then(|((policy, advised), cpus)| simulate(&info.path, cpus, policy.name, advised));
    let fraction = machine.and_then(|machine| machine.sysctls.percpu_pagelist_high_fraction).unwrap_or(0);
    let beware = replayed.iter().flat_map(|replayed| &replayed.warnings);
    let said: Vec<String> = said.iter().chain(beware).cloned().collect();
    let mut warnings = wording::warnings(&findings, &forecasts, &verdict, policy.as_ref(), fraction, &said);
    warnings.extend(info.assumptions(machine));
    let advice = Advice {
        recording: info.path.file_name().unwrap_or(info.path.as_os_str()).to_string_lossy().into_owned(),
        sentences: wording::sentences(&findings, &forecasts, &verdict, latency.as_ref()),
        warnings,
        kernel: Some(release).filter(|release| !release.is_empty()),
        policy: policy.map(|policy| policy.name.to_owned()),
        command: info.command.clone(),
        who: Who::new(&info, &surveyed),
        sites: Sites::new(&info, &surveyed),
        findings,
        forecasts,
        verdict,
        latency,
    };
    Ok(Examined { advice, info, survey: surveyed, replay: replayed })
}
