//! Makes a recording, with its place and its description, a Python object. Each reader opens the recording
//! again.

use std::io;
use std::path::PathBuf;

use anyhow::bail;
use pageset_replay::recordings::bundled_with;
use pageset_trace::{
    Amount, Event, Layout, LostEvents, OpenOptions, Recovery, Strictness, TraceError, TraceInfo, TraceReader,
};
use pyo3::prelude::*;

use crate::events::Events;
use crate::work::{Interrupted, Watch, run};

/// A recording of a kernel's page events.
#[pyclass(frozen, module = "pageset._native")]
pub(crate) struct Recording {
    pub(crate) source: Source,
    info: TraceInfo,
}

/// The place of a recording.
#[derive(Clone)]
pub(crate) enum Source {
    /// The recording is in this library.
    Bundled(OpenOptions),
    /// The recording is in a file.
    File(PathBuf, OpenOptions),
}

impl Source {
    /// Opens the recording. After a caller has cancelled the work of `watch`, a read of the recording returns
    /// an error.
    pub(crate) fn open(&self, watch: &Watch) -> anyhow::Result<Watched> {
        let reader = match self {
            Self::Bundled(options) => bundled_with(options)?,
            Self::File(path, options) => {
                if path.exists() && !path.is_file() {
                    bail!(
                        "{}: is no file; a recording is read more than once, so save it as one",
                        path.display()
                    );
                }
                options.open(path)?
            }
        };
        Ok(Watched { reader, watch: watch.clone() })
    }
}

#[pymethods]
impl Recording {
    #[new]
    #[pyo3(signature = (path, *, layout, lenient, recover))]
    fn new(
        py: Python<'_>,
        path: Option<PathBuf>,
        layout: Option<PathBuf>,
        lenient: bool,
        recover: bool,
    ) -> PyResult<Self> {
        let mut options = OpenOptions::new()
            .strictness(if lenient { Strictness::Lenient } else { Strictness::Strict })
            .recovery(if recover { Recovery::UpToDamage } else { Recovery::Refuse });
        run(py, None, Interrupted::LeftAlone, move |watch| {
            if let Some(layout) = layout {
                options = options.layout(Layout::load(&layout)?);
            }
            let source = match path {
                Some(path) => Source::File(path, options),
                None => Source::Bundled(options),
            };
            let info = source.open(&watch)?.info().clone();
            Ok(Self { source, info })
        })
    }

    /// The path of the recording. The bundled recording has a name instead.
    #[getter]
    fn path(&self) -> PathBuf {
        self.info.path.clone()
    }

    /// The events as a table.
    fn events(&self) -> Events {
        let name = self.info.path.file_name().unwrap_or(self.info.path.as_os_str());
        Events::new(self.source.clone(), name.to_string_lossy().into_owned())
    }

    /// The recording's description of itself, as JSON.
    fn info(&self) -> PyResult<String> {
        crate::document::of(&self.info)
    }
}

/// A reader that returns an error after its work was cancelled.
pub(crate) struct Watched {
    reader: Box<dyn TraceReader>,
    watch: Watch,
}

impl TraceReader for Watched {
    fn info(&self) -> &TraceInfo {
        self.reader.info()
    }

    fn amount(&self) -> Amount {
        self.reader.amount()
    }

    fn read_block(&mut self, events: &mut Vec<Event>) -> Result<usize, TraceError> {
        if self.watch.is_cancelled() {
            let (path, source) = (self.info().path.clone(), io::ErrorKind::Interrupted.into());
            return Err(TraceError::Io { path, action: "go on", source });
        }
        self.reader.read_block(events)
    }

    fn has_ticks(&mut self, progress: &mut dyn FnMut()) -> Result<bool, TraceError> {
        self.reader.has_ticks(progress)
    }

    fn lost(&self) -> LostEvents {
        self.reader.lost()
    }
}
