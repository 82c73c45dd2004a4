//! Lets the model of `pageset-core`'s tests drive a [`BlockAllocator`].

use std::collections::BTreeMap;
use std::ops::Range;

use pageset_blocks::{BlockAllocator, Tables};
use pageset_core::{
    ConfigError, CpuId, FrameAllocator, FreeError, FreeTraits, MigrateType, Order, Pfn, Watermarks, ZoneId,
};

use crate::family::machine::Machine;
use crate::family::model::{Model, around};
use crate::family::operation::Operation;
use crate::family::subject::{Administered, Promises, Subject, administered};

/// A [`BlockAllocator`].
pub(crate) struct BlockSubject {
    allocator: BlockAllocator<'static>,
}

impl BlockSubject {
    pub(crate) fn new(machine: &Machine) -> Self {
        let allocator = machine.with_config(|config| {
            let tables = Tables::on_heap(&config).expect("spans of a sensible size");
            BlockAllocator::new(&config, tables).expect("a configuration without contradictions")
        });
        Self { allocator }
    }
}

administered! {
    BlockAllocator<'static>,
    fn drain_cpu(&self, cpu: CpuId, of: CpuId) -> Result<(), ConfigError> {
        known(self, cpu)?;
        Self::drain_cpu(self, of)
    }
    fn drain_all(&self, cpu: CpuId) -> Result<(), ConfigError> {
        known(self, cpu)?;
        Self::drain_all(self);
        Ok(())
    }
}

/// The model expects an error for a drain on a CPU that does not exist. `drain_all` of a `BlockAllocator`
/// names no CPU.
fn known(allocator: &BlockAllocator<'_>, cpu: CpuId) -> Result<(), ConfigError> {
    if cpu.index() < allocator.cpus() { Ok(()) } else { Err(ConfigError::BadCpu(cpu.0)) }
}

impl Subject for BlockSubject {
    type Allocator = BlockAllocator<'static>;

    fn allocator(&self) -> &Self::Allocator {
        &self.allocator
    }

    fn promises(&self) -> Promises {
        Promises { tells_double_frees: true, finds_blocks: true, keeps_isolated: true }
    }

    fn free(&mut self, cpu: CpuId, pfn: Pfn, order: Order, _: FreeTraits) -> Result<(), FreeError> {
        self.allocator.free(cpu, pfn, order)
    }

    fn has_type(&self, migratetype: MigrateType) -> bool {
        migratetype.is_mergeable()
    }

    fn free_in(&self, zone: usize) -> u64 {
        self.allocator.zones().nth(zone).map_or(0, |zone| zone.free)
    }

    fn goes_with(&self, _: Pfn) -> Option<(Pfn, Order)> {
        None
    }

    /// `usage` adds up all CPUs. So this function checks only machines with one CPU.
    fn check_drained(&self, _: CpuId) {
        if self.allocator.cpus() == 1 {
            let usage = self.allocator.usage();
            assert_eq!((usage.held, usage.at_hand), (0, 0));
        }
    }

    /// Does nothing. Only `PageAllocator` has calls for page sets, boosts, the reclaimer and a new watermark
    /// scale factor.
    fn own(&self, _: &Model, _: &Operation) {}

    fn look(&self, model: &Model, _: u32, _: usize, pfn: u64) {
        let frame = Pfn(pfn);
        assert_eq!(self.allocator.zone_of(frame), model.pageblock_of(pfn).map(|(zone, _)| zone));
        let owner = self.allocator.owner_of(frame);
        assert!(owner.is_none_or(|owner| model.knows(owner.0)), "{owner:?} is no CPU");
        if model.around(pfn).is_some() {
            assert!(self.allocator.pageblock_type(frame).is_some(), "{pfn:#x} is in use");
        }
    }

    fn check(&mut self, model: &Model) {
        for (zone, of) in self.allocator.zones().enumerate() {
            assert_eq!(of.free, model.free_in(zone), "zone {zone}");
            let isolated = model.isolated.iter().filter(|(id, _)| id.index() == zone);
            assert_eq!(of.isolated_pageblocks, isolated.count() as u64, "zone {zone}");
        }
    }

    /// Checks that each pageblock without frames in use is whole.
    fn finish(&self, model: &Model) {
        let whole: u64 = self.allocator.zones().map(|zone| zone.whole_pageblocks).sum();
        assert_eq!(whole, model.whole_pageblocks());
    }
}

impl Model {
    /// Pageblocks that are completely free after everything was freed.
    fn whole_pageblocks(&self) -> u64 {
        let has_loss = |(_, pageblock): (ZoneId, u64)| {
            let frames = pageblock * 512..(pageblock + 1) * 512;
            around(&self.leaked, frames.start).is_some() || self.leaked.range(frames).next().is_some()
        };
        let is_whole = |pageblock: &(ZoneId, u64)| {
            self.is_all_memory(*pageblock) && !has_loss(*pageblock) && !self.isolated.contains(pageblock)
        };
        self.pageblocks().filter(is_whole).count() as u64
    }

    /// Free frames of a zone that are in service.
    fn free_in(&self, zone: usize) -> u64 {
        let shape = &self.machine.zones[zone];
        let managed: u64 = shape.regions.iter().map(|region| region.end - region.start).sum();
        let in_zone = |blocks: &BTreeMap<u64, Order>| -> u64 {
            blocks.range(shape.span.clone()).map(|(_, order)| u64::from(order.frames())).sum()
        };
        let isolated = self.isolated.iter().filter(|(id, _)| id.index() == zone);
        let free_isolated: u64 = isolated.map(|pageblock| self.free_in_pageblock(*pageblock)).sum();
        managed - in_zone(&self.blocks) - in_zone(&self.leaked) - free_isolated
    }

    fn free_in_pageblock(&self, pageblock: (ZoneId, u64)) -> u64 {
        let is_free = |pfn: &u64| self.around(*pfn).is_none() && around(&self.leaked, *pfn).is_none();
        self.memory_of(pageblock).flatten().filter(is_free).count() as u64
    }
}
