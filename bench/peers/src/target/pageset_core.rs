//! `pageset-core` behind a spin lock for each CPU: the kernel's page sets without the pool's fast path.

use pageset_bench::Host;
use pageset_core::{CpuId, Order, PageAllocator, Pfn, Request, Tables, policy};

use super::Target;
use super::arena::Arena;
use super::block::Block;

/// One zone over an arena.
pub(super) struct Core {
    arena: Arena,
    pages: PageAllocator<'static, Host>,
}

impl Target for Core {
    type Block = Block;

    fn open(count: usize) -> Result<Self, String> {
        let pages = super::zone::of_pages(count, |config| {
            let config = config.with_policy(policy::LINUX_6_18);
            PageAllocator::new(Host, &config, Tables::on_heap(&config)?)
        })?;
        Ok(Self { arena: Arena::new(count)?, pages })
    }

    super::zone::operations!();
}
