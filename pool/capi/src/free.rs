//! Pages that C gives back.

use std::ffi::{c_int, c_uint, c_void};
use std::mem::MaybeUninit;

use crate::alloc::order_of;
use crate::array::input;
use crate::entry::Push;
use crate::failure::{Failure, number};
use crate::pools::{PoolHandle, find, open};

/// Frees a block of 4 KiB << order. Any thread may free what another one allocated. O(1), mostly a few
/// nanoseconds.
///
/// Errors, each of which changes nothing: EINVAL (order, no page of this pool, inside of a block, free
/// already, or handed out with another order), EBADF, EPERM. Two threads that free the same block at the same
/// moment may both get 0; then the pool counts a bad free later.
#[unsafe(no_mangle)]
pub extern "C" fn pageset_free(pool: *mut PoolHandle, pages: *mut c_void, order: c_uint) -> c_int {
    match find(pool).map_or(Push::Refused, |entry| entry.push(pages.addr(), order as usize)) {
        Push::Done => 0,
        Push::Refused => free_slow(pool, pages, order),
        Push::Unpushed => free_unpushed(pool, pages, order),
    }
}

/// What does not go through this CPU's array, and every error. (By C's rules, so that the fast path can end
/// with a jump to it.)
#[cold]
#[inline(never)]
extern "C" fn free_slow(pool: *mut PoolHandle, pages: *mut c_void, order: c_uint) -> c_int {
    number(move || {
        let page_count = order_of(order)?.frames() as usize;
        drop(open(pool)?.take_back(pages.addr(), page_count)?);
        Ok(())
    })
}

/// What this CPU's array has no room for.
#[cold]
#[inline(never)]
extern "C" fn free_unpushed(pool: *mut PoolHandle, pages: *mut c_void, order: c_uint) -> c_int {
    number(move || open(pool)?.free_unpushed(pages.addr(), order_of(order)?.frames() as usize))
}

/// Frees page_count contiguous pages that are handed out as that many: by pageset_alloc_exact, after
/// pageset_shrink, or a block of 1 << order pages.
///
/// Errors, each of which changes nothing: as pageset_free.
#[unsafe(no_mangle)]
pub extern "C" fn pageset_free_exact(pool: *mut PoolHandle, pages: *mut c_void, page_count: usize) -> c_int {
    number(move || {
        let entry = open(pool)?;
        drop(entry.take_back(pages.addr(), page_count)?);
        Ok(())
    })
}

/// Frees the pages that are handed out and begin here, however many they are: a block, exact pages, a run.
/// With pageset_find, a program frees what it has a pointer of and nothing else.
///
/// Errors, each of which changes nothing: EINVAL (no pages that are handed out begin here), EBADF, EPERM.
#[unsafe(no_mangle)]
pub extern "C" fn pageset_free_run(pool: *mut PoolHandle, pages: *mut c_void) -> c_int {
    number(move || {
        let entry = open(pool)?;
        drop(entry.take_back_all(pages.addr())?);
        Ok(())
    })
}

/// Frees page_count contiguous pages as pageset_free_exact does, and gives their memory back to the system at
/// once: the pages of a balloon. The pool knows then that they are zero. *returned_bytes (may be NULL) is how
/// much went back: 0 where nothing does (see pageset_trim), and if the system keeps it. About 20 us for 2
/// MiB.
///
/// Errors, each of which changes nothing: as pageset_free.
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

/// Makes two of page_count contiguous pages: keep_count stay where they are, and *rest (may be NULL) is where
/// the others begin. Each part is freed by itself.
///
/// Errors, each of which changes nothing: EINVAL (page_count is not what is handed out here, or one of the
/// parts were empty), EBADF, EPERM.
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

/// Frees page_count single pages of 4 KiB. It ends at the first that cannot be freed: *freed is how many
/// were, and so the index of that page. freed may be NULL.
///
/// Errors: as pageset_free, for that page; EINVAL if pages is NULL.
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

/// Keeps keep_count of page_count contiguous pages, beginning with the one of index keep_first, and frees the
/// others at once. *kept is the address of those that stay, and may be NULL; they are freed by
/// pageset_free_exact.
///
/// Errors, each of which changes nothing: EINVAL (page_count is not what is handed out here, keep_count is 0,
/// or they reach beyond page_count), EBADF, EPERM.
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
