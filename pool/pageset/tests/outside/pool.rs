//! Tests what the pool promises to its users.

use std::collections::HashSet;
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::ptr::NonNull;
use std::time::{Duration, Instant};

use pageset::{
    AllocError, Backing, BuildError, Builder, CachedOrder, FastPath, HugePageSize, Numa, Order, PAGE_BYTES,
    Pages, Pool, Populated, Prezero, RawPages, Residency, ReturnPolicy, Worker,
};

const MIB: usize = 1 << 20;

fn quiet() -> ReturnPolicy {
    ReturnPolicy::default().with_worker(Worker::None)
}

fn builder(mib: usize) -> Builder {
    Pool::builder().size(mib * MIB).returns(quiet())
}

fn order(order: u8) -> Order {
    Order::new(order).unwrap()
}

/// Runs `test` with each kind of fast path: restartable sequences, if the system has them, and locks.
fn both(test: impl Fn(Builder)) {
    test(builder(64));
    test(builder(64).fast_path(FastPath::Locks));
}

#[test]
fn every_order_is_aligned_writable_and_accounted_for() {
    both(|builder| {
        let pool = builder.build().unwrap();
        let mut held = Vec::new();
        for o in (0..=10).chain((0..=10).rev()) {
            let mut pages = pool.alloc(order(o)).unwrap();
            assert_eq!(pages.len(), PAGE_BYTES << o);
            assert_eq!(pages.as_ptr().addr().get() % pages.len(), 0);
            pages.fill(o);
            held.push((o, pages));
        }
        assert!(held.iter().all(|(o, pages)| pages.iter().all(|byte| byte == o)));
        let stats = pool.stats();
        assert_eq!(stats.nr_used, 2 * 2047);
        assert_eq!(stats.pgalloc, 2 * 2047);
        let free = stats.nr_array + stats.nr_free_pages;
        assert_eq!(stats.nr_used + free, 16_384);
        drop(held);
        let stats = pool.stats();
        assert_eq!((stats.nr_used, stats.pgfree, stats.bad_frees), (0, 2 * 2047, 0));
        pool.validate().unwrap();
    });
}

#[test]
fn every_page_can_be_had_and_the_next_is_an_error() {
    both(|builder| {
        let pool = builder.build().unwrap();
        let pages: Vec<_> = std::iter::from_fn(|| pool.alloc(Order::ZERO).ok()).collect();
        assert_eq!(pages.len(), 16_384);
        let distinct: HashSet<_> = pages.iter().map(Pages::pfn).collect();
        assert_eq!(distinct.len(), pages.len());
        assert_eq!(pool.alloc(Order::ZERO).unwrap_err(), AllocError::OutOfMemory { order: Order::ZERO });
        drop(pages);
        // Single pages in arrays do not prevent allocations of the largest blocks.
        let blocks: Vec<_> = std::iter::from_fn(|| pool.alloc(Order::MAX).ok()).collect();
        assert_eq!(blocks.len(), 16);
    });
}

#[test]
fn zeroed_pages_are_zero_and_fresh_ones_are_not_cleared() {
    both(|builder| {
        let pool = builder.build().unwrap();
        let fresh: Vec<_> = [0, 3, 9, 10].map(|o| pool.alloc_zeroed(order(o)).unwrap()).into();
        assert_eq!(pool.stats().cleared_bytes, 0);
        drop(fresh);
        for o in [0, 1, 5, 9] {
            let mut dirty: Vec<_> = (0..20).map_while(|_| pool.alloc(order(o)).ok()).collect();
            dirty.iter_mut().for_each(|pages| pages.fill(0xff));
            drop(dirty);
            let clean: Vec<_> = (0..20).map_while(|_| pool.alloc_zeroed(order(o)).ok()).collect();
            assert!(clean.iter().all(|pages| pages.iter().all(|byte| *byte == 0)), "order {o}");
        }
        assert!(pool.stats().cleared_bytes > 0);
    });
}

#[test]
fn returned_memory_is_known_to_be_zero() {
    let pool = builder(64).build().unwrap();
    let mut blocks: Vec<_> = std::iter::from_fn(|| pool.alloc(Order::THP).ok()).collect();
    blocks.iter_mut().for_each(|block| block.fill(7));
    drop(blocks);
    assert_eq!(pool.trim().returned_bytes, 64 * MIB as u64);
    let block = pool.alloc_zeroed(Order::THP).unwrap();
    assert!(block.iter().all(|byte| *byte == 0));
    let stats = pool.stats();
    assert_eq!(stats.cleared_bytes, 0);
    assert_eq!(stats.returned_bytes, 64 * MIB as u64);
    assert!(stats.refaulted_bytes >= 2 * MIB as u64);
    assert!(stats.return_time > Duration::ZERO);
}

