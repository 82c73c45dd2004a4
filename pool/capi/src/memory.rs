//! A pool's memory as a whole: making it resident, returning it to the system, resizing.

use std::ffi::{c_int, c_uint, c_void};
use std::mem::MaybeUninit;
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::time::Duration;

use pageset::{Populated, TakeOverError, Trimmed};

use crate::config::Config;
use crate::entry::Entry;
use crate::failure::{FORKED, Failure, number};
use crate::pools::{PoolHandle, open};

/// Reports progress of pageset_populate: resident bytes, and bytes to populate in all. Any of its threads
/// calls it, one call at a time. Another result than 0 ends the work. It must return, without longjmp or a
/// C++ exception.
pub type ProgressCallback =
    Option<extern "C" fn(context: *mut c_void, done_bytes: usize, total_bytes: usize) -> c_int>;

/// A pool that this process may change.
pub(crate) fn own(pool: *mut PoolHandle) -> Result<&'static Entry, Failure> {
    let entry = open(pool)?;
    if entry.pool.is_in_child() { Err(FORKED) } else { Ok(entry) }
}

/// Makes the first `bytes` of the pool resident, with `threads` threads, until the next pageset_trim.
/// Contents do not change, so this may run while the pool is used. progress (may be NULL) is called with
/// context about every 32 MiB. *done_bytes (may be NULL) is the number of resident bytes.
///
/// Errors: EINVAL (no thread), ECANCELED (progress ended it), ENOMEM or another error of the system, EBADF,
/// EPERM. Memory that was made resident stays resident. If a thread cannot be started, the others do its
/// part. Starting a thread takes memory of the heap; without it, the program ends. With 1 thread, none is
/// started.
#[unsafe(no_mangle)]
pub extern "C" fn pageset_populate(
    pool: *mut PoolHandle,
    bytes: usize,
    threads: c_uint,
    progress: ProgressCallback,
    context: *mut c_void,
    done_bytes: Option<&mut MaybeUninit<usize>>,
) -> c_int {
    const NO_THREAD: Failure = Failure::new(libc::EINVAL, "populate with 1 thread at least");
    const ENDED: Failure = Failure::new(libc::ECANCELED, "the program's callback ended it");
    number(move || {
        let mut nowhere = MaybeUninit::uninit();
        let done_bytes = done_bytes.unwrap_or(&mut nowhere).write(0);
        let entry = own(pool)?;
        let threads = NonZeroUsize::new(threads as usize).ok_or(NO_THREAD)?;
        // As a number, because other threads get it. Only the program uses what it points to.
        let context = context.expose_provenance();
        let outcome = entry.pool.populate(bytes, threads, |state| {
            *done_bytes = state.done_bytes;
            let context = std::ptr::with_exposed_provenance_mut(context);
            match progress.map_or(0, |call| call(context, state.done_bytes, state.total_bytes)) {
                0 => ControlFlow::Continue(()),
                _ => ControlFlow::Break(()),
            }
        });
        match outcome {
            Ok(Populated::All) => Ok(()),
            Ok(Populated::Cancelled(_)) => Err(ENDED),
            Err(error) => Err(Failure::system("cannot make memory resident", &error)),
        }
    })
}

/// Asks the system for huge pages in place of the pool's small pages. This also works where the system gives no
/// huge pages by itself, as for a memfd. Contents do not change, so this may run while the pool is used. Each
/// 2 MiB that were used become resident as a whole. *huge_bytes (may be NULL) is the number of bytes that are now
/// in huge pages. It is 0 before Linux 6.1, and for a pinned pool, because a huge page is another page behind the
/// address. Some 100 us for each 2 MiB.
///
/// Errors: EBADF, EPERM.
#[unsafe(no_mangle)]
pub extern "C" fn pageset_collapse(
    pool: *mut PoolHandle,
    huge_bytes: Option<&mut MaybeUninit<u64>>,
) -> c_int {
    number(move || {
        let collapsed = own(pool)?.pool.collapse();
        huge_bytes.map(|to| to.write(collapsed));
        Ok(())
    })
}

/// Returns all free memory to the system now. *returned_bytes (may be NULL) is the number of returned bytes.
/// Each 2 MiB take about 20 us.
///
/// Errors: EBADF, EPERM.
#[unsafe(no_mangle)]
pub extern "C" fn pageset_trim(
    pool: *mut PoolHandle,
    returned_bytes: Option<&mut MaybeUninit<u64>>,
) -> c_int {
    number(move || {
        let Trimmed { returned_bytes: bytes, .. } = own(pool)?.pool.trim();
        returned_bytes.map(|to| to.write(bytes));
        Ok(())
    })
}

/// Scans once for idle memory, as the pool's thread does: for pools made with PAGESET_WORKER_NONE.
/// *returned_bytes (may be NULL) is the number of returned bytes. *more (may be NULL) is 1 if more memory
/// will go back, otherwise 0.
///
/// Errors: EBADF, EPERM.
#[unsafe(no_mangle)]
pub extern "C" fn pageset_tick(
    pool: *mut PoolHandle,
    returned_bytes: Option<&mut MaybeUninit<u64>>,
    more: Option<&mut MaybeUninit<c_int>>,
) -> c_int {
    number(move || {
        let trimmed = own(pool)?.pool.tick();
        returned_bytes.map(|to| to.write(trimmed.returned_bytes));
        more.map(|to| to.write(c_int::from(trimmed.more)));
        Ok(())
    })
}

