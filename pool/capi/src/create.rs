//! Makes and destroys a pool.

use std::ffi::c_int;
use std::mem::MaybeUninit;

use crate::config::Config;
use crate::entry::Entry;
use crate::failure::{FORKED, Failure, NULL_OUTPUT, number};
use crate::pools::{self, PoolHandle, open};

/// Makes a pool with this configuration, or with the defaults of pageset_config_init if config is NULL.
/// Writes the pool's handle to *pool. A page takes memory when the program first touches it. The pool's
/// tables take 20 KiB of address space, and 617 KiB more for each GiB of the pool. Only the used parts of the
/// tables take memory: about 100 KiB in a new pool of 1 GiB.
///
/// Errors: EINVAL (a field of config has a bad value; pageset_message names the field), E2BIG (config has set
/// fields that this library does not know), or EMFILE (the process has 4096 pools). If address space, heap or
/// huge pages are short, the error is ENOMEM. If a limit of file sizes is too low, the error is EFBIG. All
/// other errors are the system's. After an error, *pool is NULL.
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

/// Destroys a pool, and unmaps its memory unless the memory is a region of the program. The program must have
/// freed all pages of the pool. No other thread may be inside of a call on this pool. Later calls on the
/// destroyed pool get EBADF. O(pages that were touched).
///
/// Errors: EBUSY (the program has not freed all pages), EBADF, EPERM.
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