#[test]
fn a_capacity_is_hard() {
    let pool = builder(64).capacity(8 * MIB).build().unwrap();
    let mut blocks: Vec<_> = std::iter::from_fn(|| pool.alloc(order(8)).ok()).collect();
    assert_eq!(blocks.len(), 8);
    assert_eq!(pool.alloc(Order::ZERO).unwrap_err(), AllocError::OverCapacity);
    blocks.pop();
    // Pages in arrays count as used capacity, but an allocation that needs this capacity drains the arrays.
    let singles: Vec<_> = std::iter::from_fn(|| pool.alloc(Order::ZERO).ok()).collect();
    assert_eq!(singles.len(), 256);
    drop(singles);
    assert!(pool.alloc(order(8)).is_ok());
}

/// Tests the error of an allocation that fails even after the pool drained the arrays. The error must name
/// the cause: too little memory or too little capacity.
#[test]
fn an_allocation_says_what_is_really_short() {
    both(|builder| {
        let pool = builder.capacity(1042 * PAGE_BYTES).build().unwrap();
        // Hold a page in every block of 4 MiB, and put 300 pages into arrays.
        let held: Vec<_> = (0..16).map(|block| pool.alloc_at(block * 1024, Order::ZERO).unwrap()).collect();
        drop((0..300).map(|_| pool.alloc(Order::ZERO).unwrap()).collect::<Vec<_>>());
        assert!(pool.stats().nr_array > 1042 - 1024 - 16);
        assert_eq!(pool.alloc(Order::MAX).unwrap_err(), AllocError::OutOfMemory { order: Order::MAX });
        drop(held);
        assert!(pool.alloc(Order::MAX).is_ok());
    });
}

#[test]
fn bulk_exact_and_given_places() {
    both(|builder| {
        let pool = builder.build().unwrap();
        let mut pages = Vec::new();
        assert_eq!(pool.alloc_bulk(1000, &mut pages), Ok(1000));
        assert_eq!(pages.iter().map(Pages::pfn).collect::<HashSet<_>>().len(), 1000);
        pages.clear();
        assert_eq!(pool.alloc_bulk(usize::MAX, &mut pages), Ok(16_384), "all there are");
        pages.clear();

        let exact = pool.alloc_exact(37).unwrap();
        assert_eq!((exact.page_count(), pool.stats().nr_used), (37, 37));
        drop(exact);
        assert_eq!(pool.alloc_exact(0).unwrap_err(), AllocError::BadCount);
        assert_eq!(pool.alloc_exact(16_385).unwrap_err(), AllocError::NoRun { page_count: 16_385 });
        assert_eq!(pool.alloc_exact(usize::MAX).unwrap_err(), AllocError::NoRun { page_count: usize::MAX });

        let at = pool.alloc_at(4096, order(4)).unwrap();
        assert_eq!(at.offset(), 4096 * PAGE_BYTES);
        assert_eq!(pool.alloc_at(4096, Order::ZERO).unwrap_err(), AllocError::NotFree);
        assert_eq!(pool.alloc_at(4097, order(4)).unwrap_err(), AllocError::BadFrame);
        assert_eq!(pool.alloc_at(16_384, Order::ZERO).unwrap_err(), AllocError::BadFrame);
        drop(at);
        assert!(pool.alloc_at(4096, Order::MAX).is_ok(), "cached parts are no obstacle");
        assert_eq!(pool.stats().nr_used, 0);
        pool.validate().unwrap();
    });
}

/// Regression test. Before the fix, runs of 17 pages wasted half of the pool, because the rest of each block
/// stayed unused.
#[test]
fn runs_of_one_length_leave_little_between_them() {
    both(|builder| {
        let pool = builder.build().unwrap();
        for count in [3, 5, 17, 31, 33, 48, 100, 128] {
            let runs: Vec<_> = std::iter::from_fn(|| pool.alloc_exact(count).ok()).collect();
            // No run of `count` pages crosses a border between pageblocks.
            assert_eq!(runs.len(), 32 * (512 / count), "{count}");
            let firsts: HashSet<_> = runs.iter().map(Pages::pfn).collect();
            assert_eq!(firsts.len(), runs.len());
            pool.validate().unwrap();
            drop(runs);
            assert_eq!((pool.stats().nr_used, pool.stats().bad_frees), (0, 0));
        }
        assert!(pool.alloc(Order::MAX).is_ok(), "all of it is free again");
    });
}

/// Tests a part of a run that has the size and alignment of one block, but is two blocks in the base.
#[test]
fn a_part_of_a_run_that_has_the_place_of_a_block_is_freed() {
    let pool = builder(64).build().unwrap();
    for count in [100, 200, 300, 500] {
        let runs: Vec<_> = (0..20).map(|_| pool.alloc_exact(count).unwrap()).collect();
        for mut run in runs {
            let first = usize::try_from(run.pfn().0).unwrap();
            let start = first.next_multiple_of(64) - first;
            if start + 64 <= count {
                run.shrink_to(start..start + 64);
            }
        }
        assert_eq!((pool.stats().nr_used, pool.stats().bad_frees), (0, 0));
        pool.validate().unwrap();
    }
}

