//! `pageset record --names` records names of tasks. Without the option `--names`, the file contains no name
//! of a task.

use std::fs;
use std::io::Read as _;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use pageset_trace::Recovery;

use crate::record::{directory, machine, read, succeeds};

/// The name of a program that only these tests run.
const NAME: &str = "zqx7unusual";
/// The first bytes of a compressed part of a file. Source: RFC 8878.
const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// Does `work` while tasks called `NAME` run: one all the time, and others that end soon.
fn beside<T>(directory: &Path, work: impl FnOnce() -> T) -> T {
    let program = directory.join(NAME);
    fs::copy("/bin/sleep", &program).expect("there is a program to copy");
    let mut long = Command::new(&program).arg("60").spawn().expect("it can be started");
    let is_over = AtomicBool::new(false);
    let result = thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                drop(Command::new(&program).arg("0").status());
                thread::sleep(Duration::from_millis(1));
            }
        });
        let result = work();
        is_over.store(true, Ordering::Relaxed);
        result
    });
    drop((long.kill(), long.wait()));
    result
}

/// Everything that a file holds: its bytes, and the contents of its compressed parts.
fn everything(path: &Path) -> Vec<u8> {
    let bytes = fs::read(path).expect("it was recorded");
    let mut all = bytes.clone();
    let mut parts = 0;
    for at in (0..bytes.len()).filter(|at| bytes[*at..].starts_with(&ZSTD)) {
        let decoder =
            zstd::stream::read::Decoder::new(&bytes[at..]).expect("it begins as one").single_frame();
        // Some bytes only look like a compressed part. To decompress such bytes ends in an error, and gives
        // little data.
        parts += usize::from(decoder.take(64 << 20).read_to_end(&mut all).is_ok());
    }
    assert!(parts >= 1, "a description at least");
    all
}

fn holds(all: &[u8], text: &str) -> bool {
    all.windows(text.len()).any(|window| window == text.as_bytes())
}

#[test]
fn without_names_no_name_of_a_task_is_in_the_file() {
    let Some(_guard) = machine() else { return };
    let (directory, path, name) = directory();
    let said = beside(directory.path(), || succeeds(&["record", "-o", &name, "--", "sleep", "0.5"]));
    assert!(!said.contains("--names"), "{said}");
    let (info, events) = read(&path, Recovery::Refuse);
    assert!(info.tasks.is_none() && !events.is_empty());
    let all = everything(&path);
    assert!(holds(&all, "sched_process_fork"), "descriptions are looked through");
    assert!(!holds(&all, NAME) && !holds(&all, &NAME[..8]));
    // The file also lacks the recorder's own name, and names of tasks that run on every kernel.
    assert!(!holds(&all, "kthreadd"));
    let said = succeeds(&["stat", &name]);
    assert!(!said.contains("by process") && said.contains("Record with --names"), "{said}");
    assert!(said.contains("the command ") && said.contains("all others "), "{said}");
}

