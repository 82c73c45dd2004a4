//! x86-64. Vector kernels are left out on targets without vector registers, such as those of operating-system
//! kernels.

// First: `vector_loop` is known to the files below it.
#[macro_use]
mod loops;

#[cfg(target_feature = "sse2")]
mod avx2;
#[cfg(target_feature = "sse2")]
mod avx512;
mod clzero;
pub(crate) mod cpuid;
mod rep;

use super::isa::{Isa, Primitives};

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

/// Whether the CPU has this set and the operating system saves its registers.
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