#[test]
fn pages_can_be_freed_in_parts() {
    let pool = builder(64).build().unwrap();
    for (o, keeps) in [
        (3, vec![0..6, 2..6, 0..2]),
        (3, vec![1..8, 0..1]),
        (4, vec![5..16, 3..11, 0..8]),
        (9, vec![100..400, 28..156, 0..1]),
        (2, vec![2..4, 0..2]),
    ] {
        let mut pages = pool.alloc(order(o)).unwrap();
        pages.fill(9);
        for keep in keeps {
            let start = pages.offset() + keep.start * PAGE_BYTES;
            pages.shrink_to(keep.clone());
            assert_eq!((pages.offset(), pages.page_count()), (start, keep.len()));
            assert_eq!(pool.stats().nr_used, keep.len() as u64);
            assert!(pages.iter().all(|byte| *byte == 9));
        }
        drop(pages);
        assert_eq!(pool.stats().bad_frees, 0);
        pool.validate().unwrap();
    }
}

#[test]
fn raw_pages_come_back_and_a_second_time_is_refused() {
    both(|builder| {
        let pool = builder.build().unwrap();
        let raw = pool.alloc(order(2)).unwrap().into_raw();
        assert_eq!((raw.page_count(), pool.stats().nr_used), (4, 4));
        // SAFETY: the pages of `raw` were just given up.
        drop(unsafe { Pages::from_raw(&pool, raw) });
        // SAFETY: these pages are free, but the check refuses them.
        assert!(unsafe { Pages::from_raw_checked(&pool, raw) }.is_none(), "in an array");
        let _ = pool.trim();
        // SAFETY: as above.
        assert!(unsafe { Pages::from_raw_checked(&pool, raw) }.is_none(), "in the core");
        // Without a check, the pool refuses a double free only when the pool empties the array.
        for _ in 0..2 {
            // SAFETY: the second call is a double free on purpose. No allocation follows before the trim.
            drop(unsafe { Pages::from_raw(&pool, raw) });
        }
        let _ = pool.trim();
        assert!(pool.stats().bad_frees >= 1);
    });
}

#[test]
fn another_thread_frees_and_the_end_of_a_thread_leaves_nothing() {
    both(|builder| {
        let pool = builder.build().unwrap();
        for _ in 0..20 {
            let pages: Vec<_> = (0..500).map(|_| pool.alloc(Order::ZERO).unwrap()).collect();
            std::thread::scope(|scope| {
                scope.spawn(move || drop(pages));
            });
        }
        assert_eq!(pool.stats().nr_used, 0);
        let _ = pool.trim();
        assert_eq!(pool.stats().nr_free_pages, 16_384);
        pool.validate().unwrap();
    });
}

#[test]
fn idle_memory_goes_back_without_any_thread_of_the_users() {
    let pool = Pool::builder().size(128 * MIB).build().unwrap();
    let mut blocks: Vec<_> = (0..16_000).map(|_| pool.alloc(Order::ZERO).unwrap()).collect();
    blocks.iter_mut().for_each(|block| block[0] = 1);
    drop(blocks);
    std::thread::sleep(Duration::from_millis(1500));
    let resident = pool.backing().unwrap().resident_bytes;
    assert!(resident <= 2 * MIB as u64, "{resident} bytes are resident");
    // Use the pool again after the pool's thread has gone to sleep. Free pages must go back again, and pages
    // in use must stay resident.
    let held = pool.alloc_zeroed(Order::THP).unwrap();
    let mut blocks: Vec<_> = (0..8_000).map(|_| pool.alloc(Order::ZERO).unwrap()).collect();
    blocks.iter_mut().for_each(|block| block[0] = 1);
    drop(blocks);
    std::thread::sleep(Duration::from_millis(1500));
    assert!(held.iter().all(|byte| *byte == 0));
    let resident = pool.backing().unwrap().resident_bytes;
    assert!(resident <= 4 * MIB as u64, "{resident} bytes are resident");
    assert!(pool.stats().refaulted_bytes > 0);
}

#[test]
fn without_a_thread_ticks_return_what_two_looks_saw_idle() {
    let mut returns = quiet();
    returns.bytes_per_second = 80 * MIB as u64;
    let pool = Pool::builder().size(64 * MIB).returns(returns).build().unwrap();
    let blocks: Vec<_> = (0..8).map(|_| pool.alloc(Order::MAX).unwrap()).collect();
    let mut ticks = 0;
    drop(blocks);
    let mut returned = Vec::new();
    loop {
        let trimmed = pool.tick();
        returned.push(trimmed.returned_bytes);
        ticks += 1;
        if !trimmed.more {
            break;
        }
        assert!(ticks < 50, "{returned:?}");
    }
    assert_eq!(returned[0], 0, "seen idle once");
    assert_eq!(returned.iter().sum::<u64>(), 32 * MIB as u64);
    assert!(returned.iter().all(|bytes| *bytes <= 8 * MIB as u64), "the rate: {returned:?}");
}

