//! Records the page allocations of this machine's kernel.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::anyhow;
use pageset_record::{Condition, CpuList, Going, Options, RecordError, Session, Timing};
use pageset_replay::file::{Existing, begin_file, check_file, remove_begun};
use pyo3::prelude::*;

use crate::error::{bad_number, refused};
use crate::number::Whole;
use crate::work::{Interrupted, run};

/// Records into a new file. Also removes the tracing instances that killed recorders have left, and returns
/// their names.
#[pyfunction]
#[pyo3(signature = (path, command, *, seconds, cpus, buffer_bytes, faults, call_chains, names, flight_recorder, until, force, progress))]
#[expect(clippy::too_many_arguments, reason = "Python names them")]
pub(crate) fn record(
    py: Python<'_>,
    path: PathBuf,
    command: Vec<OsString>,
    seconds: Option<f64>,
    cpus: Option<&str>,
    buffer_bytes: Option<Whole<u64>>,
    faults: bool,
    call_chains: bool,
    names: bool,
    flight_recorder: bool,
    until: Option<&str>,
    force: bool,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<Vec<String>> {
    let cpus = cpus.map(|cpus| cpus.parse::<CpuList>().map_err(refused)).transpose()?;
    let until = until.map(|until| until.parse::<Condition>().map_err(refused)).transpose()?;
    let duration = seconds.map(|seconds| {
        let duration = Duration::try_from_secs_f64(seconds);
        duration.map_err(|error| bad_number(format!("seconds is {seconds}: {error}")))
    });
    let options = Options {
        cpus,
        buffer_bytes: buffer_bytes.map(|bytes| bytes.0),
        duration: duration.transpose()?,
        command,
        with_faults: faults,
        with_call_chains: call_chains,
        with_names: names,
        only_counts: false,
        cost: None,
        visit_cost: pageset_measure::visit_cost::kept(),
        until,
        reading: if flight_recorder || until.is_some() { Timing::AtTheEnd } else { Timing::AllTheTime },
    };
    let existing = if force { Existing::Replace } else { Existing::Refuse };
    // After an interrupt, the recorder first finishes the file.
    run(py, progress, Interrupted::WaitedFor, move |watch| {
        check_file(&path, existing)?;
        let session = Session::prepare(options).map_err(told)?;
        let removed = session.removed.clone();
        let file = begin_file(&path, existing)?;
        watch.begin("recording", None);
        let recording = session.run(file, &mut |status| {
            watch.show(status.events);
            if watch.is_cancelled() { Going::End } else { Going::On }
        });
        if matches!(recording, Err(RecordError::Command { .. } | RecordError::Refused { .. })) {
            // Remove the file, because the file has none of the requested events.
            remove_begun(&path);
        }
        match recording {
            Ok(_) => Ok(removed),
            Err(error @ RecordError::Output { .. }) => Err(anyhow!("{}: {error}", path.display())),
            Err(error) => Err(told(error)),
        }
    })
}

/// Drops the error's source, because the text of a recorder's error already says the cause.
fn told(error: RecordError) -> anyhow::Error {
    anyhow!("{error}")
}
