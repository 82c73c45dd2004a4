//! The loops that use only the language's own operations, which call the environment's `memset` and `memcpy`.

use super::isa::Primitives;

pub(super) static PRIMITIVES: Primitives =
    Primitives { clear, clear_stream: clear, copy, copy_stream: copy, fence: || () };

unsafe fn clear(dst: *mut u8, bytes: usize) {
    // SAFETY: the contract of `Primitives` says that the bytes are valid to write.
    unsafe { dst.write_bytes(0, bytes) }
}

unsafe fn copy(dst: *mut u8, src: *const u8, bytes: usize) {
    // SAFETY: the contract of `Primitives` says that both ranges are valid and do not overlap.
    unsafe { dst.copy_from_nonoverlapping(src, bytes) }
}
