//! Compares a policy's decisions with the decisions of the recorded kernel.

use std::path::PathBuf;

use pageset_replay::{Mode, VerifyOptions, VmSettings, verify as compare};
use pageset_trace::{Layout, TraceReader as _};
use pyo3::prelude::*;

use crate::document;
use crate::error::refused;
use crate::recording::Recording;
use crate::work::{Interrupted, run};

/// Compares each decision of the recorded kernel with a policy's decision. Without a named policy, uses the
/// policy of the recorded kernel.
#[pyfunction]
#[pyo3(signature = (recording, policy, *, mode, settings, layout, progress))]
pub(crate) fn verify(
    py: Python<'_>,
    recording: &Recording,
    policy: Option<&str>,
    mode: &str,
    settings: Vec<String>,
    layout: Option<PathBuf>,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<String> {
    let policy = policy.map(crate::replay::named);
    let mode = Mode::named(mode).ok_or_else(|| {
        refused(format!("unknown mode `{mode}`; choose one of: {}", Mode::ALL.map(Mode::name).join(", ")))
    })?;
    let settings = settings
        .iter()
        .try_fold(VmSettings::default(), |all, one| one.parse().map(|one| all.and(one)).map_err(refused))?;
    let mut options =
        VerifyOptions { policy: policy.transpose()?, settings, mode, ..VerifyOptions::default() };
    let source = recording.source.clone();
    let verified = run(py, progress, Interrupted::LeftAlone, move |watch| {
        options.machine = layout.map(|path| Layout::load(&path)).transpose()?;
        let mut reader = source.open(&watch)?;
        let amount = reader.amount();
        watch.begin("verifying", amount.total());
        let progress = watch.clone();
        // The reader returns an error when the work is cancelled.
        Ok(compare(&mut reader, &options, move |events| progress.show(amount.done(events)))?)
    })?;
    document::of(&verified)
}
