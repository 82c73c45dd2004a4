//! Builds the description of a machine from texts that a recorder copied: `/proc/zoneinfo`, sysfs lists,
//! sysctls.

use std::collections::BTreeMap;

use super::{Cache, CacheKind, Layout, Node, Sysctls};
use crate::procfs::{CPUS_MAX, Zoneinfo};

/// The parts of a machine's description, as a recorder copied them.
#[derive(Clone, Copy, Debug)]
pub struct LayoutSource<'a> {
    /// The kernel release, as `uname -r` prints it.
    pub kernel: &'a str,
    /// The architecture, as `uname -m` prints it.
    pub architecture: &'a str,
    /// Bytes in a frame.
    pub page_size: u32,
    /// Number of CPUs.
    pub cpus: u32,
    /// `cpulist` of each node, by id.
    pub node_cpulists: &'a [String],
    /// CPU, level, type, size and `shared_cpu_list` of each cache, as sysfs prints them.
    pub caches: &'a [(u32, u8, String, String, String)],
    /// The contents of files below `/proc/sys/vm`, by name.
    pub sysctls: &'a BTreeMap<String, String>,
    /// The zones.
    pub zoneinfo: &'a Zoneinfo,
}

impl LayoutSource<'_> {
    /// Builds the description, and checks it.
    ///
    /// # Errors
    /// A sentence about the malformed part.
    pub fn build(&self) -> Result<Layout, String> {
        let mut nodes = Vec::new();
        for (id, list) in self.node_cpulists.iter().enumerate().take(1 << 10) {
            nodes.push(Node { id: id as u16, cpus: cpulist(list)?, distances: Vec::new() });
        }
        if nodes.is_empty() {
            nodes.push(Node { id: 0, cpus: (0..self.cpus.min(CPUS_MAX)).collect(), distances: Vec::new() });
        }
        let mut caches = Vec::new();
        for (cpu, level, kind, size, shared) in self.caches {
            let kind = match kind.as_str() {
                "Data" => CacheKind::Data,
                "Instruction" => CacheKind::Instruction,
                "Unified" => CacheKind::Unified,
                other => return Err(format!("unknown type of cache {other:?}")),
            };
            caches.push(Cache {
                cpu: *cpu,
                level: *level,
                kind,
                bytes: size_bytes(size)?,
                shared_by: cpulist(shared)?,
            });
        }
        let machine = Layout {
            assumed: Vec::new(),
            kernel: self.kernel.to_owned(),
            architecture: self.architecture.to_owned(),
            page_size: self.page_size,
            cpus: self.cpus,
            sysctls: sysctls(self.sysctls)?,
            nodes,
            caches,
            zones: self.zoneinfo.populated().cloned().collect(),
        };
        machine.check()?;
        Ok(machine)
    }
}

/// Parses a list of CPUs as sysfs prints it, such as `0-3,8`. The text is empty for a node without CPUs.
pub(super) fn cpulist(text: &str) -> Result<Vec<u32>, String> {
    let wrong = || format!("not a list of CPUs: {:?}", text.chars().take(40).collect::<String>());
    let mut cpus = Vec::new();
    for range in text.trim().split(',').filter(|range| !range.is_empty()) {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let first: u32 = first.trim().parse().map_err(|_| wrong())?;
        let last: u32 = last.trim().parse().map_err(|_| wrong())?;
        if first > last || last >= CPUS_MAX || cpus.len() > CPUS_MAX as usize {
            return Err(wrong());
        }
        cpus.extend(first..=last);
    }
    Ok(cpus)
}

/// Parses a size, such as `32K` as sysfs prints sizes of caches.
fn size_bytes(text: &str) -> Result<u64, String> {
    let text = text.trim();
    let (digits, shift) = match text.as_bytes().last() {
        Some(b'K') => (&text[..text.len() - 1], 10),
        Some(b'M') => (&text[..text.len() - 1], 20),
        _ => (text, 0),
    };
    digits
        .parse::<u64>()
        .ok()
        .and_then(|number| number.checked_mul(1 << shift))
        .ok_or_else(|| format!("not a size: {:?}", text.chars().take(40).collect::<String>()))
}

fn sysctls(values: &BTreeMap<String, String>) -> Result<Sysctls, String> {
    fn number<T: std::str::FromStr>(
        values: &BTreeMap<String, String>,
        name: &str,
    ) -> Result<Option<T>, String> {
        let Some(value) = values.get(name) else { return Ok(None) };
        value.trim().parse().map(Some).map_err(|_| format!("sysctl {name} is not a number"))
    }
    let lowmem_reserve_ratio = values
        .get("lowmem_reserve_ratio")
        .map_or("", String::as_str)
        .split_whitespace()
        .take(16)
        .map(|ratio| {
            ratio.parse().map_err(|_| "sysctl lowmem_reserve_ratio is not a list of numbers".to_owned())
        })
        .collect::<Result<_, _>>()?;
    Ok(Sysctls {
        percpu_pagelist_high_fraction: number(values, "percpu_pagelist_high_fraction")?,
        min_free_kbytes: number(values, "min_free_kbytes")?,
        watermark_scale_factor: number(values, "watermark_scale_factor")?,
        watermark_boost_factor: number(values, "watermark_boost_factor")?,
        lowmem_reserve_ratio,
        stat_interval_s: number(values, "stat_interval")?,
        numa_stat: number(values, "numa_stat")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sysfs_lists_and_sizes_are_read() {
        assert_eq!(cpulist("0-2,7\n").unwrap(), [0, 1, 2, 7]);
        assert!(cpulist("").unwrap().is_empty());
        assert!(cpulist("0-4000000000").is_err());
        assert!(cpulist("3-2").is_err());
        assert!(cpulist("a").is_err());
        assert_eq!(size_bytes("16384K").unwrap(), 16 << 20);
        assert!(size_bytes("99999999999999999M").is_err());
        assert!(size_bytes("é").is_err());
    }

    #[test]
    fn a_sysctl_that_is_no_number_is_named() {
        let values = BTreeMap::from([("min_free_kbytes".to_owned(), "many".to_owned())]);
        assert!(sysctls(&values).unwrap_err().contains("min_free_kbytes"));
    }
}
