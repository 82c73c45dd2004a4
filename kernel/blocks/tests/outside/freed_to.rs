//! Tests the pageblocks that CPUs reserve for their frees. A CPU that frees many blocks of one pageblock then
//! changes the sets once, not each time that a larger block becomes free.

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
fn frees_in_the_order_of_addresses_reserve_each_pageblock_until_it_is_whole() {
    let (allocator, pages) = with_full_pageblocks(3, 8);
    for full in pages.chunks(FRAMES) {
        free(&allocator, OTHER, &full[..1]);
        assert_eq!(allocator.owner_of(full[0]), Some(OTHER));
        free(&allocator, OTHER, &full[1..]);
    }
    let counters = allocator.counters();
    assert_eq!((counters.closed, counters.adopted), (2, 0), "the third is reserved still");
    assert_eq!(counters.settled, 0, "no pageblock changed its set");
    allocator.drain_all();
    assert_eq!(allocator.counters().closed, 3);
    allocator.validate().unwrap();
}

/// With a reservation at each free, a CPU that frees and allocates at random took six times as long.
#[test]
fn a_cpu_that_frees_here_and_there_keeps_its_first_reservation() {
    let (allocator, pages) = with_full_pageblocks(3, 8);
    free(&allocator, OTHER, &[pages[0], pages[FRAMES], pages[2 * FRAMES]]);
    let owners = || [0, 1, 2].map(|at| allocator.owner_of(pages[at * FRAMES]));
    assert_eq!(owners(), [Some(OTHER), None, None]);
    // Other CPUs find the free frames of the other two.
    free(&allocator, OTHER, &pages[1..FRAMES / 2]);
    assert_eq!(owners(), [Some(OTHER), None, None], "only a full pageblock is reserved");
    allocator.validate().unwrap();
}

#[test]
fn a_cpu_takes_from_the_pageblock_that_it_freed_to() {
    let (allocator, pages) = with_full_pageblocks(2, 8);
    free(&allocator, OTHER, &pages[..FRAMES / 2]);
    let block = allocator.alloc(OTHER, &request(3, MigrateType::Movable)).unwrap();
    assert!(pages[..FRAMES / 2].contains(&block));
    assert_eq!(allocator.counters().claimed, 3, "three pageblocks were opened before");
    // The pageblock serves allocations now, so that the next full one may be reserved for frees.
    free(&allocator, OTHER, &pages[FRAMES..=FRAMES]);
    assert_eq!(allocator.owner_of(pages[0]), Some(OTHER));
    assert_eq!(allocator.owner_of(pages[FRAMES]), Some(OTHER));
    allocator.validate().unwrap();
}

#[test]
fn an_idle_cpu_gives_it_up_and_short_memory_has_none() {
    let (allocator, pages) = with_full_pageblocks(2, 8);
    free(&allocator, OTHER, &pages[..1]);
    allocator.tick(OTHER).unwrap();
    assert_eq!(allocator.owner_of(pages[0]), None);
    // No pageblock is whole: every request looks for the rest of the others.
    let (allocator, pages) = with_full_pageblocks(2, 3);
    free(&allocator, OTHER, &pages[..1]);
    assert_eq!(allocator.owner_of(pages[0]), None);
    allocator.validate().unwrap();
}
