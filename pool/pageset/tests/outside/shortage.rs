//! Tests a pool that grows, and a cache that frees pages when no page is left.

use std::num::NonZeroUsize;
use std::panic::catch_unwind;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, OnceLock, Weak};

use pageset::{AllocError, Order, OwnedPages, PAGE_BYTES, Pool, ReturnPolicy, Worker};

const MIB: usize = 1 << 20;

/// A shape of request, with its name.
type Request = (&'static str, fn(&Pool) -> Result<(), AllocError>);

fn quiet() -> ReturnPolicy {
    ReturnPolicy::default().with_worker(Worker::None)
}

#[test]
fn a_pool_grows_into_what_it_reserved() {
    let pool = Pool::builder().size(4096 * MIB).capacity(8 * MIB).returns(quiet()).build().unwrap();
    let all = || std::iter::from_fn(|| pool.alloc(Order::THP).ok()).collect::<Vec<_>>();
    assert_eq!(all().len(), 4);
    pool.set_capacity(100 * MIB);
    let grown = all();
    assert_eq!(grown.len(), 50);
    assert!(grown.iter().all(|pages| pages.offset() < 100 * MIB), "the lowest are used first");
    pool.set_capacity(8 * MIB);
    assert_eq!(pool.alloc(Order::ZERO).unwrap_err(), AllocError::OverCapacity);
    drop(grown);
    assert_eq!(all().len(), 4);
    pool.set_capacity(usize::MAX);
    assert_eq!(pool.stats().capacity_pages, (4096 * MIB / PAGE_BYTES) as u64);
    pool.validate().unwrap();
}

/// Tests requests of six shapes. Each shape of request asks a cache for pages before the request fails.
#[test]
fn whoever_finds_no_memory_asks_the_program_first() {
    static CACHE: Mutex<Vec<OwnedPages>> = Mutex::new(Vec::new());
    static ASKED: AtomicUsize = AtomicUsize::new(0);
    static POOL: OnceLock<Weak<Pool>> = OnceLock::new();
    let evict = |bytes| {
        assert!(bytes >= PAGE_BYTES);
        ASKED.fetch_add(1, Relaxed);
        let pool = POOL.get().and_then(Weak::upgrade).expect("the pool is there");
        // The pool holds no lock while `on_shortage` runs, and an allocation inside `on_shortage` does not
        // call `on_shortage` again.
        drop(pool.alloc(Order::MAX));
        assert_eq!(pool.stats().bad_frees, 0);
        CACHE.lock().unwrap().pop().is_some()
    };
    let pool = Pool::builder().size(16 * MIB).returns(quiet()).on_shortage(evict).build().unwrap();
    let pool = Arc::new(pool);
    POOL.set(Arc::downgrade(&pool)).expect("set once");
    let fill = || {
        while let Ok(block) = pool.alloc_owned(Order::THP) {
            let mut cache = CACHE.lock().unwrap();
            cache.push(block);
            if cache.len() == 8 {
                break;
            }
        }
    };
    let requests: [Request; 6] = [
        ("alloc", |pool| pool.alloc(Order::ZERO).map(drop)),
        ("alloc_zeroed", |pool| pool.alloc_zeroed(Order::new(5).unwrap()).map(drop)),
        ("alloc_exact", |pool| pool.alloc_exact(300).map(drop)),
        ("alloc_run", |pool| pool.alloc_run(5 * MIB).map(drop)),
        ("alloc_run_zeroed", |pool| pool.alloc_run_zeroed(5 * MIB).map(drop)),
        ("alloc_bulk", |pool| pool.alloc_bulk(7, &mut Vec::new()).map(drop)),
    ];
    for (name, request) in requests {
        fill();
        let before = ASKED.load(Relaxed);
        assert_eq!(request(&pool), Ok(()), "{name}");
        assert!(ASKED.load(Relaxed) > before, "{name}");
    }
    let before = ASKED.load(Relaxed);
    assert_eq!(pool.alloc_run(17 * MIB).unwrap_err(), AllocError::NoRun { page_count: 17 * 256 });
    assert!(CACHE.lock().unwrap().is_empty() && ASKED.load(Relaxed) > before, "until the program has none");
    assert_eq!(pool.alloc_exact(0).unwrap_err(), AllocError::BadCount);
    assert_eq!(pool.stats().nr_used, 0);
    pool.validate().unwrap();
}

/// Tests that a bulk allocation gets all its pages while the program has pages to free. Regression test.
/// Before the fix, a bulk allocation in Rust asked the program only if the pool had not a single page.
#[test]
fn a_bulk_allocation_asks_for_what_it_misses() {
    let cache = Arc::new(Mutex::new(Vec::<OwnedPages>::new()));
    let wanted = Arc::new(Mutex::new(Vec::new()));
    let (evicted, asked) = (Arc::clone(&cache), Arc::clone(&wanted));
    let evict = move |bytes| {
        asked.lock().unwrap().push(bytes / PAGE_BYTES);
        evicted.lock().unwrap().pop().is_some()
    };
    let pool = Arc::new(Pool::builder().size(8 * MIB).returns(quiet()).on_shortage(evict).build().unwrap());
    for _ in 0..3 {
        let block = pool.alloc_owned(Order::THP).unwrap();
        cache.lock().unwrap().push(block);
    }
    let mut pages = Vec::new();
    assert_eq!(pool.alloc_bulk(1500, &mut pages), Ok(1500));
    assert_eq!(*wanted.lock().unwrap(), [1500 - 512, 1500 - 2 * 512]);
    assert_eq!(pool.alloc_bulk(1000, &mut pages), Ok(548), "all that there is");
    assert_eq!(*wanted.lock().unwrap(), [988, 476, 964, 452]);
    assert_eq!(pool.alloc_bulk(2, &mut pages), Err(AllocError::OutOfMemory { order: Order::ZERO }));
    drop(pages);
    assert_eq!((pool.stats().nr_used, pool.stats().bad_frees), (0, 0));
    pool.validate().unwrap();
}

/// Tests that a panic of the program's function passes through the pool, and that the pool still works.
#[test]
fn a_panic_of_the_programs_function_leaves_the_pool_as_it_was() {
    let evict = |_| panic!("the cache is damaged");
    let pool = Pool::builder().size(8 * MIB).returns(quiet()).on_shortage(evict).build().unwrap();
    let all: Vec<_> = (0..2).map(|_| pool.alloc(Order::MAX).unwrap()).collect();
    for _ in 0..2 {
        assert!(catch_unwind(|| drop(pool.alloc(Order::ZERO))).is_err());
        assert!(catch_unwind(|| drop(pool.alloc_run(6 * MIB))).is_err());
    }
    for threads in [1, 2] {
        let threads = NonZeroUsize::new(threads).unwrap();
        assert!(catch_unwind(|| pool.populate(8 * MIB, threads, |_| panic!("no terminal"))).is_err());
    }
    drop(all);
    assert_eq!(pool.alloc_run(8 * MIB).unwrap().len(), 8 * MIB);
    assert_eq!((pool.stats().nr_used, pool.stats().bad_frees), (0, 0));
    pool.validate().unwrap();
}
