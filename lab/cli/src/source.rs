//! Opens recordings: files, the standard input, and the recording that is built in.

use std::path::{Path, PathBuf};

use anyhow::Result;
use pageset_replay::{TimeCounter, recordings::bundled, require_room};
use pageset_report::{printable, shell_word};
use pageset_trace::{
    Amount, Event, Layout, LayoutOptions, LostEvents, OpenOptions, Recovery, Strictness, TraceError,
    TraceInfo, TraceReader, WithoutNames,
};

use crate::hint;
use crate::options::{OpeningArgs, SourceArgs};

/// An open recording, with the times of the first and the last event that were read.
pub(crate) struct Source {
    reader: Box<dyn TraceReader>,
    /// The arguments that make another command line read the same recording in the same way. The text is
    /// empty for the bundled recording.
    pub(crate) argument: String,
    time: TimeCounter,
}

impl Source {
    /// Removes the names of tasks from the recording.
    pub(crate) fn forget_names(self) -> Self {
        Self { reader: Box::new(WithoutNames::new(self.reader)), ..self }
    }

    /// Opens the recording that the arguments name.
    pub(crate) fn open(args: &SourceArgs) -> Result<Self> {
        require_room().map_err(anyhow::Error::msg)?;
        match &args.recording {
            Some(path) => Self::open_path(path, &args.opening, None),
            None => Ok(Self::new(bundled()?, String::new())),
        }
    }

    /// Opens the recording at a path; `-` is the standard input. If a layout file is given, the file replaces
    /// the machine's description in the recording.
    pub(crate) fn open_path(
        path: &Path,
        args: &OpeningArgs,
        layout: Option<(&Path, LayoutOptions)>,
    ) -> Result<Self> {
        require_room().map_err(anyhow::Error::msg)?;
        let argument = typed(path, args);
        let path = if is_stdin(path) { PathBuf::from("/dev/stdin") } else { path.to_owned() };
        let mut options = OpenOptions::new()
            .strictness(if args.lenient { Strictness::Lenient } else { Strictness::Strict })
            .recovery(if args.recover { Recovery::UpToDamage } else { Recovery::Refuse });
        let mut layout_text = None;
        if let Some((path, facts)) = layout {
            let text = Layout::text(path).map_err(|error| hint::of_layout(&error, ""))?;
            layout_text = Some((path, text.clone()));
            options = options.layout_text(path, text, facts);
        }
        let reader = options.open(&path).map_err(|error| match &layout_text {
            Some((path, text)) if *path == error.path() => hint::of_layout(&error, text),
            _ => hint::of_trace(error),
        })?;
        Ok(Self::new(reader, argument))
    }

    fn new(reader: Box<dyn TraceReader>, argument: String) -> Self {
        Self { reader, argument, time: TimeCounter::default() }
    }

    /// Length of the recording as far as it was read, in seconds. `None` if no event was read.
    pub(crate) fn seconds(&self) -> Option<f64> {
        self.time.time().map(|time| time.seconds())
    }
}

/// The words that open the recording in another command line: its path, and the options for opening it.
fn typed(path: &Path, args: &OpeningArgs) -> String {
    let mut typed = shell_word(&path.display().to_string());
    for (is_set, option) in [(args.lenient, " --lenient"), (args.recover, " --recover")] {
        typed += if is_set { option } else { "" };
    }
    typed
}

fn is_stdin(path: &Path) -> bool {
    path == Path::new("-")
}

impl TraceReader for Source {
    fn info(&self) -> &TraceInfo {
        self.reader.info()
    }

    fn amount(&self) -> Amount {
        self.reader.amount()
    }

    fn read_block(&mut self, events: &mut Vec<Event>) -> Result<usize, TraceError> {
        let count = self.reader.read_block(events)?;
        self.time.record(events);
        Ok(count)
    }

    fn has_ticks(&mut self, progress: &mut dyn FnMut()) -> Result<bool, TraceError> {
        self.reader.has_ticks(progress)
    }

    fn lost(&self) -> LostEvents {
        self.reader.lost()
    }
}

