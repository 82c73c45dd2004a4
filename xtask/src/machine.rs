//! The machine that a result is of.

use std::fs;

/// The processor, how many CPUs of it, and the kernel.
pub(crate) fn description() -> String {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let cpus = read("/proc/cpuinfo");
    let model = cpus.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    let model = model.map_or("unknown processor", |(_, model)| model);
    let count = std::thread::available_parallelism().map_or(0, usize::from);
    format!("{model}, {count} CPUs, Linux {}", read("/proc/sys/kernel/osrelease").trim())
}
