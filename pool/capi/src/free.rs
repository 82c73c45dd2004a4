//! The frees of the C interface, and calls that free, split or discard parts.

use std::ffi::{c_int, c_uint, c_void};
use std::mem::MaybeUninit;

use crate::alloc::order_of;
use crate::array::input;
use crate::entry::Push;
use crate::failure::{Failure, number};
use crate::pools::{PoolHandle, find, open};

/// Frees a block of 4 KiB << order, on any thread. O(1), usually a few nanoseconds.
///
/// Errors: EINVAL (order is above 10, or the program has no block of this order that begins at this address),
/// EBADF, EPERM. An error changes nothing. If two threads free the same block at the same moment, both may
/// get 0, and the pool later counts a bad free.
#[unsafe(no_mangle)]
pub extern "C" fn pageset_free(pool: *mut PoolHandle, pages: *mut c_void, order: c_uint) -> c_int {
    match find(pool).map_or(Push::Refused, |entry| entry.push(pages.addr(), order as usize)) {
        Push::Done => 0,
        Push::Refused => free_slow(pool, pages, order),
        Push::Unpushed => free_unpushed(pool, pages, order),
    }
}

/// Frees a block without this CPU's array, and reports every error. (It uses C's calling convention, so that
/// the fast path can end with a jump to this function.)
#[cold]
#[inline(never)]
extern "C" fn free_slow(pool: *mut PoolHandle, pages: *mut c_void, order: c_uint) -> c_int {
    number(move || {
        let page_count = order_of(order)?.frames() as usize;
        drop(open(pool)?.take_back(pages.addr(), page_count)?);
        Ok(())
    })
}

/// Frees a block if this CPU's array has no room for the block.
#[cold]
#[inline(never)]
extern "C" fn free_unpushed(pool: *mut PoolHandle, pages: *mut c_void, order: c_uint) -> c_int {
    number(move || open(pool)?.free_unpushed(pages.addr(), order_of(order)?.frames() as usize))
}

/// Frees page_count contiguous pages. page_count must be the number of pages at the allocation, or after the
/// last pageset_shrink, pageset_split or pageset_join.
///
/// Errors: the errors of pageset_free. An error changes nothing.
#[unsafe(no_mangle)]
pub extern "C" fn pageset_free_exact(pool: *mut PoolHandle, pages: *mut c_void, page_count: usize) -> c_int {
    number(move || {
        let entry = open(pool)?;
        drop(entry.take_back(pages.addr(), page_count)?);
        Ok(())
    })
}

/// Frees the block, the exact pages or the run that begins at this address. With pageset_find, a program can
/// free pages by a pointer alone.
///
/// Errors: EINVAL (the program has no pages that begin at this address), EBADF, EPERM. An error changes
/// nothing.
#[unsafe(no_mangle)]
pub extern "C" fn pageset_free_run(pool: *mut PoolHandle, pages: *mut c_void) -> c_int {
    number(move || {
        let entry = open(pool)?;
        drop(entry.take_back_all(pages.addr())?);
        Ok(())
    })
}

/// Frees page_count contiguous pages like pageset_free_exact, and gives their memory back to the system at
/// once. Use pageset_discard for pages that you do not need again soon, such as the pages of a balloon. The
/// pool knows that pages that went back are zero. *returned_bytes (may be NULL) is the number of bytes that
/// the call gave back. *returned_bytes is 0 if the pool gives no memory back (see pageset_trim), or if the
/// system refuses the pages. To discard 2 MiB takes about 20 us.
///
/// Errors: the errors of pageset_free. An error changes nothing.
#[unsafe(no_mangle)]
pub extern "C" fn pageset_discard(
    pool: *mut PoolHandle,
    pages: *mut c_void,
    page_count: usize,
    returned_bytes: Option<&mut MaybeUninit<usize>>,
) -> c_int {
    number(move || {
        let entry = open(pool)?;
        let bytes = entry.take_back(pages.addr(), page_count)?.discard();
        returned_bytes.map(|to| to.write(bytes));
        Ok(())
    })
}

/// Gives the memory of `count` pages back to the system. These pages are a part of page_count contiguous
/// pages, and begin at the index `first`. The program keeps all pages. The pages that went back read as
/// zeros, and take memory again at the next write. *returned_bytes (may be NULL) is the number of bytes that
/// the call gave back. *returned_bytes is 0, and nothing has changed, if the pool gives no memory back (see
/// pageset_trim) or the system refuses the pages.
///
/// Errors: EINVAL (the pages that begin here are not exactly page_count, or the part reaches beyond
/// page_count), EBADF, EPERM. An error changes nothing.
#[unsafe(no_mangle)]
pub extern "C" fn pageset_give_back(
    pool: *mut PoolHandle,
    pages: *mut c_void,
    page_count: usize,
    first: usize,
    count: usize,
    returned_bytes: Option<&mut MaybeUninit<usize>>,
) -> c_int {
    const BAD_PART: Failure = Failure::new(libc::EINVAL, "the part reaches beyond the pages");
    number(move || {
        let entry = open(pool)?;
        let end = first.checked_add(count).filter(|end| *end <= page_count).ok_or(BAD_PART)?;
        let mut pages = entry.take_back(pages.addr(), page_count)?;
        let bytes = pages.give_back(first..end);
        entry.hand_out(pages);
        returned_bytes.map(|to| to.write(bytes));
        Ok(())
    })
}

