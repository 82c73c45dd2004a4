//! Opens traces. The content of a file determines its format; the file's name does not matter.

mod detect;

use std::path::{Path, PathBuf};

pub(crate) use detect::detect;

use crate::{
    ahead::AheadReader,
    cut::CutReader,
    damage::{Recovery, Strictness},
    error::TraceError,
    import::{open_perf_data, open_text, open_trace_dat, unreadable},
    info::{SourceFormat, TraceInfo},
    input::Input,
    layout::{Layout, LayoutOptions},
    native::NativeReader,
    other_files,
    reader::TraceReader,
};

/// Opens a trace of any known format. The content of the file determines the format.
///
/// # Errors
/// An error if the file cannot be read, has an unknown format, or has a damaged head.
pub fn open(path: &Path) -> Result<Box<dyn TraceReader>, TraceError> {
    OpenOptions::new().open(path)
}

/// Opens a trace with `options`.
///
/// # Errors
/// The errors of [`open`], and an error if a file that the options name cannot be used.
pub fn open_with(path: &Path, options: &OpenOptions) -> Result<Box<dyn TraceReader>, TraceError> {
    options.open(path)
}

/// Options for opening a trace. The default options are for complete and undamaged traces.
#[derive(Clone, Debug)]
pub struct OpenOptions {
    layout: Option<GivenLayout>,
    strictness: Strictness,
    recovery: Recovery,
    spool_bytes_max: u64,
}

/// A layout that is used instead of the trace's own layout.
#[derive(Clone, Debug)]
enum GivenLayout {
    Whole(Box<Layout>),
    /// The text of a file.
    Text(PathBuf, String, LayoutOptions),
}

impl Default for OpenOptions {
    fn default() -> Self {
        Self {
            layout: None,
            strictness: Strictness::Strict,
            recovery: Recovery::Refuse,
            // 16 GiB suffice for about 600 million events of 28 bytes.
            spool_bytes_max: 16 << 30,
        }
    }
}

impl OpenOptions {
    /// The default options.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Uses this layout of the machine instead of the trace's own layout.
    #[must_use]
    pub fn layout(mut self, layout: Layout) -> Self {
        self.layout = Some(GivenLayout::Whole(Box::new(layout)));
        self
    }

    /// Uses the layout in the text of the file at `path`, which [`LayoutOptions::parse`] parses. Facts that
    /// the layout lacks come from the trace.
    #[must_use]
    pub fn layout_text(mut self, path: impl Into<PathBuf>, text: String, options: LayoutOptions) -> Self {
        self.layout = Some(GivenLayout::Text(path.into(), text, options));
        self
    }

    /// Sets what a reader does with malformed lines, samples and pages, and with damaged compressed files.
    #[must_use]
    pub const fn strictness(mut self, strictness: Strictness) -> Self {
        self.strictness = strictness;
        self
    }

    /// Sets what a reader does with damaged native files.
    #[must_use]
    pub const fn recovery(mut self, recovery: Recovery) -> Self {
        self.recovery = recovery;
        self
    }

    /// Sets the maximum size of the temporary file that a compressed binary trace needs (the spool).
    #[must_use]
    pub const fn spool_bytes_max(mut self, bytes: u64) -> Self {
        self.spool_bytes_max = bytes;
        self
    }

    /// Opens the trace at `path`.
    ///
    /// # Errors
    /// The errors of [`open`], and an error if a file that these options name cannot be used.
    pub fn open(&self, path: &Path) -> Result<Box<dyn TraceReader>, TraceError> {
        let input = Input::open_with(path, self.strictness)?;
        self.open_input(path, input)
    }

    /// Reads a trace in memory. `path` is used only in messages.
    ///
    /// # Errors
    /// The errors of [`OpenOptions::open`].
    pub fn open_bytes(&self, path: &Path, bytes: Vec<u8>) -> Result<Box<dyn TraceReader>, TraceError> {
        let input = Input::from_bytes(path, bytes, self.strictness)?;
        self.open_input(path, input)
    }

    fn open_input(&self, path: &Path, input: Input) -> Result<Box<dyn TraceReader>, TraceError> {
        let is_cut = input.is_cut();
        let reader = self.open_whole(path, input)?;
        Ok(match is_cut {
            Some(is_cut) => Box::new(CutReader { reader, is_cut }),
            None => reader,
        })
    }

    fn open_whole(&self, path: &Path, input: Input) -> Result<Box<dyn TraceReader>, TraceError> {
        let format = detect(&input.head).ok_or_else(|| unrecognised(path, &input.head))?;
        if format == SourceFormat::Native {
            let file = input.into_seekable(path, self.spool_bytes_max)?;
            let mut reader = NativeReader::new(path, file, self.recovery)?;
            self.complete(reader.info_mut())?;
            return Ok(Box::new(AheadReader::new(Box::new(reader))));
        }
        let mut info = TraceInfo { path: path.to_owned(), source: format, ..TraceInfo::default() };
        self.complete(&mut info)?;
        if format == SourceFormat::TraceDat {
            let file = input.into_seekable(path, self.spool_bytes_max)?;
            let reader = open_trace_dat(info, file, self.strictness, self.spool_bytes_max)?;
            return Ok(Box::new(AheadReader::new(reader)));
        }
        if format == SourceFormat::PerfData {
            let file = input.into_seekable(path, self.spool_bytes_max)?;
            let reader = open_perf_data(info, file, self.strictness)?;
            return Ok(Box::new(AheadReader::new(reader)));
        }
        let (head, amount) = (input.head.clone(), input.amount());
        open_text(info, &head, (input.into_stream(), amount), self.strictness)
    }

    fn complete(&self, info: &mut TraceInfo) -> Result<(), TraceError> {
        match &self.layout {
            None => {}
            Some(GivenLayout::Whole(layout)) => info.machine = Some(Layout::clone(layout)),
            Some(GivenLayout::Text(path, text, options)) => {
                let options = match &info.machine {
                    Some(machine) => options.clone().recorded_on(machine),
                    None => options.clone(),
                };
                info.machine = Some(options.parse(path, text)?);
            }
        }
        Ok(())
    }
}

fn unrecognised(path: &Path, head: &[u8]) -> TraceError {
    // An error about a line with a page event helps the user more than an error about other lines.
    let lines = (1..).zip(head.split(|byte| *byte == b'\n'));
    if let Some((number, line)) =
        lines.take(4096).find_map(|(number, line)| Some((number, unreadable(line)?)))
    {
        return TraceError::line(path, number, line.problem, line.remedy);
    }
    if let Some(other) = other_files::what_is(head) {
        return other.as_trace(path);
    }
    let (problem, remedy) = if head.is_empty() {
        ("is empty", "record the trace again")
    } else if head.starts_with(b"{") {
        ("is JSON but not a trace", "name the trace that it belongs to")
    } else {
        (
            "is in no known format",
            "name a .pgtrace, trace.dat or perf.data file, or text of ftrace, `perf script` or `trace-cmd report` with page events",
        )
    };
    TraceError::file(path, problem, remedy)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_a_trace_gets_a_remedy() {
        for (bytes, remedy) in [(b"".as_slice(), "record"), (b"{}", "belongs"), (b"\0\0\0", ".pgtrace")] {
            let error = OpenOptions::new()
                .open_bytes(Path::new("nothing-here"), bytes.to_vec())
                .err()
                .expect("not a trace")
                .to_string();
            assert!(error.contains(remedy), "{error}");
        }
    }
}
