//! Tests spare pageblocks. A CPU keeps the whole pageblock that it freed last for its next request. Other
//! CPUs get it if they find no other.

use pageset_blocks::BlockAllocator;
use pageset_core::{CpuId, FreeError, MigrateType, Order, PAGEBLOCK_FRAMES, Pfn};

use crate::machine::{plain, request};

const CPU: CpuId = CpuId(0);
const OTHER: CpuId = CpuId(1);
const FRAMES: u64 = PAGEBLOCK_FRAMES as u64;

/// All memory is in use except two adjacent pageblocks. CPU 0 freed the second one last.
fn with_a_spare() -> (BlockAllocator<'static>, Pfn) {
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
    let (allocator, spare) = with_a_spare();
    let zone = allocator.zones().next().unwrap();
    assert_eq!((zone.free, zone.at_hand, zone.whole_pageblocks), (2 * FRAMES, FRAMES, 2));
    let census = allocator.validate().unwrap();
    assert_eq!((census.free, census.cached), (FRAMES, FRAMES));
    assert!(allocator.is_free(spare) && allocator.is_whole(spare) && allocator.block_in_use(spare).is_none());
    assert_eq!(allocator.alloc(CPU, &request(9, MigrateType::Unmovable)), Ok(spare));
    assert_eq!(allocator.pageblock_type(spare), Some(MigrateType::Unmovable));
    allocator.validate().unwrap();
}

#[test]
fn it_cannot_be_freed_again() {
    let (allocator, spare) = with_a_spare();
    let refused = Err(FreeError::DoubleFree(spare));
    assert_eq!(allocator.free(CPU, spare, Order::PAGEBLOCK), refused);
    assert_eq!(allocator.free(OTHER, spare, Order::ZERO), refused);
    assert_eq!(allocator.free_range(CPU, spare.0..spare.0 + 1), refused);
    assert_eq!(allocator.split_range(CPU, spare.0..spare.0 + 1), refused);
    allocator.validate().unwrap();
}

#[test]
fn everybody_finds_it_who_finds_no_other() {
    for of in [0, 5, 9, 10] {
        let (allocator, _) = with_a_spare();
        let wanted = request(of, MigrateType::Movable);
        let got = std::iter::from_fn(|| allocator.alloc(OTHER, &wanted).ok()).count() as u64;
        assert_eq!(got, (2 * FRAMES) >> of, "order {of}");
        allocator.validate().unwrap();
    }
    let (allocator, spare) = with_a_spare();
    assert_eq!(allocator.alloc_at(OTHER, Pfn(spare.0 + 8), &request(3, MigrateType::Movable)), Ok(()));
    let (allocator, spare) = with_a_spare();
    assert_eq!(allocator.alloc_at(OTHER, spare, &request(9, MigrateType::Movable)), Ok(()));
    // The CPU's hint is out of date now.
    assert!(allocator.alloc(CPU, &request(9, MigrateType::Movable)).is_ok_and(|other| other != spare));
    allocator.validate().unwrap();
}

#[test]
fn it_goes_out_of_service_as_any_other() {
    let (allocator, spare) = with_a_spare();
    allocator.isolate_pageblock(OTHER, spare).unwrap();
    assert!(!allocator.is_whole(spare));
    assert!(allocator.alloc(CPU, &request(9, MigrateType::Movable)).is_ok_and(|other| other != spare));
    allocator.validate().unwrap();
    allocator.unisolate_pageblock(OTHER, spare, MigrateType::Movable).unwrap();
    assert_eq!(allocator.alloc(CPU, &request(9, MigrateType::Movable)), Ok(spare));

    let (allocator, spare) = with_a_spare();
    allocator.mark_bad(OTHER, spare).unwrap();
    allocator.drain_all();
    assert_eq!(allocator.validate().map(|census| (census.free, census.leaked)), Ok((2 * FRAMES - 1, 1)));
}

#[test]
fn a_cpu_that_is_drained_or_idle_keeps_none() {
    let (allocator, _) = with_a_spare();
    allocator.drain_cpu(CPU).unwrap();
    assert_eq!(allocator.validate().map(|census| census.cached), Ok(0));
    let (allocator, _) = with_a_spare();
    for _ in 0..3 {
        allocator.tick(CPU).unwrap();
    }
    assert_eq!(allocator.validate().map(|census| census.cached), Ok(0));
}
