//! Drains page sets on demand: the page sets of one CPU, the page sets of one zone, or all page sets (spec
//! §2.12).

use super::PageAllocator;
use crate::error::ConfigError;
use crate::event::DrainReason;
use crate::pcp::{CpuZone, DrainFrom, scaled};
use crate::platform::Platform;
use crate::policy::DemandDrain;
use crate::zone::Zone;
use crate::{CpuId, ZoneId};

impl<'a, P: Platform> PageAllocator<'a, P> {
    /// Empties all page sets of the CPU `owner`. `cpu` is the CPU that does the work. Returns the number of
    /// pages that went to the free lists.
    ///
    /// # Errors
    /// [`ConfigError::BadCpu`] if either CPU is unknown.
    pub fn drain_cpu(&self, cpu: CpuId, owner: CpuId) -> Result<u64, ConfigError> {
        self.check_cpu(cpu)?;
        self.check_cpu(owner)?;
        Ok(self.zones.iter().map(|zone| self.drain_pageset(cpu, zone, owner)).sum())
    }

    /// Empties all CPUs' page sets of one zone. Returns the number of pages that went to the free lists.
    ///
    /// # Errors
    /// [`ConfigError::BadCpu`] for an unknown CPU, [`ConfigError::BadZone`] for an unknown zone.
    pub fn drain_zone(&self, cpu: CpuId, zone: ZoneId) -> Result<u64, ConfigError> {
        self.check_cpu(cpu)?;
        Ok(self.drain_pagesets_of(cpu, self.zone(zone)?))
    }

    /// Empties all page sets. Returns the number of pages that went to the free lists.
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

    pub(super) fn drain_pageset(&self, cpu: CpuId, zone: &Zone<'a, P>, owner: CpuId) -> u64 {
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
            // If a page set is corrupted, its count may exceed the pages on its lists. A count that exceeds
            // the pages never becomes 0, so stop when a drain finds no page.
            if seen <= chunk || pages == 0 {
                return drained;
            }
        }
    }
}

impl<P: Platform> CpuZone<'_, '_, P> {
    /// Moves the blocks that other CPUs freed into the page set, and drains part of the page set under one
    /// hold of the page set's lock. The drain starts with list 0, unless the policy's drains are round-robin.
    /// `pages` is called with the number of pages that the page set holds, and returns how many of these
    /// pages to drain.
    pub(super) fn drain_some(self, reason: DrainReason, pages: impl FnOnce(i32) -> i32) -> u32 {
        self.pageset.with(|state| {
            self.take_in(state);
            let pages = pages(state.pcp.count);
            if pages <= 0 || state.pcp.count == 0 {
                return 0;
            }
            self.drain(state, DrainFrom { pages, list: 0 }, reason)
        })
    }
}