#[test]
fn memory_that_was_given_back_is_used_last() {
    for o in [0, 3, 5, 9, 10] {
        let mut returns = quiet();
        returns.bytes_per_second = 80 * MIB as u64;
        let pool = Pool::builder().size(256 * MIB).returns(returns).build().unwrap();
        let blocks = |mib: usize| -> Vec<_> {
            let blocks = mib * MIB / (PAGE_BYTES << o);
            (0..blocks).map(|_| pool.alloc(order(o)).unwrap()).collect()
        };
        drop(blocks(128));
        while pool.stats().returned_bytes < 64 * MIB as u64 {
            assert!(pool.tick().more, "order {o}: more than half is idle");
        }
        let refaulted = pool.stats().refaulted_bytes;
        let held = blocks(40);
        assert_eq!(pool.stats().refaulted_bytes, refaulted, "order {o}: 64 MiB were resident");
        drop(held);
        pool.validate().unwrap();
    }
}

#[test]
fn something_is_kept_resident_for_whoever_comes_next() {
    both(|builder| {
        let mut returns = quiet();
        returns.keep_bytes = Some(9 * MIB as u64);
        let pool = builder.returns(returns).build().unwrap();
        let fill = |pages: &mut Vec<Pages<'_>>| pages.iter_mut().for_each(|page| page[0] = 1);
        let mut pages = Vec::new();
        pool.alloc_bulk(10_000, &mut pages).unwrap();
        fill(&mut pages);
        drop(pages);
        while pool.tick().more {}
        let kept = pool.backing().unwrap().resident_bytes;
        assert_eq!(kept, 8 * MIB as u64, "since 9 are no whole pageblocks");
        // The pool uses the kept pages first, so no memory has to come from the system.
        let refaulted = pool.stats().refaulted_bytes;
        let mut pages = Vec::new();
        pool.alloc_bulk(2000, &mut pages).unwrap();
        fill(&mut pages);
        assert_eq!(pool.stats().refaulted_bytes, refaulted);
        drop(pages);
        while pool.tick().more {}
        let _ = pool.trim();
        assert_eq!(pool.backing().unwrap().resident_bytes, 0);
        pool.validate().unwrap();
    });
}

#[test]
fn kept_memory_is_there_for_large_blocks() {
    let mut returns = quiet();
    returns.keep_bytes = Some(u64::MAX);
    let pool = Pool::builder().size(16 * MIB).returns(returns).build().unwrap();
    pool.alloc_bulk(4096, &mut Vec::new()).unwrap();
    while pool.tick().more {}
    assert_eq!((pool.stats().returned_bytes, pool.stats().nr_free_pages), (0, 4096));
    let all: Vec<_> = (0..4).map(|_| pool.alloc(Order::MAX).unwrap()).collect();
    drop(all);
    pool.validate().unwrap();
}

#[test]
fn free_pages_are_cleared_in_idle_time() {
    let mut returns = quiet();
    returns.prezero = Prezero::Blocks(100);
    let mut memory = lent(16 * MIB);
    // SAFETY: the memory outlives the pool, is aligned and initialised, and is not used otherwise.
    let builder = unsafe { Pool::builder().region(aligned(&mut memory), 16 * MIB) };
    let pool = builder.returns(returns).build().unwrap();
    let _ = pool.tick();
    assert_eq!(pool.stats().prezeroed_bytes, 16 * MIB as u64);
    let block = pool.alloc_zeroed(Order::MAX).unwrap();
    assert!(block.iter().all(|byte| *byte == 0));
    assert_eq!(pool.stats().cleared_bytes, 0);
}

/// Memory that is filled with a pattern, and large enough for an aligned pool of `bytes`.
fn lent(bytes: usize) -> Vec<u8> {
    vec![0xa5; bytes + 4 * MIB]
}

/// The first address in `memory` where a pool may begin: a multiple of 4 MiB.
fn aligned(memory: &mut Vec<u8>) -> NonNull<u8> {
    let start = memory.as_mut_ptr();
    NonNull::new(start.map_addr(|start| start.next_multiple_of(4 * MIB))).unwrap()
}

