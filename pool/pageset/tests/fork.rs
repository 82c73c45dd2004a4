//! Tests children of `fork`: a child can read pages of its parent's pool, but an allocation returns an error.
#![cfg(not(miri))]

mod children;

use std::io::{Read, Write};
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};

use pageset::{AllocError, Backing, Builder, FastPath, Fork, Order, PAGE_BYTES, Pool, ReturnPolicy, Worker};

use children::{fork, status_of};

const MIB: usize = 1 << 20;

/// Runs `work` in a child, and returns the child's exit status, which is 101 after a panic.
fn in_child(work: impl FnOnce()) -> i32 {
    status_of(fork(work))
}

fn pools() -> impl Iterator<Item = Builder> {
    let paths = [FastPath::Auto, FastPath::Locks].into_iter();
    let builders = paths.map(|path| Pool::builder().size(16 * MIB).fast_path(path));
    // While the parent lives, `Fork::HandOver` gives a child no more rights than other settings.
    builders.flat_map(|builder| [builder.clone(), builder.fork(Fork::HandOver)])
}

#[test]
fn a_child_reads_owned_pages_and_their_end_leaves_the_pool_alone() {
    for builder in pools() {
        let pool = Arc::new(builder.build().unwrap());
        let mut page = pool.alloc_owned(Order::ZERO).unwrap();
        page.fill(7);
        // After this drop, only `page` owns the child's copy of the pool.
        drop(pool);
        let start = page.as_ptr();
        let mut page = Some(page);
        let status = in_child(|| {
            let page = page.take().unwrap();
            assert!(page.iter().all(|byte| *byte == 7));
            assert_eq!(page.pool().alloc_owned(Order::ZERO).unwrap_err(), AllocError::Forked);
            drop(page);
            // SAFETY: a child unmaps nothing, and no code writes to this page.
            assert_eq!(unsafe { start.read() }, 7);
        });
        assert_eq!(status, 0);
        let page = page.unwrap();
        assert_eq!((page[0], page.pool().stats().nr_used), (7, 1));
    }
}

#[test]
fn a_child_reads_a_copy_and_cannot_allocate() {
    for builder in pools() {
        let pool = builder.build().unwrap();
        let mut page = pool.alloc(Order::ZERO).unwrap();
        page.fill(7);
        let status = in_child(|| {
            assert!(page.iter().all(|byte| *byte == 7));
            assert_eq!(pool.alloc(Order::ZERO).unwrap_err(), AllocError::Forked);
            assert_eq!(pool.alloc_at(0, Order::MAX).unwrap_err(), AllocError::Forked);
            assert_eq!(pool.alloc_bulk(3, &mut Vec::new()), Err(AllocError::Forked));
            let _ = pool.trim();
            let _ = pool.tick();
            // SAFETY: the child's copy of the page has no other owner.
            let copy = unsafe { std::ptr::read(&raw const page) };
            drop(copy);
        });
        assert_eq!(status, 0);
        assert!(page.iter().all(|byte| *byte == 7));
        drop(page);
        assert_eq!(pool.stats().nr_used, 0);
        pool.validate().unwrap();
    }
}

#[test]
fn a_child_may_drop_the_pool() {
    for builder in pools() {
        let mut pool = Some(builder.build().unwrap());
        assert_eq!(in_child(|| drop(pool.take())), 0);
        assert!(pool.unwrap().alloc(Order::THP).is_ok());
    }
}

#[test]
fn a_hidden_pool_is_not_there_in_a_child() {
    let pool = Pool::builder().size(16 * MIB).fork(Fork::Hide).build().unwrap();
    let mut page = pool.alloc(Order::ZERO).unwrap();
    page[0] = 1;
    let status = in_child(|| {
        std::hint::black_box(page[0]);
    });
    assert_eq!(status, -libc::SIGSEGV);
    assert_eq!(page[0], 1);
}

