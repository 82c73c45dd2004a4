//! `pageset-blocks` alone: pageblocks that CPUs own, called with a CPU number.

use pageset_blocks::{BlockAllocator, Tables};
use pageset_core::{Config, CpuId, NodeId, Order, Pfn, Request, ZoneConfig, ZoneKind};

use super::Target;
use super::arena::Arena;
use super::block::Block;

/// CPUs that may own pageblocks.
const CPUS: usize = 2;

/// One zone over an arena.
pub(super) struct Blocks {
    arena: Arena,
    pages: BlockAllocator<'static>,
}

impl Target for Blocks {
    type Block = Block;

    fn open(count: usize) -> Result<Self, String> {
        let span = 0..count as u64;
        let regions = [span.clone()];
        let zone = ZoneConfig { kind: ZoneKind::Normal, node: NodeId(0), span, regions: &regions };
        let zones = [zone];
        let config = Config::new(&zones, &[NodeId(0); CPUS]);
        let tables = Tables::on_heap(&config).map_err(|error| error.to_string())?;
        let pages = BlockAllocator::new(&config, tables).map_err(|error| error.to_string())?;
        Ok(Self { arena: Arena::new(count)?, pages })
    }

    #[inline]
    fn alloc(&self, cpu: usize, order: u32) -> Option<Block> {
        let request = Request::new(Order::new(order as u8)?).movable();
        let pfn = self.pages.alloc(CpuId(cpu as u32), &request).ok()?;
        // SAFETY: the zone spans the arena's pages, and the allocator hands each out once.
        unsafe { self.arena.block(pfn.0 as usize) }
    }

    #[inline]
    fn free(&self, cpu: usize, block: Block, order: u32) {
        let pfn = Pfn(self.arena.page(block) as u64);
        let order = Order::new(order as u8).expect("it was allocated with this order");
        self.pages.free(CpuId(cpu as u32), pfn, order).expect("it is allocated");
    }
}
