//! The configuration of an allocator: zones, CPUs, nodes, and the kernel's defaults for the rest.

use core::ops::Range;

use crate::error::{ConfigError, RegionFault};
use crate::policy::{LINUX_6_12, Policy};
use crate::{NodeId, ZoneKind};

/// Describes a machine or an arena, and the policy for its memory.
///
/// Start with [`new`](Config::new) and set fields one by one. Code that starts with `new` still compiles when
/// a later version of this crate adds settings:
///
/// ```
/// # use pageset_core::{Config, NodeId, ZoneConfig, ZoneKind};
/// # let zones = [ZoneConfig { kind: ZoneKind::Normal, node: NodeId(0), span: 0..1024, regions: &[0..1024] }];
/// let mut config = Config::new(&zones, &[NodeId(0)]);
/// config.min_free_kbytes = Some(0);
/// ```
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Config<'c> {
    /// The policy to follow.
    pub policy: Policy,
    /// Zones in ascending order of (node, kind, first frame). The spans of zones must not overlap.
    ///
    /// A node may have several zones of a kind. The tables of a zone cover its whole span, including holes.
    /// Describe memory with a large hole as two zones, because two zones need no tables for the hole. Of two
    /// zones of one node and kind, requests try the lower zone first. Each zone has its own page sets, and
    /// its own arrays in `pageset-blocks`.
    pub zones: &'c [ZoneConfig<'c>],
    /// The node of each possible CPU. A new allocator treats all CPUs of this list as online.
    pub cpus: &'c [NodeId],
    /// The distances between nodes, as a matrix, row by row. With `None`, the distance is 10 from a node to
    /// itself, and 20 to each other node.
    pub distances: Option<&'c [u8]>,
    /// Number of bytes per frame. The allocator converts settings in KiB, `batch` and the sizes of caches to
    /// frames by `page_bytes`.
    pub page_bytes: u32,
    /// Memory to keep free, in KiB. `None` stands for the kernel's default for the memory of all zones up to
    /// `Normal`.
    pub min_free_kbytes: Option<u64>,
    /// Smallest distance from one watermark to the next, in 10 000ths of the zone.
    pub watermark_scale_factor: u32,
    /// Limit of the watermark boost after fragmentation, in 10 000ths of the high watermark, but at least one
    /// pageblock. 0 switches boosts off.
    pub watermark_boost_factor: u32,
    /// Protects zones of each kind from requests that could use higher zones. With a ratio of 256, a request
    /// that could use higher zones must leave more frames free than a sum. The sum is the watermark plus
    /// 1/256 of the higher zones' frames on the same node. With a ratio of 0, zones of this kind are not
    /// protected.
    pub lowmem_reserve_ratio: [u32; ZoneKind::COUNT],
    /// With a value n above 0, the zone's page sets share 1/n of the zone equally, but each page set's limit
    /// is at least four batches. A value above 0 must be at least 8. With the value 0, the policy computes
    /// the limits of page sets.
    pub percpu_pagelist_high_fraction: u32,
}

/// The configuration of one zone.
#[derive(Clone, Debug)]
pub struct ZoneConfig<'c> {
    /// The kind of addresses in the zone.
    pub kind: ZoneKind,
    /// The node that the zone belongs to.
    pub node: NodeId,
    /// All frame numbers of the zone, including holes.
    pub span: Range<u64>,
    /// The frames that the allocator may use, ascending and not overlapping.
    pub regions: &'c [Range<u64>],
}

impl ZoneConfig<'_> {
    /// Whether at least one region of the zone has a frame.
    pub(crate) fn has_memory(&self) -> bool {
        self.regions.iter().any(|region| !region.is_empty())
    }

    /// Checks the span and the regions. `zone` is the zone's index, which errors name.
    pub(super) fn check(&self, zone: usize) -> Result<(), ConfigError> {
        if self.span.is_empty() {
            return Err(ConfigError::BadZoneSpan(zone));
        }
        let mut previous_end = self.span.start;
        for (region, frames) in self.regions.iter().enumerate() {
            let bad = |why| Err(ConfigError::BadRegion { zone, region, why });
            if frames.is_empty() {
                return bad(RegionFault::NoFrames);
            }
            if frames.start < self.span.start || frames.end > self.span.end {
                return bad(RegionFault::OutsideZone);
            }
            if frames.start < previous_end {
                return bad(RegionFault::OverlapsPrevious);
            }
            previous_end = frames.end;
        }
        Ok(())
    }

    /// Number of frames in the zone's regions.
    #[must_use]
    pub fn managed(&self) -> u64 {
        self.regions.iter().map(|region| region.end.saturating_sub(region.start)).sum()
    }
}

impl<'c> Config<'c> {
    /// Makes a configuration with the kernel's defaults (spec §0.2) and the policy of Linux 6.12.
    #[must_use]
    pub const fn new(zones: &'c [ZoneConfig<'c>], cpus: &'c [NodeId]) -> Self {
        Self {
            policy: LINUX_6_12,
            zones,
            cpus,
            distances: None,
            page_bytes: 4096,
            min_free_kbytes: None,
            watermark_scale_factor: 10,
            watermark_boost_factor: 15_000,
            lowmem_reserve_ratio: [256, 256, 32, 0, 0],
            percpu_pagelist_high_fraction: 0,
        }
    }

    /// Returns the same configuration with another policy.
    #[must_use]
    pub const fn with_policy(mut self, policy: Policy) -> Self {
        self.policy = policy;
        self
    }

    /// Number of nodes: one more than the highest node number of a zone or CPU.
    #[must_use]
    pub const fn nodes(&self) -> usize {
        // Constant functions cannot use iterators.
        let (mut nodes, mut at) = (0, 0);
        while at < self.zones.len() + self.cpus.len() {
            let node = match at.checked_sub(self.zones.len()) {
                None => self.zones[at].node.index(),
                Some(cpu) => self.cpus[cpu].index(),
            };
            nodes = if node < nodes { nodes } else { node + 1 };
            at += 1;
        }
        nodes
    }
}
