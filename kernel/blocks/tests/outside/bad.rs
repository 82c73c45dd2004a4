//! Tests of frames that are out of service for good.

use pageset_blocks::BlockAllocator;
use pageset_core::{AllocError, CpuId, FreeError, MigrateType, Order, Pfn};

use crate::machine::{order, plain, ragged, request};

const CPU: CpuId = CpuId(0);
const MOVABLE: MigrateType = MigrateType::Movable;

/// Allocates all remaining frames. Checks that there are `left` frames, and that none of them is bad.
fn check(allocator: &BlockAllocator<'_>, bad: &[u64], left: usize) {
    let pages: Vec<Pfn> = std::iter::from_fn(|| allocator.alloc(CPU, &request(0, MOVABLE)).ok()).collect();
    assert_eq!(pages.len(), left);
    assert!(pages.iter().all(|pfn| !bad.contains(&pfn.0)));
    let census = allocator.validate().unwrap_or_else(|violation| panic!("{violation}"));
    assert_eq!((census.free, census.cached, census.leaked), (0, 0, bad.len() as u64));
    for pfn in pages {
        allocator.free(CPU, pfn, Order::ZERO).unwrap();
    }
    assert_eq!(allocator.validate().unwrap().leaked, bad.len() as u64);
}

#[test]
fn a_frame_of_a_whole_pageblock_goes_at_once() {
    let allocator = plain(1024, 1);
    allocator.mark_bad(CPU, Pfn(700)).unwrap();
    allocator.mark_bad(CPU, Pfn(701)).unwrap();
    assert_eq!(allocator.mark_bad(CPU, Pfn(700)), Err(FreeError::Leaked(Pfn(700))));
    assert_eq!(allocator.free(CPU, Pfn(700), Order::ZERO), Err(FreeError::Leaked(Pfn(700))));
    assert_eq!(allocator.free_range(CPU, 700..701), Err(FreeError::Leaked(Pfn(700))));
    assert_eq!(allocator.alloc_at(CPU, Pfn(700), &request(0, MOVABLE)), Err(AllocError::NotFree(Pfn(700))));
    check(&allocator, &[700, 701], 1022);
    allocator.drain_all();
    assert_eq!(allocator.zones().next().unwrap().whole_pageblocks, 1);
}

#[test]
fn a_frame_of_a_pageblock_that_a_cpu_keeps_goes_at_once() {
    let allocator = plain(1024, 1);
    let huge = allocator.alloc(CPU, &request(9, MOVABLE)).unwrap();
    allocator.free(CPU, huge, order(9)).unwrap();
    allocator.mark_bad(CPU, huge).unwrap();
    check(&allocator, &[huge.0], 1023);
}

#[test]
fn a_free_frame_between_larger_blocks_goes_alone() {
    let allocator = plain(1024, 1);
    let block = allocator.alloc(CPU, &request(3, MOVABLE)).unwrap();
    let bad = block.0 + 21;
    allocator.mark_bad(CPU, Pfn(bad)).unwrap();
    assert_eq!(allocator.validate().unwrap().leaked, 1);
    allocator.free(CPU, block, order(3)).unwrap();
    check(&allocator, &[bad], 1023);
}

#[test]
fn a_block_in_use_does_not_come_back() {
    for of in 0..=10 {
        let allocator = plain(2048, 2);
        let block = allocator.alloc(CPU, &request(of, MOVABLE)).unwrap();
        let frames = block.0..block.0 + (1 << of);
        allocator.mark_bad(CPU, Pfn(frames.end - 1)).unwrap();
        for cpu in [CPU, CpuId(1)] {
            assert_eq!(allocator.free(cpu, block, order(of)), Err(FreeError::Leaked(block)));
        }
        assert_eq!(allocator.free_range(CPU, frames.clone()), Err(FreeError::Leaked(block)));
        check(&allocator, &frames.clone().collect::<Vec<_>>(), 2048 - (1 << of));
    }
}

#[test]
fn a_frame_that_a_cpu_keeps_is_free() {
    let allocator = plain(1024, 2);
    let page = allocator.alloc(CPU, &request(0, MOVABLE)).unwrap();
    allocator.free(CpuId(1), page, Order::ZERO).unwrap();
    allocator.mark_bad(CPU, page).unwrap();
    check(&allocator, &[page.0], 1023);
}

#[test]
fn a_frame_of_an_isolated_pageblock_stays_out_when_that_comes_back() {
    let allocator = plain(1024, 1);
    allocator.isolate_pageblock(CPU, Pfn(0)).unwrap();
    allocator.mark_bad(CPU, Pfn(3)).unwrap();
    allocator.unisolate_pageblock(CPU, Pfn(0), MOVABLE).unwrap();
    check(&allocator, &[3], 1023);
}

#[test]
fn what_is_no_frame_cannot_be_bad() {
    let allocator = ragged(1);
    for foreign in [750, 3000, 7301, u64::MAX] {
        assert_eq!(allocator.mark_bad(CPU, Pfn(foreign)), Err(FreeError::Foreign(Pfn(foreign))));
    }
    assert_eq!(allocator.mark_bad(CpuId(1), Pfn(0)), Err(FreeError::BadCpu(CpuId(1))));
    // To mark a frame, a pageblock with holes also needs an entry in the table of bad frames. One entry is
    // unused.
    allocator.mark_bad(CPU, Pfn(600)).unwrap();
    assert_eq!(allocator.free(CPU, Pfn(600), Order::ZERO), Err(FreeError::Leaked(Pfn(600))));
    assert_eq!(allocator.validate().unwrap().leaked, 1);
}

/// A fuzzer found this bug: after a frame beside the hole was marked as bad, the allocator took the hole for
/// memory.
#[test]
fn a_hole_behind_a_bad_frame_stays_a_hole() {
    let allocator = crate::machine::ragged(1);
    assert_eq!(allocator.mark_bad(CpuId(0), Pfn(699)), Ok(()));
    let census = allocator.validate().expect("everything in its place");
    assert_eq!((census.leaked, census.free + census.cached), (1, crate::machine::RAGGED_FRAMES - 1));
    assert_eq!(allocator.mark_bad(CpuId(0), Pfn(700)), Err(FreeError::Foreign(Pfn(700))));
}
