//! Lets a child take its parent's pool over when the parent has ended, for example after daemon(3).
//!
//! The child has a copy of the memory and of the tables. Two races could make the copy wrong. First, another
//! thread of the parent may be changing a table under a lock. To prevent the first race, the thread that
//! forks takes all locks of the pool before the fork. Second, threads change arrays without taking the pool's
//! locks. To prevent the second race, the forking thread empties the arrays before the fork. Other threads
//! may put blocks into arrays after the forking thread has emptied the arrays and before the fork. The child
//! forgets these blocks, which stay in use for ever.
//!
//! The child waits for the end of the process that owns the pool, because a pool can have only one owner.

use std::cell::Cell;
use std::mem::ManuallyDrop;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{MutexGuard, OnceLock};
use std::thread::{Thread, sleep};
use std::time::{Duration, Instant};
use std::{fmt, io, ptr};

use pageset_core::PAGEBLOCK_FRAMES;

use super::giveback::Look;
use super::{Inner, Pool};
use crate::ReturnPolicy;
use crate::base::Held;
use crate::error::BuildError;
use crate::heap::HeapExhausted;
use crate::inside::Inside;
use crate::lock::Lock;
use crate::sys::process::{Process, at_forks};
use crate::sys::share::{Locked, Locks, Shared};
use crate::sys::thread::{SignalsBlocked, block_signals};

/// The time that a child sleeps between two checks whether the pool's owner has ended.
const LOOK_INTERVAL: Duration = Duration::from_millis(1);

/// The state that a pool needs so that a child may take it over.
pub(crate) struct HandOver {
    /// In a child: whether its copy of the tables is consistent, because the forking thread held all locks at
    /// the fork. Only a child sets `is_quiet`.
    is_quiet: AtomicBool,
    /// The process that owns the pool.
    owner: Lock<Process>,
}

impl Default for HandOver {
    fn default() -> Self {
        Self { is_quiet: AtomicBool::new(false), owner: Lock::new(Process::this()) }
    }
}

/// Why a child could not take its parent's pool over.
#[derive(Debug)]
#[non_exhaustive]
pub enum TakeOverError {
    /// The process that owns the pool is still alive.
    OwnerLives,
    /// The pool was not built with [`Fork::HandOver`](crate::Fork::HandOver).
    NotAgreed,
    /// The copy of the tables may be inconsistent. Either a signal handler forked while its thread was inside
    /// an operation of the pool, or the process did not fork by the C library's `fork`.
    Unprepared,
    /// The pool's thread cannot be started.
    System(io::Error),
}

impl fmt::Display for TakeOverError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::OwnerLives => "the process that owns the pool is still alive",
            Self::NotAgreed => "the pool was not built to be taken over (Fork::HandOver)",
            Self::Unprepared => {
                "this copy of the pool is not usable: call the C library's fork, and not in a signal handler"
            }
            Self::System(_) => "cannot start the pool's thread",
        })
    }
}

impl std::error::Error for TakeOverError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::System(source) => Some(source),
            _ => None,
        }
    }
}

/// All locks of a pool. An operation takes several of these locks in the order of the fields.
pub(crate) struct AllLocks<'a> {
    _worker: MutexGuard<'a, ()>,
    _looks: MutexGuard<'a, Look>,
    _retired: MutexGuard<'a, usize>,
    _drain: MutexGuard<'a, ()>,
    _returning: MutexGuard<'a, ()>,
    _policy: MutexGuard<'a, ReturnPolicy>,
    _base: Held<'a>,
    _bell: MutexGuard<'a, Option<Thread>>,
}

impl Locks for Inner {
    type Held<'a> = AllLocks<'a>;

    fn hold(&self) -> AllLocks<'_> {
        AllLocks {
            _worker: self.worker.lock(),
            _looks: self.looks.lock(),
            _retired: self.retired.lock(),
            _drain: self.drain.lock(),
            _returning: self.returning.lock(),
            _policy: self.policy.lock(),
            _base: self.base.hold(),
            _bell: self.capacity.bell.hold(),
        }
    }
}

