//! The machine of a recording, or a machine that the user describes (`--layout FILE`).

mod build;
mod copied;
mod options;
mod zoneinfo;

use std::path::Path;

use pageset_core::ZoneKind;
use serde::{Deserialize, Serialize};

use crate::{error::TraceError, input, procfs::CPUS_MAX};

pub use build::LayoutSource;
pub use options::LayoutOptions;
pub(crate) use zoneinfo::is_zoneinfo;

/// Largest number of bytes of a machine file. The description of a machine with 8192 CPUs takes about 10 MB.
const FILE_BYTES_MAX: u64 = 64 << 20;

/// A machine: CPUs, caches, nodes, zones, and the sysctls that affect per-CPU page sets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Layout {
    /// Kernel release, as `uname -r` prints it. A replay uses this kernel's policy, unless the user names
    /// another policy.
    pub kernel: String,
    /// The architecture, as `uname -m` prints it.
    #[serde(default = "x86_64")]
    pub architecture: String,
    /// Bytes in a frame.
    #[serde(default = "four_kibibytes")]
    pub page_size: u32,
    /// The largest number of a CPU, plus 1. A CPU that belongs to no node is offline.
    pub cpus: u32,
    /// Assumptions about facts that the source lacks. Each entry is a sentence without its full stop.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub assumed: Vec<String>,
    /// Settings of `/proc/sys/vm`.
    #[serde(default)]
    pub sysctls: Sysctls,
    /// NUMA nodes, by id.
    pub nodes: Vec<Node>,
    /// Caches. A cache that several CPUs share has an entry for each CPU. The list is empty if the sharing of
    /// caches is unknown.
    #[serde(default)]
    pub caches: Vec<Cache>,
    /// Zones that have frames, by node and kind.
    pub zones: Vec<ZoneDescription>,
}

fn x86_64() -> String {
    "x86_64".into()
}

const fn four_kibibytes() -> u32 {
    4096
}

/// A NUMA node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Node {
    /// The kernel's node id.
    pub id: u16,
    /// CPUs that belong to the node.
    pub cpus: Vec<u32>,
    /// Distance to each node by id. A node's distance to itself is 10. The list is empty if distances are
    /// unknown. Unknown distances to other nodes count as 20.
    #[serde(default)]
    pub distances: Vec<u8>,
}

/// One cache, as one of its CPUs sees it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cache {
    /// The CPU.
    pub cpu: u32,
    /// The cache's level: 1, 2 or 3.
    pub level: u8,
    /// Contents of the cache.
    pub kind: CacheKind,
    /// Size in bytes.
    pub bytes: u64,
    /// CPUs that share the cache, including `cpu`.
    pub shared_by: Vec<u32>,
}

/// Contents of a cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum CacheKind {
    /// Data only.
    Data,
    /// Instructions only.
    Instruction,
    /// Data and instructions.
    Unified,
}

/// Settings of `/proc/sys/vm`. A setting is `None` if the source does not have it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Sysctls {
    /// `percpu_pagelist_high_fraction`. If the setting is 0, the kernel tunes `high` itself. If the setting
    /// is above 0, all page sets of a zone together may hold the zone's managed pages divided by the setting.
    pub percpu_pagelist_high_fraction: Option<u32>,
    /// `min_free_kbytes`: kibibytes that the kernel keeps free.
    pub min_free_kbytes: Option<u64>,
    /// Distance between watermarks in 1/10 000 of the zone.
    pub watermark_scale_factor: Option<u32>,
    /// The rise of watermarks after fragmentation, in 1/10 000 of the high watermark.
    pub watermark_boost_factor: Option<u32>,
    /// Divisors that give the size of each zone's reserve, by zone index.
    pub lowmem_reserve_ratio: Vec<u32>,
    /// Seconds between two runs of `vmstat_update`, which decays page sets.
    pub stat_interval_s: Option<u32>,
    /// Whether NUMA counters are kept (1) or not (0).
    pub numa_stat: Option<u8>,
}

/// A zone, with the watermarks and page sets that it had at the time of the description. All counts are
/// frames.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ZoneDescription {
    /// NUMA node.
    pub node: u16,
    /// Kind of the zone.
    #[serde(with = "crate::zone_name")]
    pub kind: ZoneKind,
    /// First frame.
    pub start_pfn: u64,
    /// Number of frames from the first to the last frame of the zone, including holes.
    pub spanned: u64,
    /// Number of frames that exist.
    pub present: u64,
    /// Number of frames that the allocator manages.
    pub managed: u64,
    /// Number of free frames.
    #[serde(default)]
    pub free: u64,
    /// Min watermark, including the boost, as the kernel prints it.
    pub min: u64,
    /// Low watermark.
    pub low: u64,
    /// High watermark.
    pub high: u64,
    /// Watermark boost.
    #[serde(default)]
    pub boost: u64,
    /// Pages that this zone keeps back from requests that may use a higher zone, by the index of the higher
    /// zone (lowmem reserve).
    #[serde(default)]
    pub protection: Vec<u64>,
    /// Page sets, by CPU.
    #[serde(default)]
    pub pagesets: Vec<PcpSample>,
}

