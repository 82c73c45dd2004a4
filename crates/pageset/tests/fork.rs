//! What a child of `fork` sees: its pages, and an error instead of new ones.
#![cfg(not(miri))]

use std::os::fd::AsRawFd;

use pageset::{AllocError, Backing, Builder, FastPath, Fork, Order, PAGE_BYTES, Pool};

const MIB: usize = 1 << 20;

/// Runs `work` in a child and returns its exit status; a panic is 101.
fn in_child(work: impl FnOnce()) -> i32 {
    // SAFETY: the child calls what may be called there (it is a copy with this thread only; glibc's heap survives a
    // fork) and leaves by `_exit`.
    let pid = unsafe { libc::fork() };
    assert!(pid >= 0, "fork failed");
    if pid == 0 {
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
        // SAFETY: leaves the process without running anything of the parent's.
        unsafe { libc::_exit(if outcome.is_ok() { 0 } else { 101 }) };
    }
    let mut status = 0;
    // SAFETY: waits for the child just made.
    assert_eq!(unsafe { libc::waitpid(pid, &raw mut status, 0) }, pid);
    if libc::WIFEXITED(status) { libc::WEXITSTATUS(status) } else { -libc::WTERMSIG(status) }
}

fn pools() -> impl Iterator<Item = Builder> {
    [FastPath::Auto, FastPath::Locks].into_iter().map(|path| Pool::builder().size(16 * MIB).fast_path(path))
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
        let ends = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            for seed in 0..3_u8 {
                let (pool, ends) = (&pool, &ends);
                scope.spawn(move || {
                    while !ends.load(std::sync::atomic::Ordering::Relaxed) {
                        let mut pages: Vec<_> = (0..200).map(|_| pool.alloc(Order::ZERO).unwrap()).collect();
                        pages.iter_mut().for_each(|page| page.fill(seed));
                        assert!(pages.iter().all(|page| page[0] == seed && page[PAGE_BYTES - 1] == seed));
                    }
                });
            }
            for _ in 0..20 {
                // Locks that were held at the fork stay so in the child, which does not wait for them.
                let status =
                    in_child(|| assert_eq!(pool.alloc(Order::ZERO).unwrap_err(), AllocError::Forked));
                assert_eq!(status, 0);
            }
            ends.store(true, std::sync::atomic::Ordering::Relaxed);
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
    let (fd, offset) = (pool.memfd().unwrap().as_raw_fd(), pages.offset());
    let status = in_child(|| {
        use std::os::unix::fs::FileExt;
        // The second process knows a file and an offset, nothing else.
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
