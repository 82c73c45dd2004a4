//! Tests that wrong times of events, and a clock that was set, do not stretch a recording.

use std::process::Command;

use serde_json::Value;

/// Returns text of ftrace with 20 000 events, ten in each millisecond. For each event, `time_s` gets the
/// number of the event and the event's regular time in seconds, and returns the time to write.
fn lines(time_s: impl Fn(u32, f64) -> f64) -> String {
    let mut text = String::from("# tracer: nop\n#\n");
    for number in 0..20_000 {
        let (pfn, at_s) = (4096 + number / 2, 7200.0 + f64::from(number) / 10_000.0);
        let at_s = time_s(number, at_s);
        let event = if number % 2 == 0 {
            format!("mm_page_alloc: page=0x{pfn:x} pfn=0x{pfn:x} order=0 migratetype=1 gfp_flags=GFP_KERNEL")
        } else {
            format!("mm_page_free: page=0x{pfn:x} pfn=0x{pfn:x} order=0")
        };
        text += &format!("            bash-901     [000] .....  {at_s:.6}: {event}\n");
    }
    text
}

/// Returns the recording's length as each subcommand prints it, and the warnings of `stat`.
fn seconds(text: &str) -> ([f64; 3], String) {
    let directory = tempfile::tempdir().expect("a directory can be made");
    let path = directory.path().join("moved.txt");
    std::fs::write(&path, text).expect("a file can be written");
    let machine = directory.path().join("machine.toml");
    let described = pageset_trace::open(&bundled()).expect("it is bundled").info().machine.clone();
    std::fs::write(&machine, described.expect("it has a machine").to_toml().expect("it is valid"))
        .expect("a file can be written");
    let json = |arguments: &[&str]| -> Value {
        let mut command = Command::new(env!("CARGO_BIN_EXE_pageset"));
        let layout = if arguments[0] != "replay" { &[][..] } else { &["--layout"] };
        command.args(arguments).arg(&path).args(["--format", "json"]).args(layout);
        if !layout.is_empty() {
            command.arg(&machine);
        }
        let output = command.output().expect("pageset can be started");
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice(&output.stdout).expect("JSON")
    };
    let (stat, replay) = (json(&["stat"]), json(&["replay", "-p", "linux-6.12"]));
    let advise = json(&["advise"]);
    let all = [&stat["trace"]["seconds"], &replay["trace"]["seconds"], &advise["findings"]["seconds"]];
    (all.map(|value| value.as_f64().expect("a length")), stat["warnings"].to_string())
}

fn bundled() -> std::path::PathBuf {
    concat!(env!("CARGO_MANIFEST_DIR"), "/../../data/traces/k61_2c_tcp.pgtrace").into()
}

#[test]
fn an_event_an_hour_back_and_one_an_hour_ahead_stretch_nothing() {
    let two_seconds = |text: &str| {
        let (all, warnings) = seconds(text);
        assert!(all.iter().all(|seconds| (1.9..2.1).contains(seconds)), "{all:?} {warnings}");
        warnings
    };
    let warnings = two_seconds(&lines(|_, at_s| at_s));
    assert!(!warnings.contains("clock"), "{warnings}");
    let warnings = two_seconds(&lines(|number, at_s| match number {
        5_000 => at_s - 3600.0,
        15_000 => at_s + 3600.0,
        _ => at_s,
    }));
    assert!(warnings.contains("2 events have times up to 3599.") && warnings.contains("clock"), "{warnings}");
    // The clock is set an hour back in the middle, and stays there.
    let warnings = two_seconds(&lines(|number, at_s| if number < 12_000 { at_s } else { at_s - 3600.0 }));
    assert!(warnings.contains("8000 events have times up to"), "{warnings}");
}
