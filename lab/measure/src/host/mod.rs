//! Facts about this machine: CPUs, memory, CPU time and settings. [`line()`] puts the CPUs, model, memory and
//! kernel on one line.

mod cpu_time;
mod cpus;
mod memory;
pub mod settings;

use std::fs;

pub use cpu_time::{process_cpu, thread_cpu};
pub use cpus::{pin, usable_cpus};
pub use memory::Meminfo;
pub use settings::{SettingError, Settings};

/// Returns one line with the number of CPUs, the model, the memory and the kernel, as far as the system
/// tells.
#[must_use]
pub fn line() -> String {
    let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let cpus = std::thread::available_parallelism().map_or(1, std::num::NonZeroUsize::get);
    describe(cpus, &cpuinfo, Meminfo::read(), &kernel().unwrap_or_default())
}

/// Release of the running kernel, as `uname -r` prints it.
#[must_use]
pub fn kernel() -> Option<String> {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").ok()?;
    Some(release.trim().to_owned()).filter(|release| !release.is_empty())
}

/// The CPU's model and family, or its implementer and part, from `/proc/cpuinfo`.
#[must_use]
pub fn cpu_model() -> Option<String> {
    model(&fs::read_to_string("/proc/cpuinfo").ok()?)
}

fn model(cpuinfo: &str) -> Option<String> {
    if let Some(name) = field(cpuinfo, "model name") {
        let family = field(cpuinfo, "cpu family").map(|family| format!(" (family {family})"));
        return Some(format!("{name}{}", family.unwrap_or_default()));
    }
    // On 64-bit ARM, `/proc/cpuinfo` has no model names.
    let (implementer, part) = (field(cpuinfo, "CPU implementer")?, field(cpuinfo, "CPU part")?);
    Some(format!("implementer {implementer}, part {part}"))
}

/// The value of the field `name` of the first CPU in the text of `/proc/cpuinfo`.
fn field<'a>(cpuinfo: &'a str, name: &str) -> Option<&'a str> {
    let line = cpuinfo.lines().find_map(|line| line.strip_prefix(name)?.trim_start().strip_prefix(':'));
    line.map(str::trim)
}

fn describe(cpus: usize, cpuinfo: &str, meminfo: Meminfo, release: &str) -> String {
    let mut facts = vec![format!("{cpus} CPUs")];
    facts.extend(model(cpuinfo));
    facts.extend(meminfo.total_bytes.map(|bytes| format!("{} GiB", (bytes >> 20).div_ceil(1 << 10))));
    if field(cpuinfo, "flags").is_some_and(|flags| flags.split(' ').any(|flag| flag == "hypervisor")) {
        facts.push("virtual".to_owned());
    }
    if !release.is_empty() {
        facts.push(format!("Linux {release}"));
    }
    facts.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_known_is_on_the_line() {
        let cpuinfo = "cpu family\t: 26\nmodel name\t: AMD EPYC\nflags\t\t: fpu hypervisor avx2\n";
        let line = describe(2, cpuinfo, Meminfo::parse("MemTotal:       24683732 kB\n"), "6.18.44");
        assert_eq!(line, "2 CPUs, AMD EPYC (family 26), 24 GiB, virtual, Linux 6.18.44");
        assert_eq!(describe(4, "", Meminfo::default(), ""), "4 CPUs");
        let arm = "processor\t: 0\nCPU implementer\t: 0x41\nCPU part\t: 0xd0c\n";
        assert_eq!(model(arm).as_deref(), Some("implementer 0x41, part 0xd0c"));
        assert_eq!(model(""), None);
        assert!(!super::line().is_empty());
    }
}
