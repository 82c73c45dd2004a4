//! Tests `pageset advise` on this machine. Without root or tracefs, tests print that they are skipped.

use std::fs;
use std::io::Write as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::MutexGuard;

use crate::record::{send, start, wait_until};

const FRACTION: &str = "/proc/sys/vm/percpu_pagelist_high_fraction";
/// A shell command that allocates and frees pages.
const LOAD: &str =
    "for i in 1 2 3 4 5 6 7 8; do head -c 40000000 /dev/zero | tail -c 1 > /dev/null; done; sleep 0.5";

fn pageset(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_pageset")).args(arguments).output().expect("the command runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Waits until this test may use the machine alone. If the test cannot record the machine or change its
/// settings, prints the reason and returns `None`.
fn may_record() -> Option<MutexGuard<'static, ()>> {
    let guard = crate::one_at_a_time();
    let refused = crate::record::refused();
    let may_write = fs::OpenOptions::new().write(true).open(FRACTION).is_ok();
    if refused.is_some() || !may_write {
        eprintln!("skipped: {}, or {FRACTION} cannot be written", refused.unwrap_or_default());
        return None;
    }
    Some(guard)
}

#[test]
fn a_setting_is_tried_compared_and_put_back() {
    let Some(_guard) = may_record() else { return };
    let before = fs::read_to_string(FRACTION).unwrap();
    let arguments = [
        "advise",
        "--apply",
        "vm.percpu_pagelist_high_fraction=512",
        "--yes",
        "-f",
        "json",
        "--",
        "sh",
        "-c",
        LOAD,
    ];
    let output = pageset(&arguments);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!(fs::read_to_string(FRACTION).unwrap(), before, "put back");
    let said: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(said["applied"], "vm.percpu_pagelist_high_fraction=512");
    assert_eq!(said["recording"], "This machine");
    for side in ["before_s", "after_s"] {
        let seconds = said["run_times"][side].as_array().unwrap();
        assert!(seconds.len() == 1 && seconds[0].as_f64().unwrap() >= 0.5, "{said}");
    }
    let sentences: Vec<&str> =
        said["tried"].as_array().unwrap().iter().filter_map(|one| one.as_str()).collect();
    assert!(sentences[0].contains("` took ") && sentences[0].contains("--times 4 does"), "{sentences:?}");
    assert!(sentences[1].starts_with("Visits to the zones: "), "{sentences:?}");
    assert!(sentences[2].starts_with("vm.percpu_pagelist_high_fraction was put back to "), "{sentences:?}");
    assert!(said["findings"]["allocated_pages"].as_u64().unwrap() > 1000, "{said}");
    let changes = said["against"]["changes"].as_array().unwrap();
    assert_eq!(changes.len(), 5);
    assert!(text(&output.stderr).contains("to put the setting back"));
}

#[test]
fn a_setting_is_put_back_after_an_interrupt() {
    let Some(_guard) = may_record() else { return };
    let before = fs::read_to_string(FRACTION).unwrap();
    let trace = concat!(env!("CARGO_MANIFEST_DIR"), "/../../data/traces/k618_2c_hackbench_sock.pgtrace");
    let mut child =
        start(&["advise", trace, "--for", "1m", "--apply", "vm.percpu_pagelist_high_fraction=777", "--yes"]);
    wait_until("the setting is made", || {
        assert!(child.try_wait().unwrap().is_none(), "it ended before it changed the setting");
        fs::read_to_string(FRACTION).unwrap().trim() == "777"
    });
    send("-INT", &child);
    assert!(!child.wait().unwrap().success());
    assert_eq!(fs::read_to_string(FRACTION).unwrap(), before, "put back");
}

#[test]
fn what_is_no_setting_is_refused_before_anything_is_changed() {
    let trace = concat!(env!("CARGO_MANIFEST_DIR"), "/../../data/traces/k612_2c_tcp.pgtrace");
    let output = pageset(&["advise", trace, "--apply", "kernel.panic=1", "--yes"]);
    assert!(!output.status.success());
    assert!(text(&output.stderr).contains("`kernel.panic=1` is not a setting"), "{}", text(&output.stderr));
    let output = pageset(&["advise", trace, "--", "true"]);
    assert!(text(&output.stderr).contains("add --apply"), "{}", text(&output.stderr));
}

