//! Runs threads that allocate pages, free each other's pages and move to random CPUs, while one thread trims
//! and resizes the pool. Every page has a pattern that proves that the page has only one owner.
//!
//! `PAGESET_SOAK_SECONDS` sets a longer time. `cargo xtask ci night soak` sets this variable.

use std::sync::Mutex;
use std::sync::atomic::{
    AtomicBool, AtomicU64,
    Ordering::{Relaxed, SeqCst},
};
use std::time::{Duration, Instant};

use pageset::{AllocError, Backing, Builder, FastPath, Order, PAGE_BYTES, Pages, Pool, ReturnPolicy, Worker};

const MIB: usize = 1 << 20;
const THREADS: usize = 6;

fn duration() -> Duration {
    let seconds = std::env::var("PAGESET_SOAK_SECONDS").ok().and_then(|text| text.parse().ok());
    seconds.map_or(Duration::from_millis(if cfg!(miri) { 200 } else { 1500 }), Duration::from_secs_f64)
}

struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        ((u128::from(self.0) * limit as u128) >> 64) as usize
    }
}

/// Pages of one owner, with the pattern that the owner wrote.
struct Owned<'p> {
    pages: Pages<'p>,
    pattern: u64,
}

impl<'p> Owned<'p> {
    /// Writes the owner's pattern at the start and the end of every page.
    fn take(mut pages: Pages<'p>, pattern: u64) -> Self {
        for page in pages.chunks_exact_mut(PAGE_BYTES) {
            page[..8].copy_from_slice(&pattern.to_ne_bytes());
            page[PAGE_BYTES - 8..].copy_from_slice(&pattern.to_ne_bytes());
        }
        Self { pages, pattern }
    }

    /// Fails if the pages' pattern has changed, which means that the pages have a second owner.
    fn check(&self) {
        for page in self.pages.chunks_exact(PAGE_BYTES) {
            let words = [&page[..8], &page[PAGE_BYTES - 8..]];
            assert!(
                words.iter().all(|word| **word == self.pattern.to_ne_bytes()),
                "{:?} has two owners",
                self.pages
            );
        }
    }
}

/// Moves this thread to a CPU that it may use, at random.
#[cfg(not(miri))]
fn move_to_some_cpu(random: &mut Random) {
    use rustix::thread::{CpuSet, sched_setaffinity};
    let cpus = std::thread::available_parallelism().map_or(1, |cpus| cpus.get());
    let mut set = CpuSet::new();
    set.set(random.below(cpus));
    // The call fails for a CPU that this process may not use, and the failure does no harm.
    let _ = sched_setaffinity(None, &set);
}

#[cfg(miri)]
fn move_to_some_cpu(_: &mut Random) {}

struct Arena<'p> {
    pool: &'p Pool,
    /// Pages that threads have left in this list for other threads to free.
    handed_over: Mutex<Vec<Owned<'p>>>,
    pairs: AtomicU64,
    ends: AtomicBool,
}

