//! Rows of sweeps are kept by a hash of the sources that compute them: nothing that computes may be missing there.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

#[path = "../src/sweep/fnv.rs"]
mod fnv;
#[path = "../build/sources.rs"]
mod sources;

/// Crates of the workspace that show results and compute none.
const SHOWING: [&str; 2] = ["cli", "report"];

#[test]
fn every_crate_that_computes_is_in_the_key_of_rows() {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let arguments =
        ["tree", "--offline", "--package", "pageset-cli", "--edges", "normal", "--prefix", "none"];
    let output = Command::new(cargo)
        .args(arguments)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo can be started");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let tree = String::from_utf8(output.stdout).expect("cargo prints UTF-8");
    let mut crates: Vec<_> =
        tree.lines().filter_map(|line| line.strip_prefix("pageset-")?.split(' ').next()).collect();
    crates.sort_unstable();
    crates.dedup();
    crates.retain(|name| !SHOWING.contains(name));
    assert_eq!(crates, sources::COMPUTING);
}

#[test]
fn the_build_has_the_fingerprint_of_the_sources_that_are_there() {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let now = sources::fingerprint(package, &sources::computing(package)).expect("the sources can be read");
    assert_eq!(env!("PAGESET_SOURCES"), now, "the build script has not run again after an edit");
    assert!(sources::all(package).len() > sources::computing(package).len());
}

/// A tree like this one, of one file for each directory.
fn tree(root: &Path) -> std::path::PathBuf {
    let package = root.join("crates/cli");
    let crates = sources::COMPUTING
        .iter()
        .flat_map(|name| [format!("../{name}/src/lib.rs"), format!("../{name}/Cargo.toml")]);
    let also = ["src/simulate/spec.rs", "src/simulate.rs", "../../machines/m.toml", "../../Cargo.lock"];
    for file in crates.chain(also.map(str::to_owned)) {
        // No `..` in between: not all of the directories exist yet.
        let path = package.join(&file);
        let path = match file.strip_prefix("../../") {
            Some(below) => root.join(below),
            None => file.strip_prefix("../").map_or(path, |below| root.join("crates").join(below)),
        };
        fs::create_dir_all(path.parent().expect("it has a directory")).expect("a directory can be made");
        fs::write(path, "1").expect("a file can be written");
    }
    package
}

#[test]
fn an_edit_of_any_source_changes_the_fingerprint() {
    let directory = tempfile::tempdir().expect("a directory can be made");
    let package = tree(directory.path());
    let fingerprint =
        || sources::fingerprint(&package, &sources::computing(&package)).expect("the sources can be read");
    let before = fingerprint();
    assert_eq!(fingerprint(), before);
    for edited in [
        "crates/sim/src/lib.rs",
        "crates/core/src/lib.rs",
        "crates/cli/src/simulate/spec.rs",
        "machines/m.toml",
        "Cargo.lock",
    ] {
        let path = directory.path().join(edited);
        fs::write(&path, "2").expect("a file can be written");
        assert_ne!(fingerprint(), before, "{edited}");
        fs::write(&path, "1").expect("a file can be written");
        assert_eq!(fingerprint(), before);
    }
    fs::rename(directory.path().join("machines/m.toml"), directory.path().join("machines/n.toml"))
        .expect("a file can be renamed");
    assert_ne!(fingerprint(), before);
}

/// Rows of another simulator, and of another recording, are computed again.
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