/// The pools of this process that a child may take over.
static POOLS: Lock<Vec<Shared<Inner>>> = Lock::new(Vec::new());

/// The pools and locks that a forking thread holds from the handler before the fork to the handler after the
/// fork.
struct Forking {
    locked: Vec<Locked<Inner>>,
    _pools: MutexGuard<'static, Vec<Shared<Inner>>>,
    _signals: SignalsBlocked,
}

thread_local! {
    /// The value has no destructor, so a thread's first use of the value does not allocate on the heap.
    static FORKING: Cell<Option<ManuallyDrop<Forking>>> = const { Cell::new(None) };
}

/// Marks that this thread uses [`POOLS`]. `None` in a signal handler that interrupted its thread during a use
/// of [`POOLS`].
fn enter_pools() -> Option<Inside> {
    Inside::of(ptr::from_ref(&POOLS).addr())
}

extern "C" fn before_fork() {
    // Block signals: a handler on this thread would wait for locks that this thread holds.
    let signals = block_signals();
    let Some(_inside) = enter_pools() else { return };
    let pools = POOLS.lock();
    let mut locked = Vec::new();
    if locked.try_reserve_exact(pools.len()).is_err() {
        return;
    }
    for pool in pools.iter() {
        // Skip the pool if this process is itself a child of the owner, or if this thread is already inside
        // of the pool.
        let Ok(_inside) = pool.enter() else { continue };
        {
            // Race: another thread compares the arrays with the base (`validate`) while this thread drains
            // the arrays. Both threads take the lock `looks`, so the later thread waits, and the comparison
            // never sees half a drain.
            let _no_look = pool.looks.lock();
            pool.drain_arrays();
        }
        locked.push(Locked::new(pool.clone()));
    }
    FORKING.set(Some(ManuallyDrop::new(Forking { locked, _pools: pools, _signals: signals })));
}

extern "C" fn after_fork_in_parent() {
    drop(FORKING.take().map(ManuallyDrop::into_inner));
}

/// Marks the pools as consistent in a child. Only the C library's `fork` calls this handler. After any other
/// call that forks, the child's locks may be held by threads that the child does not have. A child without
/// this handler's call cannot take a pool over.
extern "C" fn after_fork_in_child() {
    let Some(forking) = FORKING.take().map(ManuallyDrop::into_inner) else { return };
    forking.locked.iter().for_each(|locked| locked.value().set_quiet());
}

/// Registers the handlers that run around each later call of the C library's `fork`.
fn notice_forks() -> Result<(), BuildError> {
    static IS_CALLED: OnceLock<Result<(), i32>> = OnceLock::new();
    let call = || {
        let outcome = at_forks(before_fork, after_fork_in_parent, after_fork_in_child);
        outcome.map_err(|error| error.raw_os_error().unwrap_or(libc::ENOTSUP))
    };
    (*IS_CALLED.get_or_init(call)).map_err(|error| BuildError::System {
        what: "prepare for forks",
        source: io::Error::from_raw_os_error(error),
    })
}

impl Inner {
    fn set_quiet(&self) {
        if let Some(hand_over) = &self.hand_over {
            hand_over.is_quiet.store(true, Relaxed);
        }
    }
}

impl Pool {
    /// Registers this pool, so that later forks prepare a copy that a child can take over.
    pub(crate) fn prepare_forks(&self) -> Result<(), BuildError> {
        notice_forks()?;
        let _inside = enter_pools();
        let mut pools = POOLS.lock();
        pools.try_reserve(1).map_err(|_| HeapExhausted { bytes: size_of::<Shared<Inner>>() })?;
        pools.push(self.inner.clone());
        Ok(())
    }

    /// Undoes [`prepare_forks`](Self::prepare_forks).
    pub(super) fn forget_forks(&self) {
        let _inside = enter_pools();
        let mut pools = POOLS.lock();
        let ours = pools.iter().position(|pool| pool.is_same(&self.inner)).map(|at| pools.swap_remove(at));
        drop(pools);
        drop(ours);
    }

