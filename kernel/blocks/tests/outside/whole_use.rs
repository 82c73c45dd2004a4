//! Tests the rules for the choice of whole pageblocks ([`WholeUse`]).

use pageset_blocks::{BlockAllocator, Tables, WholeUse};
use pageset_core::{Config, CpuId, NodeId, Order, PAGEBLOCK_FRAMES, Pfn, Request, ZoneConfig, ZoneKind};

const CPU: CpuId = CpuId(0);

/// An allocator of 300 pageblocks on two CPUs.
fn allocator() -> BlockAllocator<'static> {
    let end = 300 * u64::from(PAGEBLOCK_FRAMES);
    let regions = [0..end];
    let zones = [ZoneConfig { kind: ZoneKind::Normal, node: NodeId(0), span: 0..end, regions: &regions }];
    let config = Config::new(&zones, &[NodeId(0); 2]);
    BlockAllocator::new(&config, Tables::on_heap(&config).unwrap())
        .unwrap()
        .with_whole_use(WholeUse::LowestFirst)
}

fn alloc(allocator: &BlockAllocator<'_>, cpu: CpuId, order: Order) -> u64 {
    allocator.alloc(cpu, &Request::new(order).movable()).unwrap().0 / u64::from(PAGEBLOCK_FRAMES)
}

fn free(allocator: &BlockAllocator<'_>, cpu: CpuId, block: u64, order: Order) {
    allocator.free(cpu, Pfn(block * u64::from(PAGEBLOCK_FRAMES)), order).unwrap();
}

#[test]
fn the_lowest_pageblock_is_used_first_whoever_freed_it() {
    let allocator = allocator();
    let pageblock = Order::PAGEBLOCK;
    let taken: Vec<_> = (0..200).map(|at| alloc(&allocator, CpuId(at % 2), pageblock)).collect();
    assert!(taken.iter().copied().eq(0..200), "{taken:?}");
    for block in [150, 7, 90, 8] {
        free(&allocator, CPU, block, pageblock);
    }
    assert!(allocator.zones().all(|zone| (zone.whole_pageblocks, zone.at_hand) == (104, 0)));
    let next: Vec<_> = (0..5).map(|_| alloc(&allocator, CpuId(1), pageblock)).collect();
    assert_eq!(next, [7, 8, 90, 150, 200]);
    allocator.validate().unwrap();
}

#[test]
fn so_are_pairs_and_pageblocks_that_are_split() {
    let allocator = allocator();
    assert_eq!((0..3).map(|_| alloc(&allocator, CPU, Order::MAX)).collect::<Vec<_>>(), [0, 2, 4]);
    free(&allocator, CPU, 2, Order::MAX);
    // Allocate a page, then the other pageblock of the pair.
    let page = allocator.alloc(CPU, &Request::new(Order::ZERO).movable()).unwrap();
    assert_eq!(page.0 / u64::from(PAGEBLOCK_FRAMES), 2);
    assert_eq!(alloc(&allocator, CPU, Order::PAGEBLOCK), 3);
    assert_eq!(alloc(&allocator, CPU, Order::MAX), 6);
    // After the page is freed, its pageblock is whole, and again the lowest.
    allocator.free(CPU, page, Order::ZERO).unwrap();
    allocator.drain_all();
    assert_eq!(alloc(&allocator, CPU, Order::new(5).unwrap()), 2);
    allocator.validate().unwrap();
}
