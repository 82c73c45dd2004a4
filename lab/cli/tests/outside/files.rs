//! Tests how the command handles files and pipes.

use std::fs;
use std::io::Read as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

const TRACE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../data/traces/k61_2c_tcp.pgtrace");
const THREE_BLOCKS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../data/traces/k612_2c_pf1x1.pgtrace");
const TEXT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../data/formats/ftrace-old.txt");

fn pageset(directory: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pageset"));
    command.args(arguments).current_dir(directory).output().expect("pageset can be started")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn a_reader_that_has_seen_enough_is_no_error() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_pageset"))
        .args(["stat", TRACE, "--format", "csv"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("pageset can be started");
    drop(child.stdout.take());
    let mut complaint = String::new();
    child.stderr.take().expect("stderr is piped").read_to_string(&mut complaint).expect("stderr is UTF-8");
    assert!(child.wait().expect("pageset ends").success(), "{complaint}");
    assert_eq!(complaint, "");
}

#[test]
fn an_output_file_has_what_would_have_been_printed() {
    let directory = tempfile::tempdir().expect("a directory can be made");
    let printed = pageset(directory.path(), &["replay", TRACE, "-p", "linux-6.1", "-f", "json"]);
    let silent =
        pageset(directory.path(), &["replay", TRACE, "-p", "linux-6.1", "-f", "json", "-o", "r.json"]);
    assert!(silent.status.success() && silent.stdout.is_empty() && silent.stderr.is_empty());
    assert_eq!(fs::read(directory.path().join("r.json")).expect("the file is there"), printed.stdout);
    assert_eq!(fs::read_dir(directory.path()).expect("a directory can be listed").count(), 1);
}

/// Tests that a result never replaces the recording that it was made from, even with `--force` and through a
/// symlink.
#[test]
fn an_output_never_replaces_an_input() {
    let directory = tempfile::tempdir().expect("a directory can be made");
    let input = directory.path().join("in.pgtrace");
    fs::copy(TRACE, &input).expect("the recording can be copied");
    std::os::unix::fs::symlink("in.pgtrace", directory.path().join("link.pgtrace"))
        .expect("a link can be made");
    for arguments in [
        &["stat", "in.pgtrace", "-o", "in.pgtrace", "--force"][..],
        &["stat", "in.pgtrace", "-o", "link.pgtrace", "--force"],
        &["advise", "in.pgtrace", "-o", "in.pgtrace", "--force"],
        &["report", "in.pgtrace", "-o", "in.pgtrace", "--force"],
        &["replay", "in.pgtrace", "-o", "in.pgtrace", "--force"],
        &["convert", "in.pgtrace", "link.pgtrace", "--force"],
        &["simulate", "-w", "trace:in.pgtrace", "-o", "in.pgtrace", "--force"],
        &["simulate", "--recording", "in.pgtrace", "-o", "in.pgtrace", "--force"],
    ] {
        let output = pageset(directory.path(), arguments);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}");
        assert!(text(&output.stderr).contains("is also an input"), "{arguments:?}: {}", text(&output.stderr));
    }
    assert_eq!(fs::read(&input).expect("it is there"), fs::read(TRACE).expect("it is bundled"));
    // With `--force`, a result replaces another result.
    for _ in 0..2 {
        let output = pageset(directory.path(), &["stat", "in.pgtrace", "-o", "out.txt", "--force"]);
        assert!(output.status.success(), "{}", text(&output.stderr));
    }
}

#[test]
fn a_full_standard_output_is_named() {
    for words in [&["stat", TRACE][..], &["--help"], &["--version"], &["help", "stat"], &["stat", "-h"]] {
        let full = fs::OpenOptions::new().write(true).open("/dev/full").expect("there is one");
        let mut command = Command::new(env!("CARGO_BIN_EXE_pageset"));
        let output = command.args(words).stdout(full).output().expect("pageset can be started");
        assert_eq!(output.status.code(), Some(1), "{words:?}");
        assert!(text(&output.stderr).contains("standard output"), "{words:?}: {}", text(&output.stderr));
    }
}

#[test]
fn a_converted_trace_has_the_same_contents() {
    let directory = tempfile::tempdir().expect("a directory can be made");
    let converted = pageset(directory.path(), &["convert", TEXT, "t.pgtrace"]);
    assert!(converted.status.success(), "{}", text(&converted.stderr));
    assert!(text(&converted.stdout).starts_with("t.pgtrace: 19 events, "), "{}", text(&converted.stdout));
    let events = |trace: &str| {
        let output = pageset(directory.path(), &["stat", trace, "--format", "json"]);
        let document: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON is printed");
        (document["events"].clone(), document["orders"].clone())
    };
    assert_eq!(events(TEXT), events("t.pgtrace"));
}

#[test]
fn a_conversion_replaces_nothing_unless_told() {
    let directory = tempfile::tempdir().expect("a directory can be made");
    let target = directory.path().join("t.pgtrace");
    fs::write(&target, "precious").expect("a file can be written");
    let refused = pageset(directory.path(), &["convert", TEXT, "t.pgtrace"]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(text(&refused.stderr).contains("--force"), "{}", text(&refused.stderr));
    assert_eq!(fs::read(&target).expect("the file is there"), b"precious");
    assert!(pageset(directory.path(), &["convert", TEXT, "t.pgtrace", "--force"]).status.success());
    assert!(fs::read(&target).expect("the file is there").len() > 100);
}

#[test]
fn an_export_replaces_nothing_unless_told_and_one_that_fails_leaves_nothing() {
    let directory = tempfile::tempdir().expect("a directory can be made");
    let target = directory.path().join("t.pftrace");
    fs::write(&target, "precious").expect("a file can be written");
    let export = ["convert", TRACE, "t.pftrace", "--to", "perfetto"];
    let refused = pageset(directory.path(), &export);
    assert_eq!(refused.status.code(), Some(1));
    assert!(text(&refused.stderr).contains("--force"), "{}", text(&refused.stderr));
    let whole = fs::read(THREE_BLOCKS).expect("the trace is there");
    fs::write(directory.path().join("cut"), &whole[..120_000]).expect("a file can be written");
    let failed = pageset(directory.path(), &["convert", "cut", "t.pftrace", "--to", "perfetto", "--force"]);
    assert_eq!(failed.status.code(), Some(1));
    assert!(text(&failed.stderr).contains("--recover"), "{}", text(&failed.stderr));
    assert_eq!(fs::read(&target).expect("the file is there"), b"precious");
    assert!(pageset(directory.path(), &[&export[..], &["--force"]].concat()).status.success());
    assert!(fs::read(&target).expect("the file is there").len() > 10_000);
    assert_eq!(fs::read_dir(directory.path()).expect("a directory can be listed").count(), 2);
}

#[test]
fn a_pipe_is_exported_but_not_replayed() {
    let directory = tempfile::tempdir().expect("a directory can be made");
    let export = |arguments: &[&str]| {
        Command::new(env!("CARGO_BIN_EXE_pageset"))
            .args(["convert", "-", "t.pftrace", "--to", "perfetto"])
            .args(arguments)
            .current_dir(directory.path())
            .stdin(fs::File::open(TRACE).expect("the trace is there"))
            .output()
            .expect("pageset can be started")
    };
    let refused = export(&["-p", "linux-6.12"]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(
        text(&refused.stderr).contains("save the recording to a file first"),
        "{}",
        text(&refused.stderr)
    );
    assert!(export(&[]).status.success());
}

#[test]
fn no_result_takes_the_place_of_a_file_unless_told() {
    let directory = tempfile::tempdir().expect("a directory can be made");
    let precious = directory.path().join("precious");
    let plan = "title = \"t\"\n[[grid]]\nmachine = \"epyc-2\"\nworkload = \"malloc1\"\npolicy = \"linux-6.12\"\n\
                warmup_ms = 1\nduration_ms = 2\n[[question]]\ntitle = \"Q\"\nfile = \"q\"\nx = \"policy\"\ny = \"score_per_s\"\n";
    fs::write(directory.path().join("plan.toml"), plan).expect("a file can be written");
    fs::write(directory.path().join("q.svg"), "precious").expect("a file can be written");
    fs::write(&precious, "precious").expect("a file can be written");
    for arguments in [
        ["stat", TRACE, "-o", "precious"].as_slice(),
        &["convert", TRACE, "precious", "--to", "layout"],
        &["simulate", "--list", "-o", "precious"],
        &["bench", "machine", "-o", "precious"],
        &["bench", "pages", "--quick", "--svg", "precious"],
        &["sweep", "plan.toml", "--rows", "precious"],
        &["sweep", "plan.toml", "--svg", "."],
        &["reproduce", "pcp-auto-tuning", "--fit", "precious"],
    ] {
        let refused = pageset(directory.path(), arguments);
        assert_eq!(refused.status.code(), Some(1), "{arguments:?}");
        assert!(
            text(&refused.stderr).contains("precious") || text(&refused.stderr).contains("q.svg"),
            "{arguments:?}"
        );
    }
    assert_eq!(fs::read(&precious).expect("the file is there"), b"precious");
    assert_eq!(fs::read(directory.path().join("q.svg")).expect("the file is there"), b"precious");
    assert!(pageset(directory.path(), &["stat", TRACE, "-o", "precious", "--force"]).status.success());
    assert!(fs::read(&precious).expect("the file is there").len() > 100);
    assert!(pageset(directory.path(), &["sweep", "plan.toml", "--svg", ".", "--force"]).status.success());
    assert!(fs::read(directory.path().join("q.svg")).expect("the file is there").starts_with(b"<svg"));
}

#[test]
fn parameters_are_chosen_again_only_where_there_are_some() {
    let directory = tempfile::tempdir().expect("a directory can be made");
    for study in ["high-order-pcp", "huge-copy", "page-fault"] {
        let refused = pageset(directory.path(), &["reproduce", study, "--fit", "fitted.toml"]);
        assert_eq!(refused.status.code(), Some(2));
        let error = text(&refused.stderr);
        assert!(
            error.contains(&format!("{study} has no parameters to choose again: leave out --fit")),
            "{error}"
        );
    }
    assert_eq!(fs::read_dir(directory.path()).expect("a directory can be listed").count(), 0);
}

#[test]
fn a_failed_conversion_leaves_no_file() {
    let directory = tempfile::tempdir().expect("a directory can be made");
    let cut = |bytes: usize| {
        let whole = fs::read(THREE_BLOCKS).expect("the trace is there");
        fs::write(directory.path().join("damaged"), &whole[..bytes]).expect("a file can be written");
    };
    cut(120_000);
    let failed = pageset(directory.path(), &["convert", "damaged", "t.pgtrace"]);
    assert_eq!(failed.status.code(), Some(1));
    assert!(text(&failed.stderr).starts_with("error: damaged: byte "), "{}", text(&failed.stderr));
    assert!(!directory.path().join("t.pgtrace").exists());
    let rescued = pageset(directory.path(), &["convert", "damaged", "t.pgtrace", "--recover"]);
    assert!(rescued.status.success(), "{}", text(&rescued.stderr));
    cut(10_000);
    let lost = pageset(directory.path(), &["replay", "damaged", "--recover"]);
    assert_eq!(lost.status.code(), Some(1), "nothing before the damage: no table of zeros");
}

#[test]
fn a_trace_comes_through_a_pipe() {
    let directory = tempfile::tempdir().expect("a directory can be made");
    let machine = pageset(directory.path(), &["convert", TEXT, "machine.toml", "--to", "layout"]);
    assert!(machine.status.success(), "{}", text(&machine.stderr));
    let piped = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_pageset"));
        let input = fs::File::open(TEXT).expect("the trace is there");
        let mut cat =
            Command::new("cat").stdin(input).stdout(Stdio::piped()).spawn().expect("cat can be started");
        let pipe = cat.stdout.take().expect("stdout is piped");
        let output = command.args(arguments).current_dir(directory.path()).stdin(pipe).output();
        cat.wait().expect("cat ends");
        output.expect("pageset can be started")
    };
    let without = piped(&["replay", "-"]);
    assert_eq!(without.status.code(), Some(1));
    assert!(text(&without.stderr).contains("(give `--layout`)"), "{}", text(&without.stderr));
    let with = piped(&["replay", "-", "--layout", "machine.toml", "-p", "linux-6.12", "-f", "csv"]);
    assert!(with.status.success(), "{}", text(&with.stderr));
    assert!(text(&with.stdout).contains("\nlinux-6.12,"), "{}", text(&with.stdout));
}

#[test]
fn manual_pages_are_written_for_every_command() {
    let directory = tempfile::tempdir().expect("a directory can be made");
    assert!(pageset(directory.path(), &["man", "-o", "pages/man1"]).status.success());
    for page in ["pageset", "pageset-replay", "pageset-stat", "pageset-convert", "pageset-policies"] {
        let page = directory.path().join(format!("pages/man1/{page}.1"));
        assert!(fs::read_to_string(&page).is_ok_and(|page| page.contains(".SH")), "{}", page.display());
    }
    assert!(text(&pageset(directory.path(), &["man"]).stdout).contains(".TH pageset 1"));
}

#[test]
fn completions_know_the_policies() {
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let script = pageset(Path::new("."), &["completions", shell]);
        assert!(script.status.success() && !script.stdout.is_empty(), "{shell}");
        // PowerShell and Elvish scripts complete no values.
        let knows_values = ["bash", "zsh", "fish"].contains(&shell);
        assert_eq!(text(&script.stdout).contains("linux-6.7"), knows_values, "{shell}");
    }
}

/// Runs the command in a shell that first sets a limit.
fn pageset_under(limit: &str, directory: &Path, arguments: &[&str]) -> Output {
    let mut shell = Command::new("sh");
    shell.args(["-c", &format!("{limit}; exec \"$0\" \"$@\""), env!("CARGO_BIN_EXE_pageset")]);
    shell.args(arguments).current_dir(directory).output().expect("a shell can be started")
}

#[test]
fn fault_09_a_limit_of_file_sizes_is_an_error_like_a_full_disk() {
    let directory = tempfile::tempdir().expect("a directory can be made");
    for arguments in [
        &["convert", THREE_BLOCKS, "t.pgtrace"][..],
        &["convert", TRACE, "t.pftrace", "--to", "perfetto"],
        &["report", TRACE, "-o", "t.html"],
    ] {
        let output = pageset_under("ulimit -f 4", directory.path(), arguments);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: {:?}", output.status);
        let error = text(&output.stderr);
        assert!(
            error.starts_with("error: t.") && error.contains(": cannot write: File too large"),
            "{error}"
        );
        assert_eq!(fs::read_dir(directory.path()).expect("it can be listed").count(), 0, "{arguments:?}");
    }
}

#[test]
fn fault_14_descriptions_are_read_up_to_a_limit() {
    let directory = tempfile::tempdir().expect("a directory can be made");
    let hole = fs::File::create(directory.path().join("hole.toml")).expect("a file can be made");
    hole.set_len(8 << 30).expect("a file can have a hole");
    let cannot = |arguments: &[&str]| {
        // Limit the memory to far less than the file's size, so that a failing test does not exhaust the
        // machine's memory.
        let output = pageset_under("ulimit -v 2000000", directory.path(), arguments);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: {:?}", output.status);
        text(&output.stderr)
    };
    for name in ["hole.toml", "/dev/zero"] {
        for arguments in [
            &["simulate", "-m", name, "-w", "page_fault1"][..],
            &["sweep", name],
            &["reproduce", "pcp-auto-tuning", "--fit", name],
            &["bench", "faults", "--machine", name],
            &["bench", "machine", "--check", "-m", name],
            &["replay", TRACE, "--layout", name],
            &["verify", TRACE, "--layout", name],
            &["convert", TRACE, "t.pgtrace", "--layout", name],
        ] {
            let error = cannot(arguments);
            assert!(error.starts_with(&format!("error: {name}: is larger than ")), "{arguments:?}: {error}");
            assert!(error.contains(" MiB, the most that a description may have; "), "{arguments:?}: {error}");
        }
    }
    assert!(!directory.path().join("t.pgtrace").exists());
}

#[test]
fn fault_14_a_layout_from_a_pipe_is_told_apart_without_reading_it_again() {
    let directory = tempfile::tempdir().expect("a directory can be made");
    let machine = fs::File::open(concat!(env!("CARGO_MANIFEST_DIR"), "/../../machines/epyc-2.toml"));
    let mut cat = Command::new("cat")
        .stdin(machine.expect("the machine is there"))
        .stdout(Stdio::piped())
        .spawn()
        .expect("cat can be started");
    let output = Command::new(env!("CARGO_BIN_EXE_pageset"))
        .args(["replay", TRACE, "--layout", "/dev/stdin"])
        .current_dir(directory.path())
        .stdin(cat.stdout.take().expect("stdout is piped"))
        .output()
        .expect("pageset can be started");
    cat.wait().expect("cat ends");
    let error = text(&output.stderr);
    assert!(error.contains("/dev/stdin: this is a machine to simulate"), "{error}");
}
