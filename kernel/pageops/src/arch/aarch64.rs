//! The loops for aarch64. The instruction `dc zva` clears blocks without reading the blocks first. The copy
//! loops use pairs of general registers, because the environment's `memcpy` may use vector registers, which
//! operating-system kernels do not save.

use core::arch::asm;

use super::isa::Primitives;
use crate::BASE_PAGE_BYTES;

pub(super) static PRIMITIVES: Primitives = Primitives { clear, clear_stream, copy, copy_stream, fence };

/// The number of bytes that one `dc zva` clears. `None` if the system forbids `dc zva`, or if a base page
/// does not consist of whole `dc zva` blocks. Bit 4 of DCZID_EL0 forbids `dc zva`. The low four bits of
/// DCZID_EL0 are the base-2 logarithm of the block's size in words of 4 bytes (Arm ARM, D19.2.35).
fn zva_bytes() -> Option<usize> {
    let dczid = dczid();
    let bytes = 4 << (dczid & 0xF);
    (dczid & 0x10 == 0 && bytes <= BASE_PAGE_BYTES).then_some(bytes)
}

fn dczid() -> u64 {
    let dczid: u64;
    // SAFETY: the register may be read at every exception level, and reading the register changes nothing.
    unsafe { asm!("mrs {}, dczid_el0", out(reg) dczid, options(nomem, nostack, preserves_flags)) }
    dczid
}

unsafe fn clear(dst: *mut u8, bytes: usize) {
    if bytes == 0 {
        return;
    }
    match zva_bytes() {
        // SAFETY: this function has the contract of `Primitives`, and `block` is the number of bytes that `dc
        // zva` clears.
        Some(block) => unsafe { clear_blocks(dst, bytes, block) },
        // SAFETY: this function has the contract of `Primitives`.
        None => unsafe { clear_pairs(dst, bytes) },
    }
}

unsafe fn clear_blocks(dst: *mut u8, bytes: usize, block: usize) {
    // SAFETY: by the contract of `Primitives`, the bytes are valid to write and consist of base pages. A base
    // page consists of whole `dc zva` blocks.
    unsafe {
        asm!(
            "2:",
            "dc zva, {dst}",
            "add {dst}, {dst}, {block}",
            "subs {bytes}, {bytes}, {block}",
            "b.ne 2b",
            dst = inout(reg) dst => _, bytes = inout(reg) bytes => _, block = in(reg) block,
            options(nostack)
        );
    }
}

unsafe fn clear_pairs(dst: *mut u8, bytes: usize) {
    // SAFETY: by the contract of `Primitives`, the bytes are valid to write and a multiple of what one turn
    // of the loop writes. The length is not 0, so the loop makes at least one turn.
    unsafe {
        asm!(
            "2:",
            "stp xzr, xzr, [{dst}]", "stp xzr, xzr, [{dst}, #16]",
            "stp xzr, xzr, [{dst}, #32]", "stp xzr, xzr, [{dst}, #48]",
            "add {dst}, {dst}, #64",
            "subs {bytes}, {bytes}, #64",
            "b.ne 2b",
            dst = inout(reg) dst => _, bytes = inout(reg) bytes => _,
            options(nostack)
        );
    }
}

/// Clears with `stnp`, which hints that the program will not use the line again soon. Some CPUs then write
/// past the cache, but only whole lines.
unsafe fn clear_stream(dst: *mut u8, bytes: usize) {
    if bytes == 0 {
        return;
    }
    // SAFETY: by the contract of `Primitives`, the bytes are valid to write and a multiple of what one turn
    // of the loop writes.
    unsafe {
        asm!(
            "2:",
            "stnp xzr, xzr, [{dst}]", "stnp xzr, xzr, [{dst}, #16]",
            "stnp xzr, xzr, [{dst}, #32]", "stnp xzr, xzr, [{dst}, #48]",
            "add {dst}, {dst}, #64",
            "subs {bytes}, {bytes}, #64",
            "b.ne 2b",
            dst = inout(reg) dst => _, bytes = inout(reg) bytes => _,
            options(nostack)
        );
    }
}

unsafe fn copy(dst: *mut u8, src: *const u8, bytes: usize) {
    if bytes == 0 {
        return;
    }
    // SAFETY: by the contract of `Primitives`, both ranges are valid, do not overlap, and are a multiple of
    // what one turn of the loop copies.
    unsafe {
        asm!(
            "2:",
            "ldp {a}, {b}, [{src}]", "ldp {c}, {d}, [{src}, #16]",
            "ldp {e}, {f}, [{src}, #32]", "ldp {g}, {h}, [{src}, #48]",
            "stp {a}, {b}, [{dst}]", "stp {c}, {d}, [{dst}, #16]",
            "stp {e}, {f}, [{dst}, #32]", "stp {g}, {h}, [{dst}, #48]",
            "add {src}, {src}, #64",
            "add {dst}, {dst}, #64",
            "subs {bytes}, {bytes}, #64",
            "b.ne 2b",
            dst = inout(reg) dst => _, src = inout(reg) src => _, bytes = inout(reg) bytes => _,
            a = out(reg) _, b = out(reg) _, c = out(reg) _, d = out(reg) _,
            e = out(reg) _, f = out(reg) _, g = out(reg) _, h = out(reg) _,
            options(nostack)
        );
    }
}

unsafe fn copy_stream(dst: *mut u8, src: *const u8, bytes: usize) {
    if bytes == 0 {
        return;
    }
    // SAFETY: by the contract of `Primitives`, both ranges are valid, do not overlap, and are a multiple of
    // what one turn of the loop copies.
    unsafe {
        asm!(
            "2:",
            "ldp {a}, {b}, [{src}]", "ldp {c}, {d}, [{src}, #16]",
            "stnp {a}, {b}, [{dst}]", "stnp {c}, {d}, [{dst}, #16]",
            "add {src}, {src}, #32",
            "add {dst}, {dst}, #32",
            "subs {bytes}, {bytes}, #32",
            "b.ne 2b",
            dst = inout(reg) dst => _, src = inout(reg) src => _, bytes = inout(reg) bytes => _,
            a = out(reg) _, b = out(reg) _, c = out(reg) _, d = out(reg) _,
            options(nostack)
        );
    }
}

/// Orders non-temporal stores before later stores. On aarch64, the release store that publishes a page would
/// also order non-temporal stores. But this crate promises the order of streamed stores even to callers that
/// use no release store.
fn fence() {
    // SAFETY: a barrier changes neither registers nor memory.
    unsafe { asm!("dmb ishst", options(nostack, preserves_flags)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_clear_where_dc_zva_is_forbidden() {
        let mut page = [1_u8; BASE_PAGE_BYTES];
        // SAFETY: this function owns the page.
        unsafe { clear_pairs(page.as_mut_ptr(), page.len() - 64) };
        assert!(page[..BASE_PAGE_BYTES - 64].iter().all(|byte| *byte == 0));
        assert!(page[BASE_PAGE_BYTES - 64..].iter().all(|byte| *byte == 1));
    }
}
