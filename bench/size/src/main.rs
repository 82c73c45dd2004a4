//! A kernel's minimum: it builds an allocator from tables of zeros, and takes and frees blocks. `ci/size.sh`
//! measures how much code the linker keeps.
#![no_std]
#![no_main]

use core::panic::PanicInfo;

#[panic_handler]
fn panic(_: &PanicInfo<'_>) -> ! {
    loop {}
}

#[cfg(feature = "blocks")]
mod blocks {
    use pageset_blocks::{BlockAllocator, TableCounts, table_memory};
    use pageset_core::{Config, CpuId, NodeId, Order, Pfn, Request, ZoneConfig, ZoneKind};

    /// 1 GiB in one zone, two CPUs.
    const COUNTS: TableCounts = TableCounts::new((1 << 18) / 512, 1, 2, 1);

    #[unsafe(no_mangle)]
    fn boot(memory: &'static mut table_memory!(COUNTS), first: u64) -> Option<BlockAllocator<'static>> {
        let regions = [first..1 << 18];
        let zones =
            [ZoneConfig { kind: ZoneKind::Normal, node: NodeId(0), span: 0..1 << 18, regions: &regions }];
        let config = Config::new(&zones, &[NodeId(0); 2]);
        BlockAllocator::new(&config, memory.tables(&config).ok()?).ok()
    }

    #[unsafe(no_mangle)]
    fn page_alloc(allocator: &BlockAllocator<'_>, cpu: u32, order: u8) -> Option<u64> {
        let pfn = allocator.alloc(CpuId(cpu), &Request::new(Order::new(order)?)).ok()?;
        Some(pfn.0)
    }

    #[unsafe(no_mangle)]
    fn page_free(allocator: &BlockAllocator<'_>, cpu: u32, pfn: u64, order: u8) -> bool {
        Order::new(order).is_some_and(|order| allocator.free(CpuId(cpu), Pfn(pfn), order).is_ok())
    }
}

#[cfg(feature = "core")]
#[path = "../../src/spin.rs"]
mod spin;

#[cfg(feature = "core")]
mod linux {
    use pageset_core::{
        Config, CpuId, CpuMemory, FrameMemory, NodeId, Order, PageAllocator, Pfn, Platform, Request, Zone,
        ZoneConfig, ZoneKind,
    };

    pub(crate) struct Kernel;

    impl Platform for Kernel {
        type RawLock = crate::spin::Spin;
        type Events = ();

        fn events(&self) -> &() {
            &()
        }
    }

    const CPUS: usize = 2;
    /// 64 MiB in one zone.
    const FRAMES: usize = 1 << 14;

    #[unsafe(no_mangle)]
    fn boot(
        frames: &'static mut FrameMemory<FRAMES, { FRAMES / 512 }>,
        cpus: &'static mut CpuMemory<Kernel, CPUS>,
        zone: &'static mut Option<[Zone<'static, Kernel>; 1]>,
        first: u64,
    ) -> Option<PageAllocator<'static, Kernel>> {
        let regions = [first..FRAMES as u64];
        let span = 0..FRAMES as u64;
        let zones = [ZoneConfig { kind: ZoneKind::Normal, node: NodeId(0), span, regions: &regions }];
        let tables = cpus.tables(zone.insert([Zone::new(frames.tables())]));
        PageAllocator::new(Kernel, &Config::new(&zones, &[NodeId(0); CPUS]), tables).ok()
    }

    #[unsafe(no_mangle)]
    fn page_alloc(allocator: &PageAllocator<'_, Kernel>, cpu: u32, order: u8) -> Option<u64> {
        let pfn = allocator.alloc(CpuId(cpu), &Request::new(Order::new(order)?)).ok()?;
        Some(pfn.0)
    }

    #[unsafe(no_mangle)]
    fn page_free(allocator: &PageAllocator<'_, Kernel>, cpu: u32, pfn: u64, order: u8) -> bool {
        Order::new(order).is_some_and(|order| allocator.free(CpuId(cpu), Pfn(pfn), order).is_ok())
    }
}
