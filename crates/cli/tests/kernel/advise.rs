//! `pageset advise` on the machine that the test runs on. What needs root or tracefs is skipped aloud without them.

use std::fs;
use std::process::{Command, Output};
use std::sync::MutexGuard;

const FRACTION: &str = "/proc/sys/vm/percpu_pagelist_high_fraction";
/// A load that allocates and frees.
const LOAD: &str =
    "for i in 1 2 3 4 5 6 7 8; do head -c 40000000 /dev/zero | tail -c 1 > /dev/null; done; sleep 0.5";

fn pageset(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_pageset")).args(arguments).output().expect("the command runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Whether this machine lets a recording begin, and a setting be changed; says why if not.
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
    assert!(said["findings"]["allocated_pages"].as_u64().unwrap() > 1000, "{said}");
    let changes = said["against"]["changes"].as_array().unwrap();
    assert_eq!(changes.len(), 5);
    assert!(text(&output.stderr).contains("puts it back"));
}

#[test]
fn a_setting_is_put_back_after_an_interrupt() {
    let Some(_guard) = may_record() else { return };
    let before = fs::read_to_string(FRACTION).unwrap();
    let trace = concat!(env!("CARGO_MANIFEST_DIR"), "/../../data/traces/k618_2c_hackbench_sock.pgtrace");
    let mut child = Command::new(env!("CARGO_BIN_EXE_pageset"))
        .args(["advise", trace, "--for", "1m", "--apply", "vm.percpu_pagelist_high_fraction=777", "--yes"])
        .spawn()
        .unwrap();
    while fs::read_to_string(FRACTION).unwrap().trim() != "777" {
        assert!(child.try_wait().unwrap().is_none(), "it ended before it changed the setting");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let killed = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(killed.success());
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
    assert!(text(&output.stderr).contains("say --apply"), "{}", text(&output.stderr));
}
