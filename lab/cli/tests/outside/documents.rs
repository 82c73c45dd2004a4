//! Tests that JSON results have the keys that programs rely on, and that numbers are not strings.

use std::collections::BTreeSet;
use std::process::Command;

use serde_json::Value;

/// Runs the command at the root of the repository and returns what it prints.
fn pageset(arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_pageset"))
        .args(arguments)
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
        .output()
        .expect("pageset can be started");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("pageset prints UTF-8")
}

fn json(arguments: &[&str]) -> Value {
    serde_json::from_str(&pageset(arguments)).expect("pageset prints JSON")
}

const TRACE: &str = "data/traces/k61_2c_tcp.pgtrace";
const TWO: &str = "linux-6.1,linux-6.12";

/// Keys of the counts in a row of `replay`.
const COUNTS: [&str; 11] = [
    "allocs",
    "frees",
    "pcp_hits",
    "refills",
    "refilled_pages",
    "drains",
    "drained_pages",
    "free_high_drains",
    "zone_lock_acquisitions",
    "pcp_pages_peak",
    "pcp_pages_end",
];

#[test]
fn replay_has_a_trace_and_a_row_for_each_policy() {
    let document = json(&["replay", TRACE, "--policy", TWO, "--format", "json"]);
    let trace = &document["trace"];
    assert_eq!(trace["events"], 19509);
    assert_eq!((&trace["cpus"], &trace["kernel"]), (&2.into(), &"6.1.0-56-amd64".into()));
    assert!(trace["seconds"].as_f64().is_some_and(|seconds| seconds > 1.0));
    assert!(trace["lost"].is_object() && trace["unreplayed"].is_object() && trace["machine"].is_object());
    assert_eq!(document["window"]["share"], 1.0);
    assert_eq!(trace["kernel_itself"]["refills"], 24);
    assert!(trace["unseen"]["unmatched_frees"].is_u64());
    let rows = document["rows"].as_array().expect("rows are a list");
    let is_recorded = |row: &serde_json::Value| row["is_recorded_kernel"].as_bool();
    assert_eq!(rows.iter().map(is_recorded).collect::<Vec<_>>(), [Some(true), Some(false)]);
    assert_eq!(rows.iter().map(|row| &row["policy"]).collect::<Vec<_>>(), ["linux-6.1", "linux-6.12"]);
    for row in rows {
        for key in COUNTS.iter().chain(&["direct_pages", "pcp_pages_idle"]) {
            assert!(row[key].is_u64(), "{key} is {}", row[key]);
        }
        for key in ["zone_lock_acquisitions", "refilled_pages", "drained_pages"] {
            let interval = row["interval"][key].as_array().expect("an interval has two ends");
            let ends: Vec<u64> = interval.iter().filter_map(serde_json::Value::as_u64).collect();
            let value = row[key].as_u64().expect("a count");
            assert!(
                matches!(ends[..], [low, high] if low <= value && value <= high),
                "{key}: {ends:?}, {value}"
            );
        }
        assert!(row["hit_percent"].is_f64() && row["pages_per_acquisition"].is_f64());
    }
}

#[test]
fn a_recording_on_allocators_has_a_row_for_each_allocator_and_ours_are_last() {
    let document = json(&["simulate", "--recording", TRACE, "--policy", TWO, "--format", "json"]);
    let trace = &document["trace"];
    assert_eq!((&trace["cpus"], &trace["events"]), (&2.into(), &17548.into()));
    assert!(document["left_out"]["unmatched_frees"].is_u64() && document["notes"].is_array());
    let rows = document["rows"].as_array().expect("rows are a list");
    let names: Vec<_> = rows.iter().map(|row| row["entrant"].as_str().expect("a name")).collect();
    assert_eq!(names, ["linux-6.1", "linux-6.12", "owned-blocks", "owned-blocks-straight"]);
    for row in rows {
        let count = |key: &str| row[key].as_u64().unwrap_or_else(|| panic!("{key} is {}", row[key]));
        assert_eq!(count("visits"), count("shared_visits") + count("contended_lines"));
        assert!(count("contended_lines") <= count("line_transfers"));
        assert!(row["held_mean"].is_f64() && row["at_hand_mean"].is_f64());
        assert_eq!((count("allocs"), count("failures")), (8832, 0));
        assert!(count("whole_when_gone") >= count("whole_at_end"));
    }
}

