//! Tests that no CPU gets a free frame of a pageblock that is out of service, whatever the pageblock's state
//! was before.

use pageset_blocks::BlockAllocator;
use pageset_core::{AllocError, ConfigError, CpuId, FreeError, MigrateType, Pfn};

use crate::machine::{order, plain, ragged, request};

const CPU: CpuId = CpuId(0);
const MOVABLE: MigrateType = MigrateType::Movable;

fn free(allocator: &BlockAllocator<'_>) -> u64 {
    allocator.zones().map(|zone| zone.free).sum()
}

/// Allocates single frames until none is left.
fn all(allocator: &BlockAllocator<'_>) -> Vec<Pfn> {
    std::iter::from_fn(|| allocator.alloc(CPU, &request(0, MOVABLE)).ok()).collect()
}

#[test]
fn a_whole_pageblock_is_neither_free_nor_handed_out() {
    let allocator = plain(2048, 1);
    allocator.isolate_pageblock(CPU, Pfn(700)).unwrap();
    assert_eq!((free(&allocator), allocator.zones().next().unwrap().isolated_pageblocks), (1536, 1));
    assert_eq!(allocator.alloc_at(CPU, Pfn(700), &request(0, MOVABLE)), Err(AllocError::NotFree(Pfn(700))));
    assert_eq!(allocator.alloc_at(CPU, Pfn(512), &request(9, MOVABLE)), Err(AllocError::NotFree(Pfn(512))));
    assert_eq!(allocator.alloc_at(CPU, Pfn(0), &request(10, MOVABLE)), Err(AllocError::NotFree(Pfn(0))));
    let pages = all(&allocator);
    assert_eq!(pages.len(), 1536);
    assert!(pages.iter().all(|pfn| pfn.0 / 512 != 1));
    allocator.unisolate_pageblock(CPU, Pfn(512), MigrateType::Unmovable).unwrap();
    assert_eq!(all(&allocator).len(), 512);
    assert_eq!(allocator.validate().unwrap().allocated, 2048);
}

#[test]
fn a_pageblock_that_a_cpu_keeps_is_taken_from_it() {
    let allocator = plain(2048, 1);
    let huge = allocator.alloc(CPU, &request(9, MOVABLE)).unwrap();
    allocator.free(CPU, huge, order(9)).unwrap();
    allocator.isolate_pageblock(CPU, huge).unwrap();
    let others: Vec<_> = std::iter::from_fn(|| allocator.alloc(CPU, &request(9, MOVABLE)).ok()).collect();
    assert!(others.len() == 3 && !others.contains(&huge));
    assert_eq!(allocator.free(CPU, huge, order(9)), Err(FreeError::DoubleFree(huge)));
}

#[test]
fn what_is_freed_in_it_stays_in_it() {
    let allocator = plain(4096, 2);
    let huge = allocator.alloc(CPU, &request(10, MOVABLE)).unwrap();
    let page = allocator.alloc(CPU, &request(0, MOVABLE)).unwrap();
    let block = allocator.alloc(CPU, &request(3, MOVABLE)).unwrap();
    for pfn in [Pfn(huge.0 + 512), page, block] {
        allocator.isolate_pageblock(CPU, pfn).unwrap();
    }
    assert_eq!(free(&allocator), 4096 - 2 * 512 - 1024);
    assert_eq!(allocator.owner_of(page), None, "no CPU reserves what is out of service");
    let next = allocator.alloc(CPU, &request(0, MOVABLE)).unwrap();
    assert_ne!(next.0 / 512, page.0 / 512, "it was at hand");
    for (pfn, of) in [(page, 0), (block, 3), (huge, 10)] {
        assert_eq!(allocator.free(CpuId(1), pfn, order(of)), Ok(()));
        assert!(allocator.free(CpuId(1), pfn, order(of)).is_err(), "twice");
    }
    // Half of the largest block is in service.
    assert_eq!(free(&allocator), 4096 - 3 * 512 - 1);
    let pages = all(&allocator);
    assert_eq!(pages.len(), 4096 - 3 * 512 - 1);
    for pfn in [Pfn(huge.0 + 512), page, block] {
        assert!(pages.iter().all(|other| other.0 / 512 != pfn.0 / 512));
        allocator.unisolate_pageblock(CPU, pfn, MOVABLE).unwrap();
    }
    assert_eq!(allocator.zones().next().unwrap().whole_pageblocks, 3);
    assert!(allocator.validate().is_ok());
}

#[test]
fn parts_of_it_can_be_freed() {
    let allocator = plain(2048, 1);
    let huge = allocator.alloc(CPU, &request(9, MOVABLE)).unwrap();
    allocator.isolate_pageblock(CPU, huge).unwrap();
    allocator.free_range(CPU, huge.0..huge.0 + 5).unwrap();
    assert_eq!(allocator.free_range(CPU, huge.0..huge.0 + 6), Err(FreeError::DoubleFree(huge)));
    allocator.free_range(CPU, huge.0 + 5..huge.0 + 512).unwrap();
    assert_eq!((free(&allocator), allocator.validate().unwrap().allocated), (1536, 0));
    allocator.unisolate_pageblock(CPU, huge, MOVABLE).unwrap();
    assert_eq!(allocator.zones().next().unwrap().whole_pageblocks, 4);
}

#[test]
fn mistakes_are_told_apart() {
    let allocator = ragged(1);
    let isolate = |pfn: u64| allocator.isolate_pageblock(CPU, Pfn(pfn));
    let unisolate = |pfn: u64, to| allocator.unisolate_pageblock(CPU, Pfn(pfn), to);
    assert_eq!(allocator.isolate_pageblock(CpuId(1), Pfn(0)), Err(ConfigError::BadCpu(1)));
    assert_eq!(isolate(3000), Err(ConfigError::Foreign(Pfn(3000))));
    assert_eq!((isolate(0), isolate(511)), (Ok(()), Err(ConfigError::AlreadyIsolated(Pfn(511)))));
    assert_eq!(allocator.unisolate_pageblock(CpuId(1), Pfn(0), MOVABLE), Err(ConfigError::BadCpu(1)));
    assert_eq!(unisolate(3000, MOVABLE), Err(ConfigError::Foreign(Pfn(3000))));
    assert_eq!(unisolate(0, MigrateType::Cma), Err(ConfigError::BadType(MigrateType::Cma)));
    assert_eq!(unisolate(512, MOVABLE), Err(ConfigError::NotIsolated(Pfn(512))));
    assert_eq!(unisolate(511, MOVABLE), Ok(()));
}
