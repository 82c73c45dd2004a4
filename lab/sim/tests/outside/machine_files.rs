//! Tests that a bad machine file causes an error that names the mistake, and never a panic.

use pageset_sim::{MACHINES, Machine};
use proptest::prelude::*;

fn text() -> &'static str {
    MACHINES.iter().find(|machine| machine.name == "westmere-ep").expect("it is bundled").text()
}

#[track_caller]
fn refused(from: &str, to: &str, expected: &str) {
    assert!(text().contains(from), "{from}");
    let error = Machine::parse(&text().replace(from, to), "some.toml").unwrap_err().to_string();
    assert!(error.starts_with("machine file some.toml: "), "{error}");
    assert!(error.contains(expected), "{error}");
}

#[test]
fn errors_name_file_key_and_remedy() {
    refused("sockets = 2", "sockets = 0", "topology.sockets: 0 is out of range; use 1 to 256");
    refused("cores_per_node = 6", "cores_per_node = 4000000000", "use 1 to 8192");
    refused("threads_per_core = 2", "threads_per_core = 2\ncores_per_cache = 4", "does not divide");
    refused("mib_per_node = 8192", "mib_per_node = 0", "memory.mib_per_node: 0");
    refused("mib_per_node = 8192", "mib_per_node = 99999999999", "memory.mib_per_node");
    refused("l3_kib = 12288", "l3_kib = 4294967295", "caches.l3_kib");
    refused("zone_lines = 4", "zone_lines = 65", "costs.zone_lines: 65 is out of range; use 0 to 64");
    refused("free = { ns = 55.0", "free = { ns = -1.0", "costs.free: -1 ns is out of range");
    refused("free = { ns = 55.0", "free = { ns = nan", "costs.free: NaN ns is out of range");
    refused(
        "read_gb_per_s = 20.5",
        "read_gb_per_s = 0",
        "costs.memory_bandwidth: 0 GB/s is out of range; use 0.001",
    );
    refused("zone_lines = 4", "frame_layout = \"lines\"\nzone_lines = 4", "unknown variant `lines`");
    refused("factor = 1.6", "factor = 0.5", "costs.sibling_slowdown");
    refused("[10, 20],\n", "", "need 2 rows of 2 numbers");
    refused("\n[costs]", "\n[costs]\nfre = 1", "unknown field `fre`");
    refused("name = \"westmere-ep\"", "", "missing field `name`");
    let planes = |count, ns| {
        format!(
            "\n[planes]\ncount = {count}\nbrick_nodes = 1\nline = {{ ns = {ns}, source = \"x\" }}\n\n[costs]"
        )
    };
    refused("\n[costs]", &planes("0", "1.0"), "planes.count: 0 is out of range; use 1 to 256");
    refused("\n[costs]", &planes("2", "-1.0"), "planes.line: -1 ns is out of range");
    refused("distance = 20\n", "distance = 300\n", "line");
}

#[test]
fn a_cost_needs_a_source() {
    let text = text()
        .replace("take_block = { ns = 17.1, source = \"", "take_block = { ns = 17.1, source = \"\" } #");
    let error = Machine::parse(&text, "some.toml").unwrap_err().to_string();
    assert!(error.contains("costs.take_block: source is empty; write where the number is from"), "{error}");
}

proptest! {
    /// Makes a mistake in a file: a line is missing, occurs twice, or has another number.
    #[test]
    fn no_file_is_a_panic(line in 0_usize..80, change in 0..3, number in any::<i64>()) {
        let lines: Vec<_> = text().lines().collect();
        let mut changed = lines.clone();
        let line = line % lines.len();
        let other = lines[line].split(" = ").next().map(|key| format!("{key} = {number}")).unwrap_or_default();
        match change {
            0 => drop(changed.remove(line)),
            1 => changed.insert(line, lines[line]),
            _ => changed[line] = &other,
        }
        if let Err(error) = Machine::parse(&changed.join("\n"), "some.toml") {
            prop_assert!(error.to_string().contains("some.toml"));
        }
    }

    #[test]
    fn no_text_is_a_panic(text in "\\PC{0,200}") {
        let _ = Machine::parse(&text, "some.toml");
    }
}