/// Splits page_count contiguous pages into two parts. The first part has keep_count pages, and *rest (may be
/// NULL) is the address of the second part. Free each part separately.
///
/// Errors: EINVAL (the pages that begin here are not exactly page_count, or a part would be empty), EBADF,
/// EPERM. An error changes nothing.
#[unsafe(no_mangle)]
pub extern "C" fn pageset_split(
    pool: *mut PoolHandle,
    pages: *mut c_void,
    page_count: usize,
    keep_count: usize,
    rest: Option<&mut MaybeUninit<*mut c_void>>,
) -> c_int {
    const NO_PARTS: Failure =
        Failure::new(libc::EINVAL, "keep at least one of the pages, and leave at least one");
    number(move || {
        let entry = open(pool)?;
        if keep_count == 0 || keep_count >= page_count {
            return Err(NO_PARTS);
        }
        let mut kept = entry.take_back(pages.addr(), page_count)?;
        let others = entry.hand_out(kept.split_off(keep_count));
        entry.hand_out(kept);
        if let Some(rest) = rest {
            rest.write(others);
        }
        Ok(())
    })
}

/// Joins page_count contiguous pages with the next_count pages directly behind them, as the opposite of
/// pageset_split. After pageset_join, the program frees all joined pages together, as page_count + next_count
/// pages. The pages may come from two allocations.
///
/// Errors: EINVAL (the pages that begin here are not exactly page_count, or the pages behind them are not
/// exactly next_count), EBADF, EPERM. An error changes nothing.
#[unsafe(no_mangle)]
pub extern "C" fn pageset_join(
    pool: *mut PoolHandle,
    pages: *mut c_void,
    page_count: usize,
    next_count: usize,
) -> c_int {
    const NOT_JOINED: Failure = Failure::new(libc::EAGAIN, "a signal handler cannot join pages");
    number(move || {
        let entry = open(pool)?;
        let mut first = entry.take_back(pages.addr(), page_count)?;
        let next = entry.take_back(pages.addr() + first.len(), next_count);
        let outcome = next.and_then(|next| {
            first.join(next).map_err(|next| {
                entry.hand_out(next);
                NOT_JOINED
            })
        });
        entry.hand_out(first);
        outcome
    })
}

/// Frees page_count single pages of 4 KiB. The call stops at the first page that the call cannot free. *freed
/// (may be NULL) is the number of freed pages. After an error, *freed is the index of the page that the call
/// could not free.
///
/// Errors: the error of pageset_free for the page that the call could not free, or EINVAL if pages is NULL.
#[unsafe(no_mangle)]
pub extern "C" fn pageset_free_bulk(
    pool: *mut PoolHandle,
    page_count: usize,
    pages: *const *mut c_void,
    freed: Option<&mut MaybeUninit<usize>>,
) -> c_int {
    number(move || {
        let mut nowhere = MaybeUninit::uninit();
        let freed = freed.unwrap_or(&mut nowhere).write(0);
        let entry = open(pool)?;
        for page in input(pages, page_count)? {
            match entry.push(page.addr(), 0) {
                Push::Done => {}
                Push::Refused => drop(entry.take_back(page.addr(), 1)?),
                Push::Unpushed => entry.free_unpushed(page.addr(), 1)?,
            }
            *freed += 1;
        }
        Ok(())
    })
}

/// Keeps keep_count of page_count contiguous pages, beginning at index keep_first, and frees the other pages
/// at once. *kept (may be NULL) is the address of the kept pages. Free the kept pages by pageset_free_exact.
///
/// Errors: EINVAL (the pages that begin here are not exactly page_count, keep_count is 0, or the kept pages
/// reach beyond page_count), EBADF, EPERM. An error changes nothing.
#[unsafe(no_mangle)]
pub extern "C" fn pageset_shrink(
    pool: *mut PoolHandle,
    pages: *mut c_void,
    page_count: usize,
    keep_first: usize,
    keep_count: usize,
    kept: Option<&mut MaybeUninit<*mut c_void>>,
) -> c_int {
    const BAD_PART: Failure =
        Failure::new(libc::EINVAL, "keep at least one of the pages, and none beyond them");
    number(move || {
        let entry = open(pool)?;
        let end = keep_first.checked_add(keep_count).filter(|end| keep_count > 0 && *end <= page_count);
        let end = end.ok_or(BAD_PART)?;
        let mut pages = entry.take_back(pages.addr(), page_count)?;
        pages.shrink_to(keep_first..end);
        let address = entry.hand_out(pages);
        if let Some(kept) = kept {
            kept.write(address);
        }
        Ok(())
    })
}
