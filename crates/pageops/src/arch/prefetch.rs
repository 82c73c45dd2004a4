//! Asking for memory ahead of its use.

#[cfg(all(target_arch = "x86_64", not(miri)))]
use core::arch::asm;

/// Bytes at the beginning of a page that are asked for: while these arrive, the rest is on its way. On a Xeon whose pages
/// come from the last-level cache, 0, 256, 512, 1024, 2048 and 4096 bytes gave a fault of 714, 503, 453, 449, 412 and
/// 435 ns, where clearing alone takes 400 (median of 3 rounds, strategy P2,V1,R1 of `pageset-fault`'s example `speed`).
#[cfg(all(target_arch = "x86_64", not(miri)))]
const AHEAD_BYTES: usize = 2048;
#[cfg(all(target_arch = "x86_64", not(miri)))]
const LINE_BYTES: usize = 64;

/// Asks for the first lines of a page that this CPU is going to clear or to copy to next.
///
/// For pages that are cleared one at a time with other work in between, such as an atomic operation, which waits until
/// all of the page before is written. A loop that only clears gains nothing. It is a hint: nothing is read or written
/// that a program could tell, the address may be any, and on other architectures than x86-64 nothing happens.
///
/// ```
/// let pages = vec![[1_u8; 4096]; 2];
/// pageset_pageops::prefetch(pages[1].as_ptr());
/// assert_eq!(pages[1], [1; 4096]);
/// ```
#[inline]
pub fn prefetch(page: *const u8) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    for offset in (0..AHEAD_BYTES).step_by(LINE_BYTES) {
        let line = page.wrapping_add(offset);
        // SAFETY: a prefetch changes no memory and no register, and of an address that cannot be read nothing comes of it.
        unsafe { asm!("prefetcht0 [{}]", in(reg) line, options(nostack, preserves_flags, readonly)) };
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    let _ = page;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_address_will_do() {
        prefetch(core::ptr::null());
        prefetch(core::ptr::without_provenance(usize::MAX));
    }
}