    /// Makes a child of `fork` the owner of its parent's pool, when the parent has ended. Waits up to `wait`
    /// for the end of the parent. After the call, the pool works in this process as before in the parent. The
    /// child has the pages that the forking thread had. The pages of the parent's other threads stay in use
    /// for ever. Blocks that other threads put into arrays during the fork are also lost: usually few, and at
    /// most as many as the arrays hold.
    ///
    /// Use `take_over` in a program that builds its pool and then becomes a daemon:
    ///
    /// ```no_run
    /// use std::time::Duration;
    ///
    /// use pageset::{Fork, Order, Pool};
    ///
    /// let pool = Pool::builder().size(64 << 20).fork(Fork::HandOver).build()?;
    /// // SAFETY: no other thread of this program runs.
    /// assert_eq!(unsafe { libc::daemon(0, 0) }, 0);
    /// pool.take_over(Duration::from_secs(1))?;
    /// let page = pool.alloc(Order::ZERO)?;
    /// # drop(page);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// A child can also take over the pool of its grandparent, if its parent did not take the pool over. In
    /// the process that owns the pool, `take_over` does nothing. If the pool was registered with a device,
    /// register the pool again after `take_over`.
    ///
    /// # Errors
    /// See [`TakeOverError`]. After an error nothing has changed, and the call may be repeated.
    pub fn take_over(&self, wait: Duration) -> Result<(), TakeOverError> {
        let inner = self.inner();
        if !inner.is_in_child() {
            return Ok(());
        }
        let hand_over = inner.hand_over.as_ref().ok_or(TakeOverError::NotAgreed)?;
        if !hand_over.is_quiet.load(Relaxed) {
            return Err(TakeOverError::Unprepared);
        }
        let begun = Instant::now();
        let mut owner = loop {
            // Only one thread may take the pool over. Do not wait for the lock: its holder may be a thread of
            // the parent that does not exist in the child.
            if let Some(owner) = hand_over.owner.try_lock().filter(|owner| owner.has_ended()) {
                break owner;
            }
            let left = wait.saturating_sub(begun.elapsed());
            if left.is_zero() {
                return Err(TakeOverError::OwnerLives);
            }
            sleep(left.min(LOOK_INTERVAL));
            if !inner.is_in_child() {
                return Ok(());
            }
        };
        let has_thread = self.background.lock().is_some();
        if has_thread {
            self.start_thread().map_err(TakeOverError::System)?;
        }
        // Frames that are neither free nor retired count as in use, also if no page or array of the child has
        // them. Set the number of charged frames accordingly.
        let retired = *inner.retired.lock() as u64 * u64::from(PAGEBLOCK_FRAMES);
        let unused = inner.base.free_frames() + retired;
        inner.capacity.set_out(u64::from(inner.frames).saturating_sub(unused));
        hand_over.is_quiet.store(false, Relaxed);
        *owner = Process::this();
        // From here on, this process owns the pool.
        inner.percpu.take_over();
        inner.capacity.bell.ring();
        Ok(())
    }
}

#[cfg(all(test, not(interpreted)))]
#[expect(unsafe_code, reason = "a fork")]
mod tests {
    use super::*;
    use crate::Fork;

    /// Simulates a fork by a signal handler that interrupted its thread inside an operation of the pool.
    #[test]
    fn a_fork_inside_of_an_operation_waits_for_nothing_and_is_refused() {
        let pool = Pool::builder().size(16 << 20).fork(Fork::HandOver).build().unwrap();
        let inside = pool.enter().unwrap();
        // SAFETY: the child only looks at the pool, and leaves by `_exit`.
        let child = unsafe { libc::fork() };
        if child == 0 {
            let is_refused = matches!(pool.take_over(Duration::ZERO), Err(TakeOverError::Unprepared));
            // SAFETY: the call ends the process at once.
            unsafe { libc::_exit(if is_refused { 0 } else { 1 }) };
        }
        let mut status = 0;
        // SAFETY: the call waits for the child from above, and `status` outlives the call.
        assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
        assert!(libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0, "{status}");
        drop(inside);
        assert!(pool.alloc(pageset_core::Order::ZERO).is_ok());
    }
}
