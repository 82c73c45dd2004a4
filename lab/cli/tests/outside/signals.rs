//! Tests that a signal ends subcommands that read a recording, and that no temporary file stays.

use std::fs;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use pageset_trace::{LostEvents, NativeWriter, WriteOptions};

const TRACE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../data/traces/k618_2c_make_lua_j4.pgtrace");

/// Writes a recording that takes long to read: the events of a bundled one, several times.
fn write_long(path: &Path) {
    let mut reader = pageset_trace::open(TRACE.as_ref()).expect("it is bundled");
    let (mut all, mut events) = (Vec::new(), Vec::new());
    while reader.read_block(&mut events).expect("it is whole") > 0 {
        all.extend_from_slice(&events);
    }
    let length_ns = all.last().expect("it has events").ts_ns - all[0].ts_ns;
    let file = fs::File::create(path).expect("a file can be made");
    let mut writer = NativeWriter::new(file, reader.info(), WriteOptions::new().level(1)).expect("a head");
    for _ in 0..8 {
        writer.write(&all).expect("it can be written");
        all.iter_mut().for_each(|event| event.ts_ns += length_ns);
    }
    writer.finish(LostEvents::default()).expect("it can be written");
}

/// Waits until the process has ended, for at most a minute.
fn end_of(child: &mut Child, what: &str) -> ExitStatus {
    let began = Instant::now();
    loop {
        if let Some(status) = child.try_wait().expect("a child can be waited for") {
            return status;
        }
        if began.elapsed() > Duration::from_secs(60) {
            child.kill().expect("a child can be killed");
            panic!("{what} still runs");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn left(directory: &Path) -> Vec<String> {
    let names = fs::read_dir(directory).expect("a directory can be listed").flatten();
    let names = names.map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.filter(|name| name.starts_with(".pageset-")).collect()
}

#[test]
fn a_signal_ends_each_verb_and_no_temporary_file_stays() {
    let directory = tempfile::tempdir().expect("a directory can be made");
    let long = directory.path().join("long.pgtrace");
    write_long(&long);
    let long = long.to_str().expect("UTF-8");
    fs::write(directory.path().join("old"), "old").expect("a file can be written");
    let verbs: [&[&str]; 6] = [
        &["advise", long],
        &["convert", long, "new.pgtrace"],
        &["convert", long, "old", "--to", "perfetto", "--force"],
        &["replay", long, "--all"],
        &["report", long, "-o", "old", "--force"],
        &["simulate", "--recording", long],
    ];
    // With an empty /proc, pageset cannot give a name to a nameless file, so `convert` writes a temporary
    // file with a name.
    let without_proc = "mount -t tmpfs none /proc && exec \"$0\" \"$@\"";
    let mut trial = Command::new("unshare");
    trial.args(["--user", "--map-root-user", "--mount", "sh", "-c", without_proc, "true"]);
    let is_possible = trial.status().is_ok_and(|status| status.success());
    let mut interrupted = 0;
    for has_proc in [true, false].into_iter().filter(|has_proc| *has_proc || is_possible) {
        for (verb, signal) in verbs.iter().flat_map(|verb| [(verb, "INT"), (verb, "TERM")]) {
            let program = env!("CARGO_BIN_EXE_pageset");
            let mut command = Command::new(if has_proc { program } else { "unshare" });
            if !has_proc {
                command.args(["--user", "--map-root-user", "--mount", "sh", "-c", without_proc, program]);
            }
            command.args(*verb).current_dir(&directory).stdout(Stdio::null()).stderr(Stdio::null());
            let mut child = command.spawn().expect("pageset can be started");
            std::thread::sleep(Duration::from_millis(300));
            // Without /proc, wait for the temporary file, so that the signal comes while it is there.
            while !has_proc && verb[0] == "convert" && left(directory.path()).is_empty() {
                let has_ended = child.try_wait().expect("a child can be waited for").is_some();
                assert!(!has_ended, "{verb:?} ended without a temporary file");
                std::thread::sleep(Duration::from_millis(1));
            }
            let sent = Command::new("kill").args(["-s", signal, &child.id().to_string()]).status();
            assert!(sent.is_ok());
            let what = format!("{verb:?} {signal} {has_proc}");
            let status = end_of(&mut child, &what);
            assert!(
                status.success() || status.signal().is_some() || status.code() == Some(130),
                "{what}: {status}"
            );
            interrupted += usize::from(!status.success());
            assert_eq!(left(directory.path()), [""; 0], "{what}");
            let old = fs::read(directory.path().join("old")).expect("it is there");
            assert!(old == b"old" || status.success(), "{what}");
            drop(fs::remove_file(directory.path().join("new.pgtrace")));
            fs::write(directory.path().join("old"), "old").expect("a file can be written");
        }
    }
    assert!(interrupted > 8, "only {interrupted} verbs were interrupted");
}
