//! The allocations of the C interface.

use std::ffi::{c_int, c_uint, c_void};
use std::mem::MaybeUninit;

use pageset::{Order, Pages, Pool};

use crate::array::output;
use crate::entry::Entry;
use crate::failure::{BAD_ORDER, Failure, NULL_OUTPUT, number};
use crate::pools::{PoolHandle, find, open};

/// Allocates a block of 4 KiB << order (order 0 to 10), aligned to its size. The contents of the block are
/// unspecified. Writes the block's address to *pages, unless the call fails. O(1), usually a few nanoseconds.
///
/// Errors: EINVAL (order is above 10, or pages is NULL), ENOMEM (no block of this order is free), EDQUOT (the
/// capacity is used up), EAGAIN (only in a signal handler), EBADF, EPERM.
#[unsafe(no_mangle)]
pub extern "C" fn pageset_alloc(
    pool: *mut PoolHandle,
    order: c_uint,
    pages: Option<&mut MaybeUninit<*mut c_void>>,
) -> c_int {
    let Some(to) = pages else { return alloc_slow(pool, order, None) };
    match find(pool).and_then(|entry| entry.pop(order as usize)) {
        Some(address) => {
            to.write(address);
            0
        }
        None => alloc_slow(pool, order, Some(to)),
    }
}

/// Allocates a block if this CPU's array is empty, and reports every error. (It uses C's calling convention,
/// so that the fast path can end with a jump to this function.)
#[cold]
#[inline(never)]
extern "C" fn alloc_slow(
    pool: *mut PoolHandle,
    order: c_uint,
    pages: Option<&mut MaybeUninit<*mut c_void>>,
) -> c_int {
    hand_out(pool, pages, |pool| pool.alloc(order_of(order)?).map_err(Failure::from))
}

/// Does the same as pageset_alloc, and makes all bytes of the block zero. The call does not clear memory that
/// the pool knows to be zero.
///
/// Errors: as pageset_alloc.
#[unsafe(no_mangle)]
pub extern "C" fn pageset_alloc_zeroed(
    pool: *mut PoolHandle,
    order: c_uint,
    pages: Option<&mut MaybeUninit<*mut c_void>>,
) -> c_int {
    hand_out(pool, pages, |pool| pool.alloc_zeroed(order_of(order)?).map_err(Failure::from))
}

/// Allocates exactly page_count contiguous pages of 4 KiB, up to the whole pool, aligned to a page. The
/// contents of the pages are unspecified. Free the pages by pageset_free_exact or pageset_free_run.
///
/// Errors: EINVAL (page_count is 0, or pages is NULL); otherwise as pageset_alloc.
#[unsafe(no_mangle)]
pub extern "C" fn pageset_alloc_exact(
    pool: *mut PoolHandle,
    page_count: usize,
    pages: Option<&mut MaybeUninit<*mut c_void>>,
) -> c_int {
    hand_out(pool, pages, |pool| pool.alloc_exact(page_count).map_err(Failure::from))
}

/// Allocates contiguous memory of `bytes`, rounded up to pages of 4 KiB, up to the whole pool, aligned to a
/// page. The contents of the run are unspecified. Free the run by pageset_free_run. A run of more than 4 MiB
/// needs a search, which takes longer in a larger pool.
///
/// Errors: EINVAL (bytes is 0, or pages is NULL); otherwise as pageset_alloc.
#[unsafe(no_mangle)]
pub extern "C" fn pageset_alloc_run(
    pool: *mut PoolHandle,
    bytes: usize,
    pages: Option<&mut MaybeUninit<*mut c_void>>,
) -> c_int {
    hand_out(pool, pages, |pool| pool.alloc_run(bytes).map_err(Failure::from))
}

/// Allocates 1 GiB that begins at a multiple of 1 GiB from the pool's start. If there is enough address
/// space, a pool of 1 GiB or more itself begins at a multiple of 1 GiB. The contents are unspecified. Free
/// the memory by pageset_free_run. pageset_get_backing tells whether the pool has pages of 1 GiB, and how
/// many bytes of the pool are in huge pages. pageset_collapse asks the system for transparent huge pages.
///
/// Errors: EINVAL (pages is NULL); otherwise as pageset_alloc.
#[unsafe(no_mangle)]
pub extern "C" fn pageset_alloc_gib(
    pool: *mut PoolHandle,
    pages: Option<&mut MaybeUninit<*mut c_void>>,
) -> c_int {
    hand_out(pool, pages, |pool| pool.alloc_gib().map_err(Failure::from))
}