#[test]
fn names_are_kept_where_they_are_asked_for() {
    let Some(_guard) = machine() else { return };
    let (directory, path, name) = directory();
    let command =
        ["sh", "-c", "for i in 1 2 3 4 5 6 7 8; do dd if=/dev/zero of=/dev/null bs=4M count=9; done"];
    let record = [&["record", "--names", "-o", &name, "--"], command.as_slice()].concat();
    let said = beside(directory.path(), || succeeds(&record));
    assert!(said.contains("names of") && said.contains("(--names)"), "{said}");
    let all = everything(&path);
    assert!(holds(&all, NAME) && holds(&all, "kthreadd"));
    let (info, _) = read(&path, Recovery::Refuse);
    let tasks = info.tasks.expect("they were asked for");
    let called = |wanted: &str| tasks.all().iter().filter(|task| tasks.name(task) == Some(wanted)).count();
    assert!(called("dd") >= 8 && called(NAME) >= 2, "{} and {}", called("dd"), called(NAME));
    let said = succeeds(&["stat", &name]);
    let said = said.split("Load by process").nth(1).expect("names make a table");
    let row =
        |wanted: &str| said.lines().find(|line| line.starts_with(wanted)).unwrap_or_else(|| panic!("{said}"));
    assert!(row("dd ").split_whitespace().nth(1).is_some_and(|processes| processes == "8"), "{said}");
    // Each row has the name, the number of processes, pages, and their share.
    let unknown = row("unknown ").split_whitespace().nth(3).expect("a share").parse::<f64>();
    assert!(unknown.expect("a number") < 5.0, "{said}");
    assert!(said.lines().all(|line| line.len() <= 80), "{said}");
    let shared = directory.path().join("shared.pgtrace");
    succeeds(&["convert", &name, &shared.display().to_string(), "--without-names"]);
    assert!(!holds(&everything(&shared), NAME) && !holds(&everything(&shared), "kthreadd"));
    let html = directory.path().join("r.html").display().to_string();
    succeeds(&["report", &name, "-o", &html]);
    assert!(fs::read_to_string(&html).expect("it was written").contains("Load by process"));
    let advised = succeeds(&["advise", &name, "--evidence"]);
    assert!(
        advised.contains("The command and its children took") && advised.contains("by process"),
        "{advised}"
    );
    let trace = directory.path().join("t.pftrace");
    succeeds(&["convert", &name, &trace.display().to_string(), "--to", "perfetto"]);
    // In a file for Perfetto, only threads that waited or reclaimed have names, and these threads differ from
    // run to run. Each name stands after its length. Search for the length and the name together, so that a
    // short name that occurs by chance does not count.
    let perfetto = fs::read(&trace).expect("it was written");
    let field = |name: &str| format!("{}{name}", char::from(name.len() as u8));
    let names = tasks.all().iter().filter_map(|task| tasks.name(task));
    assert!(names.map(field).any(|field| holds(&perfetto, &field)));
}

#[test]
fn counts_know_who_visited_the_zones() {
    let Some(_guard) = machine() else { return };
    let (directory, path, name) = directory();
    // A shell command that writes and removes files of 8 MiB, whose pages go through the page sets to the
    // zones and back.
    let memory = crate::record::Tmpfs::mount("64m");
    let load =
        "i=0; while [ $i -lt 100 ]; do dd if=/dev/zero of=load bs=1M count=8; rm load; i=$((i + 1)); done";
    let load = format!("cd {}; {load}", memory.0.path().display());
    let record = |more: &[&str]| {
        let begin = ["record", "--counts", "--force", "-o", &name];
        beside(directory.path(), || succeeds(&[&begin, more, &["--", "sh", "-c", &load]].concat()))
    };
    record(&[]);
    let (info, _) = read(&path, Recovery::Refuse);
    let counts = info.counts.expect("it has counts");
    assert!(counts.is_command_known && info.tasks.is_none(), "{:?}", info.not_recorded);
    let visits: u64 = counts.tasks.iter().map(|task| task.visits).sum();
    let estimate = counts.visits.expect("seconds are enough").hits;
    assert!(visits.abs_diff(estimate) <= counts.tasks.len() as u64, "{visits} of {estimate}");
    assert!(!holds(&everything(&path), NAME) && !holds(&everything(&path), "kthreadd"));
    let said = record(&["--names"]);
    assert!(said.contains("(--names)"), "{said}");
    assert!(holds(&everything(&path), "kthreadd"));
    let said = succeeds(&["stat", &name]);
    assert!(said.contains("Load by process") && said.contains("the command "), "{said}");
}

#[test]
fn a_hostile_name_reaches_neither_terminal_nor_page() {
    let Some(_guard) = machine() else { return };
    let (directory, path, name) = directory();
    let evil = directory.path().join("\u{1b}[31m<b>x");
    fs::copy("/bin/dd", &evil).expect("there is a program to copy");
    let load = format!("exec '{}' if=/dev/zero of=/dev/null bs=16M count=9", evil.display());
    let script = directory.path().join("script");
    fs::write(&script, load).expect("it can be written");
    succeeds(&["record", "--names", "-o", &name, "--", "sh", &script.display().to_string()]);
    assert!(holds(&everything(&path), "[31m<b>x"));
    for arguments in
        [["stat", &name].as_slice(), &["advise", &name, "--evidence"], &["stat", &name, "--format", "json"]]
    {
        let said = succeeds(arguments);
        assert!(!said.contains('\u{1b}') && said.contains("[31m<b>x"), "{arguments:?}: {said}");
    }
    let html = directory.path().join("r.html").display().to_string();
    succeeds(&["report", &name, "-o", &html]);
    let page = fs::read_to_string(&html).expect("it was written");
    assert!(!page.contains("<b>x") && !page.contains('\u{1b}') && page.contains("&lt;b&gt;x"));
}
