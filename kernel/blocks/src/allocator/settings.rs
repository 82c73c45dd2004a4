//! Settings that an administrator may change while the allocator runs.

use pageset_core::{ConfigError, WatermarkInputs, WatermarkSettings, Watermarks, ZoneId, ZoneKind};

use super::BlockAllocator;
use crate::access::Access;
use crate::atomic::Relaxed;

impl<A: Access> BlockAllocator<'_, A> {
    /// Sets `min_free_kbytes` and computes all watermarks anew (spec §1.9).
    pub fn set_min_free_kbytes(&self, kbytes: u64) {
        self.min_free_kbytes.store(usize::try_from(kbytes).unwrap_or(usize::MAX), Relaxed);
        self.update_watermarks();
    }

    /// Computes all watermarks from the managed memory.
    pub(super) fn update_watermarks(&self) {
        let kbytes = self.min_free_kbytes.load(Relaxed) as u64;
        let counts_as_low = |kind| !matches!(kind, ZoneKind::HighMem | ZoneKind::Movable);
        let low_zones = self.zones.iter().filter(|zone| counts_as_low(zone.kind));
        let settings = WatermarkSettings {
            pages_min: kbytes / u64::from(self.page_bytes / 1024).max(1),
            scale_factor: self.watermark_scale_factor,
            lowmem: low_zones.map(|zone| zone.managed()).sum(),
        };
        for zone in self.zones.iter() {
            zone.set_marks(settings.watermarks(WatermarkInputs { kind: zone.kind, managed: zone.managed() }));
        }
    }

    /// Sets one zone's watermarks directly, for example from a recording. The next
    /// [`set_min_free_kbytes`](Self::set_min_free_kbytes) or [`add_memory`](Self::add_memory) replaces these
    /// watermarks.
    ///
    /// # Errors
    /// [`ConfigError::BadZone`] for an unknown zone.
    pub fn set_watermarks(&self, zone: ZoneId, watermarks: Watermarks) -> Result<(), ConfigError> {
        let zone = self.zones.get(zone.index()).ok_or(ConfigError::BadZone(zone))?;
        zone.set_marks(watermarks);
        Ok(())
    }
}
