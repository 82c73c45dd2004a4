//! Reads the description of the machine and the state of its allocator from `/proc` and `/sys`.

use std::{collections::BTreeMap, fs, path::Path};

use pageset_trace::{Layout, LayoutSource, SettingChange, Snapshot, TraceInfo, Vmstat};

use crate::cpus::CpuList;
use crate::error::RecordError;
use crate::tracefs::read;

/// Settings below `/proc/sys/vm` that affect page sets.
const SYSCTLS: [&str; 7] = [
    "percpu_pagelist_high_fraction",
    "min_free_kbytes",
    "watermark_scale_factor",
    "watermark_boost_factor",
    "lowmem_reserve_ratio",
    "stat_interval",
    "numa_stat",
];
const PROC: &str = "/proc";
const CPUS: &str = "/sys/devices/system/cpu";
const NODES: &str = "/sys/devices/system/node";
/// `NODES_MAX` is the maximum number of nodes, and `CACHES_MAX` is the maximum number of caches per CPU.
const NODES_MAX: usize = 1024;
const CACHES_MAX: usize = 16;

/// Kernel release, as `uname -r`.
pub(crate) fn kernel() -> String {
    rustix::system::uname().release().to_string_lossy().into_owned()
}

/// Reads the current state of the allocator. Only root may read `pagetypeinfo`, so for other users
/// `pagetypeinfo` is missing.
///
/// # Errors
/// An error if a file cannot be read or has an unknown form.
pub(crate) fn snapshot() -> Result<Snapshot, RecordError> {
    let file = |name: &str| read(&Path::new(PROC).join(name));
    let pagetypeinfo = fs::read_to_string(Path::new(PROC).join("pagetypeinfo")).unwrap_or_default();
    Snapshot::parse(&file("zoneinfo")?, &file("buddyinfo")?, &pagetypeinfo, &file("vmstat")?)
        .map_err(|error| RecordError::unknown(Path::new(PROC).join(error.file), error.to_string()))
}

/// Describes the machine. The zones come from `state`.
///
/// # Errors
/// A sentence about the part with an unknown form.
pub(crate) fn layout(state: &Snapshot) -> Result<Layout, String> {
    let cpus = CpuList::online();
    let name = rustix::system::uname();
    LayoutSource {
        kernel: &kernel(),
        architecture: &name.machine().to_string_lossy(),
        page_size: rustix::param::page_size() as u32,
        cpus: cpus.iter().last().map_or(0, |last| last + 1),
        node_cpulists: &node_cpulists(),
        caches: &caches(&cpus),
        sysctls: &sysctls(),
        zoneinfo: &state.zoneinfo,
    }
    .build()
}

/// The text of each node's list of CPUs, by node id. The text is empty for an unused id.
fn node_cpulists() -> Vec<String> {
    let file = |id| fs::read_to_string(format!("{NODES}/node{id}/cpulist")).ok();
    let mut lists: Vec<_> = (0..NODES_MAX).map(file).collect();
    lists.truncate(lists.iter().rposition(Option::is_some).map_or(0, |last| last + 1));
    lists.into_iter().map(Option::unwrap_or_default).collect()
}

fn caches(cpus: &CpuList) -> Vec<(u32, u8, String, String, String)> {
    let cache = |cpu: u32, index: usize| {
        let file = |name: &str| {
            let text = fs::read_to_string(format!("{CPUS}/cpu{cpu}/cache/index{index}/{name}")).ok()?;
            Some(text.trim().to_owned())
        };
        Some((cpu, file("level")?.parse().ok()?, file("type")?, file("size")?, file("shared_cpu_list")?))
    };
    cpus.iter().flat_map(|cpu| (0..CACHES_MAX).map_while(move |index| cache(cpu, index))).collect()
}

/// The current values of the settings in `SYSCTLS`, by name.
pub(crate) fn sysctls() -> BTreeMap<String, String> {
    let value = |name: &str| {
        let text = fs::read_to_string(Path::new(PROC).join("sys/vm").join(name)).ok()?;
        Some((name.to_owned(), text.trim().to_owned()))
    };
    SYSCTLS.into_iter().filter_map(value).collect()
}

/// Maximum number of changes that are kept. If a recording has more changes, its settings count as unknown.
const CHANGES_MAX: usize = 1000;

/// Observes settings repeatedly, to find changes.
#[derive(Debug)]
pub(crate) struct SettingsWatch {
    values: BTreeMap<String, String>,
    seen_ns: u64,
    changes: Vec<SettingChange>,
}

