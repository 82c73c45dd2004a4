//! CPUs that come and go.

use pageset_core::{ConfigError, CpuId};

use super::BlockAllocator;
use crate::access::Access;

impl<A: Access> BlockAllocator<'_, A> {
    /// Takes a CPU off-line: others get all that it has, and it keeps no pageblocks any more. Operations that name it still work (a
    /// thread may be on its way out); what they leave behind is found by the next [`tick`](Self::tick) or
    /// [`drain_cpu`](Self::drain_cpu) of it.
    ///
    /// # Errors
    /// [`ConfigError::BadCpu`] for an unknown CPU.
    pub fn cpu_offline(&self, cpu: CpuId) -> Result<(), ConfigError> {
        self.check_cpu(cpu)?;
        self.zone_ids().for_each(|zone| self.lists_at(zone, cpu).activity.set_offline());
        self.drain_cpu(cpu)
    }

    /// Brings a CPU back; all are on-line at first.
    ///
    /// # Errors
    /// [`ConfigError::BadCpu`] for an unknown CPU.
    pub fn cpu_online(&self, cpu: CpuId) -> Result<(), ConfigError> {
        self.check_cpu(cpu)?;
        self.zone_ids().for_each(|zone| self.lists_at(zone, cpu).activity.set_online());
        Ok(())
    }
}