#[test]
fn a_callers_region_is_used_and_kept() {
    let mut memory = lent(8 * MIB);
    let start = aligned(&mut memory);
    // SAFETY: the memory outlives the pool, is aligned and initialised, and is not used otherwise.
    let pool = unsafe { Pool::builder().region(start, 8 * MIB) }.returns(quiet()).build().unwrap();
    let page = pool.alloc(order(3)).unwrap();
    assert!((start.addr().get()..start.addr().get() + 8 * MIB).contains(&page.as_ptr().addr().get()));
    assert_eq!(page[0], 0xa5);
    drop(page);
    assert!(pool.alloc_zeroed(order(3)).unwrap().iter().all(|byte| *byte == 0));
    assert_eq!(pool.trim().returned_bytes, 0);
    // SAFETY: the mapping has 8 MiB, so an address one page after its start lies in the mapping.
    let odd_start = unsafe { start.add(PAGE_BYTES) };
    // SAFETY: the memory is initialised and outlives the pool. The earlier pool does not use the memory now.
    let odd = unsafe { Pool::builder().region(odd_start, 4 * MIB) }.build();
    assert!(matches!(odd, Err(BuildError::UnalignedRegion)));
}

#[test]
fn a_lent_region_is_neither_locked_nor_bound_when_its_pool_has_ended() {
    let mut memory = lent(4 * MIB);
    let start = aligned(&mut memory);
    let kernel_says = || {
        let flags = of_mapping("/proc/self/smaps", start, |line| line.starts_with("VmFlags:"));
        let policy = of_mapping("/proc/self/numa_maps", start, |_| true);
        (flags.contains(" lo"), policy.contains(" bind:"))
    };
    // SAFETY: the memory outlives the pool, is aligned and initialised, and is not used otherwise.
    let builder = unsafe { Pool::builder().region(start, 4 * MIB) }.returns(quiet());
    let pool = builder.residency(Residency::Locked).numa(Numa::Bind(0)).build().unwrap();
    assert_eq!(kernel_says(), (true, true));
    drop(pool);
    assert_eq!(kernel_says(), (false, false));
}

/// The first line of a `/proc` table, from the mapping of `address` on, that satisfies `is_it`.
fn of_mapping(table: &str, address: NonNull<u8>, is_it: impl Fn(&str) -> bool) -> String {
    let text = std::fs::read_to_string(table).unwrap();
    let starts_above = |line: &str| {
        let start = line.split([' ', '-']).next().and_then(|start| usize::from_str_radix(start, 16).ok());
        start.is_some_and(|start| start > address.addr().get())
    };
    let below: Vec<_> = text.lines().take_while(|line| !starts_above(line)).collect();
    (*below.iter().rev().find(|line| is_it(line)).unwrap()).to_owned()
}

#[test]
fn a_pool_can_be_made_smaller_and_as_large_as_before() {
    let pool = builder(64).build().unwrap();
    let held = pool.alloc(Order::THP).unwrap();
    let out_of_service = pool.alloc_at(16_383, Order::ZERO).unwrap().into_raw();
    // SAFETY: the test has just given the pages up, and takes them back only once.
    drop(unsafe { Pages::from_raw(&pool, out_of_service) });
    assert_eq!(pool.resize(16 * MIB), 16 * MIB);
    let stats = pool.stats();
    assert_eq!((stats.nr_retired, stats.capacity_pages), (12_288, 4096));
    // SAFETY: this page has no owner, so the pool must refuse.
    assert!(unsafe { Pages::from_raw_checked(&pool, out_of_service) }.is_none());
    let blocks: Vec<_> = std::iter::from_fn(|| pool.alloc(Order::THP).ok()).collect();
    assert_eq!(blocks.len(), 7);
    // No memory is free, so this resize lowers only the capacity. The next resize takes the memory out of
    // service.
    assert_eq!(pool.resize(8 * MIB), 16 * MIB);
    drop(blocks);
    assert_eq!(pool.resize(8 * MIB), 8 * MIB);
    pool.validate().unwrap();
    assert_eq!(pool.resize(128 * MIB), 64 * MIB);
    drop(held);
    let blocks: Vec<_> = std::iter::from_fn(|| pool.alloc(Order::THP).ok()).collect();
    assert_eq!(blocks.len(), 32);
}

#[test]
fn populating_reports_progress_and_can_be_cancelled() {
    let pool = builder(128).backing(Backing::Plain).build().unwrap();
    let threads = NonZeroUsize::new(2).unwrap();
    let cancelled = pool.populate(128 * MIB, threads, |_| ControlFlow::Break(())).unwrap();
    assert!(matches!(cancelled, Populated::Cancelled(bytes) if (32 * MIB..=64 * MIB).contains(&bytes)));
    let mut last = 0;
    let outcome = pool.populate(128 * MIB, threads, |progress| {
        assert!(progress.done_bytes > last && progress.done_bytes <= progress.total_bytes);
        last = progress.done_bytes;
        ControlFlow::Continue(())
    });
    assert_eq!((outcome.unwrap(), last), (Populated::All, 128 * MIB));
    let report = pool.backing().unwrap();
    assert_eq!((report.resident_bytes, report.huge_bytes), (128 * MIB as u64, 0));
    assert_eq!((report.mapped_bytes, report.page_bytes), (128 * MIB as u64, 4096));
    assert_eq!(pool.trim().returned_bytes, 128 * MIB as u64);
    assert_eq!(pool.backing().unwrap().resident_bytes, 0);
}