/// Takes free memory out of service until at most `bytes` are in service, or puts some back, up to the size
/// that the pool was made with. *bytes_in_service (may be NULL) is the number of bytes in service afterwards.
/// If too little is free, it is more than `bytes`; the capacity still falls, and this can be called again.
///
/// Errors: EBADF, EPERM.
#[unsafe(no_mangle)]
pub extern "C" fn pageset_resize(
    pool: *mut PoolHandle,
    bytes: usize,
    bytes_in_service: Option<&mut MaybeUninit<usize>>,
) -> c_int {
    number(move || {
        let in_service = own(pool)?.pool.resize(bytes);
        bytes_in_service.map(|to| to.write(in_service));
        Ok(())
    })
}

/// Makes this process, a child of fork, the owner of its parent's pool, when the parent has ended: for a
/// program that makes its pool before daemon(3). Waits up to wait_ns nanoseconds for the end of the parent.
/// From then on, everything works as it did in the parent, also a grandparent's pool that the parent did not
/// take over. The child has the pages that the forking thread had; those of other threads stay in use. A
/// registration with a device does not follow. In the process that has the pool, it does nothing.
///
/// Errors; each leaves everything unchanged: EBUSY (the process that has the pool is alive), EINVAL (the pool
/// was not made with PAGESET_FORK_HAND_OVER), EPERM (the fork was not noticed), EBADF. A fork is noticed that
/// fork(2) makes outside of a call on the pool. If the pool's thread cannot be started, the system's error.
#[unsafe(no_mangle)]
pub extern "C" fn pageset_take_over(pool: *mut PoolHandle, wait_ns: u64) -> c_int {
    number(move || {
        let outcome = open(pool)?.pool.take_over(Duration::from_nanos(wait_ns));
        outcome.map_err(|error| {
            let errno = match &error {
                TakeOverError::OwnerLives => libc::EBUSY,
                TakeOverError::NotAgreed => libc::EINVAL,
                TakeOverError::System(source) => {
                    return Failure::system("cannot start the pool's thread", source);
                }
                _ => libc::EPERM,
            };
            Failure::with_text(errno, format_args!("{error}"))
        })
    })
}

/// Sets the policy for idle memory, from the next scan on. It uses these fields of *config:
/// return_interval_ns, return_bytes_per_second, keep_bytes, prezero_blocks and part_bytes. config may be NULL
/// for the defaults.
///
/// Errors: as pageset_create for these fields, EBADF, EPERM.
#[unsafe(no_mangle)]
pub extern "C" fn pageset_set_returns(pool: *mut PoolHandle, config: *const Config) -> c_int {
    number(move || {
        let entry = own(pool)?;
        entry.pool.set_returns(Config::read(config)?.returns()?);
        Ok(())
    })
}

/// Sets the most bytes that may be handed out, caches included, up to the size of the pool. So a pool can
/// grow that was made larger than capacity_bytes: address space that was never used costs nearly nothing, and
/// the lowest pages are used first. If more is handed out already, allocations get EDQUOT until enough is
/// freed. O(1).
///
/// Errors: EBADF, EPERM.
#[unsafe(no_mangle)]
pub extern "C" fn pageset_set_capacity(pool: *mut PoolHandle, bytes: usize) -> c_int {
    number(move || {
        own(pool)?.pool.set_capacity(bytes);
        Ok(())
    })
}

/// Pins or unpins the pool. With pinned 1, the page behind every address stays the same from the return of
/// this call on. With 0, memory may go back again. For a pool that is registered after it was made: pin it
/// before, and unpin it when it is no longer registered.
///
/// Errors: EINVAL (pinned is neither 0 nor 1), EBADF, EPERM.
#[unsafe(no_mangle)]
pub extern "C" fn pageset_set_pinned(pool: *mut PoolHandle, pinned: c_int) -> c_int {
    const NEITHER: Failure = Failure::new(libc::EINVAL, "pinned is neither 0 nor 1");
    number(move || {
        let entry = own(pool)?;
        let is_pinned = match pinned {
            0 => false,
            1 => true,
            _ => return Err(NEITHER),
        };
        entry.pool.set_pinned(is_pinned);
        Ok(())
    })
}

/// Checks everything about the pool that a look can check; pageset_message says what is wrong. O(pages);
/// exact only while no other thread uses the pool.
///
/// Errors: EUCLEAN (a mistake in pageset, or overwritten memory), EBADF, EPERM.
#[unsafe(no_mangle)]
pub extern "C" fn pageset_validate(pool: *mut PoolHandle) -> c_int {
    number(move || {
        own(pool)?.pool.validate().map_err(|what| Failure::with_text(libc::EUCLEAN, format_args!("{what}")))
    })
}
