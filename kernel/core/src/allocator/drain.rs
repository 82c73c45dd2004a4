//! Drains page sets on demand: those of one CPU, of one zone, or all (spec §2.12).

use super::PageAllocator;
use crate::error::ConfigError;
use crate::event::DrainReason;
use crate::pcp::{CpuZone, DrainFrom, scaled};
use crate::platform::Platform;
use crate::policy::DemandDrain;
use crate::zone::Zone;
use crate::{CpuId, ZoneId};

impl<'a, P: Platform> PageAllocator<'a, P> {
    /// Empties all of one CPU's page sets, on behalf of `cpu`. Returns the pages returned to the free lists.
    ///
    /// # Errors
    /// [`ConfigError::BadCpu`] if either CPU is unknown.
    pub fn drain_cpu(&self, cpu: CpuId, owner: CpuId) -> Result<u64, ConfigError> {
        self.check_cpu(cpu)?;
        self.check_cpu(owner)?;
        Ok(self.zones.iter().map(|zone| self.drain_pageset(cpu, zone, owner)).sum())
    }

    /// Empties all CPUs' page sets of one zone. Returns the pages returned to the free lists.
    ///
    /// # Errors
    /// [`ConfigError::BadCpu`] for an unknown CPU, [`ConfigError::BadZone`] for an unknown zone.
    pub fn drain_zone(&self, cpu: CpuId, zone: ZoneId) -> Result<u64, ConfigError> {
        self.check_cpu(cpu)?;
        Ok(self.drain_pagesets_of(cpu, self.zone(zone)?))
    }

    /// Empties all page sets. Returns the pages returned to the free lists.
    ///
    /// # Errors
    /// [`ConfigError::BadCpu`] for an unknown CPU.
    pub fn drain_all(&self, cpu: CpuId) -> Result<u64, ConfigError> {
        self.check_cpu(cpu)?;
        Ok(self.drain_every_pageset(cpu))
    }

    pub(super) fn drain_every_pageset(&self, cpu: CpuId) -> u64 {
        self.zones.iter().map(|zone| self.drain_pagesets_of(cpu, zone)).sum()
    }

    pub(super) fn drain_pagesets_of(&self, cpu: CpuId, zone: &Zone<'a, P>) -> u64 {
        let owners = (0..self.cpus.len() as u32).map(CpuId);
        owners.map(|owner| self.drain_pageset(cpu, zone, owner)).sum()
    }

    fn drain_pageset(&self, cpu: CpuId, zone: &Zone<'a, P>, owner: CpuId) -> u64 {
        let at = self.pagesets.at(zone, owner, &self.policy, &self.platform);
        let at = CpuZone { cpu, ..at };
        let chunk = match self.policy.demand_drain {
            DemandDrain::Whole => i32::MAX,
            DemandDrain::Chunks => scaled(at.pageset.limits().batch, self.policy.scale_max),
        };
        let mut drained = 0;
        loop {
            let mut seen = 0;
            let pages = u64::from(at.drain_some(DrainReason::Demand, |count| {
                seen = count;
                count.min(chunk)
            }));
            drained += pages;
            // A corrupted page set may claim more pages than it holds. Stop when nothing comes out.
            if seen <= chunk || pages == 0 {
                return drained;
            }
        }
    }
}

impl<P: Platform> CpuZone<'_, '_, P> {
    /// Drains part of the page set, starting with list 0, under one hold of its lock. `pages` computes how
    /// many from the number of pages held.
    pub(super) fn drain_some(self, reason: DrainReason, pages: impl FnOnce(i32) -> i32) -> u32 {
        self.pageset.with(|state| {
            let pages = pages(state.pcp.count);
            if pages <= 0 || state.pcp.count == 0 {
                return 0;
            }
            self.drain(state, DrainFrom { pages, list: 0 }, reason)
        })
    }
}
