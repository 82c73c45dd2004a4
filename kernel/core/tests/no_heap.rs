//! Tests that operations of an allocator allocate no heap memory after the allocator is built. Also tests the
//! error of a build that gets no heap memory.

#[path = "outside/host.rs"]
mod host;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use host::{Allocator, build, order};
use pageset_core::{
    BelowHighMark, CacheSlice, Config, ConfigError, CpuId, MigrateType, NodeId, Order, POLICIES,
    PageAllocator, Pfn, Policy, Reclaim, Request, RequestTraits, Tables, Watermarks, ZoneConfig, ZoneId,
    ZoneKind,
};

/// The system's heap, which also counts each thread's requests for memory. A test can make the heap refuse
/// one request.
struct Counting;

thread_local! {
    static ASKED: Cell<u64> = const { Cell::new(0) };
    /// Bytes that this thread holds.
    static HELD: Cell<isize> = const { Cell::new(0) };
    /// The number of the request that the heap refuses, or 0 if the heap refuses none. A thread's first
    /// request has the number 1.
    static REFUSED: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: every call is passed unchanged to the system's allocator, or refused, which an allocator may do.
// Counting only changes thread-local integers.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ASKED.set(ASKED.get() + 1);
        if ASKED.get() == REFUSED.get() {
            return std::ptr::null_mut();
        }
        HELD.set(HELD.get() + layout.size() as isize);
        // SAFETY: the caller keeps the same promises that `System` requires.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        HELD.set(HELD.get() - layout.size() as isize);
        // SAFETY: `memory` came from `System`, through `alloc` above.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static HEAP: Counting = Counting;

const CPU: CpuId = CpuId(0);
const OTHER: CpuId = CpuId(1);

/// Runs most operations, many of them along several paths. `held` stores the blocks in use.
fn everything(allocator: &Allocator, held: &mut [Option<(Pfn, Order)>]) {
    let ordinary = Request::new(Order::ZERO);
    // The allocations refill page sets, bypass page sets, fall back to other types, use reserves, and finally
    // fail.
    for (index, slot) in held.iter_mut().enumerate() {
        let size = order([0, 0, 1, 2, 3, 0, 4, 9][index % 8]);
        let request = match index % 5 {
            0 => Request::new(size),
            1 => Request::new(size).movable(),
            2 => Request::new(size).of_type(MigrateType::Reclaimable),
            3 => Request::new(size).atomic(),
            _ => Request::new(size).with(RequestTraits::BYPASS_PCP | RequestTraits::MAY_WAIT),
        };
        *slot = allocator.alloc(CpuId(index as u32 % 2), &request).ok().map(|pfn| (pfn, size));
    }
    assert!(allocator.alloc(CPU, &Request::new(Order::MAX)).is_err(), "memory is exhausted");
    assert!(allocator.alloc(CpuId(9), &ordinary).is_err());
    // Free blocks into page sets, with drains. Some frees go directly to the zone, and some are refused.
    for (index, slot) in held.iter_mut().enumerate() {
        if let Some((pfn, size)) = slot.take() {
            allocator.free(CpuId(index as u32 % 2), pfn, size).expect("allocated above");
            assert!(allocator.free(CPU, pfn, size).is_err());
        }
        if index % 50 == 0 {
            allocator.tick(OTHER).expect("it exists");
        }
    }
    let mut slots = [None; 40];
    allocator.alloc_bulk(CPU, &ordinary, &mut slots).expect("memory enough");
    let blocks: [_; 40] = std::array::from_fn(|slot| (slots[slot].unwrap_or_default(), Order::ZERO));
    allocator.free_batch(OTHER, &blocks).expect("allocated above");
    assert!(allocator.free_batch(OTHER, &blocks).is_err());
    let start = allocator.alloc_exact(CPU, 77, &ordinary).expect("memory enough").0;
    allocator.free_range(CPU, start + 10..start + 20).expect("allocated above");
    assert!(allocator.free_range(CPU, start..start + 77).is_err());
    allocator.free_range(CPU, start..start + 10).expect("allocated above");
    allocator.free_range(CPU, start + 20..start + 77).expect("allocated above");
    allocator.drain_all(CPU).expect("it exists");
    allocator.alloc_at(CPU, Pfn(4096), &Request::new(order(5))).expect("all memory is free");
    allocator.free(CPU, Pfn(4096), order(5)).expect("allocated above");
    allocator.add_memory(CPU, 1000..2000).expect("the frames are a hole");
    for (frames, align) in [(77, 1), (3000, 512)] {
        let start = allocator.alloc_contiguous(CPU, frames, align, &ordinary).expect("memory enough").0;
        allocator.free_range(CPU, start..start + frames).expect("allocated above");
        allocator.drain_all(CPU).expect("it exists");
    }
    allocator.alloc_range(CPU, 8192..9999, &ordinary).expect("all memory is free");
    assert!(allocator.alloc_range(CPU, 8000..8193, &ordinary).is_err());
    allocator.split_range(CPU, 8200..9300).expect("allocated above");
    allocator.mark_bad(OTHER, Pfn(9000)).expect("it is in use");
    assert!(allocator.free(CPU, Pfn(9000), Order::ZERO).is_err());
    allocator.free_range(CPU, 8192..9000).expect("allocated above");
    allocator.free_range(CPU, 9001..9999).expect("allocated above");
    allocator.mark_bad(CPU, Pfn(12_345)).expect("it is free");
    // Drain before the isolation of a pageblock. A later drain could merge a block with the pageblock of
    // frame 5000, and so change the type of this pageblock.
    allocator.drain_all(CPU).expect("it exists");
    // Change settings, CPUs and isolation, and make queries.
    allocator.isolate_pageblock(CPU, Pfn(5000)).expect("it exists");
    allocator.unisolate_pageblock(CPU, Pfn(5000), MigrateType::Movable).expect("it exists");
    allocator.cpu_offline(OTHER).expect("a CPU");
    allocator.cpu_online(OTHER).expect("a CPU");
    allocator.set_cache_slice(CPU, CacheSlice { all_kib: 4096, last_level_kib: 4096 }).expect("a CPU");
    allocator.set_reclaim_active(ZoneId(0), Reclaim::Active).expect("it exists");
    allocator.set_reclaim_active(ZoneId(0), Reclaim::Idle).expect("it exists");
    allocator.set_below_high(ZoneId(0), BelowHighMark::Below).expect("it exists");
    allocator.set_below_high(ZoneId(0), BelowHighMark::Cleared).expect("it exists");
    allocator.set_percpu_pagelist_high_fraction(8).expect("eight is allowed");
    allocator.set_percpu_pagelist_high_fraction(0).expect("none is allowed");
    allocator.set_min_free_kbytes(256);
    allocator.set_watermark_scale_factor(20);
    allocator.set_watermark_boost_factor(15_000);
    allocator.set_watermarks(ZoneId(0), Watermarks { min: 10, low: 20, high: 30 }).expect("it exists");
    allocator.end_boost(CPU, ZoneId(0), 512).expect("it exists");
    allocator.drain_cpu(CPU, OTHER).expect("it exists");
    allocator.drain_zone(CPU, ZoneId(0)).expect("it exists");
    assert_eq!(allocator.validate().expect("nothing broke").leaked, 2);
    let free: u64 = allocator.zones().map(|zone| zone.free).sum();
    assert!(free > 0 && allocator.counters().pgalloc > 0 && allocator.cached_pages() == 0);
    assert!(allocator.pageset_info(ZoneId(0), CPU).is_some());
    assert!(allocator.pageset_counters(ZoneId(0), CPU).is_some());
    assert!(allocator.zone_counters(ZoneId(0)).is_some());
    assert_eq!(allocator.pageblock_type(Pfn(5000)), Some(MigrateType::Movable));
    assert_eq!(allocator.zone_of(Pfn(5000)), Some(ZoneId(0)));
}

fn build_for(policy: Policy) -> Allocator {
    let regions = [0..1000, 2000..60_000];
    let zones = [ZoneConfig { kind: ZoneKind::Normal, node: NodeId(0), span: 0..60_000, regions: &regions }];
    build(&Config::new(&zones, &[NodeId(0), NodeId(1)]).with_policy(policy))
}

#[test]
fn no_operation_allocates_after_construction() {
    let mut held = vec![None; 60_000];
    for policy in POLICIES {
        let allocator = build_for(*policy);
        let before = ASKED.get();
        assert!(before > 0, "building allocates, and it is counted");
        everything(&allocator, &mut held);
        assert_eq!(ASKED.get(), before, "{} allocated", policy.name);
    }
}

/// Refuses the first heap request, then the second, and so on, until `build` succeeds. Each refusal must make
/// `build` fail, and all memory of the failed build must be freed.
fn each_request_refused<T>(mut build: impl FnMut() -> Result<T, ConfigError>) -> T {
    for request in 1.. {
        let held = HELD.get();
        REFUSED.set(ASKED.get() + request);
        let built = build();
        let is_over = ASKED.get() < REFUSED.replace(0);
        match built {
            Ok(built) if is_over => {
                assert!(
                    request > 4,
                    "only {request} heap requests were made, so some tables are not on the heap"
                );
                return built;
            }
            Ok(_) => panic!("the heap refused request {request}, but the build did not fail"),
            Err(error) => assert!(matches!(error, ConfigError::OutOfMemory(bytes) if bytes > 0), "{error}"),
        }
        assert_eq!(HELD.get(), held, "what was made before request {request} is given back");
    }
    unreachable!("there are not so many requests")
}

#[test]
fn fault_06_an_allocator_that_finds_no_memory_for_its_tables_is_an_error() {
    let mut held = vec![None; 60_000];
    let regions = [0..1000, 2000..60_000];
    let zones = [ZoneConfig { kind: ZoneKind::Normal, node: NodeId(0), span: 0..60_000, regions: &regions }];
    for policy in POLICIES {
        let config = Config::new(&zones, &[NodeId(0), NodeId(1)]).with_policy(*policy);
        let allocator =
            each_request_refused(|| PageAllocator::new(host::Host(()), &config, Tables::on_heap(&config)?));
        // The heap refuses the next request, so an operation that requests heap memory fails.
        REFUSED.set(ASKED.get() + 1);
        everything(&allocator, &mut held);
        assert_eq!(ASKED.get() + 1, REFUSED.replace(0), "{} allocated", policy.name);
    }
}
