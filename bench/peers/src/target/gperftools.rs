//! tcmalloc of gperftools, from the shared library of the system's package if there is one.

use std::ffi::{CStr, c_char, c_int, c_void};

use super::block::{Block, PAGE};
use super::{Target, bytes};

/// The library of Debian's `libtcmalloc-minimal4`.
const LIBRARY: &CStr = c"libtcmalloc_minimal.so.4";

/// `tc_memalign` and `tc_free` of the library.
#[derive(Debug)]
pub(super) struct Gperftools {
    memalign: unsafe extern "C" fn(usize, usize) -> *mut c_void,
    free: unsafe extern "C" fn(*mut c_void),
}

impl Target for Gperftools {
    type Block = Block;

    fn open(_: usize) -> Result<Self, String> {
        let library = library();
        let memalign = symbol(library, c"tc_memalign")?;
        let free = symbol(library, c"tc_free")?;
        Ok(Self {
            // SAFETY: this is the type that gperftools/tcmalloc.h declares.
            memalign: unsafe {
                std::mem::transmute::<*mut c_void, unsafe extern "C" fn(usize, usize) -> *mut c_void>(
                    memalign,
                )
            },
            // SAFETY: this is the type that gperftools/tcmalloc.h declares.
            free: unsafe { std::mem::transmute::<*mut c_void, unsafe extern "C" fn(*mut c_void)>(free) },
        })
    }

    fn version() -> Option<String> {
        let version = symbol(library(), c"tc_version").ok()?;
        // SAFETY: this is the type that gperftools/tcmalloc.h declares, for C.
        let version = unsafe { std::mem::transmute::<*mut c_void, TcVersion>(version) };
        let (major, minor, patch) = (std::ptr::null_mut(), std::ptr::null_mut(), std::ptr::null_mut());
        // SAFETY: the function takes null for each of the three numbers.
        let text = unsafe { version(major, minor, patch) };
        // SAFETY: the function returns a static string.
        Some(unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned())
    }

    #[inline]
    fn alloc(&self, _: usize, order: u32) -> Option<Block> {
        // SAFETY: the alignment is a power of two.
        let start = unsafe { (self.memalign)(PAGE, bytes(order)) };
        // SAFETY: the allocation is as long as the block and belongs to the caller.
        unsafe { Block::new(start.cast()) }
    }

    #[inline]
    fn free(&self, _: usize, block: Block, _: u32) {
        // SAFETY: the block came from this allocator and no caller uses the block any more.
        unsafe { (self.free)(block.into_ptr().cast()) };
    }
}

/// `tc_version`: major, minor, patch; returns all as a text.
type TcVersion = unsafe extern "C" fn(*mut c_int, *mut c_int, *mut *const c_char) -> *const c_char;

/// Loads the library, or finds it loaded. Null if it is not installed.
fn library() -> *mut c_void {
    // SAFETY: the library's constructors need nothing that is not there yet.
    unsafe { libc::dlopen(LIBRARY.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) }
}

/// A symbol of an opened library.
fn symbol(library: *mut c_void, name: &CStr) -> Result<*mut c_void, String> {
    if library.is_null() {
        return Err("libtcmalloc_minimal.so.4 (Debian's libtcmalloc-minimal4) is not installed".to_owned());
    }
    // SAFETY: the library is open and the name ends with a zero.
    let symbol = unsafe { libc::dlsym(library, name.as_ptr()) };
    if symbol.is_null() { Err(format!("the library has no {name:?}")) } else { Ok(symbol) }
}
