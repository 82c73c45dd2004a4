//! Tests runs of contiguous pages, and parts of runs.

use std::ptr::NonNull;
use std::sync::Arc;

use pageset::{
    AllocError, Backing, Builder, HugePageSize, Order, PAGE_BYTES, Pages, Pool, ReturnPolicy, Worker,
};

const MIB: usize = 1 << 20;

fn builder(bytes: usize) -> Builder {
    Pool::builder().size(bytes).returns(ReturnPolicy::default().with_worker(Worker::None))
}

#[test]
fn all_of_a_pool_is_one_run_whatever_its_size() {
    for bytes in [PAGE_BYTES, 10 * MIB + PAGE_BYTES, 64 * MIB, 63 * MIB, 4 * MIB + 3 * PAGE_BYTES] {
        let pool = builder(bytes).build().unwrap();
        for _ in 0..2 {
            let mut run = pool.alloc_run_zeroed(bytes).unwrap();
            assert_eq!(
                (run.len(), run.offset(), pool.stats().nr_used),
                (bytes, 0, (bytes / PAGE_BYTES) as u64)
            );
            assert!(run.chunks_exact(PAGE_BYTES).all(|page| page[0] == 0 && page[PAGE_BYTES - 1] == 0));
            run.chunks_exact_mut(PAGE_BYTES).for_each(|page| page.fill(7));
            assert!(pool.alloc(Order::ZERO).is_err());
            drop(run);
            pool.validate().unwrap();
            // Pages in arrays do not prevent a run.
            drop((0..bytes / PAGE_BYTES).map(|_| pool.alloc(Order::ZERO).unwrap()).collect::<Vec<_>>());
        }
        assert_eq!((pool.stats().nr_used, pool.stats().bad_frees), (0, 0));
    }
}

/// Tests an allocation of 1 GiB. The test touches no page, so it needs no memory unless the machine has huge
/// pages of 1 GiB.
#[test]
fn a_gib_begins_at_a_multiple_of_a_gib_and_the_pool_tells_its_pages() {
    const GIB: usize = 1024 * MIB;
    let backing = Backing::HugetlbOrThp(HugePageSize::Gib1);
    assert!(builder(GIB + 2 * MIB).backing(backing).build().is_err(), "pages of 1 GiB");
    let pool = builder(3 * GIB).backing(backing).build().unwrap();
    let page = pool.alloc_at(GIB / PAGE_BYTES + 7, Order::ZERO).unwrap();
    let gibs = [pool.alloc_gib().unwrap(), pool.alloc_gib().unwrap()];
    assert_eq!(gibs.each_ref().map(|gib| (gib.offset(), gib.len())), [(0, GIB), (2 * GIB, GIB)]);
    let none = AllocError::NoRun { page_count: GIB / PAGE_BYTES };
    assert_eq!(pool.alloc_gib().map(drop), Err(none));
    drop(page);
    assert_eq!(pool.alloc_gib().map(|gib| gib.offset()), Ok(GIB));
    let report = pool.backing().unwrap();
    assert_eq!(report.asked, backing);
    assert!([PAGE_BYTES as u64, GIB as u64].contains(&report.page_bytes), "{report:?}");
    pool.validate().unwrap();
}

#[test]
fn a_run_is_cleared_only_where_it_has_to_be() {
    let pool = builder(64 * MIB).build().unwrap();
    pool.alloc_at(1024, Order::THP).unwrap().fill(1);
    let before = pool.stats().cleared_bytes;
    let run = pool.alloc_run_zeroed(48 * MIB).unwrap();
    assert!(run.iter().step_by(512).all(|byte| *byte == 0));
    assert_eq!(pool.stats().cleared_bytes - before, 2 * MIB as u64);
    assert_eq!(run.discard(), 48 * MIB);
    drop(pool.alloc_run_zeroed(48 * MIB).unwrap());
    assert_eq!(pool.stats().cleared_bytes - before, 2 * MIB as u64, "what was discarded is known to be zero");
}

/// Tests single pages that are cut out of a run and freed, as a balloon does with the memory of a virtual
/// machine.
#[test]
fn parts_of_a_run_are_pages_of_their_own() {
    let pool = Arc::new(builder(64 * MIB).backing(Backing::Memfd).build().unwrap());
    let mut guest = pool.alloc_run(40 * MIB).unwrap().into_owned(&pool);
    guest.fill(3);
    let mut parts = Vec::new();
    for at in [5000, 4096, 4095, 1024, 513, 512, 300, 1] {
        parts.push(guest.split_off(at));
    }
    assert_eq!(parts.iter().map(|part| part.page_count()).sum::<usize>() + 1, 10_240);
    assert!(parts.iter().all(|part| part.iter().step_by(4096).all(|byte| *byte == 3)));
    assert_eq!(parts.remove(2).discard(), PAGE_BYTES);
    let mut last = parts.remove(0);
    last.shrink_to(100..101);
    assert_eq!(pool.stats().nr_used, 5000);
    drop((parts, guest));
    assert_eq!(pool.stats().nr_used, 1);
    drop(last);
    assert_eq!((pool.stats().nr_used, pool.stats().bad_frees), (0, 0));
    pool.validate().unwrap();
}

