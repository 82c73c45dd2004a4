//! Code that the loops of several instruction sets share.

/// Makes a loop over vectors. The macro takes the instructions of the loop, `=>`, and the operands. The loop
/// ends with `vzeroupper`, so that later SSE code is not slowed down.
///
/// `vzeroupper` changes the first sixteen vector registers, even if the loop uses fewer registers. A caller
/// that is compiled for AVX may have values in these registers. So the macro declares all sixteen registers
/// as changed. The name `xmm0` stands for all lengths of this register (`xmm0`, `ymm0`, `zmm0`).
#[cfg(target_feature = "sse2")]
macro_rules! vector_loop {
    ($($instruction:literal),+ => $($operands:tt)*) => {
        core::arch::asm!(
            $($instruction,)+
            "vzeroupper",
            $($operands)*
            out("xmm0") _, out("xmm1") _, out("xmm2") _, out("xmm3") _,
            out("xmm4") _, out("xmm5") _, out("xmm6") _, out("xmm7") _,
            out("xmm8") _, out("xmm9") _, out("xmm10") _, out("xmm11") _,
            out("xmm12") _, out("xmm13") _, out("xmm14") _, out("xmm15") _,
            options(nostack)
        )
    };
}

/// Bytes of a cache line. One `clzero` clears one line, and one turn of a loop with general registers handles
/// one line.
pub(super) const LINE_BYTES: usize = 64;

/// The number of places in the source that a streamed copy reads in turn. With two places, a core waits for
/// more reads at the same time than with one place. Measured (EPYC of family 26, 2 CPUs, medians of 24 runs
/// in turn): a copy of 2 MiB took 68 us with two places and two lines of each read before a write. With one
/// place, the copy took 77 to 84 us. Four places, eight places and software prefetch were no faster than two
/// places. Reading alone took 41 us, and streaming zeros alone took 22 us, so a faster copy could save
/// little.
#[cfg(target_feature = "sse2")]
pub(super) const HALVES: usize = 2;

/// Orders streamed stores before all later stores.
pub(super) fn store_fence() {
    // SAFETY: `sfence` is part of x86-64, and changes neither registers nor memory.
    unsafe { core::arch::asm!("sfence", options(nostack, preserves_flags)) }
}

#[cfg(all(test, target_feature = "sse2"))]
mod tests {
    extern crate std;

    use core::arch::asm;
    use core::arch::x86_64::__m256i;

    type Vectors = [[u64; 4]; 4];

    /// Loads four vectors into registers, runs an empty `vector_loop!`, and stores the vectors.
    #[target_feature(enable = "avx2")]
    fn held_across_a_loop(numbers: &Vectors) -> Vectors {
        let (a, b, c, d): (__m256i, __m256i, __m256i, __m256i);
        let mut stored = Vectors::default();
        // SAFETY: the code reads four vectors, and `numbers` has four vectors.
        unsafe {
            asm!(
                "vmovdqu {a}, [{from}]", "vmovdqu {b}, [{from} + 32]",
                "vmovdqu {c}, [{from} + 64]", "vmovdqu {d}, [{from} + 96]",
                from = in(reg) numbers,
                a = out(ymm_reg) a, b = out(ymm_reg) b, c = out(ymm_reg) c, d = out(ymm_reg) d,
                options(nostack, readonly)
            );
        }
        // SAFETY: the loop has no instruction that accesses memory, and the macro declares the registers that
        // `vzeroupper` changes. The caller has AVX.
        unsafe { vector_loop!("nop" =>) };
        // SAFETY: the code writes four vectors, and `stored` has room for four vectors.
        unsafe {
            asm!(
                "vmovdqu [{to}], {a}", "vmovdqu [{to} + 32], {b}",
                "vmovdqu [{to} + 64], {c}", "vmovdqu [{to} + 96], {d}",
                to = in(reg) &mut stored,
                a = in(ymm_reg) a, b = in(ymm_reg) b, c = in(ymm_reg) c, d = in(ymm_reg) d,
                options(nostack)
            );
        }
        stored
    }

    #[test]
    fn what_a_caller_holds_in_vectors_survives_a_loop() {
        if !super::super::cpuid::has_avx2() {
            std::eprintln!("SKIPPED: this CPU has no avx2");
            return;
        }
        let numbers: Vectors = [[1, 2, 3, 4], [5, 6, 7, 8], [9, 10, 11, 12], [13, 14, 15, 16]];
        // SAFETY: the CPU has AVX2.
        assert_eq!(unsafe { held_across_a_loop(&numbers) }, numbers);
    }
}
