//! A pool's memory as a whole: resident before it is needed, back at the system, less of it.

use std::ffi::{c_int, c_uint, c_void};
use std::mem::MaybeUninit;
use std::num::NonZeroUsize;
use std::ops::ControlFlow;

use pageset::{Populated, Trimmed};

use crate::config::Config;
use crate::entry::Entry;
use crate::failure::{FORKED, Failure, number};
use crate::pools::{PoolHandle, open};

/// What pageset_populate calls, one call at a time, from any of its threads: bytes that are resident, bytes
/// that were asked for. Anything but 0 ends it. It must return: no longjmp, and no exception of C++.
pub type ProgressCallback =
    Option<extern "C" fn(context: *mut c_void, done_bytes: usize, total_bytes: usize) -> c_int>;

/// A pool that this process may change.
pub(crate) fn own(pool: *mut PoolHandle) -> Result<&'static Entry, Failure> {
    let entry = open(pool)?;
    if entry.pool.is_in_child() { Err(FORKED) } else { Ok(entry) }
}

/// Makes the first `bytes` of the pool resident, with `threads` threads, until the next pageset_trim.
/// Contents do not change, so this may run while the pool is used. progress (may be NULL) is called with
/// context about every 32 MiB. *done_bytes (may be NULL) is how many bytes are resident.
///
/// Errors: EINVAL (no thread), ECANCELED (progress ended it), ENOMEM and what else the system says, EBADF,
/// EPERM. What was made resident stays so. If a thread cannot be started, the others do its part. To start
/// one takes memory of the heap, without which the program ends; with 1 thread, none is started.
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
        // A number, since it goes to other threads; what they do with it is the program's affair.
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

/// Gives all free memory back to the system now. *returned_bytes (may be NULL) is how much. About 20 us for
/// each 2 MiB.
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

/// One look at idle memory, as the pool's thread takes it: for pools made with PAGESET_WORKER_NONE.
/// *returned_bytes (may be NULL) is how much went back, *more (may be NULL) is 1 if there is more to come,
/// otherwise 0.
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

/// Takes free memory out of service until at most `bytes` are in service, or puts some back; never beyond the
/// size that the pool was made with. *bytes_in_service (may be NULL) is how many are then: more than `bytes`
/// if not enough is free, in which case the capacity still falls, and this can be called again.
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

/// Idle memory goes back as *config says, from the next look on: its fields return_interval_ns,
/// return_bytes_per_second, keep_bytes, prezero_blocks and part_bytes. config may be NULL for the defaults.
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

/// From now on, at most so many bytes are handed out, caches included; never more than the pool has. So a
/// pool that was made larger than capacity_bytes grows: address space that was never used costs nearly
/// nothing, and the lowest pages are used first. If more is handed out already, allocations get EDQUOT until
/// enough is freed. O(1).
///
/// Errors: EBADF, EPERM.
#[unsafe(no_mangle)]
pub extern "C" fn pageset_set_capacity(pool: *mut PoolHandle, bytes: usize) -> c_int {
    number(move || {
        own(pool)?.pool.set_capacity(bytes);
        Ok(())
    })
}

/// With pinned 1, the page behind every address stays the same from the return of this call on; with 0,
/// memory may go back again. For a pool that is registered later than it is made: pin it before, unpin it
/// when it is registered no more.
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

/// Checks everything about the pool that can be checked by looking: pageset_message says what is wrong.
/// O(pages); exact only while nobody else uses the pool.
///
/// Errors: EUCLEAN (something is wrong: a mistake in pageset, or memory that was overwritten), EBADF, EPERM.
#[unsafe(no_mangle)]
pub extern "C" fn pageset_validate(pool: *mut PoolHandle) -> c_int {
    number(move || {
        own(pool)?.pool.validate().map_err(|what| Failure::with_text(libc::EUCLEAN, format_args!("{what}")))
    })
}
