//! Checks whether the calling code may use a pool. Two kinds of callers may use only some operations. A child
//! of `fork` may do only what [`Fork`](crate::Fork) says. A signal handler that interrupted its thread inside
//! an operation of the same pool must not wait for a lock of the pool.
//!
//! A public operation that waits for a lock calls [`Pool::enter`] or [`Inner::enter`]. The drop of the pool
//! and [`Pool::take_over`] wait for locks, but check for a child themselves. [`Pool::populate`] and
//! [`Pool::alloc_bulk`] begin with [`Pool::in_parent`]. Pops and pushes on arrays need no check, because in a
//! child no CPU has arrays. The other public operations change nothing in the pool.

use super::{Inner, Pool};
use crate::error::AllocError;
use crate::inside::Inside;

impl Pool {
    /// Whether this process is a child of the process that owns the pool. [`Fork`](crate::Fork) says what a
    /// child may do.
    #[must_use]
    #[inline]
    pub fn is_in_child(&self) -> bool {
        self.inner.is_in_child()
    }

    /// The parts of the pool. Returns an error in a child of `fork`.
    pub(crate) fn in_parent(&self) -> Result<&Inner, AllocError> {
        if self.inner.is_in_child() { Err(AllocError::Forked) } else { Ok(&self.inner) }
    }

    /// The parts of the pool, for an operation that takes locks. The thread counts as inside of the pool
    /// until the second value is dropped.
    pub(crate) fn enter(&self) -> Result<(&Inner, Inside), AllocError> {
        Ok((&self.inner, self.inner.enter()?))
    }
}

impl Inner {
    /// Whether this process is a child of the process that owns the pool.
    #[inline]
    pub(crate) fn is_in_child(&self) -> bool {
        self.percpu.is_in_child()
    }

    /// Begins an operation that takes locks, and frees the pages that signal handlers could not free. Returns
    /// an error in a child, and in a signal handler that interrupted its thread inside an operation that
    /// takes locks.
    pub(crate) fn enter(&self) -> Result<Inside, AllocError> {
        if self.is_in_child() {
            return Err(AllocError::Forked);
        }
        let inside = self.percpu.enter().ok_or(AllocError::WouldBlock)?;
        self.free_deferred();
        Ok(inside)
    }
}

#[cfg(all(test, not(interpreted)))]
#[expect(unsafe_code, reason = "a fork, and pages with two owners on purpose")]
mod tests {
    use std::num::NonZeroUsize;
    use std::ops::ControlFlow;
    use std::time::Duration;

    use pageset_core::Order;

    use super::*;
    use crate::{
        Backing, CachedOrder, FastPath, Pages, ReturnPolicy, Stats, TakeOverError, Trimmed, ValidateError,
        Worker,
    };

    /// Runs `work` in a child process, which a signal ends if it hangs. Returns the child's exit status,
    /// which is 101 after a panic.
    fn in_child(work: impl FnOnce()) -> i32 {
        // SAFETY: the child is a copy with this thread only, for which glibc's heap is usable, and leaves by
        // `_exit`.
        let pid = unsafe { libc::fork() };
        assert!(pid >= 0, "fork failed");
        if pid == 0 {
            // SAFETY: the call has no memory arguments. The signal ends a child that waits for ever.
            unsafe { libc::alarm(20) };
            let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
            // SAFETY: the call ends the process without running the parent's destructors or exit handlers.
            unsafe { libc::_exit(if outcome.is_ok() { 0 } else { 101 }) };
        }
        let mut status = 0;
        // SAFETY: the call waits for the child from above, and `status` outlives the call.
        assert_eq!(unsafe { libc::waitpid(pid, &raw mut status, 0) }, pid);
        if libc::WIFEXITED(status) { libc::WEXITSTATUS(status) } else { -libc::WTERMSIG(status) }
    }