impl ZoneDescription {
    /// Makes the description of a zone without frames.
    #[must_use]
    pub const fn empty(node: u16, kind: ZoneKind) -> Self {
        Self {
            node,
            kind,
            start_pfn: 0,
            spanned: 0,
            present: 0,
            managed: 0,
            free: 0,
            min: 0,
            low: 0,
            high: 0,
            boost: 0,
            protection: Vec::new(),
            pagesets: Vec::new(),
        }
    }

    /// Whether frame `pfn` lies within the zone's span.
    #[must_use]
    pub const fn spans(&self, pfn: u64) -> bool {
        pfn >= self.start_pfn && pfn - self.start_pfn < self.spanned
    }
}

/// A CPU's page set in a zone. Counts are frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PcpSample {
    /// The CPU.
    pub cpu: u32,
    /// Number of frames held.
    pub count: u32,
    /// Current limit.
    pub high: u32,
    /// Number of frames moved by a plain refill or drain.
    pub batch: u32,
    /// Lower bound of `high`. Kernels 6.1 and 6.12 do not print this bound.
    #[serde(default)]
    pub high_min: Option<u32>,
    /// Upper bound of `high`. Kernels 6.1 and 6.12 do not print this bound.
    #[serde(default)]
    pub high_max: Option<u32>,
}

impl Layout {
    /// Does the same as [`LayoutOptions::load`] without options.
    ///
    /// # Errors
    /// The errors of [`LayoutOptions::load`].
    pub fn load(path: &Path) -> Result<Self, TraceError> {
        LayoutOptions::new().load(path)
    }

    /// Reads the text of a file for [`LayoutOptions::parse`]. A file larger than 64 MiB is an error.
    ///
    /// # Errors
    /// An error if the file cannot be read, is too large, or is not UTF-8.
    pub fn text(path: &Path) -> Result<String, TraceError> {
        input::read_text(path, FILE_BYTES_MAX)
    }

    /// Parses and checks a description in TOML or JSON.
    fn of_text(text: &str, is_json: bool) -> Result<Self, String> {
        let machine: Self = if is_json {
            serde_json::from_str(text).map_err(|error| error.to_string())?
        } else {
            toml::from_str(text).map_err(|error| error.to_string().trim_end().to_owned())?
        };
        machine.check()?;
        Ok(machine)
    }

    /// Writes the description as TOML that [`Layout::load`] can read again.
    ///
    /// # Errors
    /// An error if a number is too large for TOML (above 2^63 - 1).
    pub fn to_toml(&self) -> Result<String, String> {
        toml::to_string(self).map_err(|error| error.to_string())
    }

    /// Checks that the parts of the description do not contradict each other.
    ///
    /// # Errors
    /// A sentence about the contradiction.
    pub fn check(&self) -> Result<(), String> {
        if !self.page_size.is_power_of_two() || self.page_size < 1024 {
            return Err(format!("page_size {} is not a power of two from 1024 up", self.page_size));
        }
        if self.cpus == 0 || self.cpus > CPUS_MAX {
            return Err(format!("cpus is {}, expected 1 to {CPUS_MAX}", self.cpus));
        }
        if self.nodes.is_empty() {
            return Err("there is no node".into());
        }
        for (index, node) in self.nodes.iter().enumerate() {
            if self.nodes[..index].iter().any(|other| other.id == node.id) {
                return Err(format!("node {} is described twice", node.id));
            }
            if let Some(cpu) = node.cpus.iter().find(|cpu| **cpu >= self.cpus) {
                return Err(format!("node {} has CPU {cpu}, but cpus is {}", node.id, self.cpus));
            }
        }
        // A CPU before the last CPU may belong to no node, because it is offline.
        let last = self.cpus - 1;
        if self.node_of_cpu(last).is_none() {
            return Err(format!(
                "CPU {last} is on no node: add it to the cpus of one, or set cpus to {last}"
            ));
        }
        for (index, zone) in self.zones.iter().enumerate() {
            zone.check(self.cpus)
                .map_err(|problem| format!("zone {} of node {}: {problem}", zone.kind, zone.node))?;
            if !self.nodes.iter().any(|node| node.id == zone.node) {
                return Err(format!("zone {} is on node {}, which is not described", zone.kind, zone.node));
            }
            if self.zones[..index].iter().any(|other| other.node == zone.node && other.kind == zone.kind) {
                return Err(format!("zone {} of node {} is described twice", zone.kind, zone.node));
            }
        }
        Ok(())
    }

