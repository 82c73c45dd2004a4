//! Tests the work that frees leave to the next search. A free only makes its pageblock unsettled, unless all
//! frames of the pageblock are free now. The next search moves the pageblock to the set of its type and
//! largest free block.

use pageset_blocks::BlockAllocator;
use pageset_core::{CpuId, MigrateType, Order, PAGEBLOCK_FRAMES, Pfn};

use crate::machine::{plain, request};

const CPU: CpuId = CpuId(0);
const OTHER: CpuId = CpuId(1);
const FRAMES: usize = PAGEBLOCK_FRAMES as usize;

/// Single pages that fill the first pageblocks, in the order of addresses. CPU 0 allocated them, and reserves
/// another pageblock.
fn with_full_pageblocks(full: usize, all: u64) -> (BlockAllocator<'static>, Vec<Pfn>) {
    let allocator = plain(all * FRAMES as u64, 2);
    let movable = request(0, MigrateType::Movable);
    let mut pages: Vec<_> = (0..=full * FRAMES).map(|_| allocator.alloc(CPU, &movable).unwrap()).collect();
    pages.truncate(full * FRAMES);
    assert!(pages.is_sorted());
    (allocator, pages)
}

fn free(allocator: &BlockAllocator<'_>, cpu: CpuId, pages: &[Pfn]) {
    pages.iter().for_each(|page| allocator.free(cpu, *page, Order::ZERO).unwrap());
}

#[test]
fn frees_in_the_order_of_addresses_change_no_set_until_the_pageblock_is_whole() {
    let (allocator, pages) = with_full_pageblocks(3, 8);
    free(&allocator, OTHER, &pages);
    let counters = allocator.counters();
    assert_eq!((counters.closed, counters.adopted, counters.settled), (3, 0, 0));
    allocator.validate().unwrap();
}

#[test]
fn frees_here_and_there_change_one_set_for_each_pageblock() {
    let (allocator, pages) = with_full_pageblocks(6, 8);
    for at in 0..FRAMES - 1 {
        (0..6).for_each(|block| free(&allocator, OTHER, &pages[block * FRAMES + at..][..1]));
    }
    let settled = allocator.counters().settled;
    assert!(settled <= 6, "{settled}");
    allocator.validate().unwrap();
}

/// Seven pageblocks have one free frame each. The CPU that freed these frames keeps at least one of the
/// pageblocks.
#[test]
fn another_cpu_finds_each_frame_although_a_cpu_keeps_one_pageblock() {
    let (allocator, pages) = with_full_pageblocks(7, 8);
    while allocator.alloc(CPU, &request(0, MigrateType::Movable)).is_ok() {}
    let freed: Vec<Pfn> = pages.iter().step_by(FRAMES).copied().collect();
    free(&allocator, OTHER, &freed);
    let mut found: Vec<_> =
        freed.iter().map(|_| allocator.alloc(CPU, &request(0, MigrateType::Movable)).unwrap()).collect();
    found.sort_unstable();
    assert_eq!(found, freed);
    assert!(allocator.alloc(CPU, &request(0, MigrateType::Movable)).is_err());
    allocator.validate().unwrap();
}

#[test]
fn a_search_uses_what_the_cpu_freed_before_it_opens_a_whole_pageblock() {
    let (allocator, pages) = with_full_pageblocks(2, 8);
    free(&allocator, OTHER, &pages[..FRAMES / 2]);
    let block = allocator.alloc(OTHER, &request(3, MigrateType::Movable)).unwrap();
    assert!(pages[..FRAMES / 2].contains(&block));
    allocator.validate().unwrap();
}

#[test]
fn an_idle_cpu_gives_up_the_pageblock_that_it_keeps() {
    let (allocator, pages) = with_full_pageblocks(2, 8);
    free(&allocator, OTHER, &pages[..8]);
    allocator.drain_cpu(CPU).unwrap();
    allocator.tick(OTHER).unwrap();
    allocator.tick(OTHER).unwrap();
    let page = allocator.alloc(CPU, &request(3, MigrateType::Movable)).unwrap();
    assert_eq!(page, pages[0], "another CPU uses it before it opens a whole pageblock");
    allocator.validate().unwrap();
}

/// Replays of recordings showed this bug: each look at the zones moved pageblocks to other sets, and the next
/// frees moved the pageblocks back.
#[test]
fn a_look_at_the_zones_changes_nothing_and_counts_every_frame() {
    let (allocator, pages) = with_full_pageblocks(6, 8);
    pages.chunks(FRAMES).for_each(|block| free(&allocator, OTHER, &block[..40]));
    let before = allocator.counters();
    let free_of = |look: &BlockAllocator<'_>| look.zones().map(|zone| zone.free).sum::<u64>();
    let frames = free_of(&allocator);
    assert_eq!(allocator.counters(), before);
    assert_eq!(frames, 8 * FRAMES as u64 - 6 * (FRAMES as u64 - 40) - 1);
    assert_eq!(allocator.free_frames(), frames);
    assert_eq!(free_of(&allocator), frames);
}

/// A compilation showed this cost: each process freed pages of a few pageblocks, and the next process took
/// the pages again. Each of these pageblocks moved between the sets twice.
#[test]
fn a_cpu_that_takes_again_what_it_freed_in_a_few_pageblocks_changes_no_set() {
    let (allocator, mut pages) = with_full_pageblocks(5, 64);
    let movable = request(0, MigrateType::Movable);
    for _ in 0..10 {
        let (mut kept, freed): (Vec<_>, Vec<_>) = pages.iter().partition(|page| page.0 / 4 % 2 == 0);
        let before = allocator.counters();
        free(&allocator, CPU, &freed);
        kept.extend(freed.iter().map(|_| allocator.alloc(CPU, &movable).unwrap()));
        pages = kept;
        let after = allocator.counters();
        assert_eq!((after.adopted, after.claimed), (before.adopted, before.claimed));
        allocator.validate().unwrap();
    }
    // Another CPU finds what this CPU frees, once memory is short.
    let freed: Vec<_> = pages.iter().copied().step_by(2).collect();
    free(&allocator, CPU, &freed);
    let taken = std::iter::from_fn(|| allocator.alloc(OTHER, &movable).ok());
    assert_eq!(taken.count() + pages.len() - freed.len() + 1, 64 * FRAMES);
}
