//! Steps of a program that need other threads or another process.

use std::io;
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::sync::Mutex;

use pageset::{AllocError, Fork, Order, Pages, Pool, Stats, Trimmed};

use super::owned::{Owned, check_zero};
use super::run::Run;

/// Forks. The child reads the parent's pages and calls many other operations, and must change nothing.
pub(super) fn fork(run: &Run<'_>) {
    // SAFETY: the child is a copy with this thread only, for which glibc's heap is usable, and leaves by
    // `_exit`.
    let pid = unsafe { libc::fork() };
    assert!(pid >= 0, "fork failed");
    if pid == 0 {
        // SAFETY: the signal ends a child that waits for ever.
        unsafe { libc::alarm(20) };
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| be_child(run)));
        // SAFETY: the call ends the process without running the parent's destructors or exit handlers.
        unsafe { libc::_exit(if outcome.is_ok() { 0 } else { 101 }) };
    }
    assert_eq!(status_of(pid), 0, "the child's exit status");
}

/// Waits for a child. A fuzzer's timer may interrupt the wait.
fn status_of(pid: libc::pid_t) -> libc::c_int {
    let mut status = 0;
    loop {
        // SAFETY: `status` outlives the call.
        let ended = unsafe { libc::waitpid(pid, &raw mut status, 0) };
        if ended == pid {
            return status;
        }
        let error = io::Error::last_os_error();
        assert_eq!(error.kind(), io::ErrorKind::Interrupted, "{error}");
    }
}

fn be_child(run: &Run<'_>) {
    let Run { pool, setup, held, .. } = run;
    if setup.fork == Fork::Copy {
        held.iter().for_each(Owned::check);
    }
    assert_eq!(pool.alloc(Order::ZERO).unwrap_err(), AllocError::Forked);
    assert_eq!(pool.alloc_zeroed(Order::MAX).unwrap_err(), AllocError::Forked);
    assert_eq!(pool.alloc_bulk(usize::MAX, &mut Vec::new()), Err(AllocError::Forked));
    assert_eq!(pool.alloc_exact(3).unwrap_err(), AllocError::Forked);
    assert_eq!(pool.alloc_at(0, Order::ZERO).unwrap_err(), AllocError::Forked);
    assert_eq!((pool.trim(), pool.tick()), (Trimmed::default(), Trimmed::default()));
    assert_eq!((pool.resize(0), pool.stats()), (setup.bytes, Stats::default()));
    assert!(pool.populate(setup.bytes, NonZeroUsize::MIN, |_| ControlFlow::Continue(())).is_err());
    assert!(pool.validate().is_err());
    for owned in held {
        // SAFETY: this is the child's copy of the value, and no other code drops the copy in this process.
        let mut pages = unsafe { std::ptr::read(&raw const owned.pages) };
        if pages.page_count() > 1 {
            pages.shrink_to(1..2);
        }
        drop(pages);
    }
    if setup.fork == Fork::Copy {
        held.iter().for_each(Owned::check);
    }
}

/// Pseudo-random numbers.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        ((u128::from(self.0) * limit as u128) >> 64) as usize
    }
}

/// Runs threads that allocate pages and free each other's pages, while one thread scans for idle memory. When
/// the threads have ended, all pages must be free.
pub(super) fn threads(pool: &Pool, seed: u64, steps: usize) {
    let handed_over = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        let workers = [1, 2, 3].map(|thread| {
            let handed_over = &handed_over;
            scope.spawn(move || work(pool, thread, seed, steps, handed_over))
        });
        for _ in 0..4 {
            let _ = (pool.tick(), pool.stats());
            let _ = pool.trim();
        }
        // Join the threads, because the end of the scope waits only for the closures. A fuzzer runs
        // LeakSanitizer between programs. LeakSanitizer would report a leak if a thread were still destroying
        // its thread-locals.
        for worker in workers {
            worker.join().unwrap();
        }
    });
    handed_over.into_inner().unwrap().iter().for_each(Owned::check);
}

fn work<'p>(pool: &'p Pool, thread: u64, seed: u64, steps: usize, handed_over: &Mutex<Vec<Owned<'p>>>) {
    let mut random = Random((thread << 32 | seed).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let mut held: Vec<Owned<'p>> = Vec::new();
    for step in 0..steps as u64 {
        let pattern = thread << 48 | step;
        if random.below(5) < 3 {
            match alloc(pool, &mut random, pattern) {
                Ok(pages) => held.push(Owned::take(pages, pattern)),
                Err(AllocError::OutOfMemory { .. } | AllocError::OverCapacity | AllocError::NotFree) => {}
                Err(error) => panic!("{error}"),
            }
        } else if !held.is_empty() {
            let mut owned = held.swap_remove(random.below(held.len()));
            owned.check();
            match random.below(4) {
                0 => handed_over.lock().unwrap().push(owned),
                1 => {
                    let (count, start) = (owned.count(), random.below(owned.count()));
                    owned.pages.shrink_to(start..start + 1 + random.below(count - start));
                    held.push(owned);
                }
                _ => drop(owned),
            }
        } else {
            let others = std::mem::take(&mut *handed_over.lock().unwrap());
            others.iter().for_each(Owned::check);
        }
    }
    held.iter().for_each(Owned::check);
}

fn alloc<'p>(pool: &'p Pool, random: &mut Random, pattern: u64) -> Result<Pages<'p>, AllocError> {
    let order = Order::new([0, 0, 0, 1, 2, 3, 4, 9][random.below(8)]).unwrap();
    match random.below(16) {
        0 => pool.alloc_exact(1 + random.below(40)),
        1 => pool.alloc_at(random.below(pool.page_count()), Order::ZERO),
        2..5 => pool.alloc_zeroed(order).inspect(|pages| check_zero(pages, pattern)),
        5 => {
            let mut pages = Vec::new();
            pool.alloc_bulk(1 + random.below(20), &mut pages)?;
            Ok(pages.swap_remove(0))
        }
        _ => pool.alloc(order),
    }
}