impl<'p> Arena<'p> {
    fn alloc(&self, random: &mut Random) -> Result<Pages<'p>, AllocError> {
        let orders: &[u8] = if cfg!(miri) { &[0, 0, 1, 3, 4] } else { &[0, 0, 0, 0, 0, 1, 2, 3, 5, 9] };
        let order = Order::new(orders[random.below(orders.len())]).unwrap();
        match random.below(64) {
            0 => self.pool.alloc_exact(1 + random.below(40)),
            1 => self.pool.alloc_at(random.below(self.pool.page_count()), Order::ZERO),
            2..8 => {
                let pages = self.pool.alloc_zeroed(order)?;
                assert!(pages.iter().step_by(if cfg!(miri) { 64 } else { 8 }).all(|byte| *byte == 0));
                Ok(pages)
            }
            _ => self.pool.alloc(order),
        }
    }

    /// The work of one thread, until the arena ends.
    fn work(&self, seed: u64) {
        let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        let mut held: Vec<Owned<'p>> = Vec::new();
        let mut count = 0;
        while !self.ends.load(Relaxed) {
            count += 1;
            if count % 512 == 0 {
                move_to_some_cpu(&mut random);
            }
            if random.below(100) < 52 && held.len() < if cfg!(miri) { 20 } else { 400 } {
                match self.alloc(&mut random) {
                    Ok(pages) => held.push(Owned::take(pages, seed << 48 | count)),
                    Err(AllocError::OutOfMemory { .. } | AllocError::NotFree | AllocError::OverCapacity) => {
                        held.truncate(held.len() / 2);
                    }
                    Err(error) => panic!("{error}"),
                }
            } else if !held.is_empty() {
                let owned = held.swap_remove(random.below(held.len()));
                owned.check();
                match random.below(8) {
                    0 => self.handed_over.lock().unwrap().push(owned),
                    1 => {
                        let mut owned = owned;
                        let count = owned.pages.page_count();
                        let start = random.below(count);
                        owned.pages.shrink_to(start..start + 1 + random.below(count - start));
                        owned.check();
                        held.push(owned);
                    }
                    _ => drop(owned),
                }
            }
            if count % 64 == 0 {
                let others = std::mem::take(&mut *self.handed_over.lock().unwrap());
                others.iter().for_each(Owned::check);
            }
        }
        held.iter().for_each(Owned::check);
        self.pairs.fetch_add(count, Relaxed);
    }

    /// Trims, ticks and resizes the pool until the arena ends.
    fn disturb(&self, until: Instant) {
        let mut random = Random(99);
        let bytes = self.pool.page_count() * PAGE_BYTES;
        while Instant::now() < until {
            match random.below(4) {
                0 => drop(self.pool.resize(bytes - random.below(bytes / 4))),
                1 => {
                    let _ = self.pool.trim();
                }
                _ => {
                    let _ = self.pool.tick();
                }
            }
            let _ = self.pool.stats();
            std::thread::sleep(Duration::from_millis(2));
        }
        self.ends.store(true, SeqCst);
    }
}

fn torture(builder: Builder) {
    let size = if cfg!(miri) { 4 * MIB } else { 64 * MIB };
    let threads = if cfg!(miri) { 3 } else { THREADS };
    let returns = ReturnPolicy::default().with_worker(Worker::None);
    let pool = builder.size(size).returns(returns).build().unwrap();
    let arena = Arena {
        pool: &pool,
        handed_over: Mutex::default(),
        pairs: AtomicU64::new(0),
        ends: AtomicBool::new(false),
    };
    let until = Instant::now() + duration();
    std::thread::scope(|scope| {
        let arena = &arena;
        for seed in 1..=threads as u64 {
            scope.spawn(move || arena.work(seed));
        }
        arena.disturb(until);
    });
    arena.handed_over.lock().unwrap().clear();
    let _ = pool.resize(size);
    let _ = pool.trim();
    let stats = pool.stats();
    println!(
        "{} operations; {} refills, {} drains, {} restarts, {} MiB returned",
        arena.pairs.load(Relaxed),
        stats.array_refills,
        stats.array_drains,
        stats.rseq_restarts,
        stats.returned_bytes >> 20
    );
    assert_eq!((stats.nr_used, stats.nr_array, stats.bad_frees), (0, 0, 0));
    assert_eq!(stats.nr_free_pages, pool.page_count() as u64);
    pool.validate().unwrap();
}

#[test]
fn every_page_has_one_owner() {
    torture(Pool::builder());
}

#[test]
fn every_page_has_one_owner_under_locks() {
    torture(Pool::builder().fast_path(FastPath::Locks));
}

#[test]
fn every_page_of_a_shared_pool_has_one_owner() {
    torture(Pool::builder().backing(Backing::Memfd));
}

