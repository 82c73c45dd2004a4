//! Tests commands with many recordings of one load: the output has a line for each recording, even if other
//! recordings cannot be read.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;
use tempfile::TempDir;

fn run(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_pageset")).args(arguments).output().expect("pageset can be started")
}

fn trace(name: &str) -> String {
    format!("{}/../../data/traces/{name}.pgtrace", env!("CARGO_MANIFEST_DIR"))
}

/// A folder with two recordings and, if `has_broken`, a third one that is cut off.
fn folder(has_broken: bool) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for name in ["k612_2c_tcp", "k612_2c_sctp"] {
        fs::copy(trace(name), folder.path().join(name).with_extension("pgtrace")).unwrap();
    }
    if has_broken {
        let whole = fs::read(trace("k612_2c_tcp")).unwrap();
        fs::write(folder.path().join("a_cut.pgtrace"), &whole[..whole.len() / 2]).unwrap();
    }
    fs::write(folder.path().join("notes.txt"), "not a recording").unwrap();
    folder
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).expect("JSON")
}

const VERBS: [&[&str]; 3] = [&["stat"], &["advise"], &["replay", "-p", "linux-6.12,linux-6.18"]];

/// Tests that if one recording is cut off, the other recordings are still read.
#[test]
fn a_broken_recording_has_its_line_and_the_exit_status_says_so() {
    let folder = folder(true);
    let path = folder.path().to_str().unwrap();
    for verb in VERBS {
        let output = run(&[verb, &[path, "--format", "json"]].concat());
        assert_eq!(output.status.code(), Some(1), "{verb:?}");
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(error.contains("1 of 3 recordings could not be read"), "{error}");
        let document = json(&output);
        let files: Vec<&str> = document["recordings"]
            .as_array()
            .unwrap()
            .iter()
            .map(|of| of["file"].as_str().unwrap())
            .collect();
        let names = ["a_cut.pgtrace", "k612_2c_sctp.pgtrace", "k612_2c_tcp.pgtrace"];
        assert_eq!(files, names.map(|name| format!("{path}/{name}")));
        let of = |at: usize| &document["recordings"][at];
        assert!(of(0)["result"].is_null() && of(0)["error"].as_str().unwrap().contains("truncated"));
        assert!(of(1)["error"].is_null() && of(2)["error"].is_null());
        assert_eq!(
            (&document["summary"]["recordings"], &document["summary"]["unread"]),
            (&3.into(), &1.into())
        );
        let output = run(&[verb, &[path]].concat());
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert_eq!(output.status.code(), Some(1), "{verb:?}");
        for line in ["Not read: a_cut: ", "\nk612_2c_tcp ", "\nk612_2c_sctp "] {
            assert!(text.contains(line), "{verb:?}: {line} in {text}");
        }
    }
}

/// Tests that a recording has the same result in a fleet as alone, except for the provenance.
#[test]
fn a_recording_of_a_fleet_says_what_it_says_alone() {
    let folder = folder(false);
    let alone = folder.path().join("k612_2c_tcp.pgtrace");
    for verb in VERBS {
        let fleet = run(&[verb, &[folder.path().to_str().unwrap(), "--format", "json"]].concat());
        assert!(fleet.status.success(), "{verb:?}: {}", String::from_utf8_lossy(&fleet.stderr));
        let mut of_fleet = json(&fleet)["recordings"][1]["result"].clone();
        let mut of_one = json(&run(&[verb, &[alone.to_str().unwrap(), "--format", "json"]].concat()));
        for document in [&mut of_fleet, &mut of_one] {
            document.as_object_mut().unwrap().remove("provenance").expect("it says where it comes from");
        }
        assert_eq!(of_fleet, of_one, "{verb:?}");
    }
}

/// Tests that the CSV rows of a fleet's replay are the rows of its recordings, one recording after the other.
/// Each row begins with the recording's name.
#[test]
fn a_fleets_rows_are_those_of_its_recordings() {
    let folder = folder(true);
    let csv = |path: &Path| {
        let output =
            run(&["replay", "-p", "linux-6.12,linux-6.18", path.to_str().unwrap(), "--format", "csv"]);
        let text = String::from_utf8(output.stdout).unwrap();
        // The columns after the counts are the provenance. Remove the columns of the provenance, because a
        // fleet's rows have another command line than a recording's own rows.
        let text = text.replace(",\"pageset replay", "\n#");
        text.lines().filter(|line| !line.starts_with('#')).skip(1).map(str::to_owned).collect::<Vec<_>>()
    };
    let of = |name: &str| {
        let rows = csv(&folder.path().join(name).with_extension("pgtrace"));
        rows.into_iter().map(|row| format!("{name},{row},")).collect::<Vec<_>>()
    };
    let rows = csv(folder.path());
    assert!(rows[0].starts_with("a_cut,,,") && rows[0].contains("truncated"), "{}", rows[0]);
    assert_eq!(rows[1..], [of("k612_2c_sctp"), of("k612_2c_tcp")].concat());
}

#[test]
fn what_a_fleet_cannot_be_is_refused() {
    let (one, other) = (trace("k612_2c_tcp"), trace("k612_2c_sctp"));
    for (arguments, problem) in [
        (vec!["stat", &*one, "-"], "the standard input is one recording"),
        (vec!["advise", &one, &other, "--apply"], "--apply tries the advice of one recording"),
        (vec!["advise", "tar", "cf", "x"], "'pageset advise -- tar ...'"),
    ] {
        let output = run(&arguments);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {said}");
        assert!(said.contains(problem), "{arguments:?}: {said}");
    }
    let empty = tempfile::tempdir().unwrap();
    let output = run(&["stat", empty.path().to_str().unwrap()]);
    assert!(String::from_utf8_lossy(&output.stderr).contains("no file in this folder ends in .pgtrace"));
}

#[cfg(feature = "arrow")]
#[test]
fn a_fleet_is_written_as_arrow_and_one_recording_is_not() {
    let folder = folder(true);
    let path = folder.path().to_str().unwrap();
    let file = folder.path().join("rows.arrow");
    for verb in ["stat", "advise"] {
        let written = run(&[verb, path, "--format", "arrow", "--force", "-o", file.to_str().unwrap()]);
        assert_eq!(written.status.code(), Some(1), "expected status 1, because one recording is cut off");
        let bytes = fs::read(&file).unwrap();
        assert!(bytes.starts_with(b"ARROW1"));
        for name in ["a_cut", "k612_2c_sctp", "k612_2c_tcp"] {
            assert!(bytes.windows(name.len()).any(|window| window == name.as_bytes()), "{verb}: {name}");
        }
        let one = run(&[verb, &trace("k612_2c_tcp"), "--format", "arrow", "-o", "unused"]);
        let said = String::from_utf8_lossy(&one.stderr).into_owned();
        assert!(said.contains("name a folder or several recordings"), "{said}");
    }
}