#[test]
fn all_is_populated_by_one_call() {
    let pool = builder(48).build().unwrap();
    pool.populate_all().unwrap();
    assert_eq!(pool.backing().unwrap().resident_bytes, 48 * MIB as u64);
    while pool.tick().more {}
    assert_eq!(pool.backing().unwrap().resident_bytes, 48 * MIB as u64);
}

#[test]
fn populated_memory_stays_until_it_is_trimmed() {
    both(|builder| {
        let pool = builder.build().unwrap();
        let populated = pool.populate(32 * MIB, NonZeroUsize::MIN, |_| ControlFlow::Continue(())).unwrap();
        assert_eq!(populated, Populated::All);
        // Populated memory that was used after the populate also stays. Memory beyond the populated part goes
        // back.
        pool.alloc_bulk(16_384, &mut Vec::new()).unwrap();
        let mut behind = pool.alloc_at(16_384 - 512, Order::THP).unwrap();
        behind.fill(1);
        drop(behind);
        while pool.tick().more {}
        assert_eq!(pool.backing().unwrap().resident_bytes, 32 * MIB as u64);
        assert!(pool.trim().returned_bytes >= 32 * MIB as u64);
        assert_eq!(pool.backing().unwrap().resident_bytes, 0);
        // After a trim, scans treat populated memory like other memory.
        pool.alloc(Order::MAX).unwrap().fill(1);
        while pool.tick().more {}
        assert_eq!(pool.backing().unwrap().resident_bytes, 0);
    });
}

type Way = fn(&Pool);

/// Tests that each way to take pages wakes the pool's thread, which sleeps while all pages are free. A free
/// into an array does not wake the thread.
#[test]
fn idle_memory_goes_back_whatever_way_it_was_taken() {
    let ways: [(&str, Way); 5] = [
        ("alloc", |pool| pool.alloc(Order::ZERO).unwrap().fill(1)),
        ("alloc_bulk", |pool| {
            let mut pages = Vec::new();
            pool.alloc_bulk(3, &mut pages).unwrap();
            pages.iter_mut().for_each(|page| page.fill(1));
        }),
        ("alloc_at", |pool| pool.alloc_at(7, Order::ZERO).unwrap().fill(1)),
        ("alloc_exact", |pool| pool.alloc_exact(3).unwrap().fill(1)),
        ("alloc_zeroed", |pool| pool.alloc_zeroed(Order::MAX).unwrap().fill(1)),
    ];
    let mut returns = ReturnPolicy::default().with_worker(Worker::Thread);
    returns.interval = Duration::from_millis(5);
    returns.keep_bytes = Some(0);
    for (name, way) in ways {
        let pool = Pool::builder().size(64 * MIB).returns(returns).build().unwrap();
        // Wait long enough for the pool's thread to go to sleep.
        std::thread::sleep(Duration::from_millis(100));
        way(&pool);
        let until = Instant::now() + Duration::from_secs(30);
        while pool.backing().unwrap().resident_bytes > 0 && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(10));
        }
        assert_eq!(pool.backing().unwrap().resident_bytes, 0, "{name}: nobody woke the thread");
    }
}

#[test]
fn a_shared_pool_gives_its_file_and_its_memory_back() {
    let pool = builder(16).backing(Backing::Memfd).build().unwrap();
    let mut page = pool.alloc(Order::THP).unwrap();
    page.fill(3);
    // SAFETY: the test uses the file only for calls that the file's seals refuse.
    let file = unsafe { pool.memfd() }.unwrap();
    assert!(rustix::fs::ftruncate(file, 0).is_err(), "shorter: a touch of the pages would be fatal");
    assert!(rustix::fs::ftruncate(file, 32 * MIB as u64).is_err());
    assert!(rustix::fs::fcntl_add_seals(file, rustix::fs::SealFlags::empty()).is_err());
    drop(page);
    assert!(pool.trim().returned_bytes >= 2 * MIB as u64);
    assert!(pool.alloc_zeroed(Order::THP).unwrap().iter().all(|byte| *byte == 0));
    assert_eq!(pool.stats().cleared_bytes, 0);
    let _ = pool.trim();
    pool.alloc_at(3584, Order::THP).unwrap().fill(3);
    assert_eq!(pool.resize(8 * MIB), 8 * MIB);
    assert_eq!(pool.backing().unwrap().resident_bytes, 0, "seals are no obstacle to holes");
}

