//! Tests which memory goes back to the system, and which memory stays.

use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::time::Duration;

use pageset::{Backing, Builder, Order, Pool, ReturnPolicy, Worker};
use rustix::thread::{CpuSet, sched_getcpu, sched_setaffinity};

const MIB: usize = 1 << 20;

fn quiet() -> ReturnPolicy {
    ReturnPolicy::default().with_worker(Worker::None)
}

fn builder(mib: usize) -> Builder {
    Pool::builder().size(mib * MIB).returns(quiet())
}

#[test]
fn fault_16_any_interval_and_any_rate_are_a_policy() {
    let (long, much) = (Duration::MAX, u64::MAX);
    for (interval, bytes_per_second) in [(long, much), (long, 1), (Duration::ZERO, much), (Duration::ZERO, 0)]
    {
        let mut returns = quiet();
        (returns.interval, returns.bytes_per_second) = (interval, bytes_per_second);
        let pool = Pool::builder().size(64 * MIB).returns(returns).build().unwrap();
        pool.alloc(Order::MAX).unwrap().fill(1);
        let ticks: Vec<_> = (0..5).map(|_| pool.tick().returned_bytes).collect();
        assert_eq!(ticks.iter().sum::<u64>(), 4 * MIB as u64, "{ticks:?} at {interval:?}");
    }
    // With an interval longer than the test, the pool's thread sleeps during the whole test, but ends when
    // the test drops the pool.
    let mut returns = ReturnPolicy::default();
    (returns.interval, returns.bytes_per_second) = (long, much);
    let pool = Pool::builder().size(64 * MIB).returns(returns).build().unwrap();
    pool.alloc(Order::MAX).unwrap().fill(1);
}

/// Tests the counter that tells a program how much memory a resize gave back.
#[test]
fn what_a_resize_gives_back_is_counted() {
    let pool = builder(64).build().unwrap();
    let mut blocks: Vec<_> = std::iter::from_fn(|| pool.alloc(Order::MAX).ok()).collect();
    blocks.iter_mut().for_each(|block| block.fill(1));
    drop(blocks);
    assert_eq!(pool.resize(32 * MIB), 32 * MIB);
    assert_eq!(pool.stats().returned_bytes, 32 * MIB as u64);
    assert_eq!((pool.resize(64 * MIB), pool.resize(32 * MIB)), (64 * MIB, 32 * MIB));
    assert_eq!(pool.stats().returned_bytes, 32 * MIB as u64, "what was not used again went back before");
}

/// Tests that scans give back only whole pageblocks, and that a trim also gives back free parts of
/// pageblocks, as the guide says.
#[test]
fn one_live_page_keeps_its_pageblock_resident_until_a_trim() {
    let pool = builder(32).backing(Backing::Plain).build().unwrap();
    let mut pages: Vec<_> = std::iter::from_fn(|| pool.alloc(Order::ZERO).ok()).collect();
    pages.iter_mut().for_each(|page| page[0] = 1);
    pages.retain(|page| page.pfn().0 % 512 == 100);
    assert_eq!(pages.len(), 16);
    (0..20).for_each(|_| while pool.tick().more {});
    assert_eq!(pool.backing().unwrap().resident_bytes, 32 * MIB as u64);
    let _ = pool.trim();
    assert_eq!(pool.backing().unwrap().resident_bytes, 16 * 4096);
    assert!(pages.iter().all(|page| page[0] == 1));
}

/// Tests a cache that evicts pages at scattered addresses, in a pool whose policy sets `part_bytes`.
#[test]
fn scans_give_single_pages_back_if_they_are_told_to() {
    for (part_bytes, kept) in [(1, 3), (4096, 3), (8 << 10, 4), (64 << 10, 4 + 5)] {
        let mut returns = quiet();
        returns.keep_bytes = Some(0);
        let pool = builder(32).backing(Backing::Plain).returns(returns).build().unwrap();
        let mut pages: Vec<_> = std::iter::from_fn(|| pool.alloc(Order::ZERO).ok()).collect();
        pages.iter_mut().for_each(|page| page[0] = 1);
        // In each pageblock, leave three pages in use. One free page and five free pages lie between the
        // pages in use. All pages behind the last page in use are free.
        pages.retain(|page| [0, 2, 8].contains(&(page.pfn().0 % 512)));
        (0..20).for_each(|_| while pool.tick().more {});
        assert_eq!(pool.backing().unwrap().resident_bytes, 32 * MIB as u64, "whole pageblocks only");
        returns.part_bytes = part_bytes;
        pool.set_returns(returns).unwrap();
        (0..20).for_each(|_| while pool.tick().more {});
        assert_eq!(pool.backing().unwrap().resident_bytes, 16 * kept * 4096, "parts of {part_bytes}");
        assert!(pages.iter().all(|page| page[0] == 1));
        let zeroed: Vec<_> = std::iter::from_fn(|| pool.alloc_zeroed(Order::ZERO).ok()).collect();
        assert!(zeroed.iter().all(|page| page.iter().all(|byte| *byte == 0)));
        drop((pages, zeroed));
        assert_eq!((pool.stats().nr_used, pool.stats().bad_frees), (0, 0));
        pool.validate().unwrap();
    }
}

