//! Tests `pageset top` on the machine that runs the tests. Fields must exist and agree with each other, and
//! mistakes of users must give errors with a remedy. No test checks a time.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

fn top(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pageset"));
    command.arg("top").args(arguments).stdin(Stdio::null());
    command
}

fn output(arguments: &[&str]) -> Output {
    top(arguments).output().expect("pageset can be started")
}

#[track_caller]
fn refused(arguments: &[&str], status: i32, remedy: &str) {
    let output = output(arguments);
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(status), "{arguments:?}: {error}");
    assert!(error.contains(remedy), "{arguments:?}: {error}");
    assert!(output.stdout.is_empty(), "{arguments:?}");
}

/// A directory with the files `zoneinfo` and `vmstat` of a machine with 2 CPUs.
fn machine() -> tempfile::TempDir {
    let directory = tempfile::tempdir().expect("a directory can be made");
    let mut zoneinfo =
        "Node 0, zone Normal\n pages free 900\n min 10\n low 20\n high 30\n managed 1000\n".to_owned();
    for cpu in 0..2 {
        zoneinfo += &format!(" cpu: {cpu}\n count: {}\n high: 60\n batch: 7\n", 10 + cpu);
    }
    write(directory.path(), "zoneinfo", &zoneinfo);
    write(directory.path(), "vmstat", "pgalloc_normal 5\npgfree 4\n");
    directory
}

fn write(directory: &Path, name: &str, text: &str) {
    fs::write(directory.join(name), text).expect("a file can be written");
}

fn text(path: &tempfile::TempDir) -> &str {
    path.path().to_str().expect("the path is text")
}

