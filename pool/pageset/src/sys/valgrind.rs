//! Requests to valgrind, which runs a program on a simulated processor. A request is a fixed series of
//! instructions that have no effect on a real processor. Valgrind recognises this series of instructions, and
//! reads the request from registers.
//!
//! Source: valgrind's headers valgrind.h and memcheck.h, which have a BSD licence and describe an interface
//! that never changes. This module does not use the headers' macros, because macros of C need a C compiler.

/// The state of bytes that memcheck should assume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bytes {
    /// Any access to the bytes is an error.
    Forbidden = 0x4d43_0000,
    /// The bytes are not initialised. Until the program writes the bytes, a branch that depends on the bytes
    /// is an error.
    Undefined = 0x4d43_0001,
    /// The bytes are initialised and may be used.
    Defined = 0x4d43_0002,
}

/// Whether valgrind's memcheck runs this process. Always `false` on processors other than x86-64.
///
/// Only memcheck answers the request of this function. Under callgrind, the pool therefore informs no tool,
/// and callgrind counts only the pool's own instructions.
pub(crate) fn is_memcheck() -> bool {
    let byte = 0_u8;
    request(Bytes::Defined as usize, (&raw const byte).addr(), 1) != 0
}

/// Tells memcheck what to assume about bytes. Valgrind's other tools ignore the request.
pub(crate) fn tell(start: *const u8, bytes: usize, are: Bytes) {
    request(are as usize, start.addr(), bytes);
}

/// Makes a request and returns valgrind's answer. Without valgrind, the answer is 0.
#[cfg(all(target_arch = "x86_64", not(miri)))]
fn request(code: usize, first: usize, second: usize) -> usize {
    let words = [code, first, second, 0, 0, 0];
    let answer;
    // SAFETY: the four rotations turn the register by 128 bits in all, so the register keeps its value. The
    // last instruction exchanges a register with itself. Valgrind reads `words`, and changes only its own
    // records.
    unsafe {
        std::arch::asm!(
            "rol rdi, 3; rol rdi, 13; rol rdi, 61; rol rdi, 51; xchg rbx, rbx",
            in("rax") words.as_ptr(),
            inout("rdx") 0_usize => answer,
            options(nostack),
        );
    }
    answer
}

#[cfg(not(all(target_arch = "x86_64", not(miri))))]
fn request(_: usize, _: usize, _: usize) -> usize {
    0
}
