//! Tests a pool while the program's heap is exhausted. A test runs its work once for each n, and the heap's
//! allocator then fails the n-th allocation of the thread. Other tests let all allocations fail. The file is
//! a test target of its own, because the file replaces the global allocator.
#![cfg(not(miri))]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::sync::Arc;

use pageset::{
    AllocError, Backing, BuildError, Builder, FastPath, Fork, Order, OwnedPages, Pages, Pool, Prezero,
    ReturnPolicy, Worker,
};

/// The allocations of this thread that fail.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fails {
    None,
    /// Only one allocation fails: the allocation after the given number of successful allocations.
    One(usize),
    /// All allocations fail after the given number of successful allocations.
    From(usize),
}

thread_local! {
    static FAILS: Cell<Fails> = const { Cell::new(Fails::None) };
    static FAILED: Cell<usize> = const { Cell::new(0) };
    /// The bytes that this thread has allocated, minus the bytes that this thread has freed.
    static BYTES: Cell<isize> = const { Cell::new(0) };
    static BYTES_MAX: Cell<isize> = const { Cell::new(0) };
}

struct Failing;

impl Failing {
    fn may_allocate() -> bool {
        let (fails, is_refused) = match FAILS.get() {
            Fails::None => (Fails::None, false),
            Fails::One(0) => (Fails::None, true),
            Fails::From(0) => (Fails::From(0), true),
            Fails::One(left) => (Fails::One(left - 1), false),
            Fails::From(left) => (Fails::From(left - 1), false),
        };
        FAILS.set(fails);
        FAILED.set(FAILED.get() + usize::from(is_refused));
        !is_refused
    }

    fn note(start: *mut u8, bytes: isize) -> *mut u8 {
        if !start.is_null() {
            BYTES.set(BYTES.get() + bytes);
            BYTES_MAX.set(BYTES_MAX.get().max(BYTES.get()));
        }
        start
    }
}

// SAFETY: each function returns the system allocator's result, or null.
unsafe impl GlobalAlloc for Failing {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if !Self::may_allocate() {
            return std::ptr::null_mut();
        }
        // SAFETY: the caller makes the promises that `System` needs.
        Self::note(unsafe { System.alloc(layout) }, layout.size() as isize)
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if !Self::may_allocate() {
            return std::ptr::null_mut();
        }
        // SAFETY: the caller makes the promises that `System` needs.
        Self::note(unsafe { System.alloc_zeroed(layout) }, layout.size() as isize)
    }

    unsafe fn dealloc(&self, start: *mut u8, layout: Layout) {
        Self::note(start, -(layout.size() as isize));
        // SAFETY: the caller makes the promises that `System` needs.
        unsafe { System.dealloc(start, layout) }
    }

    unsafe fn realloc(&self, start: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        if !Self::may_allocate() {
            return std::ptr::null_mut();
        }
        // SAFETY: the caller makes the promises that `System` needs.
        Self::note(
            unsafe { System.realloc(start, layout, new_size) },
            new_size as isize - layout.size() as isize,
        )
    }
}

#[global_allocator]
static HEAP: Failing = Failing;

/// Runs `work` while allocations of this thread fail. Returns the result of `work` and the number of failed
/// allocations.
fn with<T>(fails: Fails, work: impl FnOnce() -> T) -> (T, usize) {
    FAILED.set(0);
    FAILS.set(fails);
    let outcome = work();
    FAILS.set(Fails::None);
    (outcome, FAILED.get())
}

/// Runs `work` once for each allocation that it makes, and lets only this allocation fail. After that, runs
/// `work` once more for each allocation, and lets this allocation and all later allocations of the run fail.
/// Returns the number of allocations that `work` needs.
fn for_every_allocation(mut work: impl FnMut(Fails)) -> usize {
    let mut needed = 0;
    for fails in [Fails::One, Fails::From] {
        needed = (0..).find(|nth| with(fails(*nth), || work(fails(*nth))).1 == 0).unwrap();
    }
    needed
}

const MIB: usize = 1 << 20;

fn builder(fast_path: FastPath) -> Builder {
    let mut returns = ReturnPolicy::default().with_worker(Worker::None);
    returns.prezero = Prezero::Blocks(1);
    Pool::builder().size(64 * MIB).fast_path(fast_path).returns(returns)
}

fn order(order: u8) -> Order {
    Order::new(order).unwrap()
}