    /// Index of the zone in [`Layout::zones`] that spans frame `pfn`.
    #[must_use]
    pub fn zone_of(&self, pfn: u64) -> Option<usize> {
        self.zones.iter().position(|zone| zone.spans(pfn))
    }

    /// Number of CPUs that are online.
    #[must_use]
    pub fn online_cpus(&self) -> u32 {
        (0..self.cpus).filter(|cpu| self.node_of_cpu(*cpu).is_some()).count() as u32
    }

    /// The node that `cpu` belongs to. `None` if the CPU is offline.
    #[must_use]
    pub fn node_of_cpu(&self, cpu: u32) -> Option<u16> {
        self.nodes.iter().find(|node| node.cpus.contains(&cpu)).map(|node| node.id)
    }
}

impl ZoneDescription {
    fn check(&self, cpus: u32) -> Result<(), String> {
        if self.managed > self.present || self.present > self.spanned {
            return Err(format!(
                "managed {} ≤ present {} ≤ spanned {} does not hold",
                self.managed, self.present, self.spanned
            ));
        }
        if self.start_pfn.checked_add(self.spanned).is_none() {
            return Err("start_pfn + spanned overflows".into());
        }
        if let Some(pageset) = self.pagesets.iter().find(|pageset| pageset.cpu >= cpus) {
            return Err(format!("a page set of CPU {}, but cpus is {cpus}", pageset.cpu));
        }
        Ok(())
    }
}

/// Writes a size, for example `4 KiB` for 4096.
fn size_name(bytes: u32) -> String {
    format!("{} KiB", bytes >> 10)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn small() -> Layout {
        Layout {
            kernel: "6.12.0".into(),
            architecture: x86_64(),
            page_size: 4096,
            cpus: 2,
            assumed: Vec::new(),
            sysctls: Sysctls { min_free_kbytes: Some(1024), ..Sysctls::default() },
            nodes: vec![Node { id: 0, cpus: vec![0, 1], distances: vec![10] }],
            caches: vec![Cache { cpu: 0, level: 1, kind: CacheKind::Data, bytes: 32768, shared_by: vec![0] }],
            zones: vec![ZoneDescription {
                start_pfn: 4096,
                spanned: 8192,
                present: 8192,
                managed: 8000,
                pagesets: vec![PcpSample { cpu: 1, count: 3, ..PcpSample::default() }],
                ..ZoneDescription::empty(0, ZoneKind::Dma32)
            }],
        }
    }

    #[test]
    fn a_machine_survives_toml_and_json() {
        let machine = small();
        machine.check().unwrap();
        let toml = machine.to_toml().unwrap();
        assert_eq!(toml::from_str::<Layout>(&toml).unwrap(), machine, "{toml}");
        let json = serde_json::to_string(&machine).unwrap();
        assert_eq!(serde_json::from_str::<Layout>(&json).unwrap(), machine);
    }

    #[test]
    fn unknown_fields_are_refused_by_name() {
        let toml = small().to_toml().unwrap().replace("cpus = 2", "cpus = 2\ncpuss = 3");
        let error = toml::from_str::<Layout>(&toml).unwrap_err().to_string();
        assert!(error.contains("cpuss"), "{error}");
    }

    #[test]
    fn parts_that_do_not_fit_are_named() {
        let mut machine = small();
        machine.zones[0].managed = 9000;
        assert!(machine.check().unwrap_err().contains("managed 9000"));
        let mut machine = small();
        machine.zones[0].pagesets[0].cpu = 2;
        assert!(machine.check().unwrap_err().contains("CPU 2"));
        let mut machine = small();
        machine.nodes[0].cpus = vec![0];
        assert!(machine.check().unwrap_err().contains("CPU 1 is on no node"));
        machine.nodes[0].cpus = vec![1];
        assert_eq!((machine.check(), machine.node_of_cpu(0)), (Ok(()), None), "CPU 0 is offline");
        assert_eq!((machine.cpus, machine.online_cpus()), (2, 1));
        let mut machine = small();
        machine.zones[0].node = 3;
        assert!(machine.check().unwrap_err().contains("node 3"));
    }

    #[test]
    fn frames_and_cpus_find_their_place() {
        let machine = small();
        assert_eq!(machine.zone_of(4096), Some(0));
        assert_eq!(machine.zone_of(12288), None);
        assert_eq!(machine.node_of_cpu(1), Some(0));
        assert_eq!(machine.node_of_cpu(9), None);
    }
}
