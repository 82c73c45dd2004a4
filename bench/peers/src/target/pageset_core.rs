//! `pageset-core` behind a spin lock per CPU: the kernel's page sets without the pool's fast path over them.

use pageset_bench::Host;
use pageset_core::{
    Config, CpuId, NodeId, Order, PageAllocator, Pfn, Request, Tables, ZoneConfig, ZoneKind, policy,
};

use super::Target;
use super::arena::Arena;
use super::block::Block;

/// CPUs that have page sets.
const CPUS: usize = 2;

/// One zone over an arena.
pub(super) struct Core {
    arena: Arena,
    pages: PageAllocator<'static, Host>,
}

impl Target for Core {
    type Block = Block;

    fn open(count: usize) -> Result<Self, String> {
        let span = 0..count as u64;
        let regions = [span.clone()];
        let zone = ZoneConfig { kind: ZoneKind::Normal, node: NodeId(0), span, regions: &regions };
        let zones = [zone];
        let config = Config::new(&zones, &[NodeId(0); CPUS]).with_policy(policy::LINUX_6_18);
        let tables = Tables::on_heap(&config).map_err(|error| error.to_string())?;
        let pages = PageAllocator::new(Host, &config, tables).map_err(|error| error.to_string())?;
        Ok(Self { arena: Arena::new(count)?, pages })
    }

    #[inline]
    fn alloc(&self, cpu: usize, order: u32) -> Option<Block> {
        let request = Request::new(Order::new(order as u8)?).movable();
        let pfn = self.pages.alloc(CpuId(cpu as u32), &request).ok()?;
        // SAFETY: the zone spans the arena's pages, and the core hands each out once.
        unsafe { self.arena.block(pfn.0 as usize) }
    }

    #[inline]
    fn free(&self, cpu: usize, block: Block, order: u32) {
        let pfn = Pfn(self.arena.page(block) as u64);
        let order = Order::new(order as u8).expect("it was allocated with this order");
        self.pages.free(CpuId(cpu as u32), pfn, order).expect("it is allocated");
    }

    #[inline]
    fn alloc_pages(&self, cpu: usize, pages: usize) -> Option<Block> {
        let request = Request::new(Order::ZERO).movable();
        let pfn = self.pages.alloc_exact(CpuId(cpu as u32), pages as u64, &request).ok()?;
        // SAFETY: the zone spans the arena's pages, and the core hands each out once.
        unsafe { self.arena.block(pfn.0 as usize) }
    }

    #[inline]
    fn free_pages(&self, cpu: usize, block: Block, pages: usize) {
        let first = self.arena.page(block) as u64;
        self.pages.free_range(CpuId(cpu as u32), first..first + pages as u64).expect("it is allocated");
    }
}