#[test]
fn forks_in_the_middle_of_the_work_disturb_nobody() {
    for builder in pools() {
        let pool = builder.build().unwrap();
        let ends = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for seed in 0..3_u8 {
                let (pool, ends) = (&pool, &ends);
                scope.spawn(move || {
                    while !ends.load(SeqCst) {
                        let mut pages: Vec<_> = (0..200).map(|_| pool.alloc(Order::ZERO).unwrap()).collect();
                        pages.iter_mut().for_each(|page| page.fill(seed));
                        assert!(pages.iter().all(|page| page[0] == seed && page[PAGE_BYTES - 1] == seed));
                    }
                });
            }
            for _ in 0..20 {
                // Locks that threads of the parent held at the fork stay locked in the child. The child must
                // not wait for a lock that stays locked.
                let status =
                    in_child(|| assert_eq!(pool.alloc(Order::ZERO).unwrap_err(), AllocError::Forked));
                assert_eq!(status, 0);
            }
            ends.store(true, SeqCst);
        });
        assert_eq!(pool.stats().bad_frees, 0);
        pool.validate().unwrap();
    }
}

#[test]
fn two_processes_see_the_same_memory() {
    let pool = Pool::builder().size(16 * MIB).backing(Backing::Memfd).build().unwrap();
    let mut pages = pool.alloc(Order::new(3).unwrap()).unwrap();
    pages.fill(1);
    // SAFETY: the child writes while this process waits for it, with no reference to the pages.
    let (fd, offset) = (unsafe { pool.memfd() }.unwrap().as_raw_fd(), pages.offset());
    let status = in_child(|| {
        use std::os::unix::fs::FileExt;
        // The child uses only a file and an offset.
        let file =
            std::fs::File::options().read(true).write(true).open(format!("/proc/self/fd/{fd}")).unwrap();
        let mut bytes = [0; 8];
        file.read_exact_at(&mut bytes, offset as u64).unwrap();
        assert_eq!(bytes, [1; 8]);
        file.write_all_at(&[2; 8], offset as u64).unwrap();
    });
    assert_eq!(status, 0);
    assert_eq!(pages[..8], [2; 8]);
}

/// Tests a child that trims the pool after its parent has allocated pages. In the child's copy of the
/// metadata, these pages are free.
#[test]
fn a_child_that_trims_a_shared_pool_leaves_what_the_parent_allocated_since() {
    for returns in [ReturnPolicy::default(), ReturnPolicy::default().with_worker(Worker::None)] {
        let pool = Pool::builder().size(64 * MIB).backing(Backing::Memfd).returns(returns).build().unwrap();
        // Use many pages and free them, so that a trim has memory to give back.
        pool.alloc_bulk(16_000, &mut Vec::new()).unwrap();
        let (mut listen, mut say) = std::io::pipe().unwrap();
        let child = fork(|| {
            listen.read_exact(&mut [0]).unwrap();
            let _ = (pool.trim(), pool.tick(), pool.resize(4 * MIB), pool.trim());
        });
        let mut live = Vec::new();
        pool.alloc_bulk(8000, &mut live).unwrap();
        live.iter_mut().for_each(|page| page.fill(9));
        say.write_all(&[0]).unwrap();
        let status = status_of(child);
        let destroyed = live.iter().filter(|page| page.iter().any(|byte| *byte != 9)).count();
        assert_eq!((destroyed, status), (0, 0), "live pages destroyed, exit status");
    }
}

