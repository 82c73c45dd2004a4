//! Questions that reviewers of the design asked.

use pageset_core::{CpuId, MigrateType, Order, Pfn};

use crate::machine::{order, plain, request};

const MOVABLE: MigrateType = MigrateType::Movable;

fn whole(allocator: &pageset_blocks::BlockAllocator<'_>) -> u64 {
    allocator.zones().map(|zone| zone.whole_pageblocks).sum()
}

#[test]
fn what_another_cpu_frees_comes_back_to_the_owner() {
    let allocator = plain(8192, 2);
    let pages: Vec<Pfn> =
        (0..512).map(|_| allocator.alloc(CpuId(0), &request(0, MOVABLE)).unwrap()).collect();
    let another = allocator.alloc(CpuId(0), &request(0, MOVABLE)).unwrap();
    pages[..256].iter().for_each(|pfn| allocator.free(CpuId(1), *pfn, Order::ZERO).unwrap());
    allocator.free(CpuId(1), another, Order::ZERO).unwrap();
    // CPU 1 keeps the first pageblock while its frees go there. The tick makes CPU 1 give this pageblock up.
    allocator.tick(CpuId(1)).unwrap();
    // CPU 0 takes the rest of the second pageblock, then the frames that CPU 1 freed.
    let again: Vec<Pfn> =
        (0..768).map(|_| allocator.alloc(CpuId(0), &request(0, MOVABLE)).unwrap()).collect();
    assert!(pages[..256].iter().all(|pfn| again.contains(pfn)));
    assert_eq!(whole(&allocator), 14);
}

#[test]
fn a_pageblock_whose_frames_are_free_is_whole_at_once() {
    let allocator = plain(8192, 1);
    let pages: Vec<Pfn> =
        (0..1024).map(|_| allocator.alloc(CpuId(0), &request(0, MOVABLE)).unwrap()).collect();
    assert_eq!(whole(&allocator), 14);
    pages[..512].iter().rev().for_each(|pfn| allocator.free(CpuId(0), *pfn, Order::ZERO).unwrap());
    assert_eq!(whole(&allocator), 15, "the second pageblock is at hand");
    assert!(allocator.alloc_at(CpuId(0), Pfn(0), &request(9, MOVABLE)).is_ok());
}

#[test]
fn types_are_mixed_last() {
    let allocator = plain(2048, 1);
    let types = [MOVABLE, MigrateType::Unmovable, MigrateType::Reclaimable];
    let blocks = types.map(|of| allocator.alloc(CpuId(0), &request(0, of)).unwrap().0 / 512);
    assert!(blocks[0] != blocks[1] && blocks[1] != blocks[2] && blocks[0] != blocks[2]);
    // Each of three pageblocks serves one type now. Unmovable requests take the fourth pageblock next, and
    // then the free frames of the other two.
    for _ in 0..2048 - 3 {
        allocator.alloc(CpuId(0), &request(0, MigrateType::Unmovable)).unwrap();
    }
    assert!(allocator.alloc(CpuId(0), &request(0, MOVABLE)).is_err());
    assert_eq!(allocator.validate().unwrap().allocated, 2048);
}

#[test]
fn memory_that_lies_in_blocks_of_another_order_is_not_lost() {
    let allocator = plain(1024, 1);
    let large: Vec<Pfn> =
        (0..128).map(|_| allocator.alloc(CpuId(0), &request(3, MOVABLE)).unwrap()).collect();
    assert!(allocator.alloc(CpuId(0), &request(0, MOVABLE)).is_err());
    allocator.free(CpuId(0), large[77], order(3)).unwrap();
    let pages: Vec<Pfn> = (0..8).map(|_| allocator.alloc(CpuId(0), &request(0, MOVABLE)).unwrap()).collect();
    assert!(pages.iter().all(|pfn| (large[77].0..large[77].0 + 8).contains(&pfn.0)));
    assert!(allocator.free(CpuId(0), large[78], order(2)).is_err());
    large.iter().enumerate().filter(|(index, _)| *index != 77).for_each(|(_, pfn)| {
        allocator.free(CpuId(0), *pfn, order(3)).unwrap();
    });
    pages.iter().for_each(|pfn| allocator.free(CpuId(0), *pfn, Order::ZERO).unwrap());
    allocator.drain_all();
    assert_eq!(whole(&allocator), 2);
}

#[test]
fn churn_ends_in_few_pageblocks() {
    // Frees 75 % of the pages of a full machine at random, then replaces 10 % of the remaining pages 100
    // times.
    let allocator = plain(64 * 512, 1);
    let mut seed = 3_u64;
    let mut random = move |below: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) as usize % below
    };
    let alloc = || allocator.alloc(CpuId(0), &request(0, MOVABLE)).unwrap();
    let mut pages: Vec<Pfn> = (0..64 * 512).map(|_| alloc()).collect();
    let mut free_some = |pages: &mut Vec<Pfn>, left: usize| {
        while pages.len() > left {
            let which = random(pages.len());
            allocator.free(CpuId(0), pages.swap_remove(which), Order::ZERO).unwrap();
        }
    };
    free_some(&mut pages, 16 * 512);
    for _ in 0..100 {
        free_some(&mut pages, 16 * 512 * 9 / 10);
        while pages.len() < 16 * 512 {
            pages.push(alloc());
        }
    }
    let mut blocks: Vec<u64> = pages.iter().map(|pfn| pfn.0 / 512).collect();
    blocks.sort_unstable();
    blocks.dedup();
    assert!(blocks.len() <= 20, "{} pageblocks are in use, 16 would do", blocks.len());
}

