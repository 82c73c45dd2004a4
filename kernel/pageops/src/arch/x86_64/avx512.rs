//! The loops with 64-byte vectors. The loops are written in assembly, so the compiler does not change the
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
            "vmovdqa64 [{dst}], zmm0",
            "vmovdqa64 [{dst} + 64], zmm0",
            "vmovdqa64 [{dst} + 128], zmm0",
            "vmovdqa64 [{dst} + 192], zmm0",
            "add {dst}, 256",
            "sub {bytes}, 256",
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
            "vmovntdq [{dst}], zmm0",
            "vmovntdq [{dst} + 64], zmm0",
            "vmovntdq [{dst} + 128], zmm0",
            "vmovntdq [{dst} + 192], zmm0",
            "add {dst}, 256",
            "sub {bytes}, 256",
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
            "vmovdqa64 zmm0, [{src}]",
            "vmovdqa64 zmm1, [{src} + 64]",
            "vmovdqa64 zmm2, [{src} + 128]",
            "vmovdqa64 zmm3, [{src} + 192]",
            "vmovdqa64 [{dst}], zmm0",
            "vmovdqa64 [{dst} + 64], zmm1",
            "vmovdqa64 [{dst} + 128], zmm2",
            "vmovdqa64 [{dst} + 192], zmm3",
            "add {src}, 256",
            "add {dst}, 256",
            "sub {bytes}, 256",
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
            "vmovdqa64 zmm0, [{src}]",
            "vmovdqa64 zmm1, [{src} + 64]",
            "vmovdqa64 zmm2, [{src} + {half}]",
            "vmovdqa64 zmm3, [{src} + {half} + 64]",
            "vmovntdq [{dst}], zmm0",
            "vmovntdq [{dst} + 64], zmm1",
            "vmovntdq [{dst} + {half}], zmm2",
            "vmovntdq [{dst} + {half} + 64], zmm3",
            "add {src}, 128",
            "add {dst}, 128",
            "sub {left}, 128",
            "jnz 2b"
            => dst = inout(reg) dst => _, src = inout(reg) src => _,
            half = in(reg) half, left = inout(reg) half => _,
        );
    }
}