/// Settings that tests change. Changing `INTERVAL` has no side effects; writing `BYTES` sets `RATIO` to 0.
const INTERVAL: &str = "/proc/sys/vm/stat_interval";
const BYTES: &str = "/proc/sys/vm/dirty_background_bytes";
const RATIO: &str = "/proc/sys/vm/dirty_background_ratio";
const TRACE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../data/traces/k61_2c_tcp.pgtrace");

/// Waits until this test may use the machine alone. Panics if the machine cannot record.
fn machine() -> MutexGuard<'static, ()> {
    crate::record::machine().expect("this machine can record")
}

fn value(path: &str) -> String {
    fs::read_to_string(path).unwrap().trim().to_owned()
}

/// Starts `advise --apply` with a setting, and waits until the setting has its new value.
fn begun(setting: &str, rest: &[&str]) -> Child {
    let arguments = [&["advise", TRACE, "--yes", "--apply", setting][..], rest].concat();
    let child = start(&arguments);
    let (key, wanted) = setting.split_once('=').unwrap();
    let path = format!("/proc/sys/{}", key.replace('.', "/"));
    wait_until("the setting is made", || value(&path) == wanted);
    child
}

fn killed(mut child: Child) {
    send("-KILL", &child);
    child.wait().unwrap();
}

#[test]
#[ignore = "needs root and tracefs, and changes vm.stat_interval"]
fn fault_07_two_at_once_are_refused_and_the_setting_is_put_back() {
    let _guard = machine();
    let before = value(INTERVAL);
    let first = begun("vm.stat_interval=7", &["--for", "3s"]);
    let second = pageset(&["advise", TRACE, "--yes", "--apply", "vm.stat_interval=8", "--for", "1s"]);
    let error = text(&second.stderr);
    assert_eq!(second.status.code(), Some(1), "{error}");
    assert!(error.contains(&format!("process {} (`pageset advise ", first.id())), "{error}");
    assert!(error.contains(" ago)"), "{error}");
    let first = first.wait_with_output().unwrap();
    assert!(first.status.success(), "{}", text(&first.stderr));
    assert!(text(&first.stdout).contains(&format!("vm.stat_interval was put back to {before}.")));
    assert_eq!(value(INTERVAL), before);
}

#[test]
#[ignore = "needs root and tracefs, and changes vm.stat_interval"]
fn fault_07_the_value_of_another_process_is_kept_and_said() {
    let _guard = machine();
    let before = value(INTERVAL);
    let child = begun("vm.stat_interval=7", &["--for", "1s"]);
    fs::write(INTERVAL, "42").unwrap();
    let output = child.wait_with_output().unwrap();
    let now = value(INTERVAL);
    fs::write(INTERVAL, &before).unwrap();
    assert_eq!(now, "42");
    let said = text(&output.stdout).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains("another process set vm.stat_interval=42 meanwhile"), "{said}");
}

