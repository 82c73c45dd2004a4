//! Describes the machine that a result was made on.

use std::fs;

/// Returns the names of the processor and the kernel, and the number of CPUs.
pub(crate) fn description() -> String {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let cpus = read("/proc/cpuinfo");
    let model = cpus.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    let model = model.map_or("unknown processor", |(_, model)| model);
    let count = std::thread::available_parallelism().map_or(0, usize::from);
    format!("{model}, {count} CPUs, Linux {}", read("/proc/sys/kernel/osrelease").trim())
}
