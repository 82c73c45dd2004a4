//! Pages of a pageblock from which another CPU allocates: they go back when that CPU has left it.

use pageset_blocks::BlockAllocator;
use pageset_core::{CpuId, FreeError, MigrateType, Order, Pfn, TickOutcome};

use super::machine::{plain, request};

const PRODUCER: CpuId = CpuId(0);
const CONSUMER: CpuId = CpuId(1);
const PAGEBLOCK: usize = 512;
/// Pages that a CPU keeps of other pageblocks.
const KEPT: usize = 256;

fn produce(allocator: &BlockAllocator<'_>, pages: usize) -> Vec<Pfn> {
    let page = |_| allocator.alloc(PRODUCER, &request(0, MigrateType::Movable)).expect("there is memory");
    (0..pages).map(page).collect()
}

fn consume(allocator: &BlockAllocator<'_>, pages: &[Pfn]) {
    pages.iter().for_each(|pfn| allocator.free(CONSUMER, *pfn, Order::ZERO).expect("it is in use"));
}

fn held(allocator: &BlockAllocator<'_>) -> usize {
    allocator.zones().map(|zone| zone.held as usize).sum()
}

fn pageblock(pfn: Pfn) -> u64 {
    pfn.0 / PAGEBLOCK as u64
}

#[test]
fn they_wait_until_all_of_them_are_there() {
    let allocator = plain(8192, 2);
    let pages = produce(&allocator, PAGEBLOCK - 1);
    consume(&allocator, &pages);
    assert_eq!((held(&allocator), allocator.counters().given_back), (PAGEBLOCK - 1, 1));
    let last = produce(&allocator, 2);
    assert_eq!(pageblock(last[0]), pageblock(pages[0]));
    assert_ne!(pageblock(last[1]), pageblock(pages[0]), "what the consumer has is in use for the producer");
    consume(&allocator, &last[..1]);
    assert_eq!((held(&allocator), allocator.counters().closed), (0, 1), "all at once, and it is whole");
    assert_eq!(allocator.validate().unwrap().allocated, 1);
}

#[test]
fn they_go_back_when_their_owner_has_left_them() {
    let allocator = plain(8192, 2);
    let first = produce(&allocator, PAGEBLOCK);
    let second = produce(&allocator, KEPT + 100);
    // One is missing, so the first pageblock is never whole.
    consume(&allocator, &first[1..=KEPT]);
    assert_eq!(held(&allocator), KEPT);
    consume(&allocator, &first[KEPT + 1..]);
    assert!(held(&allocator) <= KEPT, "the producer has left it: nothing is collected");
    consume(&allocator, &second);
    assert_eq!(
        held(&allocator),
        KEPT + 99,
        "one went back with the rest of the first; the producer is still here"
    );
    allocator.drain_all();
    assert_eq!(held(&allocator), 0);
    assert_eq!(allocator.validate().unwrap().allocated, 1);
}

#[test]
fn a_tick_gives_them_back_when_their_owner_has_left_them() {
    let allocator = plain(8192, 2);
    let pages = produce(&allocator, PAGEBLOCK);
    consume(&allocator, &pages[..KEPT + 100]);
    let busy_tick = || assert_eq!(allocator.tick(CONSUMER), Ok(TickOutcome::Again));
    busy_tick();
    assert_eq!(held(&allocator), KEPT + 100, "the producer is still here");
    let next = produce(&allocator, 1);
    assert_ne!(pageblock(next[0]), pageblock(pages[0]));
    consume(&allocator, &pages[KEPT + 100..KEPT + 200]);
    busy_tick();
    assert_eq!(held(&allocator), 0);
    assert_eq!(allocator.validate().unwrap().allocated, (PAGEBLOCK - KEPT - 200 + 1) as u64);
}

#[test]
fn whoever_collects_them_uses_them() {
    let allocator = plain(8192, 2);
    let pages = produce(&allocator, KEPT + 44);
    consume(&allocator, &pages);
    assert_eq!(held(&allocator), KEPT + 44);
    let used: Vec<Pfn> = (0..KEPT + 44)
        .map(|_| allocator.alloc(CONSUMER, &request(0, MigrateType::Movable)).expect("there is memory"))
        .collect();
    assert!(used.iter().all(|pfn| pages.contains(pfn)));
    let other = allocator.alloc(CONSUMER, &request(0, MigrateType::Unmovable)).unwrap();
    assert_ne!(pageblock(other), pageblock(pages[0]), "they are of another type");
    assert_eq!((held(&allocator), allocator.validate().unwrap().allocated), (0, KEPT as u64 + 44 + 1));
}

#[test]
fn a_double_free_of_one_is_found_at_once() {
    let allocator = plain(8192, 2);
    let pages = produce(&allocator, KEPT + 10);
    consume(&allocator, &pages);
    for pfn in [pages[0], pages[KEPT + 5]] {
        assert_eq!(allocator.free(CONSUMER, pfn, Order::ZERO), Err(FreeError::DoubleFree(pfn)));
    }
    assert_eq!((held(&allocator), allocator.validate().unwrap().allocated), (KEPT + 10, 0));
}

#[test]
fn no_request_fails_for_want_of_them() {
    let allocator = plain(1024, 2);
    let pages = produce(&allocator, 2 * KEPT);
    consume(&allocator, &pages[..PAGEBLOCK - 1]);
    assert_eq!(held(&allocator), PAGEBLOCK - 1);
    assert_eq!(produce(&allocator, 1023).len(), 1023, "the consumer gives back what it has");
    assert_eq!(held(&allocator), 0);
}

#[test]
fn an_isolated_pageblock_gets_them_back() {
    let allocator = plain(8192, 2);
    let pages = produce(&allocator, KEPT + 100);
    consume(&allocator, &pages);
    allocator.isolate_pageblock(PRODUCER, pages[0]).unwrap();
    assert_eq!(held(&allocator), 0);
    assert_eq!(allocator.validate().unwrap().allocated, 0);
}
