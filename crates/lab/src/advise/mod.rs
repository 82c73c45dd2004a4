//! What to do about a machine's page sets, from one recording of its load: mostly nothing.
//!
//! `findings` is what the recording shows, `options` which kernels and settings are asked, `forecast` what they would do,
//! `verdict` what follows, `latency` what allocations would take then, `wording` the sentences that say so. `run_times` is
//! what came of a setting that was tried. Each sentence names the figures it rests on.

mod findings;
mod forecast;
mod latency;
mod options;
mod run_times;
mod verdict;
mod wording;

use pageset_trace::{TraceInfo, TraceReader};
use pageset_workload::{
    Candidate, Replay, ReplayError, ReplayOptions, Stage, Survey, SurveyOptions, policy_of_kernel, replay,
    survey,
};
use serde::Serialize;

use crate::Progress;

pub use findings::{Findings, Waiting};
pub use forecast::{Forecast, Range};
pub use latency::{Latency, Times};
pub use run_times::{Difference, RunTimes};
pub use verdict::{Matter, Verdict, Why};

/// What is said about a machine.
#[derive(Clone, Debug, Serialize)]
pub struct Advice {
    /// Name of the recording.
    pub recording: String,
    /// Release of the recorded kernel.
    pub kernel: Option<String>,
    /// The policy that stands for it.
    pub policy: Option<String>,
    /// The recorded command and its arguments; empty if it is not known.
    pub command: Vec<String>,
    /// What the recording shows.
    pub findings: Findings,
    /// What other settings and kernels would have made of it: settings first.
    pub forecasts: Vec<Forecast>,
    /// What follows.
    pub verdict: Verdict,
    /// What allocations would take, where something is advised and the recording is a file.
    pub latency: Option<Latency>,
    /// The verdict in words, a sentence or two each.
    pub sentences: Vec<String>,
    /// What is easily overlooked when the advice is followed.
    pub warnings: Vec<String>,
}

/// Advice, and what it was made from.
#[derive(Clone, Debug)]
pub struct Examined {
    /// What is said.
    pub advice: Advice,
    /// What the recording says about itself.
    pub info: TraceInfo,
    /// What is in it.
    pub survey: Survey,
    /// What other settings and kernels would have made of it.
    pub replay: Replay,
}

/// Reads a recording twice, by `open`, and says what to do.
///
/// # Errors
/// As [`examine`].
pub fn advise<R: TraceReader>(
    open: impl FnMut() -> anyhow::Result<R>,
    progress: &mut dyn Progress,
) -> anyhow::Result<Advice> {
    Ok(examine(open, progress)?.advice)
}

/// As [`advise`], and keeps what the advice was made from.
///
/// # Errors
/// The recording cannot be read or describes no machine; [`Cancelled`](crate::Cancelled).
pub fn examine<R: TraceReader>(
    mut open: impl FnMut() -> anyhow::Result<R>,
    progress: &mut dyn Progress,
) -> anyhow::Result<Examined> {
    let mut reader = open()?;
    progress.begin("reading", "events", reader.info().events);
    let mut going = Ok(());
    let surveyed = survey(&mut reader, &SurveyOptions::default(), |events| {
        going = going.and_then(|()| progress.update(events));
    })?;
    going?;

    let mut reader = open()?;
    let info = reader.info().clone();
    let machine = info.machine.as_ref().ok_or_else(|| {
        let path = info.path.display();
        ReplayError::NoMachine(format!(
            "{path}: advice needs the machine's zones, and this recording does not describe them"
        ))
    })?;
    let release = info.kernel.clone().unwrap_or_else(|| machine.kernel.clone());
    let policy = policy_of_kernel(&release).copied();
    let settings = policy.map(|policy| options::settings(policy, machine)).unwrap_or_default();
    let kernels = options::kernels(policy);
    let candidates: Vec<Candidate> = settings.iter().chain(&kernels).copied().collect();
    progress.begin("replaying", "rows", Some(candidates.len() as u64));
    progress.update(0)?;
    let asked = ReplayOptions { candidates, cancel: progress.cancel(), ..ReplayOptions::default() };
    let replayed = replay(&mut reader, &asked, |stage| match stage {
        // The replay plays rows side by side: nobody is told, since that would have to wait for others.
        Stage::Read(_) | Stage::Played => {}
    })?;
    progress.update(asked.candidates.len() as u64)?;

    let findings = Findings::new(&info, &surveyed, &replayed);
    let forecasts: Vec<Forecast> = asked
        .candidates
        .iter()
        .zip(&replayed.outcomes)
        .map(|(candidate, outcome)| Forecast::new(candidate, outcome, &findings, policy.as_ref()))
        .collect();
    let verdict = verdict::find(&findings, &forecasts);
    let advised = match verdict {
        Verdict::Set { forecast, .. } | Verdict::ChangeKernel { forecast, .. } => Some(&forecasts[forecast]),
        _ => None,
    };
    let latency = policy
        .zip(advised)
        .and_then(|(policy, advised)| latency::simulated(&info.path, findings.cpus, policy.name, advised));
    let fraction = machine.sysctls.percpu_pagelist_high_fraction.unwrap_or(0);
    let mut warnings = wording::warnings(&findings, &forecasts, &verdict, policy.as_ref(), fraction);
    warnings.extend(info.assumptions(Some(machine)));
    let advice = Advice {
        recording: info.path.file_name().unwrap_or(info.path.as_os_str()).to_string_lossy().into_owned(),
        sentences: wording::sentences(&findings, &forecasts, &verdict, latency.as_ref()),
        warnings,
        kernel: Some(release).filter(|release| !release.is_empty()),
        policy: policy.map(|policy| policy.name.to_owned()),
        command: info.command.clone(),
        findings,
        forecasts,
        verdict,
        latency,
    };
    Ok(Examined { advice, info, survey: surveyed, replay: replayed })
}
