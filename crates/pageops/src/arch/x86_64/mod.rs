//! x86-64. Vector kernels are left out where the target has no vector registers, as kernels of operating systems.

#[cfg(target_feature = "sse2")]
mod avx2;
#[cfg(target_feature = "sse2")]
mod avx512;
mod clzero;
pub(crate) mod cpuid;
mod rep;

use super::{Isa, Primitives};

pub(super) fn primitives(isa: Isa) -> Option<&'static Primitives> {
    match isa {
        Isa::Rep => Some(&rep::PRIMITIVES),
        Isa::Clzero => Some(&clzero::PRIMITIVES),
        #[cfg(target_feature = "sse2")]
        Isa::Avx2 => Some(&avx2::PRIMITIVES),
        #[cfg(target_feature = "sse2")]
        Isa::Avx512 => Some(&avx512::PRIMITIVES),
        _ => None,
    }
}

/// Bytes of a cache line: what `clzero` clears, and what a turn of a loop over general registers does.
const LINE_BYTES: usize = 64;

/// A streamed copy reads this many places of the source in turn. One core then has more reads of memory under way:
/// 2 MiB took 68 us in halves, two lines of each read before any is written, and 77 to 84 us in one stream; quarters,
/// eighths and software prefetch were no better (EPYC of family 26, 2 CPUs; medians of 24 runs in turn). Reading alone
/// took 41 us and streamed zeros 22 us, so little is left.
#[cfg(target_feature = "sse2")]
const HALVES: usize = 2;

/// Does the CPU have this set, and does the operating system save its registers?
pub(super) fn has(isa: Isa) -> bool {
    match isa {
        // `rep` and `movnti` are part of x86-64.
        Isa::Portable | Isa::Rep => true,
        Isa::Clzero => cpuid::has_clzero(),
        Isa::Avx2 => cpuid::has_avx2(),
        Isa::Avx512 => cpuid::has_avx512(),
        Isa::Zva => false,
    }
}

/// Orders streamed stores before all later ones.
fn store_fence() {
    // SAFETY: `sfence` is part of x86-64, and changes neither registers nor memory.
    unsafe { core::arch::asm!("sfence", options(nostack, preserves_flags)) }
}