/// Tests children of a parent whose threads allocate, write and free all the time. So at many forks, a thread
/// of the parent holds a lock or is changing metadata. The children call most operations of a pool, on memory
/// that they share with the parent.
#[test]
fn children_of_a_busy_parent_change_nothing_and_wait_for_nothing() {
    for path in [FastPath::Auto, FastPath::Locks] {
        let builder = Pool::builder().size(64 * MIB).backing(Backing::Memfd).fast_path(path);
        let pool = builder.build().unwrap();
        let mut live: Vec<_> = (0..4000).map(|_| pool.alloc(Order::ZERO).unwrap()).collect();
        let (ends, begun) = (AtomicBool::new(false), AtomicUsize::new(0));
        let mut statuses = Vec::new();
        std::thread::scope(|scope| {
            for seed in 1..4_u8 {
                let (pool, ends, begun) = (&pool, &ends, &begun);
                scope.spawn(move || {
                    while !ends.load(SeqCst) {
                        let mut pages: Vec<_> = (0..900_u16)
                            .map(|count| pool.alloc(Order::new((count % 4) as u8).unwrap()))
                            .map(Result::unwrap)
                            .collect();
                        pages.iter_mut().for_each(|page| page.fill(seed));
                        begun.fetch_add(1, SeqCst);
                        std::thread::yield_now();
                        assert!(
                            pages.iter().all(|pages| pages.iter().all(|byte| *byte == seed)),
                            "destroyed"
                        );
                    }
                });
            }
            live.iter_mut().for_each(|page| page.fill(9));
            for fork in 0..20 {
                while begun.load(SeqCst) < fork * 3 {
                    std::thread::yield_now();
                }
                let status = in_child(|| {
                    let _ = (pool.trim(), pool.tick(), pool.resize(4 * MIB), pool.trim());
                    let _ = (pool.stats(), pool.validate(), pool.backing());
                    assert!(
                        pool.populate(64 * MIB, NonZeroUsize::MIN, |_| ControlFlow::Continue(())).is_err()
                    );
                    assert!(pool.alloc(Order::ZERO).is_err());
                    // SAFETY: this is the child's copy of the values, and no other code drops the copy in
                    // this process.
                    drop(unsafe { std::ptr::read(&raw const live) });
                });
                statuses.push(status);
                if status != 0 {
                    break;
                }
            }
            ends.store(true, SeqCst);
        });
        let destroyed = live.iter().filter(|page| page.iter().any(|byte| *byte != 9)).count();
        assert_eq!(destroyed, 0, "live pages destroyed by a child");
        assert!(statuses.iter().all(|status| *status == 0), "{statuses:?}");
        drop(live);
        assert_eq!((pool.stats().nr_used, pool.stats().bad_frees), (0, 0));
        pool.validate().unwrap();
    }
}

/// Tests a child of a parent with `Fork::Hide`. In the child, the pool's addresses are not mapped, so the
/// child may map other memory at these addresses before it drops the pool.
#[test]
fn the_end_of_a_hidden_pool_in_a_child_unmaps_nothing() {
    let returns = ReturnPolicy::default().with_worker(Worker::None);
    let builder = Pool::builder().size(16 * MIB).fork(Fork::Hide).returns(returns);
    let mut pool = Some(builder.build().unwrap());
    let start = pool.as_ref().unwrap().start().cast_mut();
    let status = in_child(|| {
        let (prot, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        let flags = flags | libc::MAP_FIXED_NOREPLACE;
        // SAFETY: the call maps memory only where nothing is mapped.
        let mapped = unsafe { libc::mmap(start.cast(), 4096, prot, flags, -1, 0) };
        assert_eq!(mapped, start.cast());
        drop(pool.take());
        // SAFETY: the page was just mapped, and the test fails if the drop has unmapped it.
        unsafe { start.write_volatile(1) };
    });
    assert_eq!(status, 0);
    drop(pool);
}

#[test]
fn a_region_that_was_hidden_is_seen_again_when_its_pool_ends() {
    let mut memory = vec![5_u8; 8 * MIB];
    let start = memory.as_mut_ptr();
    let region = std::ptr::NonNull::new(start.wrapping_add(start.align_offset(4 * MIB))).unwrap();
    // SAFETY: the region lies inside `memory`, which outlives the pool and is not used meanwhile.
    let builder = unsafe { Pool::builder().region(region, 4 * MIB) };
    drop(builder.fork(Fork::Hide).build().unwrap());
    let status = in_child(|| {
        // SAFETY: the pool was dropped, so only `memory` has the region again.
        let _ = unsafe { region.read_volatile() };
    });
    assert_eq!(status, 0, "a touch of what is hidden is a signal");
    drop(memory);
}
