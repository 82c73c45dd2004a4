//! Tells facts about the library and a pool that never change, and finds the pool that an address belongs to.
//! A child of `fork` can call these functions, too.

use std::ffi::{c_char, c_int, c_uint, c_void};
use std::mem::MaybeUninit;
use std::os::fd::AsRawFd;

use pageset::{Order, PAGE_BYTES};

use crate::failure::{Failure, NULL_OUTPUT, number};
use crate::pools::{PoolHandle, find_address, open};

/// The version of the library, such as "0.1.0".
#[unsafe(no_mangle)]
pub extern "C" fn pageset_version() -> *const c_char {
    const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "\0");
    VERSION.as_ptr().cast()
}

/// *order is the smallest order whose block holds `bytes` bytes: 0 for up to 4096, 10 for up to 4 MiB.
///
/// Errors: EINVAL (bytes is 0 or more than 4 MiB, or order is NULL).
#[unsafe(no_mangle)]
pub extern "C" fn pageset_order_for_bytes(bytes: usize, order: Option<&mut MaybeUninit<c_uint>>) -> c_int {
    const NO_ORDER: Failure =
        Failure::new(libc::EINVAL, "no block holds so many bytes: give 1 to 4194304, which is 4 MiB");
    number(move || {
        let order = order.ok_or(NULL_OUTPUT)?;
        order.write(Order::for_bytes(bytes).ok_or(NO_ORDER)?.get().into());
        Ok(())
    })
}

/// Finds the pool that the pages at an address belong to. *pool is this pool, and *bytes is the size of the
/// pages. pool and bytes may be NULL. A program that keeps only a pointer can free its pages by pageset_find
/// and pageset_free_run. The call takes a few nanoseconds if the pool is one of the program's first pools.
///
/// Errors: EINVAL (the program has no pages that begin at this address). After EINVAL, *pool is NULL and
/// *bytes is 0.
#[unsafe(no_mangle)]
pub extern "C" fn pageset_find(
    pages: *const c_void,
    pool: Option<&mut MaybeUninit<*mut PoolHandle>>,
    bytes: Option<&mut MaybeUninit<usize>>,
) -> c_int {
    const NO_PAGES: Failure = Failure::new(libc::EINVAL, "no pages that begin here are handed out");
    number(move || {
        let entry = find_address(pages.addr());
        let found = entry.and_then(|entry| Some((entry.handle, entry.page_count(pages.addr())?)));
        let (handle, page_count) = found.unwrap_or((0, 0));
        pool.map(|to| to.write(std::ptr::without_provenance_mut(handle)));
        bytes.map(|to| to.write(page_count * PAGE_BYTES));
        found.map(|_| ()).ok_or(NO_PAGES)
    })
}

/// *page_count is the number of pages of 4 KiB in the pool.
///
/// Errors: EINVAL (page_count is NULL), EBADF.
#[unsafe(no_mangle)]
pub extern "C" fn pageset_get_page_count(
    pool: *mut PoolHandle,
    page_count: Option<&mut MaybeUninit<usize>>,
) -> c_int {
    number(move || {
        page_count.ok_or(NULL_OUTPUT)?.write(open(pool)?.pool.page_count());
        Ok(())
    })
}

/// *start is the start of the pool. If the pool has a file, a page's distance from the start is its offset in
/// the file.
///
/// Errors: EINVAL (start is NULL), EBADF.
#[unsafe(no_mangle)]
pub extern "C" fn pageset_get_start(
    pool: *mut PoolHandle,
    start: Option<&mut MaybeUninit<*mut c_void>>,
) -> c_int {
    number(move || {
        start.ok_or(NULL_OUTPUT)?.write(open(pool)?.pool.start().cast_mut().cast());
        Ok(())
    })
}

/// *memfd is the file of a pool that was made with PAGESET_BACKING_MEMFD or PAGESET_BACKING_HUGETLB. Other
/// processes can map the file. A mapping of huge pages must consist of whole huge pages. pageset_destroy
/// closes the descriptor, so pass a dup of the descriptor to other processes. No process may change the bytes
/// of free pages through the file, because the pool remembers which free pages are zero.
///
/// Errors: ENOTSUP (another backing), EINVAL (memfd is NULL), EBADF.
#[unsafe(no_mangle)]
pub extern "C" fn pageset_get_memfd(pool: *mut PoolHandle, memfd: Option<&mut MaybeUninit<c_int>>) -> c_int {
    const NO_FILE: Failure = Failure::new(
        libc::ENOTSUP,
        "only a pool that is made with PAGESET_BACKING_MEMFD or PAGESET_BACKING_HUGETLB has a file",
    );
    number(move || {
        let memfd = memfd.ok_or(NULL_OUTPUT)?;
        let entry = open(pool)?;
        // SAFETY: the header states the contract of Rust's `memfd` for the caller. The library has no
        // references to pages that C has.
        let file = unsafe { entry.pool.memfd() };
        memfd.write(file.ok_or(NO_FILE)?.as_raw_fd());
        Ok(())
    })
}

/// *uses_rseq is 1 if the pool's fast path uses restartable sequences, and 0 if the fast path uses locks.
///
/// Errors: EINVAL (uses_rseq is NULL), EBADF.
#[unsafe(no_mangle)]
pub extern "C" fn pageset_get_uses_rseq(
    pool: *mut PoolHandle,
    uses_rseq: Option<&mut MaybeUninit<c_int>>,
) -> c_int {
    number(move || {
        uses_rseq.ok_or(NULL_OUTPUT)?.write(c_int::from(open(pool)?.pool.uses_rseq()));
        Ok(())
    })
}
