//! Tests that a sweep gives the same rows with one job, with several jobs, and after an interruption.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

const PLAN: &str = r#"
title = "Two policies with two batches"
[[grid]]
machine = "epyc-2"
workload = ["page_fault1", "malloc1"]
policy = "linux-4.19"
batch = [31, 63]
warmup_ms = 1
duration_ms = 2
[[question]]
title = "Where do CPUs wait?"
file = "waiting"
x = "batch"
y = ["zone_lock_percent", "score_per_s"]
panel = "workload"
"#;

fn pageset(directory: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pageset"));
    command.args(arguments).current_dir(directory).output().expect("pageset can be started")
}

#[track_caller]
fn rows(directory: &Path, arguments: &[&str]) -> Value {
    let output = pageset(directory, &[arguments, &["--format", "json"]].concat());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON is printed");
    document["rows"].clone()
}

fn sorted_lines(path: &Path) -> Vec<String> {
    let text = fs::read_to_string(path).expect("the rows are there");
    let mut lines: Vec<_> = text.lines().map(str::to_owned).collect();
    lines.sort();
    lines
}

#[test]
fn rows_do_not_depend_on_jobs_or_interruptions() {
    let directory = tempfile::tempdir().expect("a directory can be made");
    let here = directory.path();
    fs::write(here.join("plan.toml"), PLAN).expect("the plan can be written");
    let whole = rows(here, &["sweep", "plan.toml", "--jobs", "1"]);
    assert_eq!(whole.as_array().map(Vec::len), Some(4));
    let finished = sorted_lines(&here.join("plan.rows.jsonl"));

    let parallel = rows(here, &["sweep", "plan.toml", "--jobs", "4", "--rows", "parallel.jsonl"]);
    assert_eq!(parallel, whole);
    assert_eq!(sorted_lines(&here.join("parallel.jsonl")), finished, "digests and all");

    // Cut the file in the middle of the third row, as if the sweep had been killed.
    let text = fs::read_to_string(here.join("plan.rows.jsonl")).expect("the rows are there");
    let third = text.lines().take(2).map(|line| line.len() + 1).sum::<usize>() + 10;
    fs::write(here.join("plan.rows.jsonl"), &text[..third]).expect("the rows can be cut");
    assert_eq!(rows(here, &["sweep", "plan.toml", "--svg", "plots"]), whole);
    assert_eq!(sorted_lines(&here.join("plan.rows.jsonl")), finished);
    assert!(here.join("plots/waiting.svg").is_file());

    // Four runs have many figures each, so the page has a column for each run instead of a row. If the
    // browser shows dark pages, the figures of the page get other colours.
    assert_eq!(rows(here, &["sweep", "plan.toml", "--html", "plan.html"]), whole);
    let page = fs::read_to_string(here.join("plan.html")).expect("the page is there");
    let (table, after) = page
        .split_once("<table class=\"transposed\">")
        .expect("a turned table")
        .1
        .split_once("</table>")
        .expect("its end");
    assert!(table.contains("<th scope=\"row\">workload</th><td class=\"name\">page_fault1</td>"), "{table}");
    assert_eq!(table.split("</tr>").next().map(|row| row.matches("<td").count()), Some(4), "{table}");
    assert!(after.contains("CSV, every digit"), "the CSV stands below it");
    assert!(
        page.contains("figure class=\"plot\"")
            && page.contains("(prefers-color-scheme:dark){figure.plot svg{filter:")
    );
}

/// Tests that each question gives a figure, and a table below the runs. CSV and JSON contain only the runs.
#[test]
fn a_question_is_answered_by_a_table() {
    let directory = tempfile::tempdir().expect("a directory can be made");
    let here = directory.path();
    fs::write(here.join("plan.toml"), PLAN).expect("the plan can be written");
    let printed = |format: &str| {
        let output = pageset(here, &["sweep", "plan.toml", "--format", format]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        // Markdown has a backslash before each underscore.
        String::from_utf8(output.stdout).expect("a result is text").replace("\\_", "_")
    };
    for format in ["table", "markdown"] {
        let text = printed(format);
        let (runs, answer) = text.split_once("Where do CPUs wait?").expect("the question is there");
        assert!(runs.contains("Two policies with two batches"), "{text}");
        // The table names the result `score_per_s` once for each of the two workloads and two batches.
        assert_eq!(answer.matches("score_per_s").count(), 2 * 2, "{text}");
    }
    assert!(!printed("csv").contains("Where do CPUs wait?") && !printed("json").contains("Where do CPUs"));
}

#[test]
fn mistakes_name_file_and_key() {
    let directory = tempfile::tempdir().expect("a directory can be made");
    for (from, to, message) in [
        ("batch =", "batsh =", "plan.toml: this is not a plan of a sweep: TOML parse error at line 7"),
        ("\"linux-4.19\"", "\"linux-1.0\"", "unknown policy `linux-1.0`"),
        ("\"epyc-2\"", "\"pdp-11\"", "`pdp-11` is not a file"),
    ] {
        fs::write(directory.path().join("plan.toml"), PLAN.replace(from, to))
            .expect("the plan can be written");
        let output = pageset(directory.path(), &["sweep", "plan.toml"]);
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && error.contains(message), "{error}");
    }
}