/// Regression test. Before the fix, each run of more than 128 pages began in a pageblock of its own, so runs
/// of 513 pages could fill only half of the pool.
#[test]
fn runs_of_every_length_fill_the_pool() {
    let pool = builder(64 * MIB).build().unwrap();
    let all = pool.page_count();
    for pages in [129, 130, 200, 255, 257, 300, 450, 500, 513, 600, 767, 1023, 1025, 1100, 1500, 2100, 5000] {
        let mut runs: Vec<_> = std::iter::from_fn(|| pool.alloc_exact(pages).ok()).collect();
        let used = runs.len() * pages;
        assert!(all - used < pages.max(all / 8), "{} runs of {pages} pages", runs.len());
        runs.iter_mut().for_each(|run| run[0] = 1);
        let full = runs.len();
        // After the test has freed every second run, as many runs must fit again.
        let mut index = 0;
        runs.retain(|_| {
            index += 1;
            index % 2 == 0
        });
        pool.validate().unwrap();
        runs.extend(std::iter::from_fn(|| pool.alloc_exact(pages).ok()));
        assert_eq!(runs.len(), full, "{pages} pages");
        drop(runs);
        assert_eq!((pool.stats().nr_used, pool.stats().bad_frees), (0, 0));
        pool.validate().unwrap();
        assert!(pool.alloc_run(64 * MIB).is_ok(), "all are free");
    }
}

/// Tests that runs that are freed in the order of their allocation stay at the pool's beginning.
#[test]
fn a_queue_of_runs_stays_low() {
    let pool = builder(64 * MIB).build().unwrap();
    for pages in [129, 200, 300, 450, 513, 600, 1100] {
        let mut queue = std::collections::VecDeque::new();
        let highest = (0..200).map(|_| {
            if queue.len() == 3 {
                queue.pop_front();
            }
            let run = pool.alloc_exact(pages).unwrap();
            let end = run.offset() + run.len();
            queue.push_back(run);
            end
        });
        let highest = highest.max().unwrap();
        assert!(
            highest <= (3 * pages * PAGE_BYTES).next_multiple_of(2 * MIB) + 3 * (2 * MIB),
            "{pages}: {highest}"
        );
    }
}

/// Tests that joined parts are a block or a run again, and that the arrays and the base take this block or
/// run back.
#[test]
fn parts_that_lie_side_by_side_are_joined() {
    let pool = Arc::new(builder(64 * MIB).build().unwrap());
    let others = builder(64 * MIB).build().unwrap();
    for count in [2, 3, 8, 64, 300, 512, 513, 1024, 1025, 5000] {
        for at in [1, 2, 7, 63, 299, 512, 1000].into_iter().filter(|at| *at < count) {
            let mut first = pool.alloc_exact(count).unwrap();
            first.fill(5);
            let mut last = first.split_off(at);
            let kept = last.page_count() > 1;
            let end = kept.then(|| last.split_off(1));
            if let Some(end) = end {
                // `join` returns pages that do not begin where the first pages end.
                let end = first.join(end).unwrap_err();
                last.join(end).unwrap();
            }
            first.join(last).unwrap();
            assert_eq!(first.page_count(), count);
            assert!(first.iter().step_by(512).all(|byte| *byte == 5));
            assert_eq!(pool.stats().nr_used, count as u64);
            let mut owned = first.into_owned(&pool);
            let rest = owned.split_off(at);
            owned.join(rest).unwrap();
            assert_eq!(owned.page_count(), count);
            drop(owned);
            let _ = pool.trim();
            assert_eq!((pool.stats().nr_used, pool.stats().bad_frees), (0, 0));
            pool.validate().unwrap();
        }
    }
    let mut here = pool.alloc_at(0, Order::ZERO).unwrap();
    let mut there = others.alloc_at(1, Order::ZERO).unwrap();
    there = here.join(there).unwrap_err();
    let beside = pool.alloc_at(1, Order::ZERO).unwrap();
    here.join(beside).expect("from two allocations");
    assert_eq!((here.page_count(), there.page_count()), (2, 1));
    drop((here, there));
    assert!(pool.alloc_run(64 * MIB).is_ok(), "all are free");
    assert_eq!(pool.stats().bad_frees, 0);
}

