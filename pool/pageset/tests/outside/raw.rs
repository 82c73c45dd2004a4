//! Tests pages without an owner in Rust. A pool refuses pages of other pools, and the memory of refused pages
//! stays mapped.

use std::panic::{AssertUnwindSafe, catch_unwind};

use pageset::{Backing, Builder, FastPath, Order, PAGE_BYTES, Pages, Pool, RawPages, ReturnPolicy, Worker};

fn builder(mib: usize) -> Builder {
    Pool::builder().size(mib << 20).returns(ReturnPolicy::default().with_worker(Worker::None))
}

fn order(order: u8) -> Order {
    Order::new(order).unwrap()
}

/// Whether `from_raw` accepts these pages, which have no owner. Gives accepted pages up again.
fn is_taken(pool: &Pool, raw: RawPages) -> bool {
    // SAFETY: `from_raw` does not take refused pages, and this function gives accepted pages up again.
    let taken = catch_unwind(AssertUnwindSafe(|| unsafe { Pages::from_raw(pool, raw) }.into_raw()));
    taken.is_ok()
}

/// Whether `from_raw_checked` accepts these pages. Gives accepted pages up again.
fn is_checked(pool: &Pool, raw: RawPages) -> bool {
    // SAFETY: as above.
    unsafe { Pages::from_raw_checked(pool, raw) }.map(Pages::into_raw).is_some()
}

#[test]
fn pages_beyond_the_pool_are_refused_in_every_build() {
    let pool = builder(4).build().unwrap();
    for (frame, count) in [(100_000, 1), (1024, 1), (1023, 2), (u32::MAX as usize, 1), (0, 1024 + 1)] {
        let Some(raw) = RawPages::new(frame, count) else { continue };
        assert!(!is_taken(&pool, raw) && !is_checked(&pool, raw), "{raw:?}");
    }
    // No later allocation returns the refused pages.
    let all: Vec<_> = std::iter::from_fn(|| pool.alloc(Order::ZERO).ok()).collect();
    assert!(all.len() == 1024 && all.iter().all(|page| page.offset() < 4 << 20));
    assert!(is_taken(&pool, RawPages::new(1023, 1).unwrap()), "the last one is the pool's");
}

#[test]
fn pages_of_another_pool_are_refused() {
    let [one, other] = [(); 2].map(|()| builder(4).build().unwrap());
    let raw = one.alloc(order(3)).unwrap().into_raw();
    let of_other = other.alloc(order(3)).unwrap().into_raw();
    assert_eq!(raw, of_other, "the same numbers");
    assert!(!is_taken(&other, raw) && !is_checked(&other, raw));
    assert!(is_taken(&one, raw) && is_checked(&one, raw));
    // A new pool also refuses pages of a pool that was dropped. SAFETY: given up above, and taken back once.
    drop(unsafe { Pages::from_raw(&one, raw) });
    // SAFETY: as above.
    drop(unsafe { Pages::from_raw(&other, of_other) });
    drop(one);
    let next = builder(4).build().unwrap();
    assert!(!is_taken(&next, raw) && !is_checked(&next, raw));
}

#[test]
fn a_part_of_a_block_is_not_taken_back() {
    for path in [FastPath::Auto, FastPath::Locks] {
        let pool = builder(64).fast_path(path).build().unwrap();
        for block_order in 1..=10 {
            let block = pool.alloc(order(block_order)).unwrap().into_raw();
            let (first, count) = (block.frame(), block.page_count());
            let parts =
                [(first + count / 2, 1), (first, 1), (first, count / 2), (first + count / 2, count / 2)];
            for (frame, part) in parts {
                let part = RawPages::new(frame, part).unwrap();
                assert!(!is_checked(&pool, part), "{part:?} of {block:?}");
            }
            assert!(is_checked(&pool, block));
            let by_numbers = RawPages::new(first, count).unwrap();
            assert!(is_checked(&pool, by_numbers), "{by_numbers:?}");
            // SAFETY: the pages were given up above, and are taken back only once.
            drop(unsafe { Pages::from_raw(&pool, block) });
        }
        let run = pool.alloc_exact(37).unwrap().into_raw();
        assert!(is_checked(&pool, run));
        assert!(!is_checked(&pool, RawPages::new(run.frame() + 1, 36).unwrap()));
        // SAFETY: as above.
        drop(unsafe { Pages::from_raw(&pool, run) });
        assert_eq!((pool.stats().nr_used, pool.stats().bad_frees), (0, 0));
        pool.validate().unwrap();
    }
}

#[test]
fn pages_come_back_as_they_were_cut_and_after_a_trim() {
    let pool = builder(64).build().unwrap();
    let mut raws = Vec::new();
    for block_order in 0..=10 {
        let mut pages = pool.alloc(order(block_order)).unwrap();
        let count = pages.page_count();
        pages.shrink_to(count / 3..count);
        raws.push(pages.into_raw());
        raws.push(pool.alloc(order(block_order)).unwrap().into_raw());
    }
    let _ = pool.trim();
    raws.push(pool.alloc(order(4)).unwrap().into_raw());
    for raw in raws {
        // SAFETY: the pages were given up above, and are taken back only once.
        let back = unsafe { Pages::from_raw_checked(&pool, raw) };
        assert!(back.is_some(), "{raw:?}");
    }
    assert_eq!((pool.stats().nr_used, pool.stats().bad_frees), (0, 0));
}

#[test]
fn memory_of_pages_without_an_owner_outlives_the_pool() {
    for backing in [Backing::Plain, Backing::Thp, Backing::Memfd] {
        for is_forgotten in [false, true] {
            let pool = builder(4).backing(backing).build().unwrap();
            let mut pages = pool.alloc(order(4)).unwrap();
            pages.fill(7);
            let start = pages.as_ptr();
            if is_forgotten {
                std::mem::forget(pages);
            } else {
                let _: RawPages = pages.into_raw();
            }
            drop(pool);
            // SAFETY: the memory of pages that were given up stays mapped, and the pages have no other owner.
            let bytes = unsafe { std::slice::from_raw_parts(start.as_ptr(), PAGE_BYTES << 4) };
            assert!(bytes.iter().all(|byte| *byte == 7), "{backing:?}");
        }
    }
}

/// Whether an address belongs to a mapping of this process.
#[cfg(not(miri))]
fn is_mapped(address: usize) -> bool {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    maps.lines().any(|line| {
        let range = line.split(' ').next().and_then(|range| range.split_once('-'));
        let (start, end) = range.expect("a line begins with a range");
        let number = |digits| usize::from_str_radix(digits, 16).unwrap();
        (number(start)..number(end)).contains(&address)
    })
}

#[test]
#[cfg(not(miri))]
fn a_pool_whose_pages_came_back_is_unmapped() {
    // The pool is so large that no other test maps memory 2 GiB behind the pool's start.
    let pool = builder(4 << 10).build().unwrap();
    let raw = pool.alloc(Order::ZERO).unwrap().into_raw();
    let address = pool.start().addr() + (2 << 30);
    // SAFETY: the pages were given up above, and are taken back only once.
    drop(unsafe { Pages::from_raw(&pool, raw) });
    assert!(is_mapped(address));
    drop(pool);
    assert!(!is_mapped(address));
}
