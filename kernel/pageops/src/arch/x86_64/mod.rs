//! The loops for x86-64. Targets without vector registers, such as the targets for operating-system kernels,
//! have no vector loops.

// This module comes first, because the other modules use its macro `vector_loop`.
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

/// Whether the CPU supports this set and the operating system saves the set's registers.
pub(super) fn has(isa: Isa) -> bool {
    match isa {
        // Every x86-64 CPU has `rep` and `movnti`.
        Isa::Portable | Isa::Rep => true,
        Isa::Clzero => cpuid::has_clzero(),
        Isa::Avx2 => cpuid::has_avx2(),
        Isa::Avx512 => cpuid::has_avx512(),
        Isa::Zva => false,
    }
}
