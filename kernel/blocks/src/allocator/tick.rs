//! Makes a CPU give up its pageblocks: when it is idle, when it goes off-line, or on request.

use pageset_core::{ConfigError, CpuId, TickOutcome, ZoneId};

use super::BlockAllocator;
use crate::access::Access;

impl<A: Access> BlockAllocator<'_, A> {
    /// Does one CPU's periodic work. Call `tick` about once a second for each CPU, on any CPU.
    ///
    /// A CPU that was idle since the last tick gives up the pageblocks that it reserves, and its stock.
    ///
    /// # Errors
    /// [`ConfigError::BadCpu`] for an unknown CPU.
    pub fn tick(&self, cpu: CpuId) -> Result<TickOutcome, ConfigError> {
        self.check_cpu(cpu)?;
        let mut outcome = TickOutcome::Idle;
        for zone in self.zone_ids() {
            if self.share_at(zone, cpu).activity.age() {
                outcome = TickOutcome::Again;
            } else {
                self.unreserve_of(zone, cpu);
            }
        }
        Ok(outcome)
    }

    /// Gives up all pageblocks that a CPU keeps, so that other CPUs can use them.
    /// [`cpu_offline`](Self::cpu_offline) does this, too.
    ///
    /// # Errors
    /// [`ConfigError::BadCpu`] for an unknown CPU.
    pub fn drain_cpu(&self, cpu: CpuId) -> Result<(), ConfigError> {
        self.check_cpu(cpu)?;
        for zone in self.zone_ids() {
            self.share_at(zone, cpu).activity.age();
            self.unreserve_of(zone, cpu);
        }
        Ok(())
    }

    /// Gives up all pageblocks that any CPU keeps.
    pub fn drain_all(&self) {
        for cpu in 0..self.cpus() {
            let drained = self.drain_cpu(CpuId(cpu as u32));
            debug_assert!(drained.is_ok(), "it is one of the CPUs");
        }
    }

    pub(super) fn zone_ids(&self) -> impl Iterator<Item = ZoneId> {
        (0..self.zones.len()).map(|zone| ZoneId(zone as u16))
    }
}