/// Returns a recording's name for titles: the name of its file.
pub(crate) fn title(info: &TraceInfo) -> String {
    let name = info.path.file_name().unwrap_or(info.path.as_os_str()).to_string_lossy();
    printable(&name).into_owned()
}

#[cfg(test)]
mod tests {
    use pageset_replay::recordings::BUNDLED;

    use super::*;

    #[test]
    fn the_bundled_trace_is_whole() {
        let args = SourceArgs { recording: None, opening: OpeningArgs::default() };
        let mut source = Source::open(&args).unwrap();
        assert_eq!(title(source.info()), "k618_2c_make_lua_j4 (bundled)");
        let (mut events, mut count) = (Vec::new(), 0);
        while source.read_block(&mut events).unwrap() > 0 {
            count += events.len() as u64;
        }
        assert_eq!(Some(count), source.info().events);
        assert!(source.seconds().unwrap() > 1.0);
    }

    fn opened(name: &str, bytes: &[u8], opening: &OpeningArgs) -> Result<u64, String> {
        let file = tempfile::Builder::new().suffix(name).tempfile().unwrap();
        std::fs::write(file.path(), bytes).unwrap();
        let read = || {
            let mut source = Source::open_path(file.path(), opening, None)?;
            let (mut events, mut count) = (Vec::new(), 0);
            while source.read_block(&mut events).map_err(hint::of_trace)? > 0 {
                count += events.len() as u64;
            }
            Ok::<_, anyhow::Error>(count)
        };
        read().map_err(|error| error.to_string())
    }

    #[test]
    fn recovery_is_offered_where_it_helps_and_only_there() {
        let recover = OpeningArgs { recover: true, ..OpeningArgs::default() };
        let strict = OpeningArgs::default();
        let mut wrong_description = BUNDLED.to_vec();
        wrong_description[40] ^= 1;
        for bytes in [wrong_description.as_slice(), &BUNDLED[..20]] {
            let error = opened(".pgtrace", bytes, &strict).unwrap_err();
            assert!(error.contains(": byte ") && !error.contains("--recover"), "{error}");
            assert!(
                opened(".pgtrace", bytes, &recover).is_err(),
                "`--recover` cannot read a recording whose beginning is damaged"
            );
        }
        let cut = &BUNDLED[..BUNDLED.len() / 2];
        let error = opened(".pgtrace", cut, &strict).unwrap_err();
        assert!(error.ends_with("the option --recover does that"), "{error}");
        let cut_file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(cut_file.path(), cut).unwrap();
        let error = pageset_trace::open(cut_file.path()).err().unwrap();
        let error = hint::of_conversion(anyhow::Error::from(error).context("workload trace:cut"));
        assert!(error.to_string().contains("`pageset convert --recover`"), "{error}");
        assert!(opened(".pgtrace", cut, &recover).unwrap() > 100_000);
    }

    #[test]
    fn a_wrong_layout_file_is_told_where_to_get_a_right_one() {
        let trace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../data/traces/k61_2c_tcp.pgtrace");
        let file = tempfile::Builder::new().suffix(".toml").tempfile().unwrap();
        std::fs::write(file.path(), "cpus = 2").unwrap();
        let error =
            Source::open_path(&trace, &OpeningArgs::default(), Some((file.path(), LayoutOptions::new())))
                .err()
                .unwrap();
        let error = error.to_string();
        assert!(error.starts_with(file.path().to_str().unwrap()), "{error}");
        assert!(
            error.ends_with("`pageset convert --to layout` prints a layout that you can edit"),
            "{error}"
        );
        assert!(!error.contains("Layout::"), "the message must not contain Rust names: {error}");
    }

    #[test]
    fn a_missing_file_gets_a_remedy() {
        let error =
            Source::open_path(Path::new("missing.pgtrace"), &OpeningArgs::default(), None).err().unwrap();
        assert!(error.to_string().starts_with("missing.pgtrace: cannot open"), "{error}");
        assert!(error.to_string().ends_with("the bundled recording is read"), "{error}");
    }
}