/// Regression test. Before the fix, scans for free parts gave back kept and populated memory.
#[test]
fn scans_for_parts_leave_kept_and_populated_memory() {
    for (keep_mib, populated_mib) in [(8, 0), (0, 16), (8, 16), (0, 0)] {
        let mut returns = quiet();
        (returns.keep_bytes, returns.part_bytes) = (Some(keep_mib << 20), 4096);
        let pool = builder(64).backing(Backing::Plain).returns(returns).build().unwrap();
        let one = NonZeroUsize::MIN;
        pool.populate(populated_mib * MIB, one, |_| ControlFlow::Continue(())).unwrap();
        let mut pages: Vec<_> = std::iter::from_fn(|| pool.alloc(Order::ZERO).ok()).collect();
        pages.iter_mut().for_each(|page| page[0] = 1);
        // One page stays in use. Scans give back the other pages of the used page's pageblock, unless the
        // pageblock is populated.
        pages.retain(|page| page.offset() == 0);
        (0..20).for_each(|_| while pool.tick().more {});
        let kept = pool.backing().unwrap().resident_bytes;
        let in_use = if populated_mib == 0 { 4096 } else { 0 };
        let expected = (keep_mib.max(populated_mib as u64) << 20) + in_use;
        assert_eq!((kept, pages.len()), (expected, 1), "{keep_mib} {populated_mib}");
    }
}

/// Tests that `collapse` changes no bytes, and that at least as many bytes as `collapse` returns are in huge
/// pages.
#[test]
fn a_shared_pool_gets_huge_pages_where_the_system_has_them() {
    for backing in [Backing::Memfd, Backing::Thp, Backing::Plain] {
        let pool = builder(32).backing(backing).build().unwrap();
        let mut pages: Vec<_> = (0..1000).map(|_| pool.alloc(Order::ZERO).unwrap()).collect();
        for page in &mut pages {
            let number = page.pfn().0 as u8;
            page.fill(number);
        }
        let collapsed = pool.collapse();
        assert!(collapsed <= 4 * MIB as u64 && collapsed.is_multiple_of(2 << 20), "{backing:?}: {collapsed}");
        assert!(pages.iter().all(|page| page.iter().all(|byte| *byte == page.pfn().0 as u8)), "{backing:?}");
        let report = pool.backing().unwrap();
        assert!(report.huge_bytes >= collapsed, "{backing:?}: {collapsed} of {report:?}");
        let zeroed: Vec<_> = std::iter::from_fn(|| pool.alloc_zeroed(Order::ZERO).ok()).collect();
        assert!(zeroed.iter().all(|page| page.iter().all(|byte| *byte == 0)), "{backing:?}");
        pool.set_pinned(true);
        assert_eq!(pool.collapse(), 0, "another page behind the address");
    }
}

/// Tests a program that pins and unpins its pool after the build, because the program learns only later
/// whether it can register the pool with a device.
#[test]
fn a_pool_is_pinned_and_unpinned_after_it_was_built() {
    let pool = builder(32).build().unwrap();
    let touch = || pool.alloc(Order::MAX).unwrap().fill(1);
    touch();
    pool.set_pinned(true);
    assert_eq!((pool.trim().returned_bytes, pool.alloc(Order::THP).unwrap().discard()), (0, 0));
    (0..5).for_each(|_| assert_eq!(pool.tick().returned_bytes, 0));
    let resized = (pool.resize(4 * MIB), pool.resize(32 * MIB));
    assert_eq!((resized, pool.stats().returned_bytes), ((4 * MIB, 32 * MIB), 0));
    pool.set_pinned(false);
    touch();
    assert_eq!(pool.trim().returned_bytes, 4 * MIB as u64);
    let pinned = builder(32).pinned().build().unwrap();
    pinned.alloc(Order::THP).unwrap().fill(1);
    pinned.set_pinned(false);
    assert_eq!(pinned.trim().returned_bytes, 2 * MIB as u64);
}

