//! Divides work into tasks that any process on any computer can do. Each task returns the bytes of one file
//! of a dataset.

use std::collections::HashSet;
use std::path::PathBuf;
use std::slice;

use anyhow::{Context as _, Result, bail};
use pageset_arrow::dataset::{Dataset, Stored};
use pageset_arrow::{file, rows};
use pageset_core::Policy;
use pageset_replay::advise::advise;
use pageset_replay::fleet::{self, Line};
use pageset_replay::{Candidate, policy_to_toml};
use pageset_report::Cancelled;
use pageset_reproduce::sweep::{self, Plan, Sweep};
use pageset_study::latency::simulated;
use pageset_study::simulate::{RunSpec, simulate_all};
use pageset_trace::OpenOptions;
use pyo3::prelude::*;

use crate::document;
use crate::error::{raised, raised_at};
use crate::recording::Source;
use crate::replay::{candidates, played};
use crate::work::{Interrupted, run};

/// The tasks of a plan: the key and the spec of each run.
#[pyfunction]
pub(crate) fn sweep_tasks(py: Python<'_>, plan: PathBuf) -> PyResult<Vec<(String, String)>> {
    let runs = py.detach(|| -> Result<_> { Ok(Sweep::new(&Plan::read(&plan)?)?.runs().to_vec()) });
    let runs = runs.map_err(|error| raised_at(error, Some(&plan)))?;
    runs.into_iter().map(|(key, spec)| Ok((key, document::of(&spec)?))).collect()
}

/// Simulates one run.
#[pyfunction]
pub(crate) fn sweep_task(py: Python<'_>, key: String, spec: &str) -> PyResult<Vec<u8>> {
    let spec: RunSpec = document::read(spec)?;
    run(py, None, Interrupted::LeftAlone, move |mut watch| {
        check(&key, &sweep::key(&spec)?)?;
        let results = simulate_all(slice::from_ref(&spec), 1, &mut watch)
            .with_context(|| format!("the run {}", serde_json::to_string(&spec).unwrap_or_default()))?;
        file::parquet(&rows::keyed(&[key], &[spec], &results)?)
    })
}

/// The tasks of replays: a key for each recording.
#[pyfunction]
pub(crate) fn replay_tasks(
    py: Python<'_>,
    recordings: Vec<PathBuf>,
    policies: Vec<String>,
    settings: Vec<String>,
) -> PyResult<Vec<String>> {
    let names = names(&candidates(&policies, &settings)?);
    let keys =
        py.detach(|| recordings.iter().map(|path| sweep::replay_key(path, &names)).collect::<Result<_>>());
    keys.map_err(raised)
}

/// Replays one recording.
#[pyfunction]
pub(crate) fn replay_task(
    py: Python<'_>,
    key: String,
    recording: PathBuf,
    policies: Vec<String>,
    settings: Vec<String>,
) -> PyResult<Vec<u8>> {
    let candidates = candidates(&policies, &settings)?;
    run(py, None, Interrupted::LeftAlone, move |watch| {
        check(&key, &sweep::replay_key(&recording, &names(&candidates))?)?;
        let source = Source::File(recording.clone(), OpenOptions::new());
        let replayed = played(&source, candidates, None, None, &watch)?;
        let labels = [("key", &*key), ("recording", &*recording.to_string_lossy())];
        file::parquet(&rows::labelled(&labels, &rows::batch(&replayed.outcomes)?)?)
    })
}

/// The recordings at these paths. A path may be a file, or a folder of recordings.
#[pyfunction]
pub(crate) fn recordings(py: Python<'_>, paths: Vec<PathBuf>) -> PyResult<Vec<PathBuf>> {
    py.detach(|| fleet::files(&paths)).map_err(raised)
}

/// The keys of the advice for recordings.
#[pyfunction]
pub(crate) fn advise_tasks(py: Python<'_>, recordings: Vec<PathBuf>) -> PyResult<Vec<String>> {
    let keys =
        py.detach(|| recordings.iter().map(|path| sweep::replay_key(path, &advice())).collect::<Result<_>>());
    keys.map_err(raised)
}

/// Makes the row of advice for one recording. If the recording cannot be read, the row has the error.
#[pyfunction]
pub(crate) fn advise_task(py: Python<'_>, key: String, recording: PathBuf) -> PyResult<Vec<u8>> {
    run(py, None, Interrupted::LeftAlone, move |watch| {
        check(&key, &sweep::replay_key(&recording, &advice())?)?;
        let source = Source::File(recording.clone(), OpenOptions::new());
        let advice = advise(|| source.open(&watch), simulated, &mut watch.clone());
        if watch.is_cancelled() {
            return Err(Cancelled.into());
        }
        let line = Line::new(advice.as_ref().map_err(|error| format!("{error:#}")));
        let labels = [("key", &*key), ("recording", &*recording.to_string_lossy())];
        file::parquet(&rows::labelled(&labels, &rows::batch(&[line])?)?)
    })
}

/// The part of a key that distinguishes advice from replays.
fn advice() -> [String; 1] {
    ["advise".to_owned()]
}

/// Checks that this computer would do the same work for a request as the computer that made the request.
fn check(asked: &str, here: &str) -> Result<()> {
    if asked != here {
        bail!(
            "this computer has another version of pageset, of the machine's file or of the recording than the one that asks \
             (key {here}, not {asked})"
        );
    }
    Ok(())
}

/// Names that identify candidates. If a policy has no known name, its rules are part of the name.
fn names(candidates: &[Candidate]) -> Vec<String> {
    let name = |candidate: &Candidate| match Policy::named(candidate.policy.name) {
        Some(named) if *named == candidate.policy => candidate.name(),
        _ => candidate.name() + &policy_to_toml(&candidate.policy),
    };
    candidates.iter().map(name).collect()
}

/// A directory of results.
#[pyclass(frozen, name = "Dataset", module = "pageset._native")]
pub(crate) struct Results(Dataset);

#[pymethods]
impl Results {
    #[new]
    fn new(directory: PathBuf) -> PyResult<Self> {
        Dataset::at(&directory).map(Self).map_err(|error| raised_at(error, Some(&directory)))
    }

    /// Keys of the stored results.
    fn keys(&self, py: Python<'_>) -> PyResult<HashSet<String>> {
        py.detach(|| self.0.keys()).map_err(raised)
    }

    /// The path of the result with this key, stored or not.
    fn path(&self, key: &str) -> PyResult<PathBuf> {
        self.0.path(key).map_err(raised)
    }

    /// Stores a result. Returns `false` if there was already a result with this key.
    fn store(&self, py: Python<'_>, key: &str, parquet: &[u8]) -> PyResult<bool> {
        let stored = py.detach(|| self.0.store(key, parquet)).map_err(raised)?;
        Ok(stored == Stored::New)
    }
}
