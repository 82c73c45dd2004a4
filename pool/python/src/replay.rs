//! Replays a recording under other kernels and settings.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use pageset_core::Policy;
use pageset_replay::{
    Candidate, Replay, ReplayOptions, Stage, Sweep, guess_layout, names_policy_file, read_policy,
    replay as play, replayable,
};
use pageset_trace::{Layout, TraceReader as _};
use pyo3::prelude::*;

use crate::document;
use crate::error::refused;
use crate::number::Whole;
use crate::recording::{Recording, Source};
use crate::stream::Table;
use crate::work::{Interrupted, Watch, run};

/// Replays a recording under each policy, with every combination of the settings. Without policies, uses all
/// policies that a replay supports.
#[pyfunction]
#[pyo3(signature = (recording, policies, settings, *, layout, cpus, progress))]
pub(crate) fn replay(
    py: Python<'_>,
    recording: &Recording,
    policies: Vec<String>,
    settings: Vec<String>,
    layout: Option<PathBuf>,
    cpus: Option<Whole<u32>>,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<(String, Table)> {
    let candidates = candidates(&policies, &settings)?;
    let source = recording.source.clone();
    let replayed = run(py, progress, Interrupted::LeftAlone, move |watch| {
        played(&source, candidates, layout.as_deref(), cpus.map(|cpus| cpus.0), &watch)
    })?;
    Ok((document::of(&replayed)?, Table::of(&replayed.outcomes)?))
}

/// Replays a recording on the machine of the layout, or without a layout on the recorded machine. If the
/// recording does not describe its machine, the function guesses the machine.
pub(crate) fn played(
    source: &Source,
    candidates: Vec<Candidate>,
    layout: Option<&Path>,
    cpus: Option<u32>,
    watch: &Watch,
) -> anyhow::Result<Replay> {
    let mut reader = source.open(watch)?;
    let machine = match layout {
        Some(path) => Some(Layout::load(path)?),
        None if reader.info().machine.is_none() => Some(guess_layout(&mut source.open(watch)?, None)?),
        // Without a layout, the replay uses the recorded machine and the recorded state of its memory.
        None => None,
    };
    let (amount, is_playing) = (reader.amount(), AtomicBool::new(false));
    let options =
        ReplayOptions { candidates, machine, cpus, cancel: watch.cancel(), ..ReplayOptions::default() };
    watch.begin("reading", amount.total());
    Ok(play(&mut reader, &options, |stage| match stage {
        Stage::Read(events) => watch.show(amount.done(events)),
        Stage::Played(done, all) => {
            if !is_playing.swap(true, Relaxed) {
                watch.begin("replaying", Some(all));
            }
            watch.show(done);
        }
    })?)
}

/// The policies with these names. Without names, all policies that a replay supports.
pub(crate) fn candidates(names: &[String], settings: &[String]) -> PyResult<Vec<Candidate>> {
    let named = |name: &String| named(name);
    let policies: Vec<Policy> =
        if names.is_empty() { replayable() } else { names.iter().map(named).collect::<PyResult<_>>()? };
    let settings = Sweep::parse(settings.iter().map(String::as_str)).map_err(refused)?;
    Ok(policies.iter().flat_map(|policy| settings.candidates(policy)).collect())
}

/// The policy with this name, or the policy in this file.
pub(crate) fn named(name: &str) -> PyResult<Policy> {
    if names_policy_file(name) {
        return read_policy(Path::new(name)).copied().map_err(|error| refused(error.to_string()));
    }
    let named = Policy::named(name).copied();
    named.ok_or_else(|| refused(format!("unknown policy `{name}`; `pageset policies` names all")))
}
