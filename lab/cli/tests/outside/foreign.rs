//! Tests that texts from other programs cannot control the terminal when pageset prints these texts. Such
//! texts are a recording's command, kernel and notes, and names of files.

use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use pageset_trace::{Event, LostEvents, TraceError, TraceInfo, TraceReader, WriteOptions, convert};

const TRACE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../data/traces/k61_2c_tcp.pgtrace");
const TEXT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../data/formats/ftrace-old.txt");
/// Text that must not reach a terminal: a colour, a window title, a control character beyond ASCII, text that
/// runs backwards, and a new line.
const HOSTILE: &str = "\u{1b}[31mred\u{1b}]0;title\u{7}\u{9b}1m\u{202e}\r\nerror: forged";

/// A recording whose description (`info`) was replaced.
struct Forged {
    events: Box<dyn TraceReader>,
    info: TraceInfo,
}

impl TraceReader for Forged {
    fn info(&self) -> &TraceInfo {
        &self.info
    }

    fn read_block(&mut self, events: &mut Vec<Event>) -> Result<usize, TraceError> {
        self.events.read_block(events)
    }

    fn has_ticks(&mut self, progress: &mut dyn FnMut()) -> Result<bool, TraceError> {
        self.events.has_ticks(progress)
    }

    fn lost(&self) -> LostEvents {
        self.events.lost()
    }
}

/// Writes a recording whose texts and file name contain `HOSTILE`.
fn forged(directory: &Path) -> PathBuf {
    let events = pageset_trace::open(Path::new(TRACE)).expect("it is a trace");
    let mut info = events.info().clone();
    info.command = vec!["sh".to_owned(), "-c".to_owned(), HOSTILE.to_owned()];
    info.name = Some(HOSTILE.to_owned());
    info.kernel = info.kernel.map(|kernel| kernel + HOSTILE);
    if let Some(machine) = &mut info.machine {
        machine.kernel += HOSTILE;
    }
    info.not_recorded.push(HOSTILE.to_owned());
    let path = directory.join(format!("a{}.pgtrace", HOSTILE.replace(['\n', '\r'], "")));
    let mut written = Vec::new();
    convert(&mut Forged { events, info }, &mut written, WriteOptions::default(), |_| {})
        .expect("it is written");
    fs::write(&path, written).expect("a file can be written");
    path
}

/// Checks that the output has no hostile characters, as `hides_nothing` does, and that no line begins with
/// the forged error.
#[track_caller]
fn is_harmless(what: &str, bytes: &[u8]) {
    hides_nothing(what, bytes);
    let text = String::from_utf8_lossy(bytes);
    assert!(!text.lines().any(|line| line.starts_with("error: forged")), "{what}: a line of its own: {text}");
}

/// Checks that the output has no control characters, except line feed and tab, and no U+202E, which reverses
/// text.
#[track_caller]
fn hides_nothing(what: &str, bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let is_hidden = |character: char| {
        (character.is_control() && !['\n', '\t'].contains(&character)) || character == '\u{202e}'
    };
    let found = text.find(is_hidden).map(|at| text[at..].chars().take(20).collect::<String>());
    assert_eq!(found, None, "{what}: {text}");
}

fn pageset(arguments: &[&std::ffi::OsStr]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pageset"));
    command.args(arguments).output().expect("pageset can be started")
}

#[test]
fn fault_15_no_text_of_a_recording_is_obeyed_by_a_terminal() {
    let directory = tempfile::tempdir().expect("a directory can be made");
    let trace = forged(directory.path());
    let made = directory.path().join("made");
    for verb in ["advise", "replay", "stat", "verify", "simulate --recording"] {
        for format in ["table", "markdown", "csv", "json"] {
            let mut arguments: Vec<&std::ffi::OsStr> = verb.split(' ').map(AsRef::as_ref).collect();
            arguments.extend([trace.as_os_str(), std::ffi::OsStr::new("-f"), std::ffi::OsStr::new(format)]);
            let output = pageset(&arguments);
            let what = format!("{verb} {format}");
            is_harmless(&what, &output.stdout);
            is_harmless(&what, &output.stderr);
            assert!(output.status.success(), "{what}: {}", String::from_utf8_lossy(&output.stderr));
        }
    }
    let others: [&[&str]; 3] = [&["convert"], &["convert", "--to", "perfetto"], &["report"]];
    for verb in others {
        let mut command = Command::new(env!("CARGO_BIN_EXE_pageset"));
        command.args(verb).arg("--force").arg(&trace);
        if verb == ["report"] {
            command.arg("-o");
        }
        let output = command.arg(&made).output().expect("pageset can be started");
        is_harmless(&format!("{verb:?}"), &output.stdout);
        is_harmless(&format!("{verb:?}"), &output.stderr);
        assert!(output.status.success(), "{verb:?}: {}", String::from_utf8_lossy(&output.stderr));
    }
    // A report is HTML, so a new line in a foreign text does no harm. Check only the characters of the
    // report, and not its lines.
    hides_nothing("report", &fs::read(&made).expect("the report is there"));
}

#[test]
fn fault_15_errors_show_text_of_others_as_escapes() {
    let directory = tempfile::tempdir().expect("a directory can be made");
    let name = std::ffi::OsStr::from_bytes(b"\x1b[31mred\x9b");
    let path = directory.path().join(name);
    let output = pageset(&["stat".as_ref(), path.as_ref()]);
    is_harmless("no such file", &output.stderr);
    assert!(String::from_utf8_lossy(&output.stderr).contains("\\x1b[31mred"), "it is shown");
    let text = fs::read_to_string(TEXT).expect("it can be read");
    let line = text.lines().rfind(|line| line.contains("mm_page_alloc")).expect("it has one");
    for broken in
        [line.replace("order=", "order=\u{1b}[31m"), line.replace("migratetype=", "migrate\u{1b}[31m")]
    {
        fs::write(&path, text.replace(line, &broken)).expect("a file can be written");
        let output = pageset(&["stat".as_ref(), path.as_ref()]);
        is_harmless("a wrong line", &output.stdout);
        is_harmless("a wrong line", &output.stderr);
    }
}

#[test]
fn a_recorded_command_is_shown_as_it_has_to_be_typed() {
    let directory = tempfile::tempdir().expect("a directory can be made");
    let events = pageset_trace::open(Path::new(TRACE)).expect("it is a trace");
    let mut info = events.info().clone();
    info.command = ["sh", "-c", "make -s -C a; make"].map(str::to_owned).to_vec();
    let path = directory.path().join("a.pgtrace");
    let mut written = Vec::new();
    convert(&mut Forged { events, info }, &mut written, WriteOptions::default(), |_| {})
        .expect("it is written");
    fs::write(&path, written).expect("a file can be written");
    for verb in ["advise", "stat", "replay", "simulate --recording"] {
        let mut arguments: Vec<&std::ffi::OsStr> = verb.split(' ').map(AsRef::as_ref).collect();
        arguments.push(path.as_os_str());
        let output = pageset(&arguments);
        let printed =
            String::from_utf8_lossy(&output.stdout).split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(printed.contains("`sh -c 'make -s -C a; make'`"), "{verb}: {printed}");
    }
}
