//! Tests the answers of `block_of` about a frame that is free, allocated, in a page set, and free again. Also
//! tests the answer of `zone_memory`.

use pageset_core::{
    BlockUse, Config, CpuId, NodeId, Order, PageAllocator, Pfn, Platform, Request, Tables, ZoneConfig,
    ZoneId, ZoneKind,
};

struct Host;

impl Platform for Host {
    type RawLock = parking_lot::RawMutex;
    type Events = ();

    fn events(&self) -> &() {
        &()
    }
}

/// An allocator of one zone. The zone's span has 4096 frames. The span ends with a hole if `frames` is
/// smaller.
fn allocator(frames: u64) -> PageAllocator<'static, Host> {
    let regions = [0..frames];
    let zones = [ZoneConfig { kind: ZoneKind::Normal, node: NodeId(0), span: 0..4096, regions: &regions }];
    let config = Config::new(&zones, &[NodeId(0)]);
    PageAllocator::new(Host, &config, Tables::on_heap(&config).unwrap()).unwrap()
}

#[test]
fn a_frame_tells_its_block_and_the_blocks_holder() {
    let allocator = allocator(2048);
    let held_by = |pfn: u64| {
        allocator.block_of(Pfn(pfn)).map(|block| (block.first.0, block.order.get(), block.held_by))
    };

    assert_eq!(held_by(1500), Some((1024, 10, BlockUse::FreeList)));
    assert_eq!(held_by(3000), None, "a hole");
    assert_eq!(held_by(9999), None, "no zone");

    let order = Order::new(2).unwrap();
    let pfn = allocator.alloc(CpuId(0), &Request::new(order).movable()).unwrap();
    assert_eq!(held_by(pfn.0 + 3), Some((pfn.0, 2, BlockUse::Owner)));
    assert!(allocator.is_allocated(pfn, order));
    assert!(!allocator.is_allocated(pfn, Order::ZERO) && !allocator.is_allocated(Pfn(pfn.0 + 2), order));
    assert!(!allocator.is_allocated(Pfn(3000), order) && !allocator.is_allocated(Pfn(9999), order));
    allocator.free(CpuId(0), pfn, order).unwrap();
    assert!(!allocator.is_allocated(pfn, order));
    assert_eq!(held_by(pfn.0 + 3), Some((pfn.0, 2, BlockUse::Pageset)));
    allocator.drain_all(CpuId(0)).expect("it exists");
    assert_eq!(held_by(pfn.0).map(|block| block.2), Some(BlockUse::FreeList));
}

#[test]
fn what_a_reclaimer_asks_often_is_what_the_snapshot_of_a_zone_says() {
    let allocator = allocator(4096);
    let ask = || allocator.zone_memory(ZoneId(0)).unwrap();
    assert_eq!((ask().managed, ask().free), (4096, 4096));
    allocator.alloc(CpuId(0), &Request::new(Order::MAX)).unwrap();
    let zone = allocator.zones().next().unwrap();
    assert_eq!((ask().free, ask().watermarks), (4096 - 1024, zone.watermarks));
    assert_eq!(allocator.zone_memory(ZoneId(1)), None);
}