#[test]
#[ignore = "needs root and tracefs, and changes vm.stat_interval"]
fn fault_07_after_a_kill_every_command_says_what_was_left_and_one_puts_it_back() {
    let _guard = machine();
    let before = value(INTERVAL);
    let child = begun("vm.stat_interval=7", &["--for", "1m"]);
    let number = child.id();
    killed(child);
    let directory = tempfile::tempdir().unwrap();
    let made = directory.path().join("a.pgtrace").display().to_string();
    let commands: [&[&str]; 4] = [
        &["advise", TRACE],
        &["record", "--for", "100ms", "-o", &made],
        &["top", "--once", "--interval", "100ms"],
        &["advise", TRACE, "--yes", "--apply", "vm.stat_interval=9", "--for", "1s"],
    ];
    for arguments in commands {
        let output = pageset(arguments);
        let error = text(&output.stderr);
        assert!(error.contains(&format!("rocess {number} (`pageset advise ")), "{arguments:?}: {error}");
        assert!(error.contains(&format!("vm.stat_interval is 7, and was {before}")), "{error}");
        assert!(error.contains("advise --put-back` puts them back"), "{error}");
        assert_eq!(output.status.success(), !arguments.contains(&"--apply"), "{arguments:?}: {error}");
        assert_eq!(value(INTERVAL), "7", "nothing is put back silently");
    }
    let output = pageset(&["advise", "--put-back"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!(text(&output.stderr), format!("vm.stat_interval was put back to {before}.\n"));
    assert_eq!(value(INTERVAL), before);
    assert!(text(&pageset(&["advise", "--put-back"]).stderr).starts_with("No command was killed"));
}

#[test]
#[ignore = "needs root and tracefs, and changes vm.stat_interval"]
fn fault_07_every_signal_acts_while_the_command_runs_unrecorded() {
    let _guard = machine();
    let before = value(INTERVAL);
    for (signal, number) in [("-TERM", 15), ("-INT", 2), ("-HUP", 1)] {
        let mut child = begun("vm.stat_interval=7", &["--", "sleep", "20"]);
        send(signal, &child);
        wait_until("the signal ends it", || child.try_wait().unwrap().is_some());
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.signal(), Some(number), "{}", text(&output.stderr));
        assert_eq!(value(INTERVAL), before, "{signal}");
        let said = text(&output.stderr);
        assert!(
            said.contains("was put back to") && said.contains("`sleep 20` still runs as process "),
            "{said}"
        );
    }
    // Tests that SIGHUP does not end a command that was started with SIGHUP ignored, as `nohup` does.
    let child = Command::new("env")
        .args(["--default-signal=INT,TERM", "--ignore-signal=HUP", env!("CARGO_BIN_EXE_pageset")])
        .args(["advise", TRACE, "--yes", "--apply", "vm.stat_interval=7", "--for", "2s"])
        .stdout(Stdio::null())
        .spawn();
    let mut child = child.unwrap();
    wait_until("the setting is made", || value(INTERVAL) == "7");
    send("-HUP", &child);
    assert!(child.wait().unwrap().success());
    assert_eq!(value(INTERVAL), before);
}

#[test]
#[ignore = "needs root and tracefs, and changes vm.dirty_background_bytes"]
fn fault_07_a_pair_of_settings_is_put_back_as_a_pair() {
    let _guard = machine();
    let before = (value(BYTES), value(RATIO));
    let child = begun("vm.dirty_background_bytes=100000000", &["--for", "1s"]);
    assert_eq!(value(RATIO), "0", "the kernel resets it");
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!((value(BYTES), value(RATIO)), before);
    killed(begun("vm.dirty_background_bytes=100000000", &["--for", "1m"]));
    assert!(pageset(&["advise", "--put-back"]).status.success());
    assert_eq!((value(BYTES), value(RATIO)), before);
}

#[test]
fn nothing_runs_before_rights_and_terminal_are_there() {
    let _guard = crate::one_at_a_time();
    let directory = tempfile::tempdir().unwrap();
    let marker = directory.path().join("it ran");
    // Tests that the command changes nothing if it has no terminal to ask at.
    let output = Command::new("setsid")
        .args(["-w", env!("CARGO_BIN_EXE_pageset"), "advise", "--apply", "vm.stat_interval=7", "--", "touch"])
        .arg(&marker)
        .output()
        .unwrap();
    let error = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{error}");
    assert!(error.contains("--yes changes it without asking") || error.contains("only root may"), "{error}");
    assert!(!marker.exists(), "{error}");
    let output = pageset(&["advise", "--prepare", "true"]);
    assert_eq!(output.status.code(), Some(2), "it is for a COMMAND: {}", text(&output.stderr));
}

#[test]
#[ignore = "needs root and tracefs, and changes vm.stat_interval"]
fn a_command_that_can_run_only_once_is_prepared_before_each_run() {
    let _guard = machine();
    let before = value(INTERVAL);
    let directory = tempfile::tempdir().unwrap();
    let log = directory.path().join("log").display().to_string();
    let (prepare, command) = (format!("echo clean >>{log}"), format!("echo make >>{log}; sleep 0.6"));
    let output = pageset(&[
        "advise",
        "--yes",
        "--apply",
        "vm.stat_interval=7",
        "--prepare",
        &prepare,
        "--",
        "sh",
        "-c",
        &command,
    ]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!(fs::read_to_string(&log).unwrap(), "clean\nmake\n".repeat(4));
    assert_eq!(value(INTERVAL), before);
    let failing = pageset(&["advise", "--prepare", "exit 3", "--", "true"]);
    assert!(
        text(&failing.stderr).contains("--prepare failed (exit status: 3): `exit 3`"),
        "{}",
        text(&failing.stderr)
    );
}

#[test]
#[ignore = "needs root, tracefs and script(1)"]
fn an_answer_of_no_keeps_the_verdict() {
    let _guard = machine();
    let before = value(INTERVAL);
    assert!(Path::new("/usr/bin/script").exists(), "script(1) makes a terminal");
    let command = format!("{} advise {TRACE} --apply vm.stat_interval=7", env!("CARGO_BIN_EXE_pageset"));
    let mut child = Command::new("script")
        .args(["-qec", &command, "/dev/null"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut answer = child.stdin.take().unwrap();
    answer.write_all(b"n\n").unwrap();
    let output = child.wait_with_output().unwrap();
    drop(answer);
    let said = text(&output.stdout);
    assert!(output.status.success(), "{said}");
    assert!(said.contains("Set vm.stat_interval=7 now, and record again? [y/N]"), "{said}");
    assert!(said.contains("No: leave the settings alone."), "{said}");
    assert!(said.contains("vm.stat_interval=7 was not tried: you did not agree."), "{said}");
    assert_eq!(value(INTERVAL), before);
}

/// Tests that the cost of a visit is measured and saved, and that the next recording contains the cost. Also
/// tests that the settings are put back, even after an interrupt.
#[test]
#[ignore = "needs root and tracefs, changes vm.percpu_pagelist_high_fraction, and takes a minute"]
fn the_cost_of_a_visit_is_measured_and_recordings_carry_it() {
    let Some(_guard) = may_record() else { return };
    let before = fs::read_to_string(FRACTION).unwrap();
    let state = tempfile::tempdir().unwrap();
    let run = |arguments: &[&str]| {
        // A test runner in the background may ignore an interrupt, and its children then ignore it too.
        let mut command = Command::new("env");
        command.args(["--default-signal=INT", env!("CARGO_BIN_EXE_pageset")]);
        command.args(arguments).env("XDG_STATE_HOME", state.path());
        command
    };
    let mut child = run(&["bench", "machine"]).spawn().unwrap();
    wait_until("a setting is made", || fs::read_to_string(FRACTION).unwrap() != before);
    send("-INT", &child);
    assert!(!child.wait().unwrap().success());
    assert_eq!(fs::read_to_string(FRACTION).unwrap(), before, "put back after an interrupt");

    let measured = run(&["bench", "machine"]).output().unwrap();
    assert!(measured.status.success(), "{}", text(&measured.stderr));
    assert_eq!(fs::read_to_string(FRACTION).unwrap(), before, "put back");
    assert!(text(&measured.stderr).contains("A visit to a zone costs"), "{}", text(&measured.stderr));
    let file = state.path().join("recording.pgtrace");
    let name = file.to_str().unwrap();
    let recorded = run(&["record", "-o", name, "--", "sleep", "0.6"]).output().unwrap();
    assert!(recorded.status.success(), "{}", text(&recorded.stderr));
    let said: serde_json::Value =
        serde_json::from_slice(&pageset(&["advise", name, "--format", "json"]).stdout).unwrap();
    let spending = &said["findings"]["spending"];
    assert!(spending["cost"]["visit_ns"]["median"].as_f64().unwrap() > 0.0, "{said}");
    assert!(spending["is_busy_time"].as_bool().unwrap(), "{said}");
}

/// Returns advice in JSON, and how often the command ran. `load` makes a command that adds a line to the
/// named log file at each run.
fn advised(options: &[&str], load: impl Fn(&str) -> String) -> (serde_json::Value, usize) {
    let directory = tempfile::tempdir().unwrap();
    let log = directory.path().join("log").display().to_string();
    let command = load(&log);
    let words = [&["advise", "-f", "json"], options, &["--", "sh", "-c", &command]].concat();
    let output = Command::new(env!("CARGO_BIN_EXE_pageset"))
        .args(words)
        .env("XDG_STATE_HOME", directory.path())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    let runs = fs::read_to_string(&log).unwrap().lines().count();
    (serde_json::from_slice(&output.stdout).unwrap(), runs)
}

/// A command that adds a line to the file, and takes some seconds.
fn some_seconds(log: &str) -> String {
    format!("echo run >>{log}; sleep 3")
}

#[test]
fn a_counted_no_takes_one_run_and_other_answers_take_events() {
    let Some(_guard) = may_record() else { return };
    let directory = tempfile::tempdir().unwrap();
    let kept = directory.path().join("kept.pgtrace").display().to_string();
    let (said, runs) = advised(&["--keep-recording", &kept], some_seconds);
    // On a busy machine, the answer from counts may not be No. If the answer is not No, the command runs a
    // second time, and `advise` records its events.
    let is_no = said["findings"]["is_counted"] == true;
    assert_eq!(is_no, runs == 1, "{said}");
    assert_eq!(said["recording"], "This machine");
    if is_no {
        assert_eq!(said["verdict"]["verdict"], "leave_alone");
        assert!(said.to_string().contains("This was counted: visits in "), "{said}");
    } else {
        assert_eq!(runs, 2);
    }
    let of_file =
        serde_json::from_slice::<serde_json::Value>(&pageset(&["advise", &kept, "-f", "json"]).stdout);
    let of_file = of_file.unwrap();
    assert_eq!(of_file["findings"]["is_counted"] == true, is_no);
    let keys = |said: &serde_json::Value| said.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    assert_eq!(keys(&said), keys(&of_file));

    // The command is too short for counts to give an answer.
    let (said, runs) = advised(&[], |log| format!("echo run >>{log}"));
    assert_eq!((&said["findings"]["is_counted"], runs), (&serde_json::Value::Bool(false), 2), "{said}");
}

/// Tests that `--times` makes several recordings without `--apply`. The counted run precedes the first
/// recording, and an unrecorded run precedes each later recording.
#[test]
fn several_recordings_are_made_without_a_setting_to_try() {
    let Some(_guard) = may_record() else { return };
    let before = fs::read_to_string(FRACTION).unwrap();
    let (said, runs) = advised(&["--times", "2"], |log| format!("echo run >>{log}"));
    assert_eq!((&said["findings"]["is_counted"], runs), (&serde_json::Value::Bool(false), 4), "{said}");
    assert_eq!(said["tried"], serde_json::Value::Null);
    assert_eq!(fs::read_to_string(FRACTION).unwrap(), before);
}

#[test]
fn evidence_takes_events_at_once() {
    let Some(_guard) = may_record() else { return };
    let (said, runs) = advised(&["--evidence"], some_seconds);
    assert_eq!((&said["findings"]["is_counted"], runs), (&serde_json::Value::Bool(false), 1), "{said}");
}

#[test]
fn nothing_is_tried_after_a_counted_no() {
    let Some(_guard) = may_record() else { return };
    let before = fs::read_to_string(FRACTION).unwrap();
    let (said, runs) = advised(&["--apply", "--yes", "--times", "3"], some_seconds);
    assert_eq!(fs::read_to_string(FRACTION).unwrap(), before);
    // If the counts do not say No, the command runs six times: three recordings, each after a run that is not
    // recorded. The counted run is the run before the first recording.
    let all = if said["findings"]["is_counted"] == true { 1 } else { 6 };
    assert_eq!(runs, all, "{said}");
    assert_eq!(said["tried"][0], "Nothing was tried: no setting is advised.", "{said}");
}

#[test]
#[ignore = "needs root, tracefs and setpriv(1)"]
fn where_counting_is_refused_events_are_recorded_and_a_note_says_so() {
    let _guard = machine();
    // Take rights away from root instead of using another user, because another user cannot read the files of
    // tracefs.
    let output = Command::new("setpriv")
        .args(["--bounding-set=-perfmon,-sys_admin", env!("CARGO_BIN_EXE_pageset")])
        .args(["advise", "--for", "600ms", "-f", "json"])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    let said: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(said["findings"]["is_counted"], false);
    let notes = said["warnings"].to_string();
    assert!(notes.contains("since counting was refused: the kernel does not count"), "{notes}");
}