#[test]
fn stat_has_every_section() {
    let document = json(&["stat", TRACE, "--format", "json"]);
    for section in
        ["trace", "events", "orders", "cpus", "lifetimes", "bursts", "kernel", "zones", "provenance"]
    {
        assert!(!document[section].is_null(), "{section}");
    }
    let cpus = &document["cpus"];
    let matrix = cpus["matrix"].as_array().expect("the matrix is a list");
    let blocks: u64 = matrix.iter().filter_map(|pair| pair["blocks"].as_u64()).sum();
    assert_eq!(Some(blocks), document["lifetimes"]["ns"]["count"].as_u64());
    assert!(cpus["remote_percent"].is_f64());
}

#[test]
fn policies_tell_all_their_rules() {
    let document = json(&["policies", "--format", "json"]);
    let policies = document.as_array().expect("policies are a list");
    let one = json(&["policies", "linux-6.12", "--format", "json"]);
    assert!(policies.contains(&one));
    assert!(one["rules"].as_array().is_some_and(|rules| rules.len() > 15));
}

#[test]
fn csv_and_json_have_the_same_numbers() {
    let csv = pageset(&["replay", TRACE, "--policy", TWO, "--format", "csv"]);
    let mut lines = csv.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let keys = lines.next().expect("there is a header");
    let document = json(&["replay", TRACE, "--policy", TWO, "--format", "json"]);
    for (line, row) in lines.zip(document["rows"].as_array().expect("rows are a list")) {
        for (key, value) in keys.iter().zip(line).filter(|(key, _)| COUNTS.contains(key)) {
            assert_eq!(row[key].to_string(), value, "{key}");
        }
    }
}

#[test]
fn two_runs_print_the_same_bytes() {
    for arguments in [["replay", TRACE, "--policy", TWO].as_slice(), &["stat", TRACE]] {
        assert_eq!(pageset(arguments), pageset(arguments));
    }
}

#[test]
fn tables_are_ascii_within_80_columns() {
    for arguments in [
        ["replay", TRACE].as_slice(),
        &["simulate", "--recording", TRACE],
        &["simulate", "--help"],
        &["stat", TRACE],
        &["stat", "data/traces/k612_4c_2node_numa_tcp.pgtrace"],
        &["policies"],
        &["policies", "linux-6.18"],
        &["replay", "--help"],
        &["stat", "--help"],
        &["top", "--help"],
        &["--help"],
    ] {
        for line in pageset(arguments).lines() {
            assert!(line.is_ascii() && line.len() <= 80, "{arguments:?}: {line}");
        }
    }
}

#[test]
fn simulate_has_a_row_for_each_policy_and_repeats() {
    let run = || {
        let policies = "linux-4.9,linux-4.9-highorder-v5";
        let short = ["--warmup-ms", "5", "--duration-ms", "10"];
        let arguments = ["simulate", "--workload", "af-unix", "--policy", policies, "--format", "json"];
        json(&[&arguments[..], &short].concat())
    };
    let document = run();
    assert_eq!(document, run());
    assert_eq!(document["provenance"]["seeds"], serde_json::json!({ "first": 1, "count": 1 }));
    let rows = document["rows"].as_array().expect("rows are a list");
    assert_eq!(rows.len(), 2);
    for row in rows {
        for key in ["free_high", "alloc_zone", "pcp_pages_peak", "pcp_pages_idle"] {
            assert!(row[key].is_u64(), "{key} is {}", row[key]);
        }
        for key in ["score_per_s", "zone_lock_percent", "lru_lock_percent", "alloc_p999_ns"] {
            assert!(row[key].is_f64(), "{key} is {}", row[key]);
        }
        assert_eq!(row["digest"].as_str().map(str::len), Some(16));
    }
    // Only the second policy's page sets hold blocks of high orders, so only the refills of the second policy
    // fetch such blocks.
    let pages = |row: usize| rows[row]["alloc_zone"].as_u64().expect("a count");
    assert!(pages(1) > 2 * pages(0));
}

