//! Tests that the numbers on the page of `pageset report` equal those of `pageset stat`.

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

/// Returns the values that an HTML page contains as JSON.
fn data(html: &str) -> Value {
    let begin = "id=\"data\">";
    let from = html.find(begin).expect("the page has its values") + begin.len();
    let end = from + html[from..].find("</script>").expect("they end");
    serde_json::from_str(&html[from..end]).expect("the values are JSON")
}

/// Returns the value of the key `kind` in each part of the page that has this key.
fn parts<'p>(page: &'p Value, kind: &'p str) -> impl Iterator<Item = &'p Value> + 'p {
    let sections = page["sections"].as_array().expect("sections").iter();
    let parts = sections.flat_map(|section| section["parts"].as_array().expect("parts"));
    parts.filter_map(move |part| part.get(kind))
}

/// The sum over all cells of one layer of the heat map.
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
    let mut tables = parts(&page, "table").chain(parts(&page, "transposed"));
    let table = tables.find(|table| table["title"] == "Recordings").expect("a table of recordings");
    assert_eq!(table["rows"].as_array().expect("rows").len(), 3);
}

#[test]
fn two_recordings_lead_with_their_difference() {
    let html =
        pageset(&["report", "data/pairs/k61_tmpfs_def_r1.pgtrace", "data/pairs/k61_tmpfs_f64_r1.pgtrace"]);
    let page = data(&html);
    let first = &page["sections"][0];
    assert_eq!(first["heading"], "Comparison");
    let lead = first["parts"][0]["lead"].as_str().expect("it begins with a sentence");
    assert!(lead.starts_with("From k61_tmpfs_def_r1.pgtrace to k61_tmpfs_f64_r1.pgtrace: "), "{lead}");
    assert!(lead.contains('%') || lead.contains("from 0"), "{lead}");
    let texts: Vec<_> = parts(&page, "text").filter_map(Value::as_str).collect();
    let setting = "A setting differs: vm.percpu_pagelist_high_fraction was 0, then 64.";
    assert!(texts.contains(&setting), "{texts:#?}");
    // The bars of held pages come either from samples of both recordings or from replays of both.
    let titles: Vec<_> = parts(&page, "bars")
        .flat_map(|bars| bars.as_array().expect("a list"))
        .filter_map(|bars| bars["title"].as_str())
        .filter(|title| title.starts_with("Held in page sets at most, as "))
        .collect();
    assert_eq!(titles.len(), 1, "{titles:?}");
    assert!(parts(&page, "transposed").any(|table| table["title"] == "Recordings"), "it is turned");
}

#[test]
fn a_page_says_its_settings_explains_its_terms_and_folds_what_is_quiet() {
    let html = pageset(&["report", "data/traces/k618_2c_hackbench_sock.pgtrace"]);
    let page = data(&html);
    let settings = parts(&page, "facts")
        .flat_map(|facts| facts.as_array().expect("a list"))
        .find(|fact| fact[0] == "Settings when it began")
        .expect("settings");
    let settings = settings[1].as_str().expect("a text");
    assert!(settings.contains("vm.percpu_pagelist_high_fraction="), "{settings}");
    assert!(html.contains("<abbr title="), "terms explain themselves");
    assert!(html.contains("Drag to enlarge"), "it is announced");
    let zone = |kind| {
        let charts = parts(&page, kind).filter_map(|chart| chart["title"].as_str());
        charts.filter(|title| title.ends_with(": free pages and watermarks")).count()
    };
    assert!(
        zone("folded_chart") >= 1 && zone("chart") >= 1,
        "{} and {}",
        zone("folded_chart"),
        zone("chart")
    );
}