#[test]
fn one_interval_of_this_machine_adds_up() {
    let output = output(&["--once", "--interval", "100ms", "--format", "json"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let document: Value = serde_json::from_slice(&output.stdout).expect("it prints JSON");
    let zoneinfo = fs::read_to_string("/proc/zoneinfo").expect("this is Linux");
    let managed: u64 = zoneinfo
        .lines()
        .filter_map(|line| line.trim().strip_prefix("managed"))
        .filter_map(|pages| pages.trim().parse::<u64>().ok())
        .sum();
    let zones = document["zones"].as_array().expect("zones are a list");
    let pages = |rows: &[Value], key: &str| rows.iter().map(|row| row[key].as_u64().expect(key)).sum::<u64>();
    assert_eq!(pages(zones, "managed_pages"), managed);
    let pagesets = document["pagesets"].as_array().expect("page sets are a list");
    let totals = &document["totals"];
    assert_eq!(Some(pages(pagesets, "count")), totals["pcp_pages"].as_u64());
    assert_eq!(Some(pages(zones, "free_pages")), totals["free_pages"].as_u64());
    assert_eq!(pagesets.len() as u64, zones.len() as u64 * totals["cpus"].as_u64().expect("CPUs"));
    for zone in zones {
        for key in ["refilled_pages_per_s", "drained_pages_per_s"] {
            let (least, most) = (&zone[key]["at_least"], &zone[key]["at_most"]);
            assert!(least.as_f64().expect("a rate") <= most.as_f64().expect("a rate"), "{zone}");
        }
    }
    let missing = document["missing"].as_array().expect("a list of sentences");
    for (key, sentence) in [("counted", "No exact rates"), ("zone_lock", "No waits for zone locks")] {
        let is_missing = missing.iter().filter_map(Value::as_str).any(|line| line.starts_with(sentence));
        assert_eq!(document[key].is_null(), is_missing, "{key}: {missing:?}");
    }
    assert!(document["provenance"]["command"].as_str().is_some_and(|line| line.contains("--once")));
}

#[test]
fn tables_have_no_more_than_80_columns() {
    let machine = machine();
    let output = output(&["--once", "--interval", "100ms", "--proc", text(&machine)]);
    let printed = String::from_utf8(output.stdout).expect("it prints UTF-8");
    assert!(printed.lines().all(|line| line.is_ascii() && line.len() <= 80), "{printed}");
    assert!(printed.contains("2 CPUs, 21 pages in page sets, 900 free"), "{printed}");
    assert!(printed.contains("is unknown: ") && printed.contains("No waits for zone locks"), "{printed}");
}

/// Tests that `top` prints neither a range that says nothing, such as `refilled 0 to 171870`, nor a column of
/// dashes.
#[test]
fn no_column_says_nothing() {
    let machine = machine();
    let output = output(&["--once", "--interval", "100ms", "--proc", text(&machine)]);
    let printed = String::from_utf8(output.stdout).expect("it prints UTF-8");
    for column in ["refilled at", "at least", "at most", "high_min", "high_max"] {
        assert!(!printed.contains(column), "{column}: {printed}");
    }
    assert!(printed.contains("change") && printed.contains("batch"), "{printed}");
}

#[test]
fn csv_has_a_row_for_each_page_set() {
    let machine = machine();
    let output = output(&["--once", "--interval", "100ms", "--proc", text(&machine), "--format", "csv"]);
    let printed = String::from_utf8(output.stdout).expect("it prints UTF-8");
    let mut lines = printed.lines();
    assert_eq!(lines.next(), Some("node,zone,cpu,count,change,high,high_min,high_max,batch,unchanged_s"));
    assert!(lines.next().is_some_and(|line| line.starts_with("0,Normal,0,10,0")), "{printed}");
    assert_eq!(lines.count(), 1);
}

#[test]
fn mistakes_are_answered_with_a_remedy() {
    let machine = machine();
    refused(&[], 1, "the standard output is not a terminal; use --once");
    refused(&["--format", "json"], 2, "add --once");
    refused(&["--format", "openmetrics"], 2, "add --once");
    refused(&["--interval", "1ms"], 2, "from 100ms to 60m");
    refused(
        &["--once", "--proc", "/nowhere"],
        1,
        "/nowhere/zoneinfo: there is no such file; pageset needs Linux",
    );
    write(machine.path(), "zoneinfo", "Node 0, zone Normal\n managed 1000\n");
    refused(&["--once", "--proc", text(&machine)], 1, "no zone has a page set");
    write(machine.path(), "zoneinfo", "hello");
    refused(&["--once", "--proc", text(&machine)], 1, "/proc/zoneinfo, line 1");
}

/// Tests that `pageset top` has no option for an HTTP server: a slow client could block a server.
#[test]
fn fault_17_nothing_listens_on_the_network() {
    for arguments in [["--listen", "127.0.0.1:0"], ["-l", "127.0.0.1:0"]] {
        refused(
            &[&arguments[..], &["--proc", "/nowhere"]].concat(),
            2,
            &format!("unexpected argument '{}'", arguments[0]),
        );
    }
    let help = String::from_utf8(output(&["--help"]).stdout).expect("it prints UTF-8");
    assert!(help.contains("--once") && !help.contains("listen"), "{help}");
}

#[test]
fn one_interval_is_written_for_collectors_of_metrics() {
    let machine = machine();
    let arguments = ["--once", "--interval", "100ms", "--format", "openmetrics", "--proc", text(&machine)];
    let printed = String::from_utf8(output(&arguments).stdout).expect("it prints UTF-8");
    assert!(
        printed.contains("\npageset_count_pages{node=\"0\",zone=\"Normal\",cpu=\"1\"} 11\n"),
        "{printed}"
    );
    assert!(printed.ends_with("# EOF\n"), "{printed}");
    // For files of another machine, waits are not measured, so there is no verdict. The output must name the
    // verdict unknown, and must not contain a figure of CPU time.
    assert!(printed.contains("\npageset_verdict{answer=\"unknown\"} 1\n"), "{printed}");
    assert!(!printed.contains("pageset_cpu_time_ratio"), "{printed}");
}

/// Tests the file of metrics. A collector, which runs as another user, may read the file at any moment.
#[test]
fn a_file_of_metrics_appears_whole_and_is_replaced_by_force_only() {
    let machine = machine();
    let directory = tempfile::tempdir().expect("a directory can be made");
    let file = directory.path().join("pageset.prom");
    let path = file.to_str().expect("the path is text");
    let proc = text(&machine);
    let arguments = ["--once", "--interval", "100ms", "--format", "openmetrics", "--proc", proc, "-o", path];
    assert!(output(&arguments).status.success());
    let first = fs::read_to_string(&file).expect("it is written");
    assert!(first.starts_with("# TYPE ") && first.ends_with("# EOF\n"), "{first}");
    refused(&arguments, 1, "exists already; choose another name, or replace it with --force");
    let opened = fs::File::open(&file).expect("it is there");
    assert!(output(&[&arguments[..], &["--force"]].concat()).status.success());
    // A reader that opened the file before the second interval still reads the old file, because the second
    // interval is in a new file of the same name.
    assert_eq!(std::io::read_to_string(opened).expect("it can be read"), first);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = fs::metadata(&file).expect("it is there").permissions().mode();
        assert_eq!(mode & 0o044, 0o044, "others may read it: {mode:o}");
    }
    let names = fs::read_dir(directory.path()).expect("it can be listed").count();
    assert_eq!(names, 1, "nothing else is left");
}

/// Tests that the metric names in the guide's rules for alerts exist. An alert for a metric that does not
/// exist would never be raised.
#[test]
fn rules_of_the_guide_ask_for_metrics_that_there_are() {
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    let read = |path: &str| fs::read_to_string(root.join(path)).expect("it is in the repository");
    let (guide, source) = (read("docs/book/src/guide/top.md"), read("lab/live/src/openmetrics.rs"));
    let mut asked: Vec<&str> = guide
        .match_indices("pageset_")
        .filter_map(|(at, _)| guide[at..].split_once('{').map(|(name, _)| name))
        .filter(|name| name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_'))
        .collect();
    asked.sort_unstable();
    asked.dedup();
    assert_eq!(asked, ["pageset_cpu_time_ratio", "pageset_verdict"]);
    for name in asked {
        assert!(source.contains(&format!("\"{name}\"")), "{name}");
    }
}