#[test]
fn simulate_lists_machines_workloads_and_parameters() {
    let document = json(&["simulate", "--list", "--format", "json"]);
    let has = |table: &str, key: &str, name: &str| {
        let rows = document[table]["rows"].as_array().expect("rows are a list");
        rows.iter().any(|row| row[key] == name)
    };
    assert!(has("machines", "machine", "skylake-ex"));
    assert!(has("workloads", "workload", "kbuild"));
    assert!(has("parameters", "parameter", "fault_ns"));
}

/// Tests that the book's page on `verify` has the figure that `verify` prints for all bundled recordings.
#[test]
fn verify_says_how_often_a_refill_is_not_certain() {
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/../../data/traces");
    let files = std::fs::read_dir(directory).expect("there are bundled recordings");
    let mut traces: Vec<String> = files
        .map(|entry| entry.expect("a file").path().display().to_string())
        .filter(|path| path.ends_with(".pgtrace"))
        .collect();
    traces.sort();
    let arguments: Vec<_> = ["verify"].into_iter().chain(traces.iter().map(String::as_str)).collect();
    let printed = pageset(&arguments);
    let joined = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let begin = "percpu_refill would be wrong for ";
    let printed = joined(&printed);
    let (_, figure) = printed.split_once(begin).expect("a note on refills");
    let (figure, _) = figure.split_once('.').expect("a sentence");
    let book = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/book/src/guide/verify.md");
    let book = joined(&std::fs::read_to_string(book).expect("the book's page"));
    assert!(book.contains(&format!("{begin}{figure}")), "the book does not say: {begin}{figure}");
}

/// Tests that the output of `pageset replay` without arguments fits on a screen.
#[test]
fn a_replay_of_the_bundled_recording_fits_24_lines() {
    let printed = pageset(&["replay"]);
    assert!(printed.lines().count() <= 24, "{printed}");
    assert!(printed.lines().all(|line| line.len() <= 80), "{printed}");
    assert!(printed.contains("\nlinux-6.18 ") && printed.contains("\nlinux-5.14 "), "{printed}");
    assert!(!printed.contains("linux-4.9") && !printed.contains("commit"), "{printed}");
}

/// The names of a Python class's fields.
fn fields(file: &str, class: &str) -> BTreeSet<String> {
    let path = format!("{}/../../pool/python/pageset/{file}", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(path).expect("the repository has the Python package");
    let (_, body) = text.split_once(&format!("\nclass {class}:\n")).expect("the class is there");
    let body = body.lines().take_while(|line| line.is_empty() || line.starts_with("    "));
    let fields = body.filter_map(|line| line.strip_prefix("    ")?.split_once(": "));
    let is_name = |name: &str| {
        name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_' || byte.is_ascii_digit())
    };
    fields.map(|(name, _)| name.to_owned()).filter(|name| is_name(name)).collect()
}

/// The Python package makes its results from JSON. If a Python class has no field for a key of the JSON, the
/// package raises an error.
#[test]
fn python_has_every_key() {
    let keys =
        |row: &Value| row.as_object().expect("a row has keys").keys().cloned().collect::<BTreeSet<_>>();
    let advice = json(&["advise", TRACE, "--format", "json"]);
    assert_eq!(fields("advice.py", "Forecast"), keys(&advice["forecasts"][0]));
    let replay = json(&["replay", TRACE, "--policy", TWO, "--format", "json"]);
    let mut row = keys(&replay["rows"][0]);
    // The JSON also has the three keys of the following loop. The Python class has no fields for these keys,
    // because the class computes the values of these keys from other fields.
    for computed in ["visits", "hit_percent", "pages_per_acquisition"] {
        assert!(row.remove(computed), "{computed}");
    }
    assert_eq!(fields("forecast.py", "Outcome"), row);
}
