//! Informs memory checkers about a pool. AddressSanitizer and valgrind learn which pages are free. Valgrind
//! also learns which pages have unspecified contents. ThreadSanitizer learns that a page passes from one
//! owner to the next. The builder of a pool looks for memory checkers once, so programs without a memory
//! checker pay nothing.

use std::ffi::{CStr, c_void};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use super::valgrind::{self, Bytes};
use super::{Mapping, PAGE_BYTES, PAGE_SHIFT};
use crate::arrays::{Entry, ZeroState};

/// The type of `__asan_poison_memory_region` and `__asan_unpoison_memory_region`.
type OfRegion = unsafe extern "C" fn(*const c_void, usize);
/// The type of `__tsan_acquire` and `__tsan_release`.
type OfAddress = unsafe extern "C" fn(*mut c_void);

/// The functions of the memory checkers that this process has.
#[derive(Clone, Copy)]
struct Tools {
    /// The function that poisons a region, and the function that unpoisons a region.
    region: Option<[OfRegion; 2]>,
    /// The function that acquires an address, and the function that releases an address.
    address: Option<[OfAddress; 2]>,
    is_memcheck: bool,
}

/// The functions of ThreadSanitizer that acquire and release an address. Unset until a pool has found these
/// functions.
static TSAN: OnceLock<[OfAddress; 2]> = OnceLock::new();

/// Tells ThreadSanitizer that this thread holds the lock of a value. ThreadSanitizer does not see the pool's
/// locks, because the pool is not instrumented. But ThreadSanitizer sees the pool's calls of `memcpy`, and
/// would otherwise report races between these calls.
#[inline]
pub(crate) fn note_locked<T>(value: &T) {
    if let Some([acquire, _]) = TSAN.get() {
        // SAFETY: ThreadSanitizer uses the address only as a number.
        unsafe { acquire(std::ptr::from_ref(value).cast_mut().cast()) };
    }
}

/// Tells ThreadSanitizer that this thread is about to give up the lock of a value.
#[inline]
pub(crate) fn note_unlocked<T>(value: &T) {
    if let Some([_, release]) = TSAN.get() {
        // SAFETY: ThreadSanitizer uses the address only as a number.
        unsafe { release(std::ptr::from_ref(value).cast_mut().cast()) };
    }
}

/// A pool whose pages a memory checker tracks.
pub(crate) struct Checked {
    tools: Tools,
    start: *mut u8,
    /// The highest end of a page that a user gave back, in bytes from the pool's start.
    end: AtomicUsize,
}

// SAFETY: this module uses `start` only as a number. The memory checkers change only their own records about
// the pool's addresses.
unsafe impl Send for Checked {}
// SAFETY: as for `Send`, and any thread may call the functions of the memory checkers.
unsafe impl Sync for Checked {}

/// The address of the function with this name, if the process has such a function.
fn address_of(name: &CStr) -> Option<*mut c_void> {
    if cfg!(miri) {
        return None;
    }
    // SAFETY: the name is a C string, and the call only looks the name up.
    let address = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    (!address.is_null()).then_some(address)
}

impl Tools {
    fn find() -> Option<Self> {
        // SAFETY: AddressSanitizer documents this type for functions with these names.
        let region =
            |name| address_of(name).map(|at| unsafe { std::mem::transmute::<*mut c_void, OfRegion>(at) });
        // SAFETY: ThreadSanitizer documents this type for functions with these names.
        let address =
            |name| address_of(name).map(|at| unsafe { std::mem::transmute::<*mut c_void, OfAddress>(at) });
        let poison = region(c"__asan_poison_memory_region").zip(region(c"__asan_unpoison_memory_region"));
        let acquire = address(c"__tsan_acquire").zip(address(c"__tsan_release"));
        if let Some(functions) = acquire {
            TSAN.get_or_init(|| functions.into());
        }
        let is_memcheck = valgrind::is_memcheck();
        let tools = Self { region: poison.map(Into::into), address: acquire.map(Into::into), is_memcheck };
        (poison.is_some() || acquire.is_some() || is_memcheck).then_some(tools)
    }
}

impl Checked {
    /// Finds the memory checkers of this process, to tell them about the pages of this mapping. Returns
    /// `None` if the process has no memory checker.
    pub(crate) fn new(memory: &Mapping) -> Option<Self> {
        let tools = Tools::find()?;
        Some(Self { tools, start: memory.start().as_ptr(), end: AtomicUsize::new(0) })
    }

    /// If valgrind's memcheck runs this process, tells memcheck that these pages are forbidden, undefined or
    /// defined (`are`).
    fn tell(&self, frame: u32, count: u32, are: Bytes) {
        if self.tools.is_memcheck {
            let start = self.start.wrapping_add((frame as usize) << PAGE_SHIFT);
            valgrind::tell(start, count as usize * PAGE_BYTES, are);
        }
    }

    fn each_page(&self, frame: u32, count: u32, call: OfAddress) {
        for page in frame..frame + count {
            // SAFETY: the address is that of a page of the pool.
            unsafe { call(self.start.wrapping_add((page as usize) << PAGE_SHIFT).cast()) };
        }
    }

    /// Notes that a user gets these pages.
    #[cold]
    pub(crate) fn hand_out(&self, frame: u32, count: u32) {
        if let Some([acquire, _]) = self.tools.address {
            self.each_page(frame, count, acquire);
        }
        if let Some([_, unpoison]) = self.tools.region {
            let start = self.start.wrapping_add((frame as usize) << PAGE_SHIFT);
            // SAFETY: the range consists of pages of the pool.
            unsafe { unpoison(start.cast(), count as usize * PAGE_BYTES) };
        }
        self.tell(frame, count, Bytes::Undefined);
    }

    /// Notes that a user gets this block of `count` pages.
    #[cold]
    pub(crate) fn hand_out_block(&self, block: Entry, count: u32) {
        self.hand_out(block.frame(), count);
        if block.zero() == ZeroState::Zero {
            self.note_zero(block.frame(), count);
        }
    }

    /// Notes that pages which a user has just received are zero.
    #[cold]
    pub(crate) fn note_zero(&self, frame: u32, count: u32) {
        self.tell(frame, count, Bytes::Defined);
    }

    /// Notes that these pages have no user any more.
    #[cold]
    pub(crate) fn take_back(&self, frame: u32, count: u32) {
        let start = (frame as usize) << PAGE_SHIFT;
        let bytes = count as usize * PAGE_BYTES;
        self.end.fetch_max(start + bytes, Relaxed);
        self.tell(frame, count, Bytes::Forbidden);
        if let Some([poison, _]) = self.tools.region {
            // SAFETY: the range consists of pages of the pool.
            unsafe { poison(self.start.wrapping_add(start).cast(), bytes) };
        }
        if let Some([_, release]) = self.tools.address {
            self.each_page(frame, count, release);
        }
    }
}

impl Drop for Checked {
    fn drop(&mut self) {
        // Unpoison all pages, because other memory may be mapped at the pool's addresses later, or the caller
        // may use the region again.
        let end = *self.end.get_mut();
        if let Some([_, unpoison]) = self.tools.region {
            // SAFETY: the pages belong to the pool, and the call changes only the memory checker's own
            // records.
            unsafe { unpoison(self.start.cast_const().cast(), end) };
        }
        if self.tools.is_memcheck {
            valgrind::tell(self.start, end, Bytes::Defined);
        }
    }
}