/// Tests that a new policy for idle memory applies from the next scan on.
#[test]
fn the_policy_of_idle_memory_changes_while_the_pool_is_used() {
    let mut returns = quiet();
    returns.keep_bytes = Some(u64::MAX);
    let pool = builder(32).returns(returns).build().unwrap();
    pool.alloc(Order::MAX).unwrap().fill(1);
    (0..5).for_each(|_| assert_eq!(pool.tick().returned_bytes, 0));
    returns.keep_bytes = Some(2 << 20);
    pool.set_returns(returns).unwrap();
    let returned: u64 = (0..5).map(|_| pool.tick().returned_bytes).sum();
    assert_eq!(returned, 2 << 20);
}

/// Tests pages that go back one by one, as from a balloon. Later allocations of zeroed pages need no
/// clearing.
#[test]
fn discarded_pages_go_back_and_are_known_to_be_zero() {
    for backing in [Backing::Plain, Backing::Memfd, Backing::Thp] {
        let pool = builder(64).backing(backing).build().unwrap();
        for order in [0, 3, 5, 9, 10] {
            let order = Order::new(order).unwrap();
            let _ = pool.trim();
            let mut held: Vec<_> = (0..12).map(|_| pool.alloc(order).unwrap()).collect();
            held.iter_mut().for_each(|pages| pages.fill(1));
            let bytes = held[0].len();
            assert!(held.into_iter().all(|pages| pages.discard() == bytes), "{backing:?} {order}");
            // If the pool gave back a part of a transparent huge page, the rest stays resident as small
            // pages.
            let resident = pool.backing().unwrap().resident_bytes;
            assert!(backing == Backing::Thp || resident == 0, "{backing:?} {order}: {resident}");
            let cleared = pool.stats().cleared_bytes;
            let zeroed: Vec<_> = (0..12).map(|_| pool.alloc_zeroed(order).unwrap()).collect();
            assert!(zeroed.iter().all(|pages| pages.iter().all(|byte| *byte == 0)), "{backing:?} {order}");
            assert_eq!(pool.stats().cleared_bytes, cleared, "{backing:?} {order}");
            // The pool notes the discarded pages as zero. Allocate, fill and free these pages, so that the
            // pages are not zero any more.
            assert!(zeroed.into_iter().all(|pages| pages.discard() == bytes));
            let mut written: Vec<_> = (0..12).map(|_| pool.alloc(order).unwrap()).collect();
            written.iter_mut().for_each(|pages| pages.fill(2));
            drop(written);
            let zeroed: Vec<_> = (0..12).map(|_| pool.alloc_zeroed(order).unwrap()).collect();
            assert!(zeroed.iter().all(|pages| pages.iter().all(|byte| *byte == 0)), "{backing:?} {order}");
            assert!(zeroed.into_iter().all(|pages| pages.discard() == bytes));
        }
        let mut run = pool.alloc_exact(37).unwrap();
        run.fill(3);
        assert_eq!(run.discard(), 37 * 4096);
        assert_eq!((pool.stats().nr_used, pool.stats().bad_frees), (0, 0));
        pool.validate().unwrap();
    }
}

/// Tests pages that stay allocated, but give their memory back and so lose their contents. The pages next to
/// a discarded page keep their memory and contents.
#[test]
fn memory_of_pages_in_use_goes_back_and_reads_as_zeros() {
    for backing in [Backing::Plain, Backing::Memfd] {
        let pool = builder(64).backing(backing).build().unwrap();
        let mut run = pool.alloc_run(33 << 20).unwrap();
        run.fill(1);
        for part in [0..1, 5..5, 511..1025, 8447..8448] {
            let resident = pool.backing().unwrap().resident_bytes;
            let bytes = part.len() * 4096;
            assert_eq!(run.give_back(part.clone()), bytes, "{backing:?} {part:?}");
            assert_eq!(pool.backing().unwrap().resident_bytes, resident - bytes as u64);
            assert!(run[part.start * 4096..part.end * 4096].iter().all(|byte| *byte == 0));
            run[part.start * 4096..part.end * 4096].fill(1);
            assert!(run.iter().all(|byte| *byte == 1), "{backing:?} {part:?}: and no others");
        }
        assert_eq!(pool.stats().nr_used, 8448);
        // The test has written to the pages after the pages went back, so the pool must not treat the pages
        // as zero.
        drop(run);
        assert!(pool.alloc_run_zeroed(33 << 20).unwrap().iter().all(|byte| *byte == 0));
        pool.validate().unwrap();
    }
    let pinned = builder(64).pinned().build().unwrap();
    let mut page = pinned.alloc(Order::ZERO).unwrap();
    page.fill(3);
    assert_eq!((page.give_back(0..1), page[0]), (0, 3));
}

