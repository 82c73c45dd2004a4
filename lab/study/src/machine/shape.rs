//! The CPUs, caches and memory of this machine.

use std::fs;
use std::path::Path;

use pageset_measure::host::{self, Meminfo, usable_cpus};

use super::rig;

/// The CPUs, caches and memory that a machine file names. A `Shape` assumes that CPUs and memory are divided
/// equally among the nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Shape {
    pub(super) title: String,
    pub(super) cpus: u32,
    pub(super) nodes: u32,
    pub(super) threads_per_core: u32,
    /// Number of CPUs that share the last-level cache.
    pub(super) cpus_per_cache: u32,
    pub(super) l1d_kib: u32,
    pub(super) l2_kib: u32,
    pub(super) l3_kib: u32,
    pub(super) mib: u64,
}

/// Limit of the number of pages that a measurement uses: three quarters of the measured allocator's pages.
const PAGES_MAX: usize = rig::PAGES as usize / 4 * 3;

impl Shape {
    pub(super) fn of_this_machine() -> Self {
        let cpus = u32::try_from(usable_cpus().len()).unwrap_or(1);
        let nodes = list(&read("/sys/devices/system/node/has_cpu")).max(1);
        let siblings = list(&read("/sys/devices/system/cpu/cpu0/topology/thread_siblings_list")).max(1);
        let (mut l1d, mut l2, mut l3) = (None, None, None);
        for index in 0..8 {
            let directory = format!("/sys/devices/system/cpu/cpu0/cache/index{index}");
            let field = |name: &str| read(&Path::new(&directory).join(name).display().to_string());
            let size = field("size").strip_suffix('K').and_then(|kib| kib.parse::<u32>().ok());
            match (field("level").as_str(), field("type").as_str()) {
                ("1", "Data") => l1d = size,
                ("2", _) => l2 = size,
                ("3", _) => l3 = size.map(|size| (size, list(&field("shared_cpu_list")))),
                _ => {}
            }
        }
        // If the system does not report a cache, `Shape` assumes a common size of this cache.
        let (l3_kib, sharers) = l3.unwrap_or((32 << 10, cpus));
        let (nodes, threads_per_core) = fitting(cpus, nodes, siblings);
        Self {
            title: host::line(),
            cpus,
            nodes,
            threads_per_core,
            cpus_per_cache: sharers.clamp(1, cpus),
            l1d_kib: l1d.unwrap_or(32),
            l2_kib: l2.unwrap_or(1024),
            l3_kib,
            mib: Meminfo::read().total_bytes.unwrap_or(1 << 30) >> 20,
        }
    }

    /// Returns a number of pages that no cache can hold, but at most [`PAGES_MAX`]. A virtual machine may
    /// report caches larger than [`PAGES_MAX`] pages, because it reports the caches of the host.
    pub(super) fn pages_beyond_caches(&self) -> usize {
        (3 * self.l3_kib as usize / 4).min(PAGES_MAX)
    }

    /// Returns a number of pages that fit into the last-level cache, but not into the core's own caches.
    pub(super) fn pages_in_last_level(&self) -> usize {
        (3 * (self.l1d_kib + self.l2_kib).min(self.l3_kib / 4) as usize / 4).min(PAGES_MAX)
    }
}

/// Returns the number of nodes and the number of threads per core. A number that does not divide the CPUs
/// equally becomes 1, because in a machine file each node has the same number of whole cores.
fn fitting(cpus: u32, nodes: u32, siblings: u32) -> (u32, u32) {
    let threads_per_core = if cpus.is_multiple_of(siblings) { siblings } else { 1 };
    let nodes = if (cpus / threads_per_core).is_multiple_of(nodes) { nodes } else { 1 };
    (nodes, threads_per_core)
}

/// Returns a file's text, or an empty text if the file cannot be read.
fn read(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default().trim().to_owned()
}

/// Returns the number of CPUs that a list such as `0-3,8` names.
fn list(text: &str) -> u32 {
    let count = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
        last.checked_sub(first)?.checked_add(1)
    };
    text.split(',').filter_map(count).fold(0, u32::saturating_add)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_cpus_are_counted() {
        assert_eq!(list("0-3,8"), 5);
        assert_eq!(list("0"), 1);
        assert_eq!(list(""), 0);
        assert_eq!(list("7-3,x"), 0);
    }

    /// Tests that the machine file has all CPUs. Regression: 6 CPUs on 2 nodes with 2 threads per core became
    /// a machine of 4 CPUs.
    #[test]
    fn no_cpu_is_lost_whatever_the_system_tells() {
        assert_eq!(fitting(6, 2, 2), (1, 2));
        assert_eq!(fitting(8, 2, 2), (2, 2));
        assert_eq!(fitting(6, 2, 1), (2, 1));
        for (cpus, nodes, siblings) in (1..=16).flat_map(|cpus| (1..=5).map(move |n| (cpus, n, 1 + n % 4))) {
            let (nodes, threads_per_core) = fitting(cpus, nodes, siblings);
            let cores_per_node = cpus / nodes / threads_per_core;
            assert_eq!(nodes * cores_per_node * threads_per_core, cpus);
        }
    }

    /// Regression: with 480 MiB of last-level cache, the measurement asked for more pages than the allocator
    /// had, and panicked.
    #[test]
    fn a_cache_larger_than_the_memory_to_measure_with_is_no_panic() {
        let large = Shape { l2_kib: u32::MAX / 8, l3_kib: u32::MAX, ..Shape::of_this_machine() };
        assert_eq!(large.pages_beyond_caches(), PAGES_MAX);
        assert_eq!(large.pages_in_last_level(), PAGES_MAX);
    }

    #[test]
    fn this_machine_has_something() {
        let shape = Shape::of_this_machine();
        assert!(shape.cpus > 0 && shape.mib > 0 && shape.pages_in_last_level() > 0, "{shape:?}");
    }
}
