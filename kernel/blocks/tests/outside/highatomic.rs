//! Tests the highatomic reserve: whole pageblocks for atomic requests of high order.

use pageset_blocks::BlockAllocator;
use pageset_core::{CpuId, MigrateType, Order, Pfn, Request, RequestTraits, Watermarks, ZoneId};

use crate::machine::{order, plain};

const CPU: CpuId = CpuId(0);
/// Frames of the zone. A hundredth of the zone is a little more than a pageblock, so the reserve may have two
/// pageblocks.
const FRAMES: u64 = 120 * 512;
const MIN: u64 = 8 * 512;

/// A zone whose single pages are used up down to the minimum watermark. Only whole pageblocks are free.
fn used_up() -> (BlockAllocator<'static>, Vec<Pfn>) {
    let allocator = plain(FRAMES, 1);
    let marks = Watermarks { min: MIN, low: MIN + 512, high: MIN + 1024 };
    allocator.set_watermarks(ZoneId(0), marks).expect("it is a zone");
    let pages = take_all(&allocator, &waiting(0));
    assert_eq!(pages.len() as u64, FRAMES - MIN);
    (allocator, pages)
}

fn take_all(allocator: &BlockAllocator<'_>, request: &Request) -> Vec<Pfn> {
    std::iter::from_fn(|| allocator.alloc(CPU, request).ok()).collect()
}

fn waiting(of: u8) -> Request {
    Request::new(order(of)).movable().with(RequestTraits::MAY_WAIT)
}

fn reserved(allocator: &BlockAllocator<'_>) -> u64 {
    allocator.zones().map(|zone| zone.reserved_highatomic).sum()
}

#[test]
fn an_atomic_request_of_high_order_makes_a_reserve() {
    let (allocator, _) = used_up();
    // The reserve does not grow for a request that may wait, a single page, or a request that may not use
    // reserves.
    let no_reserves = Request::new(order(3)).atomic().with(RequestTraits::NO_RESERVES);
    for request in [waiting(3), Request::new(Order::ZERO).atomic(), no_reserves] {
        let _ = allocator.alloc(CPU, &request);
        assert_eq!(reserved(&allocator), 0, "{request:?}");
    }
    for expected in [512, 1024, 1024] {
        allocator.alloc(CPU, &Request::new(order(9)).atomic()).expect("half of the watermark is for it");
        assert_eq!(reserved(&allocator), expected, "at most a hundredth of the zone");
    }
}

#[test]
fn others_leave_the_reserve_to_atomic_requests() {
    let (allocator, pages) = used_up();
    let atomic = Request::new(order(9)).atomic();
    let first = allocator.alloc(CPU, &atomic).expect("half of the watermark is for it");
    // With no watermark, only the reserve limits the request.
    allocator.set_watermarks(ZoneId(0), Watermarks::default()).expect("it is a zone");
    let high =
        Request::new(Order::ZERO).movable().with(RequestTraits::HIGH_PRIORITY | RequestTraits::MAY_WAIT);
    let whole = || allocator.zones().map(|zone| zone.whole_pageblocks).sum::<u64>();
    while whole() > 1 {
        allocator.alloc(CPU, &high).expect("there are whole pageblocks");
    }
    let rest = allocator.alloc_bulk(CPU, &high, &mut [None; 511]);
    assert_eq!((rest, whole()), (Ok(511), 1), "the last but the reserve");
    let second = allocator.alloc(CPU, &atomic).expect("the reserve is for it");
    assert_eq!(whole(), 0);
    // Freed pageblocks fill the reserve again.
    allocator.free(CPU, first, order(9)).expect("in use");
    allocator.drain_all();
    assert!(
        allocator.alloc(CPU, &Request::new(order(9)).movable().with(RequestTraits::NO_RESERVES)).is_err()
    );
    assert_eq!(allocator.alloc(CPU, &atomic), Ok(first));
    allocator.free(CPU, second, order(9)).expect("in use");
    assert!(!pages.is_empty());
}

#[test]
fn a_request_that_may_wait_gets_the_reserve_before_it_fails() {
    let (allocator, _) = used_up();
    let atomic = Request::new(order(3)).atomic();
    allocator.alloc(CPU, &atomic).expect("half of the watermark is for it");
    assert_eq!(reserved(&allocator), 512);
    allocator.set_watermarks(ZoneId(0), Watermarks::default()).expect("it is a zone");
    let all = take_all(&allocator, &waiting(0));
    assert_eq!(reserved(&allocator), 0);
    assert_eq!(all.len() as u64, MIN - 8);
}

#[test]
fn whoever_cannot_wait_gets_the_reserve_last() {
    for traits in [RequestTraits::empty(), RequestTraits::OOM_VICTIM | RequestTraits::NO_RESERVES] {
        let (allocator, _) = used_up();
        allocator.alloc(CPU, &Request::new(order(3)).atomic()).expect("half of the watermark is for it");
        allocator.set_watermarks(ZoneId(0), Watermarks::default()).expect("it is a zone");
        let all = take_all(&allocator, &Request::new(Order::ZERO).movable().with(traits));
        assert_eq!(reserved(&allocator), 512, "it may be filled again");
        assert_eq!(all.len() as u64, MIN - 8, "{traits:?}");
    }
}

#[test]
fn a_small_zone_has_no_reserve() {
    let allocator = plain(51_199, 1);
    allocator.set_watermarks(ZoneId(0), Watermarks { min: MIN, low: 51_199, high: 51_199 }).expect("a zone");
    allocator.alloc(CPU, &Request::new(order(3)).of_type(MigrateType::Unmovable).atomic()).expect("above it");
    assert_eq!(reserved(&allocator), 0);
}
