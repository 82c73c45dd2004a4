//! Advice for many recordings: a line for each recording, and how many recordings have each answer.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use pageset_replay::advise::advise;
use pageset_replay::fleet::{self, Answers, Line};
use pageset_report::{Cancelled, Progress};
use pageset_study::latency::simulated;
use pageset_trace::OpenOptions;
use pyo3::prelude::*;
use serde::{Deserialize, Serialize};

use crate::document;
use crate::recording::Source;
use crate::stream::Table;
use crate::work::{Interrupted, Watch, run};

/// The first column of the table.
#[derive(Serialize, Deserialize)]
struct Name {
    recording: String,
}

#[derive(Serialize)]
struct NamedLine<'a> {
    recording: &'a str,
    #[serde(flatten)]
    line: &'a Line,
}

#[derive(Serialize)]
struct Summary<'a> {
    lines: Vec<NamedLine<'a>>,
    yes: Vec<&'a str>,
    no: usize,
    unknown: usize,
    why_unknown: &'a [(String, usize)],
    unread: usize,
    advised: &'a [(String, usize)],
    sentences: Vec<String>,
}

/// A [`Progress`] that shows nothing, but lets the user cancel. The caller counts finished recordings, so the
/// caller needs no progress within a recording.
struct Quiet(Watch);

impl Progress for Quiet {
    fn begin(&mut self, _: &'static str, _: &'static str, _: Option<u64>) {}

    fn update(&mut self, _: u64) -> Result<(), Cancelled> {
        if self.0.is_cancelled() { Err(Cancelled) } else { Ok(()) }
    }

    fn cancel(&self) -> Arc<AtomicBool> {
        self.0.cancel()
    }
}

/// Advises on each of these recordings, on all CPUs. Returns the summary, and a table with a row for each
/// recording, the worst first.
#[pyfunction]
#[pyo3(name = "fleet", signature = (paths, *, progress))]
pub(crate) fn advise_fleet(
    py: Python<'_>,
    paths: Vec<PathBuf>,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<(String, Table)> {
    let (files, answers, lines) = run(py, progress, Interrupted::LeftAlone, move |watch| {
        let files = fleet::files(&paths)?;
        let advised = fleet::each(&files, &mut watch.clone(), |file| {
            let source = Source::File(file.to_owned(), OpenOptions::new());
            let mut advice = advise(|| source.open(&watch), simulated, &mut Quiet(watch.clone()));
            if let Ok(advice) = &mut advice {
                fleet::drop_tables(advice);
            }
            advice.map_err(|error| format!("{error:#}"))
        })?;
        let answers = Answers::new(advised.iter().map(|advice| advice.as_ref().ok()));
        let lines: Vec<Line> =
            advised.iter().map(|advice| Line::new(advice.as_ref().map_err(String::clone))).collect();
        let files: Vec<String> = files.iter().map(|file| file.display().to_string()).collect();
        Ok((files, answers, lines))
    })?;
    let name = |at: usize| files[at].as_str();
    let (order, sentences) = (&answers.order, answers.sentences(name));
    let names: Vec<Name> = order.iter().map(|at| Name { recording: files[*at].clone() }).collect();
    let ordered: Vec<Line> = order.iter().map(|at| lines[*at].clone()).collect();
    let summary = Summary {
        lines: order.iter().map(|at| NamedLine { recording: name(*at), line: &lines[*at] }).collect(),
        yes: answers.yes.iter().map(|at| name(*at)).collect(),
        no: answers.no,
        unknown: answers.unknown,
        why_unknown: &answers.why_unknown,
        unread: answers.unread,
        advised: &answers.advised,
        sentences,
    };
    Ok((document::of(&summary)?, Table::of(&names)?.beside(&Table::of(&ordered)?)?))
}