#[test]
fn the_last_free_block_goes_back_and_can_be_had_at_its_place() {
    both(|builder| {
        let pool = builder.size(4 * MIB).backing(Backing::Plain).build().unwrap();
        pool.alloc(Order::MAX).unwrap().fill(1);
        assert_eq!(pool.trim().returned_bytes, 4 * MIB as u64);
        let rest: Vec<_> = (0..2).map(|block| pool.alloc_at(block * 512, Order::THP).unwrap()).collect();
        drop(rest);
        let page = pool.alloc(Order::ZERO).unwrap();
        drop(page);
        assert_eq!(pool.resize(0), 0);
        assert_eq!(pool.resize(4 * MIB), 4 * MIB);
        pool.validate().unwrap();
    });
}

#[test]
fn parts_of_a_pageblock_go_back_when_trimmed() {
    let pool = builder(4).backing(Backing::Plain).build().unwrap();
    let mut blocks: Vec<_> = (0..4).map(|_| pool.alloc(order(8)).unwrap()).collect();
    blocks.iter_mut().for_each(|block| block.fill(1));
    let kept: Vec<_> = blocks.into_iter().step_by(2).collect();
    assert_eq!(pool.trim().returned_bytes, 2 * MIB as u64);
    assert_eq!(pool.trim().returned_bytes, 0, "not again");
    assert!(kept.iter().all(|block| block.iter().all(|byte| *byte == 1)));
    assert_eq!(pool.backing().unwrap().resident_bytes, 2 * MIB as u64);
}

#[test]
fn what_cannot_be_built_is_said_clearly() {
    let text = |builder: Builder| builder.build().map(drop).unwrap_err().to_string();
    assert_eq!(
        text(Pool::builder().size(4097)),
        "the size is 4097 bytes: it must be a multiple of 4096, and at most 4 TiB"
    );
    let hugetlb = builder(2 * 1024 * 1024).backing(Backing::Hugetlb(HugePageSize::Mib2));
    assert!(text(hugetlb).starts_with("cannot get 1048576 huge pages: "));
    for node in [63, 64, 127, 1023, 1024, u16::MAX] {
        let said = text(builder(4).numa(Numa::Bind(node)));
        assert_eq!(said, format!("cannot bind memory to node {node} (see /sys/devices/system/node/online)"));
    }
    let said = text(builder(4).numa(Numa::Interleave(1 << 63)));
    assert!(said.starts_with("cannot take memory from the nodes 0b1000"), "{said}");
    assert!(said.ends_with(" in turn (see /sys/devices/system/node/online)"), "{said}");
}

/// Tests that scans for idle memory also empty the arrays of other CPUs. A CPU may go offline while its array
/// has pages.
#[test]
fn arrays_of_other_cpus_are_emptied_when_idle() {
    both(|builder| {
        let pool = builder.build().unwrap();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| drop((0..40).map(|_| pool.alloc(order(3)).unwrap()).collect::<Vec<_>>()));
            }
        });
        assert!(pool.stats().nr_array > 0);
        let _ = pool.tick();
        let _ = pool.tick();
        assert_eq!(pool.stats().nr_array, 0);
    });
}

#[test]
fn pages_come_from_the_node_that_was_asked_for() {
    for numa in [Numa::Bind(0), Numa::Interleave(1)] {
        let pool = builder(16).numa(numa).build().unwrap();
        pool.alloc(Order::MAX).unwrap().fill(1);
        let nodes = pool.backing().unwrap().nodes;
        assert!(
            nodes.is_empty() || nodes.len() == 1 && nodes[0].0 == 0 && nodes[0].1 >= 4 << 20,
            "{nodes:?}"
        );
    }
}

/// Tests that each report covers only its own pool, although pools may be adjacent in memory.
#[test]
fn each_pool_reports_its_own_memory() {
    let pools: Vec<_> = (0..4).map(|_| builder(4).backing(Backing::Plain).build().unwrap()).collect();
    for pool in &pools[..2] {
        pool.alloc(Order::MAX).unwrap().fill(1);
    }
    let resident: Vec<_> = pools.iter().map(|pool| pool.backing().unwrap().resident_bytes).collect();
    let full = 4 * MIB as u64;
    assert_eq!(resident, [full, full, 0, 0]);
}

/// Tests that a hugetlb pool consists of reserved huge pages, or the builder returns an error.
#[test]
fn hugetlb_is_what_it_says() {
    match builder(8).backing(Backing::Hugetlb(HugePageSize::Mib2)).build() {
        Ok(pool) => {
            pool.alloc(Order::MAX).unwrap().fill(1);
            let report = pool.backing().unwrap();
            assert_eq!((report.huge_bytes, report.page_bytes), (4 * MIB as u64, 2 * MIB as u64));
            assert_eq!(pool.trim().returned_bytes, 0, "it has its pages until it is dropped");
        }
        Err(BuildError::HugetlbShortage { wanted: 4, free, .. }) => assert!(free.is_none_or(|free| free < 4)),
        Err(error) => panic!("{error}"),
    }
}