/// A cache that had filled 320 MiB showed this bug: each page needed a search through all pageblocks.
#[test]
fn a_cpu_takes_over_the_last_pageblock_of_another() {
    let allocator = plain(2048, 2);
    let theirs = allocator.alloc(CpuId(0), &request(0, MOVABLE)).unwrap();
    let alloc = || allocator.alloc(CpuId(1), &request(0, MOVABLE)).ok();
    let pages: Vec<Pfn> = core::iter::from_fn(alloc).collect();
    assert!(pages.len() > 1024, "{} pages", pages.len());
    assert!(pages.iter().any(|pfn| pfn.0 / 512 == theirs.0 / 512));
    let rescued = allocator.counters().rescued;
    assert!(rescued < 40, "{rescued} pages were searched for");
}

#[test]
fn a_double_free_of_another_cpus_page_is_an_error() {
    let allocator = plain(8192, 2);
    let page = allocator.alloc(CpuId(0), &request(0, MOVABLE)).unwrap();
    let kept = allocator.alloc(CpuId(0), &request(0, MOVABLE)).unwrap();
    allocator.free(CpuId(1), page, Order::ZERO).unwrap();
    assert_eq!(allocator.free(CpuId(0), page, Order::ZERO), Err(pageset_core::FreeError::DoubleFree(page)));
    assert_eq!(allocator.validate().unwrap().allocated, 1);
    allocator.free(CpuId(0), kept, Order::ZERO).unwrap();
}

/// A reader found this bug: a CPU freed a pageblock that was in another CPU's stock. Then two stocks named
/// the pageblock, and its frames counted twice.
#[test]
fn a_pageblock_that_two_cpus_freed_is_free_once() {
    let allocator = plain(4 * 512, 2);
    let huge = request(9, MOVABLE);
    let kept = allocator.alloc(CpuId(0), &huge).unwrap();
    allocator.free(CpuId(0), kept, Order::PAGEBLOCK).unwrap();
    assert_eq!(allocator.alloc(CpuId(0), &huge), Ok(kept), "it was in the stock");
    allocator.free(CpuId(1), kept, Order::PAGEBLOCK).unwrap();
    assert_eq!(allocator.free_frames(), 4 * 512);
    assert_eq!(allocator.alloc(CpuId(1), &huge), Ok(kept), "it is in the other CPU's stock now");
    assert_eq!(allocator.free_frames(), 3 * 512);
    allocator.validate().unwrap();
}

/// A reader found this bug: no counter counted pageblocks that came back to the zone, so the counts that all
/// CPUs share lacked them.
#[test]
fn pageblocks_that_come_back_to_the_zone_are_counted() {
    let allocator = plain(4 * 512, 2);
    let blocks: Vec<Pfn> = (0..3).map(|_| allocator.alloc(CpuId(0), &request(9, MOVABLE)).unwrap()).collect();
    blocks.iter().for_each(|pfn| allocator.free(CpuId(1), *pfn, Order::PAGEBLOCK).unwrap());
    assert_eq!(allocator.counters().published, 2, "the first is in the CPU's stock");
    let pages: Vec<Pfn> =
        (0..512).map(|_| allocator.alloc(CpuId(0), &request(0, MOVABLE)).unwrap()).collect();
    pages.iter().for_each(|pfn| allocator.free(CpuId(1), *pfn, Order::ZERO).unwrap());
    allocator.drain_all();
    let counters = allocator.counters();
    assert_eq!((counters.published, counters.closed), (4, 1), "the stock, and a pageblock of single frames");
    assert_eq!(counters.shared(), counters.adopted + counters.claimed + 4 + counters.settled);
}

/// A reader found this bug: no counter counted whole pageblocks that a CPU took at an address or for
/// contiguous frames, so the counts that all CPUs share lacked these takes.
#[test]
fn whole_pageblocks_that_are_taken_at_a_place_are_counted() {
    let allocator = plain(16 * 512, 2);
    let mut taken = 0;
    let mut took = |takes: usize| {
        taken += takes;
        let counters = allocator.counters();
        assert_eq!(counters.claimed, taken);
        assert_eq!(counters.shared(), counters.adopted + taken + counters.published + counters.settled);
    };
    allocator.alloc_at(CpuId(1), Pfn(0), &request(9, MOVABLE)).unwrap();
    took(1);
    allocator.alloc_at(CpuId(1), Pfn(1024), &request(10, MOVABLE)).unwrap();
    took(1);
    allocator.alloc_at(CpuId(1), Pfn(1024), &request(10, MOVABLE)).unwrap_err();
    took(0);
    allocator.alloc_at(CpuId(1), Pfn(600), &request(3, MOVABLE)).unwrap();
    took(1);
    allocator.alloc_at(CpuId(1), Pfn(800), &request(3, MOVABLE)).unwrap();
    took(0);
    allocator.alloc_range(CpuId(1), 2048..3000, &request(0, MOVABLE)).unwrap();
    took(2);
    allocator.alloc_contiguous(CpuId(1), 1536, 512, &request(0, MOVABLE)).unwrap();
    took(3);
}
