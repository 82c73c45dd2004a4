//! Allocations that give up soon, and those of one pageblock.

use pageset_core::{
    Config, CpuId, NodeId, Order, PAGEBLOCK_FRAMES, Pfn, Request, RequestTraits, ZoneConfig, ZoneKind,
};
use pageset_rows::{BlockAllocator, Tables, WholeUse};

const CPU: CpuId = CpuId(0);
const PAGEBLOCK: u64 = PAGEBLOCK_FRAMES as u64;

/// An allocator of four pageblocks, as hosts have it that ask so.
fn allocator() -> BlockAllocator<'static> {
    let regions = [0..4 * PAGEBLOCK];
    let zones =
        [ZoneConfig { kind: ZoneKind::Normal, node: NodeId(0), span: 0..4 * PAGEBLOCK, regions: &regions }];
    let config = Config::new(&zones, &[NodeId(0)]);
    let allocator = BlockAllocator::new(&config, Tables::on_heap(&config).unwrap()).unwrap();
    allocator.with_whole_use(WholeUse::LowestFirst)
}

fn request(order: u8) -> Request {
    Request::new(Order::new(order).unwrap()).movable().with(RequestTraits::NO_WATERMARKS)
}

#[test]
fn parts_of_a_pageblock_are_found_by_who_names_it() {
    let allocator = allocator();
    let pages: Vec<_> = std::iter::from_fn(|| allocator.alloc_soon(CPU, &request(0))).collect();
    assert_eq!(pages.len() as u64, 4 * PAGEBLOCK, "all that is whole");
    for pfn in 1024..1032 {
        allocator.free(CPU, Pfn(pfn), Order::ZERO).unwrap();
    }
    assert_eq!(allocator.alloc_in(Pfn(0), &request(3)), None);
    assert_eq!(allocator.alloc_in(Pfn(1100), &request(4)), None);
    assert_eq!(allocator.alloc_in(Pfn(1100), &request(3)), Some(Pfn(1024)));
    assert_eq!(allocator.alloc_in(Pfn(1100), &request(0)), None);
    allocator.validate().unwrap();
    allocator.free(CPU, Pfn(1024), Order::new(3).unwrap()).unwrap();
    assert_eq!(allocator.alloc(CPU, &request(3)), Ok(Pfn(1024)), "everybody finds it too");
}

#[test]
fn a_pageblock_at_hand_that_is_all_free_is_whole() {
    let allocator = allocator();
    for _ in 0..3 {
        allocator.alloc(CPU, &request(9)).unwrap();
    }
    let page = allocator.alloc(CPU, &request(0)).unwrap();
    allocator.free(CPU, page, Order::ZERO).unwrap();
    assert_eq!(allocator.alloc_soon(CPU, &request(8)), None, "the page's CPU has it at hand");
    assert_eq!(allocator.alloc_in(page, &request(8)), None);
    let block = allocator.alloc_soon(CPU, &request(8)).unwrap();
    assert_eq!(block.0 / PAGEBLOCK, page.0 / PAGEBLOCK);
    allocator.validate().unwrap();
}

#[test]
fn what_is_not_split_has_no_parts() {
    let allocator = allocator();
    for order in [0, 9, 10] {
        assert_eq!(allocator.alloc_in(Pfn(0), &request(order)), None, "free as a whole");
    }
    allocator.alloc_at(CPU, Pfn(0), &request(9)).unwrap();
    assert_eq!(allocator.alloc_in(Pfn(0), &request(0)), None, "in use");
    assert_eq!(allocator.alloc_in(Pfn(4 * PAGEBLOCK), &request(0)), None, "no memory");
    assert_eq!(allocator.alloc_in(Pfn(u64::MAX), &request(0)), None, "no memory");
    assert_eq!(allocator.alloc_soon(CpuId(7), &request(0)), None, "no CPU");
    let page = allocator.alloc(CPU, &request(0)).unwrap();
    let next = allocator.alloc_in(page, &request(0)).unwrap();
    assert_eq!(page.0 / PAGEBLOCK, next.0 / PAGEBLOCK);
    allocator.isolate_pageblock(CPU, page).unwrap();
    assert_eq!(allocator.alloc_in(page, &request(0)), None, "out of service");
    allocator.validate().unwrap();
}