/// Does the same as pageset_alloc_run, and makes all bytes of the run zero. The call does not clear memory
/// that the pool knows to be zero.
///
/// Errors: as pageset_alloc_run.
#[unsafe(no_mangle)]
pub extern "C" fn pageset_alloc_run_zeroed(
    pool: *mut PoolHandle,
    bytes: usize,
    pages: Option<&mut MaybeUninit<*mut c_void>>,
) -> c_int {
    hand_out(pool, pages, |pool| pool.alloc_run_zeroed(bytes).map_err(Failure::from))
}

/// Does what pageset_alloc_run does, at an address that is a multiple of align bytes, a power of two. A pool
/// begins at a multiple of 4 MiB. If the pool's beginning is no multiple of align, the pool looks for a run
/// that is longer than `bytes` by align, and frees the two ends of the longer run.
///
/// Errors: EINVAL (align is no power of two); otherwise as pageset_alloc_run.
#[unsafe(no_mangle)]
pub extern "C" fn pageset_alloc_run_aligned(
    pool: *mut PoolHandle,
    bytes: usize,
    align: usize,
    pages: Option<&mut MaybeUninit<*mut c_void>>,
) -> c_int {
    hand_out(pool, pages, |pool| pool.alloc_run_aligned(bytes, align).map_err(Failure::from))
}

/// Does what pageset_alloc_run_aligned does, with all bytes zero. Memory that is known to be zero is not
/// cleared again.
///
/// Errors: as pageset_alloc_run_aligned.
#[unsafe(no_mangle)]
pub extern "C" fn pageset_alloc_run_aligned_zeroed(
    pool: *mut PoolHandle,
    bytes: usize,
    align: usize,
    pages: Option<&mut MaybeUninit<*mut c_void>>,
) -> c_int {
    hand_out(pool, pages, |pool| pool.alloc_run_aligned_zeroed(bytes, align).map_err(Failure::from))
}

/// Allocates the block of 4 KiB << order that begins `frame` pages of 4 KiB after the pool's start, if all
/// its pages are free. If some pages are not free, the call empties all caches and tries again, which is
/// slow.
///
/// Errors: EBUSY (a page of the block is in use), EINVAL (order is above 10, no block of this order begins at
/// this frame, or pages is NULL), EDQUOT, EBADF, EPERM.
#[unsafe(no_mangle)]
pub extern "C" fn pageset_alloc_at(
    pool: *mut PoolHandle,
    frame: usize,
    order: c_uint,
    pages: Option<&mut MaybeUninit<*mut c_void>>,
) -> c_int {
    hand_out(pool, pages, |pool| pool.alloc_at(frame, order_of(order)?).map_err(Failure::from))
}

/// Allocates up to page_count single pages of 4 KiB and writes their addresses to the array `pages`. *got is
/// the number of allocated pages. *got is less than page_count if memory or capacity is short, and 0 if the
/// call fails. Before the call returns fewer pages than page_count, the call passes the missing bytes to
/// on_shortage, until on_shortage returns 0. Free each page separately, with order 0.
///
/// Errors: as pageset_alloc, but only if no page was allocated. If page_count is 0, the call allocates
/// nothing, which is no error.
#[unsafe(no_mangle)]
pub extern "C" fn pageset_alloc_bulk(
    pool: *mut PoolHandle,
    page_count: usize,
    pages: *mut *mut c_void,
    got: Option<&mut MaybeUninit<usize>>,
) -> c_int {
    number(move || {
        let got = got.ok_or(NULL_OUTPUT)?.write(0);
        let entry = open(pool)?;
        for to in output(pages, page_count)? {
            let page = match entry.pop(0) {
                Some(page) => page,
                // The call of `alloc_first_of` also refills this CPU's array.
                None => match entry.pool.alloc_first_of(page_count - *got) {
                    Ok(page) => entry.hand_out(page),
                    Err(error) if *got == 0 => return Err(error.into()),
                    Err(_) => break,
                },
            };
            to.write(page);
            *got += 1;
        }
        Ok(())
    })
}

/// Allocates pages by `alloc`, and writes the address of the first page to `address`.
#[inline(always)]
fn hand_out(
    pool: *mut PoolHandle,
    address: Option<&mut MaybeUninit<*mut c_void>>,
    alloc: impl FnOnce(&'static Pool) -> Result<Pages<'static>, Failure>,
) -> c_int {
    number(move || {
        let entry: &'static Entry = open(pool)?;
        let address = address.ok_or(NULL_OUTPUT)?;
        address.write(entry.hand_out(alloc(&entry.pool)?));
        Ok(())
    })
}

#[inline(always)]
pub(crate) fn order_of(order: c_uint) -> Result<Order, Failure> {
    u8::try_from(order).ok().and_then(Order::new).ok_or(BAD_ORDER)
}
