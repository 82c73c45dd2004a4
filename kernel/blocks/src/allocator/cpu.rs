//! CPUs that go off-line and come back.

use pageset_core::{ConfigError, CpuId};

use super::BlockAllocator;
use crate::access::Access;

impl<A: Access> BlockAllocator<'_, A> {
    /// Takes a CPU off-line. The CPU gives up the pageblocks that it keeps, so that other CPUs can use them.
    /// Operations that name the CPU still work, because a thread may still run on it. An operation that names
    /// the off-line CPU may reserve a pageblock for the CPU again. The next [`tick`](Self::tick) or
    /// [`drain_cpu`](Self::drain_cpu) for this CPU gives up that pageblock.
    ///
    /// # Errors
    /// [`ConfigError::BadCpu`] for an unknown CPU.
    pub fn cpu_offline(&self, cpu: CpuId) -> Result<(), ConfigError> {
        self.check_cpu(cpu)?;
        self.zone_ids().for_each(|zone| self.share_at(zone, cpu).activity.set_offline());
        self.drain_cpu(cpu)
    }

    /// Brings a CPU back on-line. At first, all CPUs are on-line.
    ///
    /// # Errors
    /// [`ConfigError::BadCpu`] for an unknown CPU.
    pub fn cpu_online(&self, cpu: CpuId) -> Result<(), ConfigError> {
        self.check_cpu(cpu)?;
        self.zone_ids().for_each(|zone| self.share_at(zone, cpu).activity.set_online());
        Ok(())
    }
}
