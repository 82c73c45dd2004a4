//! Builds an allocator in the caller's tables.

use core::sync::atomic::{AtomicU32, Ordering::Relaxed};

use super::settings::Settings;
use super::{Config, PageAllocator, TableCounts, Tables, ZoneConfig};
use crate::buddy::populate;
use crate::count::Count;
use crate::error::ConfigError;
use crate::pcp::Pagesets;
use crate::platform::{Lock, Platform};
use crate::policy::HAS_LAB;
use crate::zone::Identity;
use crate::zone::Span;
use crate::{ZoneId, ZoneKind};

impl<'a, P: Platform> PageAllocator<'a, P> {
    /// Builds an allocator: each frame of each region is free, all CPUs are online, all page sets are empty.
    ///
    /// Writes the metadata of each free block's first frame, of each pageblock and of each frame in a hole,
    /// but not of all other frames. So the build of memory without holes takes a few writes for each 4 MiB.
    ///
    /// # Errors
    /// Returns an error if a table has the wrong length, a zone's span is too large, the configuration
    /// contradicts itself or has a bad setting, or the policy needs the feature `lab`. See [`ConfigError`].
    pub fn new(platform: P, config: &Config<'_>, mut tables: Tables<'a, P>) -> Result<Self, ConfigError> {
        config.check()?;
        if !HAS_LAB && let Some(rule) = config.policy.lab_rule() {
            return Err(ConfigError::NeedsLab(rule));
        }
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
            if config.policy.ownership().is_some() {
                zone.body.owners.fit(span.counts(), config.cpus.len())?;
            }
            zone.body.boost_factor.store(config.watermark_boost_factor, Relaxed);
            zone.body.spills_lower = spills_lower(config, of);
        }
        for (cpu, node) in tables.cpus.iter_mut().zip(config.cpus) {
            cpu.set_node(*node);
        }
        tables.pagesets.iter_mut().for_each(|pageset| pageset.set_scheme(config.policy.lists));
        let nodes = config.nodes();
        config.fill_zonelists(&mut tables.zonelists)?;
        for (index, zone) in tables.zones.iter().enumerate() {
            for (reserve, frames) in zone.body.lowmem_reserve.iter().zip(config.lowmem_reserve(index)) {
                reserve.set(frames);
            }
        }
        let min_free = config.min_free_kbytes_or_default();
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

/// Whether a request that prefers this zone uses a `Dma32` zone of the same node before it mixes types in a
/// pageblock (spec §1.11).
fn spills_lower(config: &Config<'_>, zone: &ZoneConfig<'_>) -> bool {
    let lower = |other: &ZoneConfig<'_>| {
        let is_beside = other.node == zone.node && other.has_memory();
        other.kind == ZoneKind::Dma32 && (config.nodes() == 1 || is_beside)
    };
    zone.kind == ZoneKind::Normal && config.zones.iter().any(lower)
}
