//! Takes pageblocks out of service, and puts pageblocks back into service.

use super::PageAllocator;
use crate::error::ConfigError;
use crate::platform::Platform;
use crate::{CpuId, MigrateType, Pfn};

impl<P: Platform> PageAllocator<'_, P> {
    /// Takes a pageblock out of service. The pageblock's free frames no longer count as free. A frame that is
    /// in use goes out of service when its user frees the frame. A frame in a page set goes out of service
    /// when the page set drains the frame.
    ///
    /// # Errors
    /// [`ConfigError::BadCpu`] for an unknown CPU, [`ConfigError::Foreign`] if the frame lies in no zone,
    /// [`ConfigError::AlreadyIsolated`] if the pageblock is out of service already.
    pub fn isolate_pageblock(&self, cpu: CpuId, pfn: Pfn) -> Result<(), ConfigError> {
        self.check_cpu(cpu)?;
        let (zone, frame) = self.locate(pfn).ok_or(ConfigError::Foreign(pfn))?;
        let isolated = zone.with_lock(&self.platform, cpu, |zone| zone.isolate_pageblock(frame));
        if isolated { Ok(()) } else { Err(ConfigError::AlreadyIsolated(pfn)) }
    }

    /// Puts a pageblock back into service with the type `migratetype`.
    ///
    /// # Errors
    /// [`ConfigError::BadCpu`] for an unknown CPU, [`ConfigError::Foreign`] if the frame lies in no zone,
    /// [`ConfigError::NotIsolated`] if the pageblock is in service. [`ConfigError::BadType`] for
    /// [`MigrateType::Isolate`], and for [`MigrateType::HighAtomic`], since the allocator itself chooses the
    /// pageblocks of the reserve for atomic requests.
    pub fn unisolate_pageblock(
        &self,
        cpu: CpuId,
        pfn: Pfn,
        migratetype: MigrateType,
    ) -> Result<(), ConfigError> {
        self.check_cpu(cpu)?;
        let (zone, frame) = self.locate(pfn).ok_or(ConfigError::Foreign(pfn))?;
        // Refuse `Isolate`, because this type means out of service. Refuse `HighAtomic`, because the reserve
        // would not count this pageblock.
        if matches!(migratetype, MigrateType::Isolate | MigrateType::HighAtomic) {
            return Err(ConfigError::BadType(migratetype));
        }
        let returned =
            zone.with_lock(&self.platform, cpu, |zone| zone.unisolate_pageblock(frame, migratetype));
        if returned { Ok(()) } else { Err(ConfigError::NotIsolated(pfn)) }
    }
}
