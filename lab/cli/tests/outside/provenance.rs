//! Tests that every result names the command that repeats it. The tests run printed commands in a shell, and
//! compare the results.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

const TRACES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../data/traces");
const TEXT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../data/formats/ftrace-old.txt");

/// Runs a line in a shell that finds our `pageset` first.
#[track_caller]
fn typed(directory: &Path, line: &str) -> Value {
    let program = Path::new(env!("CARGO_BIN_EXE_pageset")).parent().expect("it is in a directory");
    let path = std::env::var("PATH").unwrap_or_default();
    let output = Command::new("sh")
        .args(["-c", line])
        .env("PATH", format!("{}:{path}", program.display()))
        .current_dir(directory)
        .output()
        .expect("a shell can be started");
    assert!(output.status.success(), "{line}\n{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{line}: {error}"))
}

/// The first provenance in a document, at any place.
fn provenance(document: &Value) -> Option<&Value> {
    match document {
        Value::Object(fields) => {
            let here = fields.get("provenance").filter(|found| found.is_object());
            here.or_else(|| fields.values().find_map(provenance))
        }
        Value::Array(values) => values.iter().find_map(provenance),
        _ => None,
    }
}

#[track_caller]
fn command(document: &Value) -> String {
    let provenance = provenance(document).expect("a result says where it comes from");
    provenance["command"].as_str().expect("it names a command").to_owned()
}

fn directory() -> tempfile::TempDir {
    let directory = tempfile::tempdir().expect("a directory can be made");
    let here = directory.path();
    fs::copy(Path::new(TRACES).join("k61_2c_tcp.pgtrace"), here.join("my trace's.pgtrace"))
        .expect("a trace is there");
    fs::copy(TEXT, here.join("old.txt")).expect("a trace is there");
    let damaged = fs::read(Path::new(TRACES).join("k612_2c_pf1x1.pgtrace")).expect("a trace is there");
    fs::write(here.join("damaged.pgtrace"), &damaged[..120_000]).expect("a file can be written");
    let plan = "title = \"t\"\n[[grid]]\nmachine = \"epyc-2\"\nworkload = \"malloc1\"\npolicy = \"linux-6.12\"\n\
                batch = [31, 63]\nwarmup_ms = 1\nduration_ms = 2\n";
    fs::write(here.join("a plan.toml"), plan).expect("the plan can be written");
    directory
}

#[test]
fn a_printed_command_gives_the_same_result_again() {
    let directory = directory();
    let here = directory.path();
    let exe = Path::new(env!("CARGO_BIN_EXE_pageset"));
    let machine = Command::new(exe)
        .args(["convert", "old.txt", "machine.toml", "--to", "layout"])
        .current_dir(here)
        .status();
    assert!(machine.is_ok_and(|status| status.success()));
    let trace = r#""my trace's.pgtrace""#;
    for line in [
        format!("pageset replay {trace} -p linux-6.1,linux-6.6 -p linux-6.12 --cpus 4"),
        format!("pageset replay {trace} --sweep batch=31,63 high=186"),
        "pageset replay old.txt --series=batch --lenient --layout machine.toml".to_owned(),
        "pageset replay damaged.pgtrace --recover -p linux-6.12".to_owned(),
        format!("pageset replay {trace} -p linux-6.12 --set vm.percpu_pagelist_high_fraction=64"),
        format!("pageset verify {trace} -p linux-6.1 --mode free --explain 1"),
        format!("pageset verify {trace} --set vm.percpu_pagelist_high_fraction=64"),
        format!("pageset verify {trace} --against {trace}"),
        "pageset verify damaged.pgtrace --recover --lenient".to_owned(),
        format!("pageset verify --layout machine.toml {trace}"),
        format!("pageset stat {trace}"),
        "pageset stat damaged.pgtrace --recover".to_owned(),
        "pageset simulate -w malloc1 -p linux-6.12 --set fault_ns=500 --warmup-ms 1 --duration-ms 2 --seed 7 --check -j 1"
            .to_owned(),
        "pageset sweep 'a plan.toml' --jobs 1 --rows one.jsonl".to_owned(),
        "pageset sweep 'a plan.toml' --rows one.jsonl --svg plots".to_owned(),
        "pageset bench faults --machine epyc-2 --gib 0.01 --threads 2 --lines 2 --strategy P1,V1,R1 P2,V1,R1 --rss-line own".to_owned(),
    ] {
        let first = typed(here, &format!("{line} --format json"));
        let again = typed(here, &format!("{} --format json", command(&first)));
        assert_eq!(first, again, "{line}");
    }
}

/// Tests commands that measure. Measured values differ from run to run, so only the printed commands are
/// compared.
#[test]
fn a_printed_command_of_a_measurement_can_be_typed_again() {
    let directory = directory();
    for line in [
        "pageset bench faults --gib 0.01 --threads 1 --repetitions 1 --lines 3 --regions one_region_sliced --zero skip --peer clear --magazine 0 --strategy P2,V7,R3",
        "pageset bench pages --choose",
    ] {
        let first = command(&typed(directory.path(), &format!("{line} --format json")));
        assert_eq!(command(&typed(directory.path(), &format!("{first} --format json"))), first);
    }
}

#[test]
fn csv_has_a_header_and_rows_only() {
    let directory = directory();
    let verify = |more: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_pageset"));
        let arguments = [&["verify", "my trace's.pgtrace", "--format", "csv"], more].concat();
        command.args(arguments).current_dir(directory.path()).output().expect("pageset can be started")
    };
    let output = verify(&[]);
    assert_eq!(String::from_utf8_lossy(&output.stdout).lines().count(), 2);
    let refused = verify(&["--explain", "1"]);
    assert_eq!((refused.status.code(), refused.stdout.as_slice()), (Some(2), &b""[..]));
    let error = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(error.contains("CSV has no place for the events of --explain: choose another format"), "{error}");
}