impl SettingsWatch {
    /// Reads the settings for the first time.
    pub(crate) fn begin(now_ns: u64) -> Self {
        Self { values: sysctls(), seen_ns: now_ns, changes: Vec::new() }
    }

    /// Reads the settings again.
    pub(crate) fn look(&mut self, now_ns: u64) {
        self.note(sysctls(), now_ns);
    }

    fn note(&mut self, values: BTreeMap<String, String>, now_ns: u64) {
        let after_ns = std::mem::replace(&mut self.seen_ns, now_ns);
        for (name, to) in &values {
            let Some(from) = self.values.get(name).filter(|from| *from != to) else { continue };
            if self.changes.len() < CHANGES_MAX {
                let (name, from, to) = (name.clone(), from.clone(), to.clone());
                self.changes.push(SettingChange { name, from, to, after_ns, before_ns: now_ns });
            }
        }
        // A setting that could not be read this time keeps its previous value.
        self.values.extend(values);
    }

    /// Returns the changes, by time.
    pub(crate) fn end(self) -> Vec<SettingChange> {
        self.changes
    }
}

/// Number of frames that were allocated between two states, from the sum of all zones' counters.
pub(crate) fn allocated(before: &Vmstat, after: &Vmstat) -> u64 {
    let sum = |state: &Vmstat| {
        let counters = state.0.iter().filter(|(name, _)| name.starts_with("pgalloc_"));
        counters.fold(0, |sum: u64, (_, count)| sum.wrapping_add(*count))
    };
    sum(after).wrapping_sub(sum(before))
}

/// Stores the state at the end of a recording.
pub(crate) fn note_end(head: &mut TraceInfo, after: Snapshot) {
    if let Some(before) = &head.before {
        head.pgalloc_delta = Some(allocated(&before.vmstat, &after.vmstat));
        head.pgfree_delta = freed(&before.vmstat, &after.vmstat);
    }
    head.after = Some(after);
}

/// Number of frames that were freed between two states.
fn freed(before: &Vmstat, after: &Vmstat) -> Option<u64> {
    Some(after.get("pgfree")?.wrapping_sub(before.get("pgfree")?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_is_described() {
        let state = snapshot().unwrap();
        let machine = layout(&state).unwrap();
        assert!(!machine.zones.is_empty() && machine.cpus > 0 && !machine.nodes.is_empty());
        assert_eq!(machine.kernel, kernel());
        assert!(machine.sysctls.min_free_kbytes.is_some());
    }

    #[test]
    fn a_setting_that_changes_is_named_with_the_times_between_which_it_did() {
        let settings = |high: &str| {
            let settings = [("percpu_pagelist_high_fraction", high), ("stat_interval", "1")];
            BTreeMap::from(settings.map(|(name, value)| (name.to_owned(), value.to_owned())))
        };
        let mut watch = SettingsWatch { values: settings("0"), seen_ns: 5, changes: Vec::new() };
        watch.note(settings("0"), 10);
        watch.note(settings("8"), 20);
        watch.note(BTreeMap::new(), 30);
        watch.note(settings("0"), 40);
        let found = watch.end().into_iter();
        let found: Vec<_> = found
            .map(|change| (change.name, change.from, change.to, change.after_ns, change.before_ns))
            .collect();
        let change = |from: &str, to: &str, after_ns, before_ns| {
            ("percpu_pagelist_high_fraction".to_owned(), from.to_owned(), to.to_owned(), after_ns, before_ns)
        };
        assert_eq!(found, [change("0", "8", 10, 20), change("8", "0", 30, 40)]);
    }

    #[test]
    fn changes_are_bounded() {
        let mut watch = SettingsWatch { values: BTreeMap::new(), seen_ns: 0, changes: Vec::new() };
        for look in 0..2 * CHANGES_MAX as u64 {
            watch.note([("stat_interval".to_owned(), look.to_string())].into(), look);
        }
        assert_eq!(watch.end().len(), CHANGES_MAX);
    }

    #[test]
    fn counters_of_zones_are_added() {
        let state = |dma, normal, free| {
            let counters =
                [("pgalloc_dma", dma), ("pgalloc_normal", normal), ("pgfree", free), ("pgfault", 7)];
            Vmstat(counters.map(|(name, count)| (name.to_owned(), count)).into())
        };
        let (before, after) = (state(1, 10, 5), state(3, 30, 9));
        assert_eq!((allocated(&before, &after), freed(&before, &after)), (22, Some(4)));
        assert_eq!(freed(&before, &Vmstat::default()), None);
    }
}
