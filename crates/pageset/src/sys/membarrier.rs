//! The barrier that restarts every restartable sequence of this process that is under way.

/// `MEMBARRIER_CMD_PRIVATE_EXPEDITED_RSEQ`. Source: the membarrier(2) manual page.
#[cfg(all(target_os = "linux", not(miri)))]
const RESTART: libc::c_int = 1 << 7;
/// `MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED_RSEQ`. Source: the membarrier(2) manual page.
#[cfg(all(target_os = "linux", not(miri)))]
const REGISTER: libc::c_int = 1 << 8;

/// Announces that this process will use [`restart_all`]. `false` if the kernel has no such thing (before 5.10).
#[cfg(not(miri))]
pub(crate) fn register() -> bool {
    call(REGISTER)
}

/// Makes every thread that is inside a restartable sequence begin it again, and waits until they all have seen what
/// this thread wrote before. `false` if the kernel refuses.
#[cfg(not(miri))]
pub(crate) fn restart_all() -> bool {
    call(RESTART)
}

#[cfg(not(miri))]
fn call(command: libc::c_int) -> bool {
    // SAFETY: membarrier takes three integers and touches no memory.
    unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) == 0 }
}

/// Miri knows no restartable sequences.
#[cfg(miri)]
pub(crate) fn register() -> bool {
    false
}

/// Miri knows no restartable sequences.
#[cfg(miri)]
pub(crate) fn restart_all() -> bool {
    false
}
