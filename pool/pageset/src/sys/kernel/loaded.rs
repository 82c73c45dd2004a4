//! Keeps this code loaded if it is part of a shared library that the program may close.

use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// The most bytes between the beginning of the program's file in memory and its program headers.
const HEADERS_AT_MOST: usize = 4096;

/// Asks the loader to keep the library that has this code loaded. The kernel may still know a descriptor in
/// the library for an interrupted thread, and the pool's own thread runs the library's code. If the library
/// were unmapped, both threads would crash.
pub(in crate::sys) fn stay_loaded() {
    static IS_ASKED: AtomicBool = AtomicBool::new(false);
    if IS_ASKED.swap(true, Relaxed) {
        return;
    }
    let mut library = MaybeUninit::<libc::Dl_info>::uninit();
    let here = stay_loaded as fn() as *const c_void;
    // SAFETY: looks an address up, and fills the struct if some object has it.
    if unsafe { libc::dladdr(here, library.as_mut_ptr()) } == 0 {
        return;
    }
    // SAFETY: filled, as the call said.
    let library = unsafe { library.assume_init() };
    // SAFETY: reads a number that the kernel gave the process.
    let program = unsafe { libc::getauxval(libc::AT_PHDR) } as usize;
    if program.wrapping_sub(library.dli_fbase.addr()) < HEADERS_AT_MOST {
        // This is the program itself, which cannot be closed.
        return;
    }
    let flags = libc::RTLD_LAZY | libc::RTLD_NOLOAD | libc::RTLD_NODELETE;
    // SAFETY: a name that the loader gave; it opens nothing that is not open already. The handle is kept for
    // ever.
    let _ = unsafe { libc::dlopen(library.dli_fname, flags) };
}
