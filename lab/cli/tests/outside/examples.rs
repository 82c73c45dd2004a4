//! Runs the examples of the help texts. The files that the examples name are small recordings. The usual
//! tests leave out examples that need root or minutes, and `cargo xtask ci night` runs most of these left-out
//! examples.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

#[path = "../../src/example_lines.rs"]
mod example_lines;

use example_lines::{command_lines, pageset_parts};

/// Beginnings of examples that take too long for this test: they simulate large machines, play long
/// recordings under every policy, or measure this machine.
const MINUTES: [&str; 12] = [
    "pageset replay --layout big.toml",
    "pageset convert my.pgtrace big.toml --to layout; $EDITOR big.toml",
    "pageset replay --series=batch",
    "pageset verify data/traces/*.pgtrace",
    "pageset reproduce",
    "pageset simulate -m sapphire-rapids",
    "pageset simulate -w af-unix",
    "pageset simulate -m epyc-768",
    "pageset bench",
    "pageset simulate --machine here.toml",
    "zcat trace.txt.gz | pageset replay",
    "pageset replay --sweep",
];

/// Beginnings of examples that the usual tests cannot run. Most examples of `ENDLESS` need root, or wait for
/// Ctrl-C, for a cluster, or for an event that may never happen.
const ENDLESS: [&str; 7] = [
    "pageset top",
    "sudo pageset top",
    "pageset sweep plan.toml --on",
    "sudo pageset record",
    "sudo pageset advise --for 5m",
    "sudo pageset advise --apply",
    "perf script",
];

/// Examples of `ENDLESS` that root can run in seconds.
const ROOT: [&str; 3] =
    ["sudo pageset record -- ", "sudo pageset record --for 10s", "sudo pageset top --once"];

/// Examples of `reproduce` that take longer than a night. `cargo xtask ci night` does not run these examples:
/// see the guide to `reproduce`.
const HOURS: [&str; 2] = ["pageset reproduce batch-size", "pageset reproduce high-order-pcp"];

fn starts_with_any(line: &str, beginnings: &[&str]) -> bool {
    beginnings.iter().any(|beginning| match beginning.strip_suffix('$') {
        Some(whole) => line == whole,
        None => line.starts_with(beginning),
    })
}

fn help(command: &[String]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_pageset")).args(command).arg("--help").output();
    String::from_utf8(output.expect("pageset can be started").stdout).expect("help is text")
}

/// Names of the subcommands in a help text. The list ends with `help`, which is left out.
fn subcommands(help: &str) -> Vec<String> {
    // `pageset --help` lists its subcommands in groups. Other help texts list subcommands below one heading,
    // with `help` as the last one.
    let is_list = |paragraph: &&str| paragraph.contains("\n  help ");
    let listed = match help.split("\n\n").find(is_list) {
        Some(list) => list,
        None => help.split_once("\nUsage: pageset <COMMAND>\n").map_or("", |(_, rest)| rest),
    };
    let listed = listed.split("\nOptions:").next().unwrap_or_default();
    let lines = listed.lines().filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    let names = lines.filter_map(|line| line.split_whitespace().next());
    names.filter(|name| *name != "help").map(str::to_owned).collect()
}

/// Collects the examples in the help of a command and of its subcommands.
fn examples_below(command: &[String], top: &[String], found: &mut Vec<String>) {
    let help = help(command);
    for line in command_lines(&help, top) {
        if !found.contains(&line) {
            found.push(line);
        }
    }
    for name in subcommands(&help) {
        examples_below(&[command, &[name]].concat(), top, found);
    }
}

fn examples() -> Vec<String> {
    let mut found = Vec::new();
    examples_below(&[], &subcommands(&help(&[])), &mut found);
    assert!(found.len() > 60, "{} examples were found", found.len());
    found
}

/// Whether a transcript contains the line. Another test runs the transcripts.
fn is_in_a_transcript(line: &str) -> bool {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let pages = fs::read_dir(root.join("tests/cmd")).expect("transcripts are there");
    let pages = pages.map(|entry| entry.expect("a transcript").path()).chain([root.join("../../README.md")]);
    let typed = format!("$ {line}");
    pages.into_iter().any(|page| {
        fs::read_to_string(&page).expect("a page is text").lines().any(|found| found.trim_end() == typed)
    })
}