/// Tests more threads than CPUs, so that the scheduler often preempts a thread inside a sequence. The kernel
/// restarts a sequence whose thread was preempted. No page may be lost or doubled by a restart.
#[test]
#[cfg(all(target_arch = "x86_64", not(miri)))]
fn sequences_are_restarted() {
    let pool = Pool::builder().size(256 * MIB).build().unwrap();
    if !pool.uses_rseq() {
        return;
    }
    let before = pool.stats().rseq_restarts;
    let until = Instant::now() + Duration::from_secs(20);
    let ends = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for seed in 0..4_u64 {
            let (pool, ends) = (&pool, &ends);
            scope.spawn(move || {
                let mut random = Random(seed + 5);
                while !ends.load(Relaxed) {
                    for _ in 0..20_000 {
                        let pages = pool.alloc(Order::ZERO).unwrap();
                        drop(pages);
                    }
                    move_to_some_cpu(&mut random);
                }
            });
        }
        while pool.stats().rseq_restarts < before + 10 && Instant::now() < until {
            // A trim restarts every sequence that is running.
            let _ = pool.trim();
        }
        ends.store(true, SeqCst);
    });
    assert!(pool.stats().rseq_restarts >= before + 10, "no sequence was restarted in 20 seconds");
    pool.validate().unwrap();
}

/// Tests a signal handler that interrupts a sequence and allocates. The kernel restarts the interrupted
/// sequence.
#[test]
#[cfg(all(target_arch = "x86_64", not(miri)))]
fn signal_handlers_may_allocate_from_arrays() {
    use std::sync::OnceLock;
    static POOL: OnceLock<Pool> = OnceLock::new();
    static HANDLED: AtomicU64 = AtomicU64::new(0);

    extern "C" fn handler(_: libc::c_int) {
        // The handler's allocation comes from the array. The array is never empty during the test, because
        // the interrupted thread keeps pages in the array.
        if let Some(pool) = POOL.get() {
            drop(pool.alloc(Order::new(1).unwrap()));
            HANDLED.fetch_add(1, Relaxed);
        }
    }

    let returns = ReturnPolicy::default().with_worker(Worker::None);
    let pool = POOL.get_or_init(|| Pool::builder().size(64 * MIB).returns(returns).build().unwrap());
    if !pool.uses_rseq() {
        return;
    }
    std::thread::spawn(|| {
        use rustix::thread::{CpuSet, sched_getcpu, sched_setaffinity};
        let mut here = CpuSet::new();
        here.set(sched_getcpu());
        sched_setaffinity(None, &here).unwrap();
        let pool = POOL.get().unwrap();
        drop(pool.alloc(Order::new(1).unwrap()).unwrap());
        // SAFETY: the handler only touches atomics and this thread's array.
        unsafe { libc::signal(libc::SIGUSR1, handler as extern "C" fn(libc::c_int) as libc::sighandler_t) };
        // SAFETY: the call only returns the handle of this thread.
        let this = unsafe { libc::pthread_self() };
        let ends = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !ends.load(Relaxed) {
                    // SAFETY: the thread lives until this scope ends.
                    unsafe { libc::pthread_kill(this, libc::SIGUSR1) };
                    std::thread::sleep(Duration::from_micros(50));
                }
            });
            let mut pages: Vec<Owned<'_>> = Vec::new();
            for count in 0..4_000_000_u64 {
                if count % 3 == 2 {
                    pages.pop().unwrap().check();
                } else if pages.len() < 8 {
                    pages.push(Owned::take(pool.alloc(Order::new(1).unwrap()).unwrap(), count));
                } else {
                    pages.clear();
                    pages.push(Owned::take(pool.alloc(Order::new(1).unwrap()).unwrap(), count));
                }
            }
            ends.store(true, SeqCst);
        });
    })
    .join()
    .unwrap();
    assert!(HANDLED.load(Relaxed) > 0);
    pool.validate().unwrap();
}
