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

    super::zone::operations!();
}
