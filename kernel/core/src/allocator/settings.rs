//! Settings that an administrator may change while the allocator runs, and the values derived from them.

use core::sync::atomic::{AtomicU32, Ordering::Relaxed};

use super::PageAllocator;
use crate::count::Count;
use crate::error::ConfigError;
use crate::platform::Platform;
use crate::policy::{LimitInputs, MIN_HIGH_FRACTION};
use crate::zone::{Watermark, WatermarkInputs, WatermarkSettings, Watermarks, Zone, ZoneFlag};
use crate::{CpuId, MigrateType, PAGEBLOCK_FRAMES, ZoneId, ZoneKind};

/// The current values of the settings that a kernel has as sysctls.
#[derive(Debug)]
pub(super) struct Settings {
    pub(super) min_free_kbytes: Count,
    pub(super) watermark_scale_factor: AtomicU32,
    pub(super) high_fraction: AtomicU32,
}

impl<'a, P: Platform> PageAllocator<'a, P> {
    /// Sets `percpu_pagelist_high_fraction`. If the setting is 0, the policy computes the limits of page
    /// sets. Any other value must be at least 8 (spec §2.5). A page set uses the new limits from its next
    /// refill or free on. The call drains nothing.
    ///
    /// # Errors
    /// [`ConfigError::BadFraction`] for the values 1 to 7. The old value then stays.
    pub fn set_percpu_pagelist_high_fraction(&self, fraction: u32) -> Result<(), ConfigError> {
        if (1..MIN_HIGH_FRACTION).contains(&fraction) {
            return Err(ConfigError::BadFraction(fraction));
        }
        if self.settings.high_fraction.swap(fraction, Relaxed) != fraction {
            self.zones.iter().for_each(|zone| self.update_limits(zone));
        }
        Ok(())
    }

    /// Sets `min_free_kbytes`. Recomputes watermarks and limits, and ends boosts.
    pub fn set_min_free_kbytes(&self, kbytes: u64) {
        self.settings.min_free_kbytes.set(kbytes);
        self.update_watermarks();
    }

    /// Sets `watermark_scale_factor`, in 10 000ths of a zone. Recomputes watermarks and limits, and ends
    /// boosts.
    pub fn set_watermark_scale_factor(&self, factor: u32) {
        self.settings.watermark_scale_factor.store(factor, Relaxed);
        self.update_watermarks();
    }

    /// Sets `watermark_boost_factor`, in 10 000ths of the high watermark. If the factor is 0, no new boost
    /// begins, and a present boost stays.
    pub fn set_watermark_boost_factor(&self, factor: u32) {
        self.zones.iter().for_each(|zone| zone.body.boost_factor.store(factor, Relaxed));
    }

    /// Sets one zone's watermarks directly, for example to the values of a recording. Recomputes the limits
    /// of the zone's page sets, and ends the zone's boost. The next change of `min_free_kbytes` or
    /// `watermark_scale_factor`, or the next addition of memory, overrides the watermarks that this call
    /// sets.
    ///
    /// # Errors
    /// [`ConfigError::BadZone`] for an unknown zone.
    pub fn set_watermarks(&self, zone: ZoneId, watermarks: Watermarks) -> Result<(), ConfigError> {
        let zone = self.zone(zone)?;
        zone.body.marks.set(watermarks);
        self.update_limits(zone);
        Ok(())
    }

    /// Tells the allocator that the reclaimer started or stopped in a zone. While the reclaimer runs, most
    /// policies let page sets hold fewer pages (spec §2.9).
    ///
    /// # Errors
    /// [`ConfigError::BadZone`] for an unknown zone.
    pub fn set_reclaim_active(&self, zone: ZoneId, active: Reclaim) -> Result<(), ConfigError> {
        let zone = &self.zone(zone)?.body;
        match active {
            Reclaim::Active => zone.set(ZoneFlag::ReclaimActive),
            Reclaim::Idle => drop(zone.clear(ZoneFlag::ReclaimActive)),
        }
        Ok(())
    }

