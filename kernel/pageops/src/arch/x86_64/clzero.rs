//! The loop with AMD's `clzero`, which writes a cache line of zeros past the cache without reading the line
//! first. The module `rep` has the other three loops.

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

/// Clears with `clzero`, which is ordered like a streamed store (AMD APM volume 3).
unsafe fn clear_stream(dst: *mut u8, bytes: usize) {
    if bytes == 0 {
        return;
    }
    let lines = bytes / LINE_BYTES;
    // SAFETY: by the contract of `Primitives`, the CPU has the instruction, and the bytes are valid to write.
    // The range begins at a line boundary and consists of whole lines, so no store reaches outside of the
    // range.
    unsafe {
        asm!(
            "2:", "clzero", "add rax, 64", "dec {lines}", "jnz 2b",
            inout("rax") dst => _, lines = inout(reg) lines => _,
            options(nostack)
        );
    }
}