/// Tests a caller in another language, which keeps only an address and a number of pages.
#[test]
fn pages_come_back_by_numbers() {
    both(|builder| {
        let pool = builder.build().unwrap();
        for count in [1, 2, 3, 8, 512, 1000, 1024, 1025, 5000] {
            let pages = pool.alloc_exact(count).unwrap();
            let raw = pages.into_raw();
            assert_eq!(RawPages::new(raw.frame(), count), Some(raw));
            // SAFETY: the pages come from `into_raw`, and are taken back only once.
            drop(unsafe { Pages::from_raw(&pool, raw) });
        }
        assert_eq!((RawPages::new(0, 0), RawPages::new(0, (1 << 30) + 1)), (None, None));
        assert_eq!(RawPages::new(1 << 32, 1), None);
        for o in 0..=10 {
            let Some(cached) = CachedOrder::of(order(o)) else {
                assert_eq!(o, 10);
                continue;
            };
            // This fills the array.
            drop(pool.alloc(order(o)).unwrap());
            let Some(frame) = pool.pop_frame(cached) else {
                assert!(!pool.uses_rseq() || o > 5, "a small pool keeps few large blocks");
                continue;
            };
            assert!(pool.uses_rseq() && frame.is_multiple_of(order(o).frames()));
            assert_eq!(pool.stats().nr_used, u64::from(order(o).frames()));
            // SAFETY: the block was just popped, and has no other owner.
            assert!(unsafe { pool.push_frame(frame, cached) });
        }
        assert_eq!((pool.stats().nr_used, pool.stats().bad_frees), (0, 0));
        pool.validate().unwrap();
    });
}

/// Tests a cache that allocates all memory, and then frees an old page for each new page.
#[test]
fn a_pool_that_was_used_up_loses_nothing() {
    both(|builder| {
        let pool = builder.build().unwrap();
        for o in [0, 3] {
            let mut held: Vec<_> = std::iter::from_fn(|| pool.alloc(order(o)).ok()).collect();
            assert_eq!(held.len(), 16_384 >> o);
            for round in 0..50 {
                let given_up = 2000 >> o;
                (0..given_up).for_each(|page| drop(held.swap_remove((page + round) * 7 % held.len())));
                held.extend(std::iter::from_fn(|| pool.alloc(order(o)).ok()));
                assert_eq!(held.len(), 16_384 >> o, "nothing is lost");
            }
            drop(held);
            pool.validate().unwrap();
        }
    });
}

/// Tests a cache that allocates all memory in blocks of several orders, and then frees old blocks for new
/// blocks.
#[test]
fn a_pool_that_was_used_up_by_several_orders_goes_on() {
    both(|builder| {
        let pool = builder.build().unwrap();
        let mut held: Vec<_> = Vec::new();
        let mut random = 1_u64;
        let mut next = |below: usize| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (random >> 33) as usize % below
        };
        let mut failed = 0;
        for _ in 0..20_000 {
            let wanted = order(next(9) as u8);
            match pool.alloc(wanted) {
                Ok(pages) => held.push(pages),
                Err(_) => {
                    failed += 1;
                    (0..8).for_each(|_| drop(held.swap_remove(next(held.len()))));
                }
            }
        }
        assert!(failed > 100, "{failed}");
        pool.validate().unwrap();
        drop(held);
        let _ = pool.trim();
        assert_eq!(pool.stats().nr_free_pages, 16_384, "all of it is whole again");
        pool.validate().unwrap();
    });
}

/// Tests that a file in memory gets huge pages by the advice alone where the administrator allows huge pages
/// for such files.
#[test]
fn a_memory_file_asks_for_huge_pages() {
    if !std::path::Path::new("/sys/kernel/mm/transparent_hugepage/shmem_enabled").exists() {
        return;
    }
    for (backing, wanted) in [(Backing::Memfd, true), (Backing::Thp, true), (Backing::Plain, false)] {
        let pool = Pool::builder().size(64 << 20).backing(backing).build().unwrap();
        let page = pool.alloc(Order::ZERO).unwrap();
        let address = page.as_ptr().addr().get();
        let smaps = std::fs::read_to_string("/proc/self/smaps").unwrap();
        let is_around = |line: &str| {
            let ends = line.split(' ').next().and_then(|range| range.split_once('-'));
            let number = |text| usize::from_str_radix(text, 16).ok();
            ends.is_some_and(|(start, end)| {
                number(start).is_some_and(|start| start <= address)
                    && number(end).is_some_and(|end| address < end)
            })
        };
        let mut lines = smaps.lines().skip_while(|line| !is_around(line));
        let flags = lines.find(|line| line.starts_with("VmFlags:")).unwrap();
        assert_eq!(flags.split(' ').any(|flag| flag == "hg"), wanted, "{backing:?}: {flags}");
    }
}
