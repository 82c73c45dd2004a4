//! Calls on the whole memory of a pool, for example to make the memory resident, to give free memory back to
//! the system, or to resize the pool.

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

/// Reports the progress of pageset_populate: the number of resident bytes, and of all bytes to populate. Any
/// thread of pageset_populate may call the function, but two calls never overlap. If the function returns
/// another number than 0, pageset_populate ends its work. The function must return, without longjmp or a C++
/// exception.
pub type ProgressCallback =
    Option<extern "C" fn(context: *mut c_void, done_bytes: usize, total_bytes: usize) -> c_int>;

const NO_THREAD: &str = "cannot start the pool's thread";

/// Finds a pool that this process may change.
pub(crate) fn own(pool: *mut PoolHandle) -> Result<&'static Entry, Failure> {
    let entry = open(pool)?;
    if entry.pool.is_in_child() { Err(FORKED) } else { Ok(entry) }
}

/// Makes the first `bytes` of the pool resident, with `threads` threads. The memory stays resident until the
/// next pageset_trim. The call does not change contents, so the pool may be in use. After about every 32 MiB,
/// a thread calls progress (may be NULL) with context. *done_bytes (may be NULL) is the number of resident
/// bytes.
///
/// Errors: EINVAL (threads is 0), ECANCELED (progress ended the work), ENOMEM or another error of the system,
/// EBADF, EPERM. After an error, memory that is resident stays resident. If the system cannot start a thread,
/// the call's other threads do all the work. To start a thread, the system's libraries use the heap. If the
/// heap is exhausted, the system's libraries end the program. If threads is 1, the call starts no thread.
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
        // Keep the pointer as a number, because other threads pass the pointer to the function too. Only the
        // program reads the memory behind the pointer.
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

/// Asks the system to replace the pool's small pages by huge pages. The call also works where the system
/// gives no huge pages on its own, for example for a memfd. The call does not change contents, so the pool
/// may be in use. If a page of a pageblock of 2 MiB was used since the pageblock last went back to the
/// system, the call tries to collapse the pageblock. A collapsed pageblock is resident as a whole.
/// *huge_bytes (may be NULL) is the number of bytes that are now in huge pages. If the pool is not hugetlb,
/// *huge_bytes is 0 before Linux 6.1, and for a pinned pool, because every address must keep its page. The
/// call takes about 100 us for each 2 MiB.
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

/// Gives free memory back to the system now: whole pageblocks, and free parts of 64 KiB or more. A pool that
/// is pinned, or made of hugetlb, locked memory or a region, gives nothing back. *returned_bytes (may be
/// NULL) is the number of bytes that the call gave back. The call takes about 20 us for each 2 MiB.
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

/// Scans once for idle memory, as the pool's thread does. Use pageset_tick for pools with
/// PAGESET_WORKER_NONE. *returned_bytes (may be NULL) is the number of bytes that the scan gave back. *more
/// (may be NULL) is 1 if a later scan may give back more memory, and otherwise 0.
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

/// Takes free memory out of service until at most `bytes` are in service, or puts memory back into service,
/// up to the size that the pool was made with. *bytes_in_service (may be NULL) is the number of bytes in
/// service afterwards. If too little memory is free, *bytes_in_service is more than `bytes`, although the
/// capacity falls to `bytes`. To take more memory out of service, call pageset_resize again after the program
/// has freed pages.
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

/// Makes this process, a child of fork, the owner of its parent's pool, when the parent has ended. Use
/// pageset_take_over in a program that makes its pool before daemon(3). The call waits up to wait_ns
/// nanoseconds for the end of the parent. After the call, the pool works in this process as before in the
/// parent. The child has the pages that the forking thread had. The pages of the parent's other threads stay
/// in use for ever. A child can also take over its grandparent's pool, if its parent did not take the pool
/// over. If the pool was registered with a device, register the pool again. In the process that owns the
/// pool, the call does nothing.
///
/// Errors: EBUSY (the owner of the pool is alive), EINVAL (the pool was not made with
/// PAGESET_FORK_HAND_OVER), EPERM, EBADF, and the system's error if the pool's thread cannot be started.
/// EPERM means that the process did not fork by the C library's fork, or that a signal handler forked inside
/// of a call on the pool. An error changes nothing.
#[unsafe(no_mangle)]
pub extern "C" fn pageset_take_over(pool: *mut PoolHandle, wait_ns: u64) -> c_int {
    number(move || {
        let outcome = open(pool)?.pool.take_over(Duration::from_nanos(wait_ns));
        outcome.map_err(|error| {
            let errno = match &error {
                TakeOverError::OwnerLives => libc::EBUSY,
                TakeOverError::NotAgreed => libc::EINVAL,
                TakeOverError::System(source) => {
                    return Failure::system(NO_THREAD, source);
                }
                _ => libc::EPERM,
            };
            Failure::with_text(errno, format_args!("{error}"))
        })
    })
}

/// Sets the policy for idle memory. The new policy applies from the next scan on. The call uses these fields
/// of *config: worker, return_interval_ns, return_bytes_per_second, keep_bytes, prezero_blocks and
/// part_bytes. If config is NULL, the call uses the defaults. With PAGESET_WORKER_THREAD, the call starts the
/// pool's thread if the pool has no thread and the policy has work for a thread. With PAGESET_WORKER_NONE,
/// the call ends the thread.
///
/// Errors: as pageset_create for the used fields, the system's error if the thread cannot be started, EBADF,
/// EPERM. An error changes nothing.
#[unsafe(no_mangle)]
pub extern "C" fn pageset_set_returns(pool: *mut PoolHandle, config: *const Config) -> c_int {
    number(move || {
        let entry = own(pool)?;
        let outcome = entry.pool.set_returns(Config::read(config)?.returns()?);
        outcome.map_err(|source| Failure::system(NO_THREAD, &source))
    })
}

/// Limits the bytes that the program and the pool's caches may have together, up to the size of the pool. For
/// a pool that can grow, make a larger pool with a smaller capacity_bytes, and raise the capacity later.
/// Unused address space costs nearly nothing, and the pool uses its lowest pages first. If more memory is in
/// use than the new capacity, allocations get EDQUOT until the program has freed enough. O(1).
///
/// Errors: EBADF, EPERM.
#[unsafe(no_mangle)]
pub extern "C" fn pageset_set_capacity(pool: *mut PoolHandle, bytes: usize) -> c_int {
    number(move || {
        own(pool)?.pool.set_capacity(bytes);
        Ok(())
    })
}

/// Pins or unpins the pool. When a call with pinned 1 has returned, every address of the pool keeps its page.
/// After a call with pinned 0, memory may go back to the system again. Use pageset_set_pinned if you register
/// the pool with a device for a time. Pin the pool before you register it with the device, and unpin the pool
/// after you have unregistered it.
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

/// Checks the pool's tables. After an error, pageset_message says what is wrong. O(pages). The result is
/// exact only while no other thread uses the pool.
///
/// Errors: EUCLEAN (a mistake in pageset, or overwritten memory), EBADF, EPERM.
#[unsafe(no_mangle)]
pub extern "C" fn pageset_validate(pool: *mut PoolHandle) -> c_int {
    number(move || {
        own(pool)?.pool.validate().map_err(|what| Failure::with_text(libc::EUCLEAN, format_args!("{what}")))
    })
}
