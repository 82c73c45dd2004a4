//! AMD's `clzero` writes a cache line of zeros without reading the line first, and past the cache. All other
//! loops are those of `rep`.

use core::arch::asm;

use super::loops::{LINE_BYTES, store_fence};
use super::rep;
use crate::arch::isa::Primitives;

pub(super) static PRIMITIVES: Primitives = Primitives {
    clear: rep::clear,
    clear_stream,
    copy: rep::copy,
    copy_stream: rep::copy_stream,
    fence: store_fence,
};

/// `clzero` is ordered as a streamed store (AMD APM volume 3).
unsafe fn clear_stream(dst: *mut u8, bytes: usize) {
    if bytes == 0 {
        return;
    }
    let lines = bytes / LINE_BYTES;
    // SAFETY: the contract of `Primitives` says that the bytes are valid to write, a multiple of a line, and
    // aligned to one, so no line reaches outside; and that the CPU has the instruction.
    unsafe {
        asm!(
            "2:", "clzero", "add rax, 64", "dec {lines}", "jnz 2b",
            inout("rax") dst => _, lines = inout(reg) lines => _,
            options(nostack)
        );
    }
}