    type Operation = (&'static str, fn(&Pool, Pages<'_>));

    /// Most public operations of a pool and of pages, each with a check of its result in a child.
    const OPERATIONS: [Operation; 25] = [
        ("alloc", |pool, _| assert_eq!(pool.alloc(Order::ZERO).unwrap_err(), AllocError::Forked)),
        ("alloc_zeroed", |pool, _| {
            assert_eq!(pool.alloc_zeroed(Order::MAX).unwrap_err(), AllocError::Forked)
        }),
        ("alloc_bulk", |pool, _| {
            assert_eq!(pool.alloc_bulk(usize::MAX, &mut Vec::new()), Err(AllocError::Forked));
        }),
        ("alloc_exact", |pool, _| assert_eq!(pool.alloc_exact(3).unwrap_err(), AllocError::Forked)),
        ("alloc_run", |pool, _| {
            assert_eq!(pool.alloc_run(5 << 20).unwrap_err(), AllocError::Forked);
            assert_eq!(pool.alloc_run_zeroed(5 << 20).unwrap_err(), AllocError::Forked);
        }),
        ("alloc_run_aligned", |pool, _| {
            assert_eq!(pool.alloc_run_aligned(5 << 20, 8 << 20).unwrap_err(), AllocError::Forked);
            assert_eq!(pool.alloc_run_aligned_zeroed(5 << 20, 8 << 20).unwrap_err(), AllocError::Forked);
        }),
        ("alloc_gib", |pool, _| assert_eq!(pool.alloc_gib().unwrap_err(), AllocError::Forked)),
        ("split_off", |_, mut pages| {
            let rest = pages.split_off(1);
            assert_eq!((pages.page_count(), pages.offset() + 4096), (1, rest.offset()));
        }),
        ("join", |_, mut pages| {
            let rest = pages.split_off(1);
            let rest = pages.join(rest).expect_err("nothing can be joined in a child");
            assert_eq!((pages.page_count(), rest.page_count()), (1, 3));
        }),
        ("discard", |_, pages| assert_eq!(pages.discard(), 0)),
        ("give_back", |_, mut pages| assert_eq!(pages.give_back(0..2), 0)),
        ("alloc_at", |pool, _| assert_eq!(pool.alloc_at(0, Order::ZERO).unwrap_err(), AllocError::Forked)),
        ("pop_frame", |pool, pages| {
            let order = CachedOrder::of(Order::new(2).unwrap()).unwrap();
            assert_eq!(pool.pop_frame(order), None);
            // SAFETY: the child's copy of the pages has no other owner.
            assert!(!unsafe { pool.push_frame(pages.into_raw().frame() as u32, order) });
        }),
        ("drop", |_, pages| drop(pages)),
        ("shrink_to", |_, mut pages| pages.shrink_to(1..3)),
        ("from_raw", |pool, pages| {
            let raw = pages.into_raw();
            // SAFETY: the child's copy of the pages has no other owner, and the check refuses a second value
            // of the same pages.
            let checked = unsafe { Pages::from_raw_checked(pool, raw) };
            assert!(checked.is_none(), "nothing can be looked up in a child");
            // SAFETY: as above.
            drop(unsafe { Pages::from_raw(pool, raw) });
        }),
        ("trim", |pool, _| assert_eq!(pool.trim(), Trimmed::default())),
        ("tick", |pool, _| assert_eq!(pool.tick(), Trimmed::default())),
        ("resize", |pool, _| assert_eq!(pool.resize(0), 16 << 20)),
        ("populate", |pool, _| {
            let outcome = pool.populate(16 << 20, NonZeroUsize::MIN, |_| ControlFlow::Continue(()));
            assert_eq!(outcome.unwrap_err().raw_os_error(), Some(libc::EPERM));
        }),
        ("take_over", |pool, _| {
            assert!(matches!(pool.take_over(Duration::ZERO), Err(TakeOverError::NotAgreed)));
        }),
        ("stats", |pool, _| assert_eq!(pool.stats(), Stats::default())),
        ("validate", |pool, _| assert_eq!(pool.validate(), Err(ValidateError::Forked))),
        ("backing", |pool, _| assert_eq!(pool.backing().unwrap().mapped_bytes, 16 << 20)),
        ("others", |pool, _| {
            assert!(format!("{pool:?}").contains("4096"));
            assert_eq!((pool.page_count(), pool.start().addr() % 4096), (4096, 0));
            pool.set_returns(ReturnPolicy::default()).unwrap();
            pool.set_pinned(true);
            pool.set_capacity(0);
            assert_eq!(pool.collapse(), 0);
            assert!(pool.is_in_child() && pool.memory().len() == 16 << 20);
            let _ = pool.uses_rseq();
        }),
    ];

    /// Simulates another thread of the parent that starts or ends the pool's thread at the fork.
    #[test]
    fn a_child_drops_a_pool_without_waiting_for_its_thread() {
        let pool = std::mem::ManuallyDrop::new(Pool::builder().size(16 << 20).build().unwrap());
        let held = pool.background.lock();
        // SAFETY: only the child drops its copy of the pool, and does not use it again.
        let status = in_child(|| drop(unsafe { std::ptr::read(&raw const *pool) }));
        drop(held);
        assert_eq!(status, 0);
        drop(std::mem::ManuallyDrop::into_inner(pool));
    }

    /// Tests a child whose parent holds five locks of the pool at the fork. No thread of the child would
    /// unlock the parent's locks.
    #[test]
    fn a_child_waits_for_no_lock() {
        for (backing, path) in [(Backing::Memfd, FastPath::Auto), (Backing::Plain, FastPath::Locks)] {
            let returns = ReturnPolicy::default().with_worker(Worker::None);
            let builder = Pool::builder().size(16 << 20).backing(backing).fast_path(path);
            let pool = builder.returns(returns).build().unwrap();
            for (name, operation) in OPERATIONS {
                let pages = pool.alloc(Order::new(2).unwrap()).unwrap();
                let Inner { base, drain, retired, returning, looks, .. } = pool.inner();
                let held = (base.hold(), drain.lock(), retired.lock(), returning.lock(), looks.lock());
                let raw = pages.into_raw();
                // SAFETY: `raw` is the child's copy of the pages, and only the child uses this copy.
                let status = in_child(|| operation(&pool, unsafe { Pages::from_raw(&pool, raw) }));
                assert_eq!(status, 0, "{name}");
                drop(held);
                // SAFETY: the pages were given up above, and this process takes them back only once.
                drop(unsafe { Pages::from_raw(&pool, raw) });
            }
            assert_eq!((pool.stats().nr_used, pool.stats().bad_frees), (0, 0));
            pool.validate().unwrap();
        }
    }
}
