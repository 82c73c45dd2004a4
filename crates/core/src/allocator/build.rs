//! Building an allocator in the caller's tables.

use core::sync::atomic::{AtomicU32, Ordering::Relaxed};

use super::settings::Settings;
use super::{Config, PageAllocator, TableCounts, Tables, ZoneConfig};
use crate::buddy::populate;
use crate::count::Count;
use crate::error::ConfigError;
use crate::numa::{Distances, MAX_NODES, Topology, fill_zonelists};
use crate::pcp::Pagesets;
use crate::platform::{Lock, Platform};
use crate::zone::Span;
use crate::zone::{Identity, Zone, default_min_free_kbytes};
use crate::{NodeId, ZoneId, ZoneKind};

impl<'a, P: Platform> PageAllocator<'a, P> {
    /// Builds an allocator: every frame of every region free, every CPU online, page sets empty.
    ///
    /// Writes the metadata of block heads and holes only, so a zone's cost is about its size in MiB divided by four.
    ///
    /// # Errors
    /// If a table has the wrong length, or the configuration contradicts itself; see [`ConfigError`].
    pub fn new(platform: P, config: &Config<'_>, mut tables: Tables<'a, P>) -> Result<Self, ConfigError> {
        check(config)?;
        tables.check(TableCounts::for_config(config))?;
        for (index, (zone, of)) in tables.zones.iter_mut().zip(config.zones).enumerate() {
            let span = Span::covering(of.span.clone()).ok_or(ConfigError::BadZoneSpan(index))?;
            let identity = Identity {
                id: ZoneId(index as u16),
                kind: of.kind,
                node: of.node,
                rules: config.policy.buddy,
            };
            let (body, buddy) = zone.body_and_buddy_mut();
            populate(body, buddy, identity, span, of.regions)?;
            zone.body.boost_factor.store(config.watermark_boost_factor, Relaxed);
            zone.body.spills_lower = spills_lower(config, of);
        }
        for (cpu, node) in tables.cpus.iter_mut().zip(config.cpus) {
            cpu.set_node(*node);
        }
        tables.pagesets.iter_mut().for_each(|pageset| pageset.set_scheme(config.policy.lists));
        let nodes = config.nodes();
        let distances = Distances { matrix: config.distances, nodes };
        fill_zonelists(&mut tables.zonelists, distances, config);
        reserve_lowmem(&tables.zones, nodes, config.lowmem_reserve_ratio);
        let min_free = config.min_free_kbytes.unwrap_or_else(|| {
            let low = tables.zones.iter().filter(|zone| zone.body.kind <= ZoneKind::Normal);
            let frames: u64 = low.map(|zone| zone.body.managed).sum();
            default_min_free_kbytes(frames.saturating_mul(u64::from(config.page_bytes)) / 1024)
        });
        let settings = Settings {
            min_free_kbytes: Count::new(),
            watermark_scale_factor: AtomicU32::new(config.watermark_scale_factor),
            high_fraction: AtomicU32::new(0),
        };
        settings.min_free_kbytes.set(min_free);
        let allocator = Self {
            platform,
            policy: config.policy,
            zones: tables.zones,
            pagesets: Pagesets::new(tables.pagesets, tables.cpus.len()),
            cpus: tables.cpus,
            zonelists: tables.zonelists,
            nodes,
            page_bytes: config.page_bytes,
            limits_update: Lock::<P, _>::new(()),
            settings,
        };
        allocator.update_watermarks();
        allocator.set_percpu_pagelist_high_fraction(config.percpu_pagelist_high_fraction)?;
        Ok(allocator)
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

fn check(config: &Config<'_>) -> Result<(), ConfigError> {
    if config.zones.is_empty() {
        return Err(ConfigError::NoZones);
    }
    if config.cpus.is_empty() {
        return Err(ConfigError::NoCpus);
    }
    if config.nodes() > MAX_NODES {
        return Err(ConfigError::BadNode((config.nodes() - 1) as u16));
    }
    let entries = config.nodes() * config.nodes();
    if config.distances.is_some_and(|matrix| matrix.len() != entries) {
        return Err(ConfigError::BadDistances(entries));
    }
    for (index, zone) in config.zones.iter().enumerate() {
        for (other, earlier) in config.zones[..index].iter().enumerate() {
            let in_order = (earlier.node, earlier.kind) < (zone.node, zone.kind);
            let apart = earlier.span.end <= zone.span.start || zone.span.end <= earlier.span.start;
            if !in_order || !apart {
                return Err(ConfigError::ZonesOverlap(other, index));
            }
        }
    }
    Ok(())
}

/// Whether a zone has a `Dma32` zone beside it that takes what would mix its pageblocks (spec §1.11).
fn spills_lower(config: &Config<'_>, zone: &ZoneConfig<'_>) -> bool {
    let lower = |other: &ZoneConfig<'_>| {
        let is_beside = other.node == zone.node && other.has_memory();
        other.kind == ZoneKind::Dma32 && (config.nodes() == 1 || is_beside)
    };
    zone.kind == ZoneKind::Normal && config.zones.iter().any(lower)
}

/// Keeps part of each zone back from requests that could use a higher one (spec §1.10).
fn reserve_lowmem<P: Platform>(zones: &[Zone<'_, P>], nodes: usize, ratios: [u32; ZoneKind::COUNT]) {
    for node in (0..nodes).map(|node| NodeId(node as u16)) {
        let of_node = |kind| zones.iter().find(|zone| zone.body.node == node && zone.body.kind == kind);
        for kind in ZoneKind::ALL {
            let Some(zone) = of_node(kind) else { continue };
            let mut above = 0;
            for higher in ZoneKind::ALL.into_iter().filter(|higher| *higher > kind) {
                above += of_node(higher).map_or(0, |zone| zone.body.managed);
                let reserve = match ratios[kind.index()] {
                    0 => 0,
                    ratio => above / u64::from(ratio),
                };
                let reserve = if zone.body.managed == 0 { 0 } else { reserve };
                zone.body.lowmem_reserve[higher.index()].set(reserve);
            }
        }
    }
}
