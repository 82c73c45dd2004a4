//! The interface between the model and the core's allocator.

use std::ops::Range;

use pageset_core::{
    BelowHighMark, BlockInfo, BlockUse, CacheSlice, ConfigError, Counters, CpuId, FreeError, FreeTraits,
    MigrateType, Order, Pfn, Policy, Reclaim, Watermarks, ZoneId,
};

use super::owners::Owners;
use crate::family::machine::Machine;
use crate::family::model::{Model, around};
use crate::family::operation::Operation;
use crate::family::subject::{Administered, Promises, Subject, administered};
use crate::host::{Allocator, build};
use crate::steady;

/// A [`PageAllocator`](pageset_core::PageAllocator) and its counters at the last check.
pub(crate) struct PageSubject {
    allocator: Allocator,
    counters: Counters,
}

impl PageSubject {
    pub(crate) fn new(machine: &Machine, policy: Policy) -> Self {
        let allocator = machine.with_config(|config| build(&config.with_policy(policy)));
        Self { allocator, counters: Counters::default() }
    }

    fn has_cma(&self) -> bool {
        self.allocator.zones().any(|zone| {
            let pageblocks = zone.span.clone().step_by(512).chain([zone.span.end - 1]);
            pageblocks
                .into_iter()
                .any(|pfn| self.allocator.pageblock_type(Pfn(pfn)) == Some(MigrateType::Cma))
        })
    }

    fn drain_zone(&self, model: &Model, cpu: u32, zone: u16) {
        let expected = model.cpu_answer(cpu).and(model.zone_answer(zone));
        assert_eq!(self.allocator.drain_zone(CpuId(cpu), ZoneId(zone)).map(drop), expected);
        for cpu in (0..model.machine.cpus.len() as u32).filter(|_| expected.is_ok()) {
            let info = self.allocator.pageset_info(ZoneId(zone), CpuId(cpu));
            assert_eq!(info.map(|info| info.count), Some(0));
        }
    }
}

administered! {
    Allocator,
    fn drain_cpu(&self, cpu: CpuId, of: CpuId) -> Result<(), ConfigError> {
        Self::drain_cpu(self, cpu, of).map(drop)
    }
    fn drain_all(&self, cpu: CpuId) -> Result<(), ConfigError> {
        Self::drain_all(self, cpu).map(drop)
    }
}

impl Subject for PageSubject {
    type Allocator = Allocator;

    fn allocator(&self) -> &Allocator {
        &self.allocator
    }

    fn promises(&self) -> Promises {
        Promises { tells_double_frees: true, finds_blocks: false, keeps_isolated: false }
    }

    /// Frees the block, and checks that the right page set receives the block: the page set of the
    /// pageblock's owner, or else of the freeing CPU.
    fn free(&mut self, cpu: CpuId, pfn: Pfn, order: Order, traits: FreeTraits) -> Result<(), FreeError> {
        let receiver = Owners::receiver(&self.allocator, cpu, pfn, order, traits);
        let outcome = self.allocator.free_with(cpu, pfn, order, traits);
        if outcome.is_ok() {
            receiver.check(&self.allocator);
        }
        outcome
    }

    fn has_type(&self, migratetype: MigrateType) -> bool {
        !matches!(migratetype, MigrateType::Isolate | MigrateType::HighAtomic)
    }

    /// Returns 0 if the machine has contiguous areas, because their free pages serve only movable requests.
    fn free_in(&self, zone: usize) -> u64 {
        if self.has_cma() {
            return 0;
        }
        self.allocator.zones().nth(zone).map_or(0, |zone| zone.free)
    }

    fn goes_with(&self, pfn: Pfn) -> Option<(Pfn, Order)> {
        let cached = self.allocator.block_of(pfn).filter(|block| block.held_by == BlockUse::Pageset);
        cached.map(|block| (block.first, block.order))
    }