#[test]
fn the_plan_of_the_help_text_runs() {
    let directory = tempfile::tempdir().expect("a directory can be made");
    let help = pageset(directory.path(), &["sweep", "--help"]);
    let help = String::from_utf8(help.stdout).expect("help is text");
    let plan = help.split_once("The plan:\n").expect("help shows a plan").1;
    let plan: String = plan
        .lines()
        .take_while(|line| !line.trim_start().starts_with('`'))
        .map(|line| format!("{line}\n"))
        .collect();
    fs::write(directory.path().join("plan.toml"), &plan).expect("the plan can be written");
    let rows = rows(directory.path(), &["sweep", "plan.toml", "--svg", "plots"]);
    assert_eq!(rows.as_array().map(Vec::len), Some(2 * 3 * 2));
    assert!(directory.path().join("plots/batch.svg").is_file());
}

#[test]
fn a_plan_that_cannot_run_leaves_no_file_and_runs_nothing() {
    let directory = tempfile::tempdir().expect("a directory can be made");
    let rows_file = directory.path().join("plan.rows.jsonl");
    for (keys, message) in [
        ("set = { think_ns = 0 }", "the workload has no parameter `think_ns`; choose from: "),
        ("cpus = 4096", "the workload cannot use 4096"),
    ] {
        // The first grid is valid, and the second grid is not.
        let bad = format!(
            "{PLAN}[[grid]]\nmachine = \"epyc-2\"\nworkload = \"page_fault1\"\npolicy = \"linux-4.19\"\nbatch = 63\n\
             {keys}\n"
        );
        fs::write(directory.path().join("plan.toml"), &bad).expect("the plan can be written");
        let output = pageset(directory.path(), &["sweep", "plan.toml"]);
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && error.contains(message), "{error}");
        assert!(!rows_file.exists(), "{keys}");
    }
    let bad = PLAN.replace("x = \"batch\"", "x = \"bach\"");
    fs::write(directory.path().join("plan.toml"), bad).expect("the plan can be written");
    let output = pageset(directory.path(), &["sweep", "plan.toml"]);
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(error.contains("plan.toml: question `Where do CPUs wait?`: a run has no key `bach`"), "{error}");
    assert!(!rows_file.exists(), "the questions are checked before the runs");
}

/// Tests that finished rows are computed again if the recording has changed since.
#[test]
fn a_row_of_another_recording_is_not_used_again() {
    let directory = tempfile::tempdir().expect("a directory can be made");
    let traces = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../data/traces");
    let copy = |name: &str| {
        fs::copy(traces.join(name), directory.path().join("t.pgtrace")).expect("a trace is there")
    };
    let plan = "title = \"t\"\n[[grid]]\nmachine = \"epyc-2\"\nworkload = \"trace:t.pgtrace\"\npolicy = \"linux-6.12\"\n\
                warmup_ms = 1\nduration_ms = 5\n";
    fs::write(directory.path().join("plan.toml"), plan).expect("the plan can be written");
    let rows = || -> Value {
        let output = Command::new(env!("CARGO_BIN_EXE_pageset"))
            .args(["sweep", "plan.toml", "--format", "json"])
            .current_dir(directory.path())
            .output()
            .expect("pageset can be started");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let document: Value = serde_json::from_slice(&output.stdout).expect("JSON is printed");
        document["rows"].clone()
    };
    copy("k61_2c_tcp.pgtrace");
    let first = rows();
    assert_eq!(rows(), first);
    copy("k612_2c_tcp.pgtrace");
    assert_ne!(rows(), first);
    let lines = fs::read_to_string(directory.path().join("plan.rows.jsonl")).expect("the rows are there");
    assert_eq!(lines.lines().count(), 2);
}

#[cfg(not(feature = "arrow"))]
#[test]
fn a_build_without_columns_says_where_to_get_them() {
    let directory = tempfile::tempdir().expect("a directory can be made");
    fs::write(directory.path().join("plan.toml"), PLAN).expect("the plan can be written");
    for arguments in [
        ["sweep", "plan.toml", "--format", "parquet", "-o", "rows"].as_slice(),
        &["replay", "--format", "arrow", "-o", "rows"],
        &["sweep", "plan.toml", "--on", "processes"],
    ] {
        let refused = pageset(directory.path(), arguments);
        assert_eq!(refused.status.code(), Some(1), "{arguments:?}");
        let error = String::from_utf8_lossy(&refused.stderr);
        assert!(error.contains("--features arrow") && error.contains("pip install pageset"), "{error}");
    }
    assert_eq!(fs::read_dir(directory.path()).expect("it is there").count(), 1, "nothing was begun");
}