#[test]
#[should_panic(expected = "1..3 of 2 pages")]
fn a_part_beyond_the_pages_is_refused() {
    let pool = builder(64).build().unwrap();
    pool.alloc_exact(2).unwrap().give_back(1..3);
}

#[test]
fn of_a_pinned_pool_nothing_is_discarded() {
    let pool = builder(64).pinned().build().unwrap();
    let mut page = pool.alloc(Order::ZERO).unwrap();
    page.fill(7);
    let first = page.pfn();
    assert_eq!(page.discard(), 0);
    let page = pool.alloc(Order::ZERO).unwrap();
    assert_eq!((page.pfn(), page[0], pool.stats().nr_used), (first, 7, 1), "it was freed, and is as it was");
}

/// Tests that traffic of single pages stays in few pageblocks, although the program also calls `trim`,
/// `tick`, `alloc_at` or `alloc_run`. Regression test. Before the fix, a trim every 10 ms spread 16 MiB of
/// packets over 316 MiB, and the packets stayed spread.
#[test]
fn memory_in_use_stays_dense_beside_trims_ticks_and_calls_that_fail() {
    type Beside = fn(&Pool);
    const NONE: Beside = |_| {};
    let calls: [(&str, Beside); 4] = [
        ("trim", |pool| assert!(pool.trim().returned_bytes <= 384 * MIB as u64)),
        ("tick", |pool| while pool.tick().more {}),
        ("alloc_at", |pool| assert!(pool.alloc_at(0, Order::PAGEBLOCK).is_err())),
        ("alloc_run", |pool| assert!(pool.alloc_run(1 << 40).is_err())),
    ];
    let (alone, _) = pageblocks_in_use(NONE);
    for (name, beside) in calls {
        let (with, healed) = pageblocks_in_use(beside);
        assert!(10 * with <= 13 * alone, "{name}: {with} pageblocks instead of {alone}");
        assert!(healed <= alone + 1, "{name}: {healed} pageblocks after more traffic, {alone} without");
    }
}

/// Returns two numbers of pageblocks that 4000 live pages occupy. The first number is the number after
/// traffic with a call of `beside` every 20 000 packets. The second number is the number after more traffic
/// without calls of `beside`.
///
/// The traffic stays on one CPU. A thread that moves to another CPU leaves pageblocks in part use to the
/// first CPU, so the second number would depend on the scheduler.
fn pageblocks_in_use(beside: fn(&Pool)) -> (usize, usize) {
    let on_one_cpu = move || {
        let mut here = CpuSet::new();
        here.set(sched_getcpu());
        sched_setaffinity(None, &here).unwrap();
        traffic_in_pageblocks(beside)
    };
    std::thread::spawn(on_one_cpu).join().unwrap()
}

fn traffic_in_pageblocks(beside: fn(&Pool)) -> (usize, usize) {
    let pool = builder(384).backing(Backing::Plain).build().unwrap();
    let mut seed = 47_u64;
    let mut below = move |most: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (seed >> 33) as usize % most
    };
    let mut pages: Vec<_> = (0..4000).map(|_| pool.alloc(Order::ZERO).unwrap()).collect();
    let mut traffic = |packets: usize, beside: fn(&Pool)| {
        for packet in 0..packets {
            let at = below(pages.len());
            drop(pages.swap_remove(at));
            if packet % 20_000 == 0 {
                beside(&pool);
            }
            pages.push(pool.alloc(Order::ZERO).unwrap());
        }
        pages.iter().map(|page| page.pfn().0 / 512).collect::<std::collections::BTreeSet<_>>().len()
    };
    (traffic(1_000_000, beside), traffic(200_000, |_| {}))
}
