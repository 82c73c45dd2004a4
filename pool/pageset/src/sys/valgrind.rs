//! Requests to valgrind, which runs a program on a simulated processor. A request is a row of instructions
//! that change nothing. Valgrind knows the row, and reads the request.
//!
//! Source: valgrind's headers valgrind.h and memcheck.h, which have a BSD licence and are an interface that
//! never changes. A C library's macros would need a C compiler.

/// A fact about bytes, for memcheck.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bytes {
    /// A use of these bytes is a mistake.
    Forbidden = 0x4d43_0000,
    /// A decision by these bytes is a mistake, until they are written.
    Undefined = 0x4d43_0001,
    /// These bytes may be used.
    Defined = 0x4d43_0002,
}

/// Whether valgrind's memcheck runs this process. Always `false` on processors that this module does not
/// know.
///
/// Only memcheck answers its own requests. So callgrind counts the instructions of a pool that is not
/// checked.
pub(crate) fn is_memcheck() -> bool {
    let byte = 0_u8;
    request(Bytes::Defined as usize, (&raw const byte).addr(), 1) != 0
}

/// Tells memcheck about bytes. Valgrind's other tools ignore it.
pub(crate) fn tell(start: *const u8, bytes: usize, are: Bytes) {
    request(are as usize, start.addr(), bytes);
}

/// Makes a request. Without valgrind, the answer is 0.
#[cfg(all(target_arch = "x86_64", not(miri)))]
fn request(code: usize, first: usize, second: usize) -> usize {
    let words = [code, first, second, 0, 0, 0];
    let answer;
    // SAFETY: the rotations turn a register once around in all, and the exchange is of one register with
    // itself. Valgrind reads the words, and changes its own notes only.
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