/// The arguments of each operation: the pool, pages of this pool, and room for more pages.
struct Held<'p> {
    pool: &'p Arc<Pool>,
    pages: Vec<Pages<'p>>,
    owned: Vec<OwnedPages>,
}

type Operation = (&'static str, fn(&mut Held<'_>));

/// Allocates blocks of an order until none is left.
fn use_up(held: &mut Held<'_>, of: u8) {
    while let Ok(pages) = held.pool.alloc(order(of)) {
        held.pages.push(pages);
    }
}

/// Operations of a pool that need no memory of the heap.
const OPERATIONS: [Operation; 21] = [
    ("alloc order 0", |held| use_up(held, 0)),
    ("alloc order 2", |held| use_up(held, 2)),
    ("alloc order 5", |held| use_up(held, 5)),
    ("alloc order 9", |held| use_up(held, 9)),
    ("alloc order 10", |held| use_up(held, 10)),
    ("alloc_zeroed", |held| held.pages.extend(held.pool.alloc_zeroed(order(3)))),
    ("alloc_exact", |held| held.pages.extend(held.pool.alloc_exact(700))),
    ("alloc_at", |held| {
        for block in 0..32 {
            held.pages.extend(held.pool.alloc_at(block * 512, Order::THP));
        }
    }),
    ("alloc_owned", |held| held.owned.extend(held.pool.alloc_owned(order(1)))),
    ("alloc_owned_zeroed", |held| held.owned.extend(held.pool.alloc_owned_zeroed(order(1)))),
    ("alloc_bulk into a list with room", |held| {
        let _ = held.pool.alloc_bulk(usize::MAX, &mut held.pages);
    }),
    ("free", |held| held.pages.clear()),
    ("free every other", |held| {
        let mut index = 0;
        held.pages.retain(|_| {
            index += 1;
            index % 2 == 0
        });
    }),
    ("free parts", |held| {
        for pages in held.pages.iter_mut().filter(|pages| pages.page_count() > 1) {
            pages.shrink_to(0..1);
        }
    }),
    ("free at the end of owned pages", |held| held.owned.clear()),
    ("trim", |held| {
        let _ = held.pool.trim();
    }),
    ("tick", |held| {
        for _ in 0..25 {
            let _ = held.pool.tick();
        }
    }),
    ("resize", |held| {
        held.pool.resize(0);
        assert_eq!(held.pool.resize(usize::MAX), 64 * MIB);
    }),
    ("populate by one thread", |held| {
        held.pool.populate(40 * MIB, NonZeroUsize::MIN, |_| ControlFlow::Continue(())).unwrap();
    }),
    ("stats", |held| assert_eq!(held.pool.stats().bad_frees, 0)),
    ("validate", |held| held.pool.validate().unwrap()),
];

/// Tests that each operation in `OPERATIONS` succeeds while the heap is exhausted, because these operations
/// do not use the heap. `OPERATIONS` has most ways to free pages.
#[test]
fn fault_06_operations_of_a_pool_need_no_heap() {
    for fast_path in [FastPath::Auto, FastPath::Locks] {
        for (name, operation) in OPERATIONS {
            let pool = Arc::new(builder(fast_path).build().unwrap());
            let mut held =
                Held { pool: &pool, pages: Vec::with_capacity(20_000), owned: Vec::with_capacity(8) };
            // Give some pages to the arrays, to the base and to users.
            for of in [0, 0, 0, 1, 3, 4, 9] {
                held.pages.extend((0..400 >> of).map(|_| pool.alloc(order(of)).unwrap()));
            }
            let half = held.pages.len() / 2;
            held.pages.drain(..half).step_by(2).for_each(drop);
            held.owned.push(pool.alloc_owned(order(4)).unwrap());
            // Run each operation after each other operation.
            for (before, first) in OPERATIONS {
                let ((), failed) = with(Fails::From(0), || {
                    first(&mut held);
                    operation(&mut held);
                });
                assert_eq!(failed, 0, "{name} after {before}");
                pool.validate().unwrap();
            }
            drop(held);
            assert_eq!(pool.stats().nr_used, 0, "{name}");
            pool.validate().unwrap();
        }
    }
}

