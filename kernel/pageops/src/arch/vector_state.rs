//! Tests that the loops of instruction sets without vectors leave vector registers unchanged. The test fills
//! all vector registers, runs a loop, and compares the registers.

use core::arch::asm;

use super::{Isa, Primitives};
use crate::{BASE_PAGE_BYTES, Kernel};

/// Two separate base pages, which all tested loops use in turn.
#[repr(C, align(4096))]
struct Pages {
    page: [u8; BASE_PAGE_BYTES],
    source: [u8; BASE_PAGE_BYTES],
}

/// The values of the vector registers before or after a loop.
type Registers = [u128; if cfg!(target_arch = "x86_64") { 16 } else { 32 }];

/// One loop of a kernel to run, and the pages that the loop clears or copies.
#[repr(C)]
struct Job {
    primitives: &'static Primitives,
    which: usize,
    pages: *mut Pages,
}

/// Runs one loop. This function itself uses no vector registers.
unsafe extern "C" fn run(job: &Job) {
    let page = job.pages.cast::<u8>();
    let source = page.wrapping_add(BASE_PAGE_BYTES);
    let Primitives { clear, clear_stream, copy, copy_stream, .. } = job.primitives;
    match job.which {
        // SAFETY: the page is a base page that nothing else refers to, and the CPU supports the kernel's
        // instructions.
        0 => unsafe { clear(page, BASE_PAGE_BYTES) },
        // SAFETY: the facts that make `clear` safe hold for `clear_stream` too.
        1 => unsafe { clear_stream(page, BASE_PAGE_BYTES) },
        // SAFETY: as for `clear`, and the source is another base page than the page.
        2 => unsafe { copy(page, source, BASE_PAGE_BYTES) },
        // SAFETY: the facts that make `copy` safe hold for `copy_stream` too.
        _ => unsafe { copy_stream(page, source, BASE_PAGE_BYTES) },
    }
}

/// Loads the vector registers from `registers`, runs the job, and stores the vector registers in `registers`.
#[cfg(target_arch = "x86_64")]
fn run_with(registers: &mut Registers, job: &Job) {
    // SAFETY: the memory at `r12` is as large as all vector registers, and `rdi` passes the `Job` that `run`
    // expects.
    unsafe {
        asm!(
            ".irp i, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15",
            "movdqu xmm\\i, [r12 + 16 * \\i]",
            ".endr",
            "call {run}",
            ".irp i, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15",
            "movdqu [r12 + 16 * \\i], xmm\\i",
            ".endr",
            run = sym run, in("rdi") job, in("r12") registers, clobber_abi("sysv64")
        );
    }
}

/// Loads the vector registers from `registers`, runs the job, and stores the vector registers in `registers`.
#[cfg(target_arch = "aarch64")]
fn run_with(registers: &mut Registers, job: &Job) {
    // SAFETY: the memory at `x20` is as large as all vector registers, and `x0` passes the `Job` that `run`
    // expects. `clobber_abi` does not declare `v8` to `v15` as changed, because the ABI preserves their lower
    // halves. So the assembly declares `v8` to `v15` as changed.
    unsafe {
        asm!(
            ".irp i, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, \
                16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31",
            "ldr q\\i, [x20, #(16 * \\i)]",
            ".endr",
            "bl {run}",
            ".irp i, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, \
                16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31",
            "str q\\i, [x20, #(16 * \\i)]",
            ".endr",
            run = sym run, in("x0") job, in("x20") registers,
            out("v8") _, out("v9") _, out("v10") _, out("v11") _,
            out("v12") _, out("v13") _, out("v14") _, out("v15") _,
            clobber_abi("C")
        );
    }
}

#[test]
fn without_vectors_no_loop_changes_a_vector_register() {
    let kernels = Isa::ALL.into_iter().filter(|isa| !isa.uses_vector_registers()).filter_map(Kernel::new);
    let mut pages = Pages { page: [1; BASE_PAGE_BYTES], source: [2; BASE_PAGE_BYTES] };
    let before: Registers =
        core::array::from_fn(|index| (index as u128 + 1) * 0x0101_0101_0101_0101_0101_0101_0101_0101);
    for kernel in kernels {
        for which in 0..4 {
            let mut registers = before;
            run_with(&mut registers, &Job { primitives: kernel.primitives(), which, pages: &raw mut pages });
            assert_eq!(registers, before, "{kernel:?}, loop {which}");
        }
    }
    assert_eq!(pages.page, pages.source);
}
