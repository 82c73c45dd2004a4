//! Tests a parent that builds a pool and ends, as a daemon's first process does. The parent's child takes the
//! pool over.
#![cfg(not(miri))]

mod children;

use std::io::{PipeReader, PipeWriter, Read, Write};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::{Duration, Instant};

use pageset::{
    AllocError, Backing, BuildError, Builder, FastPath, Fork, HugePageSize, Order, Pages, Pool, Residency,
    ReturnPolicy, TakeOverError, Worker,
};

use children::{fork, status_of};

const MIB: usize = 1 << 20;
const FRAMES: u64 = 16 * MIB as u64 / 4096;
const SOON: Duration = Duration::from_secs(20);

/// Runs `parent` in a process of its own. A descendant of this process writes to the pipe when the work is
/// done.
fn daemon(parent: impl FnOnce(PipeWriter)) {
    let (mut done, says): (PipeReader, PipeWriter) = std::io::pipe().unwrap();
    let pid = fork(|| parent(says.try_clone().unwrap()));
    drop(says);
    let mut said = Vec::new();
    done.read_to_end(&mut said).unwrap();
    assert_eq!(said, b"done", "the daemon has failed");
    assert_eq!(status_of(pid), 0);
}

fn builder(path: FastPath) -> Builder {
    Pool::builder().size(16 * MIB).fast_path(path).fork(Fork::HandOver)
}

const PATHS: [FastPath; 2] = [FastPath::Auto, FastPath::Locks];

/// Allocates a few blocks, and fills each block with a different byte.
fn marked(pool: &Pool) -> Vec<Pages<'_>> {
    let orders = [0, 0, 3, 9, 1].map(|order| Order::new(order).unwrap());
    let mut blocks: Vec<_> = orders.into_iter().map(|order| pool.alloc(order).unwrap()).collect();
    blocks.iter_mut().zip(1..).for_each(|(block, mark)| block.fill(mark));
    blocks
}