    /// Marks a zone as below its high watermark, or clears the mark. The allocator itself maintains the mark,
    /// so only a replay needs this call, to set the mark from a recording.
    ///
    /// # Errors
    /// [`ConfigError::BadZone`] for an unknown zone.
    pub fn set_below_high(&self, zone: ZoneId, below: BelowHighMark) -> Result<(), ConfigError> {
        let zone = &self.zone(zone)?.body;
        match below {
            BelowHighMark::Below => zone.set(ZoneFlag::BelowHigh),
            BelowHighMark::Cleared => drop(zone.clear(ZoneFlag::BelowHigh)),
        }
        Ok(())
    }

    /// Lowers a zone's watermark boost by `frames`. Pass the boost that the zone had when the reclaimer
    /// started (spec §1.6). The boost never falls below zero.
    ///
    /// # Errors
    /// [`ConfigError::BadCpu`] for an unknown CPU, [`ConfigError::BadZone`] for an unknown zone.
    pub fn end_boost(&self, cpu: CpuId, zone: ZoneId, frames: u64) -> Result<(), ConfigError> {
        self.check_cpu(cpu)?;
        self.zone(zone)?.with_lock(&self.platform, cpu, |zone| {
            let marks = &zone.body.marks;
            marks.set_boost(marks.boost().saturating_sub(frames));
        });
        Ok(())
    }

    /// Recomputes every zone's watermarks and limits, ends boosts, and switches the grouping by mobility on
    /// or off (spec §1.9, §2.4).
    pub(super) fn update_watermarks(&self) {
        let counts_as_low = |kind| !matches!(kind, ZoneKind::HighMem | ZoneKind::Movable);
        let low_zones = self.zones.iter().filter(|zone| counts_as_low(zone.body.kind));
        let kbytes_per_page = u64::from(self.page_bytes / 1024).max(1);
        let settings = WatermarkSettings {
            pages_min: self.settings.min_free_kbytes.get() / kbytes_per_page,
            scale_factor: self.settings.watermark_scale_factor.load(Relaxed),
            lowmem: low_zones.map(|zone| zone.body.managed.get()).sum(),
        };
        for zone in self.zones.iter() {
            let inputs = WatermarkInputs { kind: zone.body.kind, managed: zone.body.managed.get() };
            zone.body.marks.set(settings.watermarks(inputs));
            self.update_limits(zone);
        }
        self.update_mobility_grouping();
    }

    /// Recomputes the limits of one zone's page sets, and stores these limits in the zone's page sets of all
    /// CPUs.
    pub(super) fn update_limits(&self, zone: &Zone<'_, P>) {
        let _held = self.limits_update.lock();
        let online = |node: Option<_>| {
            self.cpus
                .iter()
                .filter(|cpu| cpu.is_online() && node.is_none_or(|node| cpu.node() == node))
                .count() as u32
        };
        let inputs = LimitInputs {
            managed: zone.body.managed.get(),
            low_watermark: zone.body.marks.boosted(Watermark::Low),
            sharers: match online(Some(zone.body.node)) {
                0 => online(None),
                sharers => sharers,
            },
            fraction: self.settings.high_fraction.load(Relaxed),
            page_bytes: self.page_bytes,
        };
        let limits = self.policy.high.limits(self.policy.batch, &inputs);
        self.pagesets.of_zone(zone.body.id).iter().for_each(|pageset| pageset.set_limits(limits));
    }

    /// Switches the grouping of pageblocks by mobility on or off in all zones. The grouping is off if memory
    /// is too small for a pageblock of each type (spec §1.6).
    fn update_mobility_grouping(&self) {
        let beyond_high = |zone: &Zone<'_, P>| {
            zone.body.managed.get().saturating_sub(zone.body.marks.boosted(Watermark::High))
        };
        let usable: u64 = self.zones.iter().map(beyond_high).sum();
        let grouped = usable >= u64::from(PAGEBLOCK_FRAMES) * MigrateType::COUNT as u64;
        self.zones.iter().for_each(|zone| zone.body.mobility_grouping.store(grouped, Relaxed));
    }
}

/// Whether the reclaimer runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reclaim {
    /// The reclaimer runs.
    Active,
    /// The reclaimer does not run.
    Idle,
}

/// Whether a zone is marked as below its high watermark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BelowHighMark {
    /// The zone is marked.
    Below,
    /// The zone is not marked.
    Cleared,
}
