//! The properties of the machine that influence the results.

use std::fs::read_to_string;

use serde::Serialize;

/// The properties of the machine.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Machine {
    /// Name of the processor.
    pub(crate) cpu: String,
    /// CPUs this process may use.
    pub(crate) cpus: usize,
    /// Memory in MiB.
    pub(crate) memory_mib: u64,
    /// Release of the kernel.
    pub(crate) kernel: String,
    /// Setting of transparent huge pages.
    pub(crate) transparent_hugepage: String,
    /// The C compiler that built the peers in C and C++.
    pub(crate) cc: &'static str,
    /// The Rust compiler.
    pub(crate) rustc: &'static str,
    /// Load average over a minute before the first measurement: other work on the machine.
    pub(crate) load: String,
}

impl Machine {
    /// Reads the properties of this machine from the system.
    pub(crate) fn here() -> Self {
        let cpuinfo = read_to_string("/proc/cpuinfo").unwrap_or_default();
        let meminfo = read_to_string("/proc/meminfo").unwrap_or_default();
        let kib =
            field(&meminfo, "MemTotal").and_then(|value| value.strip_suffix(" kB")?.parse::<u64>().ok());
        let thp = read_to_string("/sys/kernel/mm/transparent_hugepage/enabled").unwrap_or_default();
        let load = read_to_string("/proc/loadavg").unwrap_or_default();
        Self {
            cpu: field(&cpuinfo, "model name").unwrap_or("unknown").to_owned(),
            cpus: crate::team::allowed_cpus().len(),
            memory_mib: kib.unwrap_or(0) / 1024,
            kernel: kernel(),
            transparent_hugepage: chosen(&thp).unwrap_or("unknown").to_owned(),
            cc: env!("PEERS_CC"),
            rustc: env!("PEERS_RUSTC"),
            load: load.split(' ').next().unwrap_or_default().to_owned(),
        }
    }

    /// The machine on one line.
    pub(crate) fn line(&self) -> String {
        let Self { cpu, cpus, memory_mib, kernel, transparent_hugepage, .. } = self;
        format!("{cpu}, {cpus} CPUs, {memory_mib} MiB, kernel {kernel}, huge pages {transparent_hugepage}")
    }
}

/// Release of the running kernel.
pub(crate) fn kernel() -> String {
    read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default().trim().to_owned()
}

/// The value of the first line `name: value`.
fn field<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    let value = text.lines().find_map(|line| line.strip_prefix(name)?.trim_start().strip_prefix(':'))?;
    Some(value.trim())
}

/// The word in brackets.
fn chosen(text: &str) -> Option<&str> {
    text.split_once('[')?.1.split_once(']').map(|(word, _)| word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_and_choices_are_found() {
        assert_eq!(field("a\t: 1\nmodel name\t: EPYC 9\n", "model name"), Some("EPYC 9"));
        assert_eq!(chosen("always [madvise] never"), Some("madvise"));
    }
}