fn assert_marked(blocks: &[Pages<'_>]) {
    assert!(blocks.iter().zip(1..).all(|(block, mark)| block.iter().all(|byte| *byte == mark)));
}

/// Calls many operations of a pool in the process that has taken the pool over.
fn use_all(pool: &Pool, blocks: Vec<Pages<'_>>, lost: u64) {
    assert!(!pool.is_in_child());
    pool.take_over(Duration::ZERO).expect("it is ours already");
    assert_marked(&blocks);
    pool.validate().unwrap();
    let held: u64 = blocks.iter().map(|block| block.page_count() as u64).sum();
    let used = pool.stats().nr_used;
    assert!((held..=held + lost).contains(&used), "{used} pages in use, {held} are ours");
    let mut rest: Vec<_> = std::iter::from_fn(|| pool.alloc(Order::ZERO).ok()).collect();
    assert_eq!(rest.len() as u64, FRAMES - used);
    rest.iter_mut().for_each(|page| page.fill(0xff));
    assert_marked(&blocks);
    drop((rest, blocks));
    assert_eq!(pool.stats().nr_used, used - held);
    let _ = pool.trim();
    let zeros: Vec<_> = std::iter::from_fn(|| pool.alloc_zeroed(Order::ZERO).ok()).collect();
    assert!(zeros.iter().all(|page| page.iter().all(|byte| *byte == 0)));
    drop(zeros);
    assert_eq!((pool.resize(4 * MIB) <= 16 * MIB, pool.resize(16 * MIB)), (true, 16 * MIB));
    assert_eq!(pool.stats().bad_frees, 0);
    pool.validate().unwrap();
}

#[test]
fn a_pool_that_was_built_before_daemon_works_in_the_daemon() {
    for path in PATHS {
        daemon(|mut says| {
            let mut returns = ReturnPolicy::default();
            (returns.interval, returns.keep_bytes) = (Duration::from_millis(2), Some(0));
            let pool = builder(path).returns(returns).build().unwrap();
            let blocks = marked(&pool);
            drop((0..1000).map(|_| pool.alloc(Order::ZERO).unwrap()).collect::<Vec<_>>());
            // SAFETY: this process has no other thread than the pool's thread.
            assert_eq!(unsafe { libc::daemon(1, 1) }, 0);
            pool.take_over(SOON).unwrap();
            use_all(&pool, blocks, 0);
            // The pool has a thread again.
            let returned = || pool.stats().returned_bytes;
            let before = returned();
            pool.alloc(Order::MAX).unwrap().fill(1);
            let begun = Instant::now();
            while returned() == before {
                assert!(begun.elapsed() < SOON, "no thread gives memory back");
                std::thread::sleep(Duration::from_millis(1));
            }
            drop(pool);
            says.write_all(b"done").unwrap();
            // SAFETY: the call ends the process without running the rest of the test.
            unsafe { libc::_exit(0) };
        });
    }
}

#[test]
fn a_grandchild_takes_over_when_its_parent_did_not() {
    for path in PATHS {
        daemon(|mut says| {
            let pool = builder(path).build().unwrap();
            let mut blocks = Some(marked(&pool));
            let child = fork(|| {
                assert!(matches!(pool.take_over(Duration::ZERO), Err(TakeOverError::OwnerLives)));
                fork(|| {
                    pool.take_over(SOON).unwrap();
                    use_all(&pool, blocks.take().unwrap(), 0);
                    // A child of this child also takes the pool over.
                    let blocks = marked(&pool);
                    fork(|| {
                        pool.take_over(SOON).unwrap();
                        use_all(&pool, blocks, 0);
                        says.write_all(b"done").unwrap();
                    });
                });
            });
            // The grandchild runs before the owner ends, as after the second fork of a daemon.
            assert_eq!(status_of(child), 0);
            // SAFETY: the call ends the owner without dropping its values.
            unsafe { libc::_exit(0) };
        });
    }
}

#[test]
fn two_processes_that_live_do_not_share_a_pool() {
    for path in PATHS {
        let pool = builder(path).build().unwrap();
        let blocks = marked(&pool);
        let status = status_of(fork(|| {
            for wait in [Duration::ZERO, Duration::from_millis(30)] {
                assert!(matches!(pool.take_over(wait), Err(TakeOverError::OwnerLives)));
            }
            assert_eq!(pool.alloc(Order::ZERO).unwrap_err(), AllocError::Forked);
            assert!(pool.is_in_child());
            assert_marked(&blocks);
        }));
        assert_eq!(status, 0);
        use_all(&pool, blocks, 0);
    }
}

#[test]
fn a_child_without_the_agreement_is_refused() {
    for fork_as in [Fork::Copy, Fork::Hide] {
        let pool = Pool::builder().size(16 * MIB).fork(fork_as).build().unwrap();
        let status = status_of(fork(|| {
            assert!(matches!(pool.take_over(SOON), Err(TakeOverError::NotAgreed)));
        }));
        assert_eq!(status, 0);
        pool.take_over(SOON).expect("this process has it");
    }
}

/// Tests a fork by a direct system call. Before a direct system call, no handler takes the pool's locks.
#[test]
#[cfg(target_arch = "x86_64")]
fn a_fork_that_the_c_library_does_not_see_is_refused() {
    let pool = builder(FastPath::Auto).build().unwrap();
    // SAFETY: the child only looks at the pool, and leaves by `_exit`.
    let child = unsafe { libc::syscall(libc::SYS_fork) } as libc::pid_t;
    if child == 0 {
        let is_refused = matches!(pool.take_over(SOON), Err(TakeOverError::Unprepared));
        // SAFETY: the call ends the process.
        unsafe { libc::_exit(if is_refused { 0 } else { 1 }) };
    }
    assert_eq!(status_of(child), 0);
}

/// Tests forks of a parent whose other threads allocate and free pages.
#[test]
fn a_child_of_a_busy_parent_gets_a_pool_that_is_right() {
    for path in PATHS {
        for round in 0..10 {
            daemon(|mut says| {
                let mut returns = ReturnPolicy::default();
                (returns.interval, returns.keep_bytes) = (Duration::from_micros(100), Some(0));
                let pool: &Pool = Box::leak(Box::new(builder(path).returns(returns).build().unwrap()));
                // While the threads run, no pageblock may be whole.
                let blocks = marked(pool);
                static BEGUN: AtomicBool = AtomicBool::new(false);
                for seed in 0..3_u8 {
                    std::thread::spawn(move || {
                        loop {
                            let orders = (0..120_u8).map(|count| Order::new((count + seed) % 4).unwrap());
                            let mut pages: Vec<_> =
                                orders.filter_map(|order| pool.alloc(order).ok()).collect();
                            pages.iter_mut().for_each(|page| page[0] = seed);
                            BEGUN.store(true, SeqCst);
                            if seed == 0 {
                                let _ = pool.trim();
                            }
                        }
                    });
                }
                while !BEGUN.load(SeqCst) {
                    std::thread::yield_now();
                }
                std::thread::sleep(Duration::from_micros(300 * round));
                fork(|| {
                    pool.take_over(SOON).unwrap();
                    // The pool loses the pages of the three threads, and blocks that these threads put into
                    // arrays during the fork.
                    use_all(pool, blocks, FRAMES);
                    says.write_all(b"done").unwrap();
                });
                // SAFETY: `_exit` ends the owner and its threads.
                unsafe { libc::_exit(0) };
            });
        }
    }
}

#[test]
fn memory_that_is_not_copied_is_refused() {
    let region = vec![0_u8; 8 * MIB];
    let start = region.as_ptr().cast_mut();
    let start = std::ptr::NonNull::new(start.wrapping_add(start.align_offset(4 * MIB))).unwrap();
    let builder = || Pool::builder().size(4 * MIB);
    // SAFETY: no pool is built with this region.
    let of_region = unsafe { builder().region(start, 4 * MIB) };
    for builder in [
        builder().backing(Backing::Memfd),
        builder().backing(Backing::Hugetlb(HugePageSize::Mib2)),
        builder().residency(Residency::Locked),
        of_region,
    ] {
        let returns = ReturnPolicy::default().with_worker(Worker::None);
        let error = builder.returns(returns).fork(Fork::HandOver).build().unwrap_err();
        assert!(matches!(error, BuildError::HandOverOfShared), "{error:?}");
        assert!(error.to_string().starts_with("a child takes over only memory that is copied for it"));
    }
}

/// Regression test. A forking thread empties the arrays while another thread validates the pool. Before the
/// fix, `validate` found fewer blocks in arrays than expected.
#[test]
fn a_fork_of_another_thread_does_not_disturb_a_validation() {
    let returns = ReturnPolicy::default().with_worker(Worker::None);
    let pool = builder(FastPath::Auto).returns(returns).build().unwrap();
    let forks = std::thread::spawn(|| (0..300).for_each(|_| assert_eq!(status_of(fork(|| {})), 0)));
    while !forks.is_finished() {
        drop((0..100).map(|_| pool.alloc(Order::ZERO).unwrap()).collect::<Vec<_>>());
        pool.validate().unwrap();
    }
    forks.join().unwrap();
}
