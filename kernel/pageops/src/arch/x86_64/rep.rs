//! The loops that use only general registers. String instructions store through the cache, and `movnti`
//! stores past the cache. An operating-system kernel need not save vector registers for these loops.

use core::arch::asm;

use super::loops::{LINE_BYTES, store_fence};
use crate::arch::isa::Primitives;

pub(super) static PRIMITIVES: Primitives =
    Primitives { clear, clear_stream, copy, copy_stream, fence: store_fence };

pub(super) unsafe fn clear(dst: *mut u8, bytes: usize) {
    // SAFETY: by the contract of `Primitives`, the bytes are valid to write. By the ABI, the direction flag
    // is clear.
    unsafe {
        asm!(
            "rep stosb", inout("rcx") bytes => _, inout("rdi") dst => _, in("al") 0_u8,
            options(nostack, preserves_flags)
        );
    }
}

pub(super) unsafe fn copy(dst: *mut u8, src: *const u8, bytes: usize) {
    // SAFETY: by the contract of `Primitives`, both ranges are valid and do not overlap. By the ABI, the
    // direction flag is clear.
    unsafe {
        asm!(
            "rep movsb", inout("rcx") bytes => _, inout("rdi") dst => _, inout("rsi") src => _,
            options(nostack, preserves_flags)
        );
    }
}

pub(super) unsafe fn clear_stream(dst: *mut u8, bytes: usize) {
    if bytes == 0 {
        return;
    }
    let lines = bytes / LINE_BYTES;
    // SAFETY: by the contract of `Primitives`, the bytes are valid to write and a multiple of a cache line.
    unsafe {
        asm!(
            "2:",
            "movnti [{dst}], {zero}", "movnti [{dst} + 8], {zero}",
            "movnti [{dst} + 16], {zero}", "movnti [{dst} + 24], {zero}",
            "movnti [{dst} + 32], {zero}", "movnti [{dst} + 40], {zero}",
            "movnti [{dst} + 48], {zero}", "movnti [{dst} + 56], {zero}",
            "add {dst}, 64",
            "dec {lines}",
            "jnz 2b",
            dst = inout(reg) dst => _, lines = inout(reg) lines => _, zero = in(reg) 0_u64,
            options(nostack)
        );
    }
}

pub(super) unsafe fn copy_stream(dst: *mut u8, src: *const u8, bytes: usize) {
    if bytes == 0 {
        return;
    }
    let lines = bytes / LINE_BYTES;
    // SAFETY: by the contract of `Primitives`, both ranges are valid, do not overlap, and are a multiple of a
    // cache line.
    unsafe {
        asm!(
            "2:",
            "mov {a}, [{src}]", "mov {b}, [{src} + 8]", "mov {c}, [{src} + 16]", "mov {d}, [{src} + 24]",
            "movnti [{dst}], {a}", "movnti [{dst} + 8], {b}",
            "movnti [{dst} + 16], {c}", "movnti [{dst} + 24], {d}",
            "mov {a}, [{src} + 32]", "mov {b}, [{src} + 40]", "mov {c}, [{src} + 48]", "mov {d}, [{src} + 56]",
            "movnti [{dst} + 32], {a}", "movnti [{dst} + 40], {b}",
            "movnti [{dst} + 48], {c}", "movnti [{dst} + 56], {d}",
            "add {src}, 64",
            "add {dst}, 64",
            "dec {lines}",
            "jnz 2b",
            dst = inout(reg) dst => _, src = inout(reg) src => _, lines = inout(reg) lines => _,
            a = out(reg) _, b = out(reg) _, c = out(reg) _, d = out(reg) _,
            options(nostack)
        );
    }
}
