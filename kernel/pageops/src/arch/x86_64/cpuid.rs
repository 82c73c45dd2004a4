//! Reads the facts that the CPU reports about itself.
//!
//! `std` has a macro for CPU features, but this crate does not use `std`. In a virtual machine, each query of
//! CPUID takes microseconds.

use core::arch::x86_64::{__cpuid, __cpuid_count};

/// The bits of XCR0 that the operating system sets if it saves the registers of SSE and AVX (Intel SDM volume
/// 1, 13.3).
const XCR0_AVX: u64 = 0b110;
/// The bits of XCR0 that the operating system sets if it saves the registers of SSE, AVX and the three parts
/// of AVX-512.
const XCR0_AVX512: u64 = 0b1110_0110;

pub(super) fn has_avx2() -> bool {
    saves(XCR0_AVX) && leaf_7_ebx() & 1 << 5 != 0
}

/// Whether the CPU has AVX-512F, which loads, stores and streams whole cache lines.
pub(super) fn has_avx512() -> bool {
    saves(XCR0_AVX512) && leaf_7_ebx() & 1 << 16 != 0
}

pub(super) fn has_clzero() -> bool {
    __cpuid(0x8000_0000).eax >= 0x8000_0008 && __cpuid(0x8000_0008).ebx & 1 != 0
}

fn leaf_7_ebx() -> u32 {
    if __cpuid(0).eax < 7 { 0 } else { __cpuid_count(7, 0).ebx }
}

/// Whether the operating system saves all registers that the bits `bits` of XCR0 stand for.
fn saves(bits: u64) -> bool {
    let has_osxsave = __cpuid(1).ecx & 1 << 27 != 0;
    has_osxsave && xcr0() & bits == bits
}

/// Reads extended control register 0. Call `xcr0` only if CPUID has the bit OSXSAVE set.
fn xcr0() -> u64 {
    let (low, high): (u32, u32);
    // SAFETY: CPUID has the bit OSXSAVE set, so `xgetbv` exists in all modes. The instruction reads register
    // 0 and changes no memory.
    unsafe {
        core::arch::asm!(
            "xgetbv", in("ecx") 0_u32, out("eax") low, out("edx") high,
            options(nomem, nostack, preserves_flags)
        );
    }
    u64::from(high) << 32 | u64::from(low)
}

/// The size of the data or unified cache of level `level`, if the CPU reports this size. Intel reports caches
/// in CPUID leaf 4, AMD in the same form in leaf 0x8000_001D (AMD APM volume 3, appendix E).
pub(crate) fn cache_bytes(level: u32) -> Option<usize> {
    let is_amd_like = __cpuid(0x8000_0000).eax >= 0x8000_001D && __cpuid(0x8000_0001).ecx & 1 << 22 != 0;
    let leaf = if is_amd_like {
        0x8000_001D
    } else if __cpuid(0).eax >= 4 {
        4
    } else {
        return None;
    };
    // A CPU has about four caches. The limit of 16 ends the loop even if a CPU reports an endless list.
    for index in 0..16 {
        let cache = __cpuid_count(leaf, index);
        let kind = cache.eax & 0x1F;
        if kind == 0 {
            return None;
        }
        // Type 1 is a data cache, type 3 a unified cache.
        if (kind == 1 || kind == 3) && cache.eax >> 5 & 7 == level {
            let ways = (cache.ebx >> 22) as usize + 1;
            let partitions = (cache.ebx >> 12 & 0x3FF) as usize + 1;
            let line_bytes = (cache.ebx & 0xFFF) as usize + 1;
            return Some(ways * partitions * line_bytes * (cache.ecx as usize + 1));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    extern crate std;

    use super::*;

    #[test]
    fn the_standard_library_sees_the_same_features() {
        assert_eq!(has_avx2(), std::is_x86_feature_detected!("avx2"));
        assert_eq!(has_avx512(), std::is_x86_feature_detected!("avx512f"));
    }

    #[test]
    fn caches_grow_with_their_level() {
        let Some((l1, l2)) = cache_bytes(1).zip(cache_bytes(2)) else {
            std::eprintln!("skipped: this CPU does not tell its caches");
            return;
        };
        assert!((8 << 10..=1 << 20).contains(&l1), "L1 {l1}");
        assert!(l1 < l2, "L1 {l1}, L2 {l2}");
        assert_eq!(cache_bytes(7), None);
    }
}