#[test]
fn fault_06_a_build_that_finds_no_heap_is_an_error_and_leaves_nothing() {
    let pools = || {
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        maps.lines().filter(|line| line.contains("pageset-")).count()
    };
    let (bytes, maps) = (BYTES.get(), pools());
    for backing in [Backing::Thp, Backing::Memfd] {
        for fast_path in [FastPath::Auto, FastPath::Locks] {
            let needed = for_every_allocation(|fails| {
                match builder(fast_path).backing(backing).fork(Fork::Hide).build() {
                    Ok(pool) => drop(pool.alloc(Order::ZERO).unwrap()),
                    Err(error) => {
                        assert!(
                            fails != Fails::None && matches!(error, BuildError::HeapExhausted { .. }),
                            "{error:?}"
                        );
                    }
                }
            });
            assert!(needed > 10, "{needed} allocations were tried");
            assert_eq!(BYTES.get(), bytes, "nothing stays on the heap");
        }
    }
    // Other tests of this file build pools meanwhile, but drop these pools soon.
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(60);
    while pools() > maps {
        assert!(std::time::Instant::now() < deadline, "{} mappings of pools stay", pools());
        std::thread::yield_now();
    }
}

#[test]
fn fault_06_a_list_that_finds_no_heap_is_an_error_and_takes_no_page() {
    for fast_path in [FastPath::Auto, FastPath::Locks] {
        let pool = builder(fast_path).build().unwrap();
        let needed = for_every_allocation(|_| {
            let mut pages = Vec::new();
            match pool.alloc_bulk(1000, &mut pages) {
                Ok(got) => assert_eq!((got, pages.len()), (1000, 1000)),
                Err(error) => assert_eq!((error, pages.len()), (AllocError::HeapExhausted, 0)),
            }
        });
        assert_eq!(needed, 1);
        assert_eq!(pool.stats().nr_used, 0);
        pool.validate().unwrap();
    }
}

#[test]
fn fault_06_a_report_that_finds_no_heap_is_an_error() {
    let pool = builder(FastPath::Auto).build().unwrap();
    let mut page = pool.alloc(Order::ZERO).unwrap();
    page[0] = 1;
    let bytes = BYTES.get();
    for_every_allocation(|_| match pool.backing() {
        Ok(report) => assert_eq!(report.mapped_bytes, 64 * MIB as u64),
        Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::OutOfMemory),
    });
    assert_eq!(BYTES.get(), bytes);
}

/// Tests a pool of 1 TiB with a capacity of 64 MiB. A bulk allocation of all pages must ask the heap for no
/// more entries than the capacity has pages.
#[test]
fn fault_06_a_list_of_everything_is_as_long_as_the_capacity() {
    let returns = ReturnPolicy::default().with_worker(Worker::None);
    let builder = Pool::builder().size(1 << 40).backing(Backing::Plain).fast_path(FastPath::Locks);
    let pool = builder.capacity(64 * MIB).returns(returns).build().unwrap();
    let mut pages = Vec::new();
    BYTES_MAX.set(BYTES.get());
    let before = BYTES_MAX.get();
    assert_eq!(pool.alloc_bulk(usize::MAX, &mut pages), Ok(16384));
    assert!(BYTES_MAX.get() - before <= MIB as isize, "{} bytes for the list", BYTES_MAX.get() - before);
    // No capacity is left, so the call fails before it uses the heap.
    let (outcome, failed) = with(Fails::From(0), || pool.alloc_bulk(usize::MAX, &mut Vec::new()));
    assert_eq!((outcome, failed), (Err(AllocError::OverCapacity), 0));
    drop(pages);
    assert_eq!(pool.stats().nr_used, 0);
}

/// Tests threads that wait for each other's locks. Some kinds of locks allocate a queue entry on the heap
/// when a thread waits.
#[test]
fn fault_06_threads_that_wait_for_each_other_need_no_heap() {
    for fast_path in [FastPath::Auto, FastPath::Locks] {
        let pool = builder(fast_path).build().unwrap();
        let work = || {
            let mut pages = Vec::with_capacity(600);
            let rounds = || {
                for round in 0..300 {
                    while pages.len() < 600
                        && let Ok(page) = pool.alloc(Order::ZERO)
                    {
                        pages.push(page);
                    }
                    pages.clear();
                    if round % 50 == 0 {
                        let _ = pool.trim();
                    }
                }
            };
            assert_eq!(with(Fails::From(0), rounds).1, 0);
        };
        std::thread::scope(|scope| {
            for _ in 0..6 {
                scope.spawn(work);
            }
        });
        assert_eq!(pool.stats().nr_used, 0);
        pool.validate().unwrap();
    }
}
