//! `pageset report`: what its page shows is what `pageset stat` counts.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

fn pageset(arguments: &[&str]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pageset"));
    let output = command.current_dir(root()).args(arguments).output().expect("it can be run");
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

/// The values of a page.
fn data(html: &str) -> Value {
    let begin = "id=\"data\">";
    let from = html.find(begin).expect("the page has its values") + begin.len();
    let end = from + html[from..].find("</script>").expect("they end");
    serde_json::from_str(&html[from..end]).expect("the values are JSON")
}

/// All parts of a page that are of a kind.
fn parts<'p>(page: &'p Value, kind: &'p str) -> impl Iterator<Item = &'p Value> + 'p {
    let sections = page["sections"].as_array().expect("sections").iter();
    let parts = sections.flat_map(|section| section["parts"].as_array().expect("parts"));
    parts.filter_map(move |part| part.get(kind))
}

/// Sum of a layer of the heat map that has it.
fn total(page: &Value, layer: &str) -> u64 {
    let layers = parts(page, "chart").filter_map(|chart| chart["layers"].as_array()).flatten();
    let mut named = layers.filter(|found| found["name"] == layer);
    let rows = named.next().unwrap_or_else(|| panic!("a layer {layer}"))["cells"].as_array().expect("rows");
    rows.iter().flat_map(|row| row.as_array().expect("cells")).filter_map(Value::as_u64).sum()
}

#[test]
fn a_page_has_the_numbers_of_stat() {
    for trace in ["k612_4c_2node_numa_tcp", "k61_2c_tcp", "k618_2c_hackbench_sock"] {
        let trace = format!("data/traces/{trace}.pgtrace");
        let page = data(&pageset(&["report", &trace]));
        let stat: Value =
            serde_json::from_str(&pageset(&["stat", &trace, "--format", "json"])).expect("JSON");
        let kernel = &stat["kernel"];
        assert_eq!(total(&page, "refills"), kernel["refills"]["count"], "{trace}");
        assert_eq!(total(&page, "drains"), kernel["drains"]["count"], "{trace}");
        assert_eq!(total(&page, "waits for zone locks"), kernel["zone_lock_waits"]["wait_ns"], "{trace}");
        let cpus = &stat["cpus"];
        let matched = ["local_blocks", "remote_blocks"].map(|key| cpus[key].as_u64().expect("a count"));
        assert_eq!(total(&page, "blocks"), matched[0] + matched[1], "{trace}");
        let marks = parts(&page, "chart").filter_map(|chart| chart["marks"].as_array()).flatten();
        let refills = marks.filter(|marks| marks["name"] == "refills");
        let counts = refills.flat_map(|marks| marks["counts"].as_array().expect("counts"));
        let drawn: u64 = counts.filter_map(Value::as_u64).sum();
        assert_eq!(drawn, kernel["refills"]["count"], "{trace}: all CPUs have lines");
        let tables = parts(&page, "evidence").count();
        assert!(tables >= 8, "{trace}: {tables} tables");
    }
}

#[test]
fn of_several_recordings_the_one_that_differs_comes_first() {
    let traces = [
        "data/pairs/k61_tmpfs_def_r1.pgtrace",
        "data/pairs/k61_tmpfs_def_r2.pgtrace",
        "data/traces/k61_2c_tcp.pgtrace",
    ];
    let html = pageset(&[&["report"], &traces[..]].concat());
    let page = data(&html);
    let headings: Vec<_> =
        page["sections"].as_array().expect("sections").iter().map(|each| &each["heading"]).collect();
    assert_eq!(headings[0], "Comparison");
    assert_eq!(headings[1], "k61_2c_tcp.pgtrace: Verdict");
    let table =
        parts(&page, "table").find(|table| table["title"] == "Recordings").expect("a table of recordings");
    assert_eq!(table["rows"].as_array().expect("rows").len(), 3);
}
