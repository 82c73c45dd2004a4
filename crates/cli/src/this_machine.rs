//! The machine that the command runs on, on one line.

use std::fs;

/// CPUs, model, memory and kernel, as far as the system tells.
pub(crate) fn line() -> String {
    let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let meminfo = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    describe(crate::jobs::count(None), &cpuinfo, &meminfo, release.trim())
}

fn describe(cpus: usize, cpuinfo: &str, meminfo: &str, release: &str) -> String {
    let field = |name: &str| {
        let line = cpuinfo.lines().find_map(|line| line.strip_prefix(name)?.trim_start().strip_prefix(':'));
        line.map(str::trim)
    };
    let mut facts = vec![format!("{cpus} CPUs")];
    let family = field("cpu family").map(|family| format!(" (family {family})")).unwrap_or_default();
    facts.extend(field("model name").map(|name| format!("{name}{family}")));
    let total = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:")?.trim().strip_suffix(" kB"));
    facts.extend(
        total
            .and_then(|total| total.parse::<u64>().ok())
            .map(|total| format!("{} GiB", (total >> 10).div_ceil(1 << 10))),
    );
    if field("flags").is_some_and(|flags| flags.split(' ').any(|flag| flag == "hypervisor")) {
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
        let line = describe(2, cpuinfo, "MemTotal:       24683732 kB\n", "6.18.44");
        assert_eq!(line, "2 CPUs, AMD EPYC (family 26), 24 GiB, virtual, Linux 6.18.44");
        assert_eq!(describe(4, "", "", ""), "4 CPUs");
        assert!(!super::line().is_empty());
    }
}
