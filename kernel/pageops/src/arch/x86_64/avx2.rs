//! The loops with 32-byte vectors. The loops are written in assembly, so the compiler does not change the
//! loops.

use super::loops::{HALVES, store_fence};
use crate::arch::isa::Primitives;

pub(super) static PRIMITIVES: Primitives =
    Primitives { clear, clear_stream, copy, copy_stream, fence: store_fence };

unsafe fn clear(dst: *mut u8, bytes: usize) {
    if bytes == 0 {
        return;
    }
    // SAFETY: by the contract of `Primitives`, the bytes are valid to write, aligned, and a multiple of what
    // one turn of the loop writes.
    unsafe {
        vector_loop!(
            "vpxor xmm0, xmm0, xmm0",
            "2:",
            "vmovdqa [{dst}], ymm0",
            "vmovdqa [{dst} + 32], ymm0",
            "vmovdqa [{dst} + 64], ymm0",
            "vmovdqa [{dst} + 96], ymm0",
            "add {dst}, 128",
            "sub {bytes}, 128",
            "jnz 2b"
            => dst = inout(reg) dst => _, bytes = inout(reg) bytes => _,
        );
    }
}

unsafe fn clear_stream(dst: *mut u8, bytes: usize) {
    if bytes == 0 {
        return;
    }
    // SAFETY: the contract of `Primitives` promises the same as for `clear`.
    unsafe {
        vector_loop!(
            "vpxor xmm0, xmm0, xmm0",
            "2:",
            "vmovntdq [{dst}], ymm0",
            "vmovntdq [{dst} + 32], ymm0",
            "vmovntdq [{dst} + 64], ymm0",
            "vmovntdq [{dst} + 96], ymm0",
            "add {dst}, 128",
            "sub {bytes}, 128",
            "jnz 2b"
            => dst = inout(reg) dst => _, bytes = inout(reg) bytes => _,
        );
    }
}

unsafe fn copy(dst: *mut u8, src: *const u8, bytes: usize) {
    if bytes == 0 {
        return;
    }
    // SAFETY: by the contract of `Primitives`, both ranges are valid, aligned, do not overlap, and are a
    // multiple of the bytes that one turn of the loop copies.
    unsafe {
        vector_loop!(
            "2:",
            "vmovdqa ymm0, [{src}]",
            "vmovdqa ymm1, [{src} + 32]",
            "vmovdqa ymm2, [{src} + 64]",
            "vmovdqa ymm3, [{src} + 96]",
            "vmovdqa [{dst}], ymm0",
            "vmovdqa [{dst} + 32], ymm1",
            "vmovdqa [{dst} + 64], ymm2",
            "vmovdqa [{dst} + 96], ymm3",
            "add {src}, 128",
            "add {dst}, 128",
            "sub {bytes}, 128",
            "jnz 2b"
            => dst = inout(reg) dst => _, src = inout(reg) src => _, bytes = inout(reg) bytes => _,
        );
    }
}

unsafe fn copy_stream(dst: *mut u8, src: *const u8, bytes: usize) {
    if bytes == 0 {
        return;
    }
    let half = bytes / HALVES;
    // SAFETY: the contract of `Primitives` promises the same as for `copy`. The second half begins at byte
    // `half`, and both halves are a multiple of the bytes that one turn of the loop copies.
    unsafe {
        vector_loop!(
            "2:",
            "vmovdqa ymm0, [{src}]",
            "vmovdqa ymm1, [{src} + 32]",
            "vmovdqa ymm2, [{src} + 64]",
            "vmovdqa ymm3, [{src} + 96]",
            "vmovdqa ymm4, [{src} + {half}]",
            "vmovdqa ymm5, [{src} + {half} + 32]",
            "vmovdqa ymm6, [{src} + {half} + 64]",
            "vmovdqa ymm7, [{src} + {half} + 96]",
            "vmovntdq [{dst}], ymm0",
            "vmovntdq [{dst} + 32], ymm1",
            "vmovntdq [{dst} + 64], ymm2",
            "vmovntdq [{dst} + 96], ymm3",
            "vmovntdq [{dst} + {half}], ymm4",
            "vmovntdq [{dst} + {half} + 32], ymm5",
            "vmovntdq [{dst} + {half} + 64], ymm6",
            "vmovntdq [{dst} + {half} + 96], ymm7",
            "add {src}, 128",
            "add {dst}, 128",
            "sub {left}, 128",
            "jnz 2b"
            => dst = inout(reg) dst => _, src = inout(reg) src => _,
            half = in(reg) half, left = inout(reg) half => _,
        );
    }
}
