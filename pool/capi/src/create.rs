//! Making and destroying a pool.

use std::ffi::c_int;
use std::mem::MaybeUninit;

use crate::config::Config;
use crate::entry::Entry;
use crate::failure::{FORKED, Failure, NULL_OUTPUT, number};
use crate::pools::{self, PoolHandle, open};

/// Makes a pool with this configuration, or with the defaults of pageset_config_init if config is NULL.
/// Writes its handle to *pool. This costs some system calls. Pages take memory when they are touched. Tables
/// take at most 140 KiB for each GiB that is used, and some 30 KiB.
///
/// Errors: EINVAL (a field of config; pageset_message names it), E2BIG (config has set fields that this
/// library does not know), or EMFILE (4096 pools). A lack of address space, heap, or huge pages is ENOMEM,
/// and a limit of file sizes is EFBIG. All other errors are the system's. After an error *pool is NULL.
#[unsafe(no_mangle)]
pub extern "C" fn pageset_create(
    config: *const Config,
    pool: Option<&mut MaybeUninit<*mut PoolHandle>>,
) -> c_int {
    number(move || {
        let pool = pool.ok_or(NULL_OUTPUT)?.write(std::ptr::null_mut());
        let built = Config::read(config)?.builder()?.build()?;
        *pool = pools::insert(Entry::new(built)?)?;
        Ok(())
    })
}

/// Destroys a pool and unmaps its memory. All of its pages must have been freed. O(pages that were touched).
/// No other thread may be inside of a call on this pool; later calls get EBADF.
///
/// Errors: EBUSY (pages are handed out; nothing has changed), EBADF, EPERM.
#[unsafe(no_mangle)]
pub extern "C" fn pageset_destroy(pool: *mut PoolHandle) -> c_int {
    const BUSY: Failure = Failure::new(libc::EBUSY, "pages of the pool are handed out: free them first");
    number(move || {
        let entry = open(pool)?;
        if entry.pool.is_in_child() {
            return Err(FORKED);
        }
        if !entry.is_all_back() {
            return Err(BUSY);
        }
        drop(pools::remove(entry)?);
        Ok(())
    })
}