    fn check_drained(&self, cpu: CpuId) {
        for zone in self.allocator.zones() {
            let info = self.allocator.pageset_info(zone.id, cpu);
            assert_eq!(info.map(|info| info.count), Some(0));
        }
    }

    fn own(&self, model: &Model, operation: &Operation) {
        use Operation::*;
        let allocator = &self.allocator;
        match *operation {
            DrainZone(cpu, zone) => self.drain_zone(model, cpu, zone),
            Fraction(fraction) => {
                let expected =
                    if (1..8).contains(&fraction) { Err(ConfigError::BadFraction(fraction)) } else { Ok(()) };
                assert_eq!(allocator.set_percpu_pagelist_high_fraction(fraction), expected);
            }
            ScaleFactor(factor) => allocator.set_watermark_scale_factor(factor),
            BoostFactor(factor) => allocator.set_watermark_boost_factor(factor),
            EndBoost(cpu, zone, frames) => {
                let expected = model.cpu_answer(cpu).and(model.zone_answer(zone));
                assert_eq!(allocator.end_boost(CpuId(cpu), ZoneId(zone), frames), expected);
            }
            SetReclaim(zone, active) => {
                let state = if active { Reclaim::Active } else { Reclaim::Idle };
                assert_eq!(allocator.set_reclaim_active(ZoneId(zone), state), model.zone_answer(zone));
            }
            SetBelowHigh(zone, below) => {
                let mark = if below { BelowHighMark::Below } else { BelowHighMark::Cleared };
                assert_eq!(allocator.set_below_high(ZoneId(zone), mark), model.zone_answer(zone));
            }
            SetCacheSlice(cpu, kib) => {
                let slice = CacheSlice { all_kib: kib, last_level_kib: kib };
                assert_eq!(allocator.set_cache_slice(CpuId(cpu), slice), model.cpu_answer(cpu));
            }
            _ => unreachable!("{operation:?} is the family's"),
        }
    }

    fn look(&self, model: &Model, cpu: u32, zone: usize, pfn: u64) {
        let (allocator, frame) = (&self.allocator, Pfn(pfn));
        let pageblock = model.pageblock_of(pfn);
        assert_eq!(allocator.zone_of(frame), pageblock.map(|(zone, _)| zone));
        assert_eq!(allocator.pageblock_type(frame).is_some(), pageblock.is_some());
        if let Some(pageblock) = pageblock {
            let is_isolated = model.isolated.contains(&pageblock);
            assert_eq!(allocator.pageblock_type(frame) == Some(MigrateType::Isolate), is_isolated);
        }
        let held = |(start, order), held_by| Some(BlockInfo { first: Pfn(start), order, held_by });
        let block = allocator.block_of(frame);
        if let Some(owned) = model.around(pfn) {
            assert_eq!(block, held(owned, BlockUse::Owner));
            assert!(allocator.is_allocated(Pfn(owned.0), owned.1));
        } else if let Some(leaked) = around(&model.leaked, pfn) {
            assert_eq!(block, held(leaked, BlockUse::Leaked));
        } else {
            assert_eq!(block.is_some(), model.machine.is_memory(pfn));
            assert!(
                block.is_none_or(|block| matches!(block.held_by, BlockUse::FreeList | BlockUse::Pageset))
            );
            assert!(Order::ZERO.and_above().all(|order| !allocator.is_allocated(frame, order)));
        }
        let id = ZoneId((zone % 5) as u16);
        let has_zone = model.zone_answer(id.0).is_ok();
        assert_eq!(allocator.zone_counters(id).is_some(), has_zone);
        assert_eq!(allocator.pageset_info(id, CpuId(cpu)).is_some(), has_zone && model.knows(cpu));
        assert_eq!(allocator.pageset_counters(id, CpuId(cpu)).is_some(), has_zone && model.knows(cpu));
    }

    fn check(&mut self, model: &Model) {
        steady::check_all(&self.allocator, &mut self.counters, model.lost_by_users);
        Owners::check(&self.allocator, model);
    }

    fn finish(&self, _: &Model) {}
}
