//! Keeps the pool's code loaded if the code is part of a shared library, even when the program closes the
//! library.

use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// The program headers begin at most this many bytes after the start of the program's file in memory.
const HEADERS_AT_MOST: usize = 4096;

/// Asks the loader to keep the library that has this code loaded. The pool's own thread runs the library's
/// code, and the kernel may still have the address of a sequence's descriptor for an interrupted thread. The
/// pool's thread or the interrupted thread would crash if the library were unmapped.
pub(in crate::sys) fn stay_loaded() {
    static IS_ASKED: AtomicBool = AtomicBool::new(false);
    if IS_ASKED.swap(true, Relaxed) {
        return;
    }
    let mut library = MaybeUninit::<libc::Dl_info>::uninit();
    let here = stay_loaded as fn() as *const c_void;
    // SAFETY: `dladdr` only looks an address up, and fills the struct if a loaded file contains the address.
    if unsafe { libc::dladdr(here, library.as_mut_ptr()) } == 0 {
        return;
    }
    // SAFETY: `dladdr` succeeded, so `dladdr` has filled the struct.
    let library = unsafe { library.assume_init() };
    // SAFETY: `getauxval` reads a number that the kernel gave the process at its start.
    let program = unsafe { libc::getauxval(libc::AT_PHDR) } as usize;
    if program.wrapping_sub(library.dli_fbase.addr()) < HEADERS_AT_MOST {
        // The code is part of the program itself, and `dlclose` cannot close the program.
        return;
    }
    let flags = libc::RTLD_LAZY | libc::RTLD_NOLOAD | libc::RTLD_NODELETE;
    // SAFETY: the loader gave the name of the library, and with `RTLD_NOLOAD` the call opens no further
    // library. The library's handle is never closed.
    let _ = unsafe { libc::dlopen(library.dli_fname, flags) };
}
