//! Taking pageblocks out of service and back.

use super::PageAllocator;
use crate::error::ConfigError;
use crate::platform::Platform;
use crate::{CpuId, MigrateType, Pfn};

impl<P: Platform> PageAllocator<'_, P> {
    /// Takes a pageblock out of service: its free frames leave the counts, and frames freed in it stay out too. Frames
    /// in page sets are not affected until they are drained.
    ///
    /// # Errors
    /// [`ConfigError::BadCpu`] for an unknown CPU, [`ConfigError::Foreign`] if the frame lies in no zone,
    /// [`ConfigError::AlreadyIsolated`] if the pageblock is out of service.
    pub fn isolate_pageblock(&self, cpu: CpuId, pfn: Pfn) -> Result<(), ConfigError> {
        self.check_cpu(cpu)?;
        let (zone, frame) = self.locate(pfn).ok_or(ConfigError::Foreign(pfn))?;
        let isolated = zone.with_lock(&self.platform, cpu, |zone| zone.isolate_pageblock(frame));
        if isolated { Ok(()) } else { Err(ConfigError::AlreadyIsolated(pfn)) }
    }

    /// Returns a pageblock to service as `migratetype`.
    ///
    /// # Errors
    /// [`ConfigError::BadCpu`] for an unknown CPU, [`ConfigError::Foreign`] if the frame lies in no zone,
    /// [`ConfigError::BadType`] for [`MigrateType::Isolate`], and for [`MigrateType::HighAtomic`], whose pageblocks the allocator chooses,
    /// [`ConfigError::NotIsolated`] if the pageblock is in service.
    pub fn unisolate_pageblock(
        &self,
        cpu: CpuId,
        pfn: Pfn,
        migratetype: MigrateType,
    ) -> Result<(), ConfigError> {
        self.check_cpu(cpu)?;
        let (zone, frame) = self.locate(pfn).ok_or(ConfigError::Foreign(pfn))?;
        // A reserve that is not counted as one would be given up for no request.
        if matches!(migratetype, MigrateType::Isolate | MigrateType::HighAtomic) {
            return Err(ConfigError::BadType(migratetype));
        }
        let returned =
            zone.with_lock(&self.platform, cpu, |zone| zone.unisolate_pageblock(frame, migratetype));
        if returned { Ok(()) } else { Err(ConfigError::NotIsolated(pfn)) }
    }
}