/// Makes the files that the examples name: a reader's recordings, texts and plans, all small.
fn prepare(directory: &Path) {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../data");
    let traces = data.join("traces");
    for (name, copy) in [
        ("k61_2c_tcp.pgtrace", "my.pgtrace"),
        ("k61_2c_tcp.pgtrace", "k61_2c_tcp.pgtrace"),
        ("k612_2c_tcp.pgtrace", "k612_2c_tcp.pgtrace"),
        ("k61_2c_tcp.pgtrace", "before.pgtrace"),
        ("k612_2c_tcp.pgtrace", "after.pgtrace"),
    ] {
        fs::copy(traces.join(name), directory.join(copy)).expect("a recording can be copied");
    }
    let formats = data.join("formats");
    for (name, copy) in [
        ("trace-cmd-7.dat", "trace.dat"),
        ("ftrace-old.txt", "trace.txt"),
        ("field/zoneinfo-2.6.txt", "zoneinfo.txt"),
        ("field/zoneinfo-64k.txt", "arm.txt"),
        ("field/zoneinfo-2node.txt", "two.txt"),
    ] {
        fs::copy(formats.join(name), directory.join(copy)).expect("a file can be copied");
    }
    for name in ["my-study.toml", "my-study.csv", "my-study.md"] {
        fs::copy(data.join("../studies").join(name), directory.join(name)).expect("a file can be copied");
    }
    fs::copy(data.join("policies/half-drain.toml"), directory.join("mine.toml"))
        .expect("a file can be copied");
    std::os::unix::fs::symlink(&data, directory.join("data")).expect("a link can be made");
    for name in [".local/share/bash-completion/completions", ".zfunc", ".config/fish/completions"] {
        fs::create_dir_all(directory.join(name)).expect("a directory can be made");
    }
}

/// Runs a shell line as a reader would, in a new directory. If the line needs a layout or a machine that an
/// earlier example makes, the layout or the machine is made first.
#[track_caller]
fn run(line: &str) {
    let directory = tempfile::tempdir().expect("a directory can be made");
    let here = directory.path();
    prepare(here);
    let command = Path::new(env!("CARGO_BIN_EXE_pageset")).parent().expect("it is in a directory");
    let path = std::env::var("PATH").unwrap_or_default();
    // Replace programs of other projects by functions of the shell, so that these programs need not be
    // installed.
    let others = "sudo() { \"$@\"; }; jq() { cat; }; zcat() { cat trace.txt; }";
    // Remove the file that the line makes, because `pageset` does not replace files without --force.
    let is_made = line.contains("convert") && line.ends_with(" my.pgtrace") || line.contains("-o my.pgtrace");
    let free = if is_made { "rm my.pgtrace; " } else { "" };
    let shell = format!("{others}; {free}{line}");
    let made = if line.contains("big.toml") && !line.contains("--to layout") {
        "pageset convert my.pgtrace big.toml --to layout && "
    } else if line.contains("--machine here.toml") {
        // Measuring this machine takes a minute, so another machine stands for it.
        "cp data/../machines/one-socket-2010.toml here.toml && "
    } else {
        ""
    };
    let output = Command::new("bash")
        .args(["-c", &format!("set -e -o pipefail; {made}{shell}")])
        .env("PATH", format!("{}:{path}", command.display()))
        .env("HOME", here)
        .env("EDITOR", "true")
        .current_dir(here)
        .stdin(Stdio::null())
        .output()
        .expect("bash can be started");
    assert!(output.status.success(), "`{line}`: {}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn examples_on_bundled_input_run() {
    let all = examples();
    let is_left = |line: &&String| {
        starts_with_any(line, &MINUTES) || starts_with_any(line, &ENDLESS) || line.starts_with("sudo")
    };
    let here: Vec<_> = all.iter().filter(|line| !is_left(line) && !is_in_a_transcript(line)).collect();
    assert!(here.len() > 15, "{here:?}");
    here.iter().for_each(|line| run(line));
}

/// Tests that each beginning in the lists of exceptions fits an example of a help text. If no example fits,
/// an example may have been lost.
#[test]
fn every_exception_is_an_example() {
    let all = examples();
    for beginning in MINUTES.iter().chain(&ENDLESS).chain(&ROOT).chain(&HOURS) {
        assert!(
            all.iter().any(|line| starts_with_any(line, &[beginning])),
            "no example begins with `{beginning}`"
        );
    }
    let two = "pageset stat a; pageset stat b";
    assert_eq!(pageset_parts(two).count(), 2, "lines of two commands are found");
}

#[test]
#[ignore = "needs minutes of CPU time: cargo xtask ci night examples"]
fn examples_that_take_minutes() {
    let lines = examples().into_iter().filter(|line| starts_with_any(line, &MINUTES));
    lines.filter(|line| !starts_with_any(line, &HOURS)).for_each(|line| run(&line));
}

#[test]
#[ignore = "needs root, and records the running kernel: cargo xtask ci night examples-root"]
fn examples_for_root() {
    examples().iter().filter(|line| starts_with_any(line, &ROOT)).for_each(|line| run(line));
}
