//! Values derived from a configuration: zonelists, reserves, watermarks. `pageset-blocks` also uses the
//! functions of this file.

use super::Config;
use crate::error::ConfigError;
use crate::numa::{Distances, MAX_NODES, Topology, fill_zonelists};
use crate::zone::{WatermarkInputs, WatermarkSettings, Watermarks, default_min_free_kbytes};
use crate::{NodeId, ZoneId, ZoneKind};

impl Config<'_> {
    /// Checks that zones and CPUs exist, and that nodes, distances, spans and regions agree with each other.
    /// O(zones² + regions).
    ///
    /// An allocator may still refuse a configuration that passes this check, for example because a table has
    /// the wrong length or a span is too large.
    ///
    /// # Errors
    /// Returns the first contradiction that the check finds in the configuration.
    pub fn check(&self) -> Result<(), ConfigError> {
        if self.zones.is_empty() {
            return Err(ConfigError::NoZones);
        }
        if self.cpus.is_empty() {
            return Err(ConfigError::NoCpus);
        }
        if self.nodes() > MAX_NODES {
            return Err(ConfigError::BadNode((self.nodes() - 1) as u16));
        }
        let entries = self.nodes() * self.nodes();
        if self.distances.is_some_and(|matrix| matrix.len() != entries) {
            return Err(ConfigError::BadDistances(entries));
        }
        for (index, zone) in self.zones.iter().enumerate() {
            zone.check(index)?;
            for (other, earlier) in self.zones[..index].iter().enumerate() {
                let place = |zone: &super::ZoneConfig<'_>| (zone.node, zone.kind, zone.span.start);
                let in_order = place(earlier) < place(zone);
                let apart = earlier.span.end <= zone.span.start || zone.span.end <= earlier.span.start;
                if !in_order || !apart {
                    return Err(ConfigError::ZonesOverlap(other, index));
                }
            }
        }
        Ok(())
    }

    /// Writes the zonelists into `lists`. A node's zonelist has all zones, beginning with the zone that the
    /// node's CPUs try first (spec §1.13).
    ///
    /// # Errors
    /// An error if the length of `lists` is not nodes times zones.
    pub fn fill_zonelists(&self, lists: &mut [ZoneId]) -> Result<(), ConfigError> {
        let nodes = self.nodes();
        let entries = nodes * self.zones.len();
        if lists.len() != entries {
            return Err(ConfigError::TableLength("zonelists", entries));
        }
        fill_zonelists(lists, Distances { matrix: self.distances, nodes }, self);
        Ok(())
    }

    /// Number of frames that a zone keeps from requests that could use a higher zone (Linux's
    /// `lowmem_reserve`), indexed by the highest zone of the request (spec §1.10). `zone` is an index into
    /// `zones`.
    #[must_use]
    pub fn lowmem_reserve(&self, zone: usize) -> [u64; ZoneKind::COUNT] {
        let of = &self.zones[zone];
        let mut reserve = [0; ZoneKind::COUNT];
        let mut above = 0;
        for higher in ZoneKind::ALL.into_iter().filter(|higher| *higher > of.kind) {
            above += self
                .zones
                .iter()
                .filter(|other| (other.node, other.kind) == (of.node, higher))
                .map(super::ZoneConfig::managed)
                .sum::<u64>();
            let ratio = self.lowmem_reserve_ratio[of.kind.index()];
            if ratio != 0 && of.has_memory() {
                reserve[higher.index()] = above / u64::from(ratio);
            }
        }
        reserve
    }

    /// Memory to keep free, in KiB: the configured number, or the kernel's default for the memory of all
    /// zones up to `Normal` (spec §1.9).
    #[must_use]
    pub fn min_free_kbytes_or_default(&self) -> u64 {
        self.min_free_kbytes.unwrap_or_else(|| {
            let low = self.zones.iter().filter(|zone| zone.kind <= ZoneKind::Normal);
            let frames: u64 = low.map(super::ZoneConfig::managed).sum();
            default_min_free_kbytes(frames.saturating_mul(u64::from(self.page_bytes)) / 1024)
        })
    }

    /// The watermarks of a zone (spec §1.9). `zone` is an index into `zones`.
    #[must_use]
    pub fn watermarks(&self, zone: usize) -> Watermarks {
        let counts_as_low = |kind| !matches!(kind, ZoneKind::HighMem | ZoneKind::Movable);
        let low_zones = self.zones.iter().filter(|zone| counts_as_low(zone.kind));
        let settings = WatermarkSettings {
            pages_min: self.min_free_kbytes_or_default() / u64::from(self.page_bytes / 1024).max(1),
            scale_factor: self.watermark_scale_factor,
            lowmem: low_zones.map(super::ZoneConfig::managed).sum(),
        };
        let of = &self.zones[zone];
        settings.watermarks(WatermarkInputs { kind: of.kind, managed: of.managed() })
    }
}

impl Topology for Config<'_> {
    fn zones(&self) -> impl Iterator<Item = Option<(NodeId, ZoneKind)>> {
        self.zones.iter().map(|zone| zone.has_memory().then_some((zone.node, zone.kind)))
    }

    fn has_cpus(&self, node: NodeId) -> bool {
        self.cpus.contains(&node)
    }
}
