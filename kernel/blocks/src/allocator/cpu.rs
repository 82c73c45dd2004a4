//! CPUs that go off-line and come back.

use pageset_core::{ConfigError, CpuId};

use super::BlockAllocator;
use crate::access::Access;

impl<A: Access> BlockAllocator<'_, A> {
    /// Takes a CPU off-line. Other CPUs get the pageblocks that it reserves, and it reserves none any more.
    /// Operations that name it still work, because a thread may be on its way out. The next
    /// [`tick`](Self::tick) or [`drain_cpu`](Self::drain_cpu) for this CPU finds the pageblocks that such
    /// operations reserve.
    ///
    /// # Errors
    /// [`ConfigError::BadCpu`] for an unknown CPU.
    pub fn cpu_offline(&self, cpu: CpuId) -> Result<(), ConfigError> {
        self.check_cpu(cpu)?;
        self.zone_ids().for_each(|zone| self.lists_at(zone, cpu).activity.set_offline());
        self.drain_cpu(cpu)
    }

    /// Brings a CPU back on-line. At first, all CPUs are on-line.
    ///
    /// # Errors
    /// [`ConfigError::BadCpu`] for an unknown CPU.
    pub fn cpu_online(&self, cpu: CpuId) -> Result<(), ConfigError> {
        self.check_cpu(cpu)?;
        self.zone_ids().for_each(|zone| self.lists_at(zone, cpu).activity.set_online());
        Ok(())
    }
}