/// Tests two pageblocks of a run that have the size and alignment of a block of 4 MiB, but are two blocks in
/// the base.
#[test]
fn a_part_of_a_run_that_has_the_place_of_a_large_block_is_freed() {
    let pool = builder(64 * MIB).build().unwrap();
    let mut run = pool.alloc_run(16 * MIB).unwrap();
    run.shrink_to(1024..2048);
    let raw = run.into_raw();
    assert_eq!((raw.frame(), raw.page_count(), raw.bytes(&pool).len()), (1024, 1024, 4 * MIB));
    // SAFETY: given up above.
    drop(unsafe { Pages::from_raw_checked(&pool, raw) }.expect("in use"));
    assert_eq!((pool.stats().nr_used, pool.stats().bad_frees), (0, 0));
    pool.validate().unwrap();
}

#[test]
fn a_run_that_is_not_there_is_an_error() {
    let pool = builder(64 * MIB).build().unwrap();
    assert_eq!(pool.alloc_run(0).unwrap_err(), AllocError::BadCount);
    assert_eq!(pool.alloc_run_zeroed(0).unwrap_err(), AllocError::BadCount);
    let in_the_middle = pool.alloc_at(8192, Order::ZERO).unwrap();
    assert_eq!(pool.alloc_run(40 * MIB).unwrap_err(), AllocError::NoRun { page_count: 10_240 });
    // One run ends at the held page, and the other run begins behind the held page.
    let (low, high) = (pool.alloc_run(32 * MIB).unwrap(), pool.alloc_run(32 * MIB - PAGE_BYTES).unwrap());
    assert_eq!((low.offset(), high.offset()), (0, 32 * MIB + PAGE_BYTES));
    drop((low, high, in_the_middle));
    pool.validate().unwrap();
    let pool = builder(64 * MIB).capacity(8 * MIB).build().unwrap();
    assert_eq!(pool.alloc_run(9 * MIB).unwrap_err(), AllocError::OverCapacity);
    assert_eq!(pool.alloc_run(usize::MAX).unwrap_err(), AllocError::OverCapacity);
    assert!(pool.alloc_run(8 * MIB).is_ok());
}

/// Tests a pool that begins at a multiple of 4 MiB, and at no multiple of 8 MiB.
#[test]
fn an_aligned_run_begins_at_a_multiple_of_its_alignment() {
    let mut memory = vec![0xa5_u8; 60 * MIB];
    let start = memory.as_mut_ptr().map_addr(|start| start.next_multiple_of(8 * MIB) + 4 * MIB);
    // SAFETY: the memory outlives the pool, is initialised, and is not used otherwise.
    let pool = unsafe { builder(48 * MIB).region(NonNull::new(start).unwrap(), 48 * MIB) }.build().unwrap();
    let between = pool.alloc_exact(3).unwrap();
    for align in [1, 512, PAGE_BYTES, 8 * PAGE_BYTES, 2 * MIB, 4 * MIB, 8 * MIB, 16 * MIB] {
        for bytes in [1, 3 * PAGE_BYTES, 8 * PAGE_BYTES, 4 * MIB, 5 * MIB + 1, 9 * MIB] {
            let mut run = pool.alloc_run_aligned(bytes, align).unwrap();
            let mut zeros = pool.alloc_run_aligned_zeroed(bytes, align).unwrap();
            let pages = bytes.div_ceil(PAGE_BYTES);
            for pages_of in [&run, &zeros] {
                assert!(pages_of.as_ptr().addr().get().is_multiple_of(align), "{pages_of:?} at {align}");
                assert_eq!(pages_of.page_count(), pages);
            }
            assert_eq!(pool.stats().nr_used, 3 + 2 * pages as u64, "the ends are free again");
            assert!(zeros.iter().all(|byte| *byte == 0));
            run.fill(1);
            zeros.fill(1);
        }
    }
    for (align, error) in [
        (0, AllocError::BadAlign),
        (3 * PAGE_BYTES, AllocError::BadAlign),
        (usize::MAX / 2 + 1, AllocError::NoRun { page_count: 2304 }),
    ] {
        assert_eq!(pool.alloc_run_aligned(9 * MIB, align).unwrap_err(), error);
        assert_eq!(pool.alloc_run_aligned_zeroed(9 * MIB, align).unwrap_err(), error);
    }
    assert_eq!(pool.alloc_run_aligned(0, 8 * MIB).unwrap_err(), AllocError::BadCount);
    drop(between);
    assert_eq!((pool.stats().nr_used, pool.stats().bad_frees), (0, 0));
    pool.validate().unwrap();
}

#[test]
fn the_whole_pool_is_one_slice() {
    let pool = builder(10 * MIB).build().unwrap();
    let memory = pool.memory();
    assert_eq!((memory.cast::<u8>().as_ptr().cast_const(), memory.len()), (pool.start(), 10 * MIB));
    let page = pool.alloc(Order::ZERO).unwrap();
    let at = page.as_ptr();
    let page = page.into_raw();
    assert_eq!(page.bytes(&pool).cast(), at);
    // SAFETY: the test has just given the page up, and takes it back only once.
    drop(unsafe { Pages::from_raw(&pool, page) });
}
