//! Tests the stocks of CPUs. A CPU that frees whole pageblocks keeps some of them for its next requests.
//! Another CPU gets a pageblock of this stock if it finds no other memory.

use pageset_blocks::BlockAllocator;
use pageset_core::{CpuId, FreeError, MigrateType, Order, PAGEBLOCK_FRAMES, Pfn};

use crate::machine::{plain, request};

const CPU: CpuId = CpuId(0);
const OTHER: CpuId = CpuId(1);
const FRAMES: u64 = PAGEBLOCK_FRAMES as u64;

/// All memory is in use except two adjacent pageblocks. CPU 0 freed the second of these pageblocks last.
fn with_a_stock() -> (BlockAllocator<'static>, Pfn) {
    let allocator = plain(8 * FRAMES, 2);
    let mut blocks: Vec<_> =
        std::iter::from_fn(|| allocator.alloc(CPU, &request(9, MigrateType::Movable)).ok()).collect();
    assert_eq!(blocks.len(), 8);
    blocks.sort_unstable();
    assert_eq!(allocator.free(OTHER, blocks[4], Order::PAGEBLOCK), Ok(()));
    allocator.drain_all();
    assert_eq!(allocator.free(CPU, blocks[5], Order::PAGEBLOCK), Ok(()));
    (allocator, blocks[5])
}

#[test]
fn a_cpu_gets_the_pageblock_that_it_freed_last() {
    let (allocator, kept) = with_a_stock();
    let zone = allocator.zones().next().unwrap();
    assert_eq!((zone.free, zone.at_hand, zone.whole_pageblocks), (2 * FRAMES, FRAMES, 2));
    let census = allocator.validate().unwrap();
    assert_eq!((census.free, census.cached), (FRAMES, FRAMES));
    assert!(allocator.is_free(kept) && allocator.is_whole(kept) && allocator.block_in_use(kept).is_none());
    assert_eq!(allocator.alloc(CPU, &request(9, MigrateType::Unmovable)), Ok(kept));
    assert_eq!(allocator.pageblock_type(kept), Some(MigrateType::Unmovable));
    allocator.validate().unwrap();
}

#[test]
fn it_cannot_be_freed_again() {
    let (allocator, kept) = with_a_stock();
    let refused = Err(FreeError::DoubleFree(kept));
    assert_eq!(allocator.free(CPU, kept, Order::PAGEBLOCK), refused);
    assert_eq!(allocator.free(OTHER, kept, Order::ZERO), refused);
    assert_eq!(allocator.free_range(CPU, kept.0..kept.0 + 1), refused);
    assert_eq!(allocator.split_range(CPU, kept.0..kept.0 + 1), refused);
    allocator.validate().unwrap();
}

#[test]
fn everybody_finds_it_who_finds_no_other() {
    for of in [0, 5, 9, 10] {
        let (allocator, _) = with_a_stock();
        let wanted = request(of, MigrateType::Movable);
        let got = std::iter::from_fn(|| allocator.alloc(OTHER, &wanted).ok()).count() as u64;
        assert_eq!(got, (2 * FRAMES) >> of, "order {of}");
        allocator.validate().unwrap();
    }
    let (allocator, kept) = with_a_stock();
    assert_eq!(allocator.alloc_at(OTHER, Pfn(kept.0 + 8), &request(3, MigrateType::Movable)), Ok(()));
    let (allocator, kept) = with_a_stock();
    assert_eq!(allocator.alloc_at(OTHER, kept, &request(9, MigrateType::Movable)), Ok(()));
    // The CPU's hint is out of date now.
    assert!(allocator.alloc(CPU, &request(9, MigrateType::Movable)).is_ok_and(|other| other != kept));
    allocator.validate().unwrap();
}

#[test]
fn it_goes_out_of_service_as_any_other() {
    let (allocator, kept) = with_a_stock();
    allocator.isolate_pageblock(OTHER, kept).unwrap();
    assert!(!allocator.is_whole(kept));
    assert!(allocator.alloc(CPU, &request(9, MigrateType::Movable)).is_ok_and(|other| other != kept));
    allocator.validate().unwrap();
    allocator.unisolate_pageblock(OTHER, kept, MigrateType::Movable).unwrap();
    assert_eq!(allocator.alloc(CPU, &request(9, MigrateType::Movable)), Ok(kept));

    let (allocator, kept) = with_a_stock();
    allocator.mark_bad(OTHER, kept).unwrap();
    allocator.drain_all();
    assert_eq!(allocator.validate().map(|census| (census.free, census.leaked)), Ok((2 * FRAMES - 1, 1)));
}

#[test]
fn a_cpu_that_is_drained_or_idle_keeps_none() {
    let (allocator, _) = with_a_stock();
    allocator.drain_cpu(CPU).unwrap();
    assert_eq!(allocator.validate().map(|census| census.cached), Ok(0));
    let (allocator, _) = with_a_stock();
    for _ in 0..3 {
        allocator.tick(CPU).unwrap();
    }
    assert_eq!(allocator.validate().map(|census| census.cached), Ok(0));
}

#[test]
fn a_cpu_claims_several_and_returns_several_by_one_change() {
    let allocator = plain(64 * FRAMES, 2);
    let movable = request(0, MigrateType::Movable);
    let pages: Vec<_> = (0..8 * FRAMES).map(|_| allocator.alloc(CPU, &movable).unwrap()).collect();
    assert_eq!(allocator.counters().claimed, 2, "four at a time");
    pages.iter().for_each(|page| allocator.free(CPU, *page, Order::ZERO).unwrap());
    allocator.drain_all();
    let counters = allocator.counters();
    assert_eq!(counters.closed, 8);
    assert!(counters.published <= 3, "{counters:?}");
    assert_eq!(allocator.validate().map(|census| census.free), Ok(64 * FRAMES));
}

#[test]
fn a_cpu_keeps_one_pageblock_while_few_are_whole() {
    let allocator = plain(8 * FRAMES, 2);
    let huge = request(9, MigrateType::Movable);
    let blocks: Vec<_> = (0..8).map(|_| allocator.alloc(CPU, &huge).unwrap()).collect();
    for freed in &blocks[..6] {
        allocator.free(CPU, *freed, Order::PAGEBLOCK).unwrap();
        assert_eq!(allocator.validate().map(|census| census.cached), Ok(FRAMES));
    }
    let page = allocator.alloc(OTHER, &request(0, MigrateType::Movable)).unwrap();
    assert!(!blocks[5..].iter().any(|block| (block.0..block.0 + FRAMES).contains(&page.0)));
}
