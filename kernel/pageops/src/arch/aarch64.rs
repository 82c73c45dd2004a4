//! aarch64: `dc zva` clears blocks without reading them first, and pairs of general registers copy. The
//! environment's `memcpy` is not used: it may use vector registers, which operating-system kernels do not
//! save.

use core::arch::asm;

use super::isa::Primitives;
use crate::BASE_PAGE_BYTES;

pub(super) static PRIMITIVES: Primitives = Primitives { clear, clear_stream, copy, copy_stream, fence };

/// Bytes that `dc zva` clears, if it is permitted and its blocks divide base pages. Bit 4 of DCZID_EL0
/// forbids it. The low bits are the logarithm of the block's words (Arm ARM, D19.2.35).
fn zva_bytes() -> Option<usize> {
    let dczid = dczid();
    let bytes = 4 << (dczid & 0xF);
    (dczid & 0x10 == 0 && bytes <= BASE_PAGE_BYTES).then_some(bytes)
}

fn dczid() -> u64 {
    let dczid: u64;
    // SAFETY: the register may be read at every exception level, and reading it changes nothing.
    unsafe { asm!("mrs {}, dczid_el0", out(reg) dczid, options(nomem, nostack, preserves_flags)) }
    dczid
}

unsafe fn clear(dst: *mut u8, bytes: usize) {
    if bytes == 0 {
        return;
    }
    match zva_bytes() {
        // SAFETY: the contract is the same, and `dc zva` clears blocks of that size.
        Some(block) => unsafe { clear_blocks(dst, bytes, block) },
        // SAFETY: the contract is the same.
        None => unsafe { clear_pairs(dst, bytes) },
    }
}

unsafe fn clear_blocks(dst: *mut u8, bytes: usize, block: usize) {
    // SAFETY: the contract of `Primitives` says that the bytes are valid to write and base pages, which are
    // whole blocks.
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
    // SAFETY: the contract of `Primitives` says that the bytes are valid to write and a multiple of a turn;
    // there are some.
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

/// `stnp` hints that the line is not needed again. CPUs that stream recognise whole lines.
unsafe fn clear_stream(dst: *mut u8, bytes: usize) {
    if bytes == 0 {
        return;
    }
    // SAFETY: the contract of `Primitives` says that the bytes are valid to write and a multiple of a turn.
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
    // SAFETY: the contract of `Primitives` says that both are valid, apart, and a multiple of a turn.
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
    // SAFETY: the contract of `Primitives` says that both are valid, apart, and a multiple of a turn.
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

/// On this architecture the release that publishes a page also orders non-temporal stores. The fence keeps
/// this crate's promise for callers without a release.
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
