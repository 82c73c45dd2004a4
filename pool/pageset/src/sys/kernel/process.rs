//! System calls about processes.

use std::io;

/// Registers functions that the C library calls before each fork of this process, after each fork in the
/// parent, and after each fork in the child.
///
/// # Errors
/// The system's error: no memory.
pub(in crate::sys) fn at_forks(
    before: extern "C" fn(),
    in_parent: extern "C" fn(),
    in_child: extern "C" fn(),
) -> io::Result<()> {
    // SAFETY: the functions are never unloaded, because a pool's code stays in memory.
    let error = unsafe { libc::pthread_atfork(Some(before), Some(in_parent), Some(in_child)) };
    if error == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(error)) }
}

/// The number of this process.
pub(in crate::sys) fn process_id() -> i32 {
    // SAFETY: `getpid` has no arguments.
    unsafe { libc::getpid() }
}

/// Whether a process with this number exists. A process that has ended still exists until its parent has
/// waited for the process.
pub(in crate::sys) fn is_process(id: i32) -> bool {
    // SAFETY: signal 0 only checks the process, and the call sends no signal.
    let outcome = unsafe { libc::kill(id, 0) };
    outcome == 0 || io::Error::last_os_error().raw_os_error() != Some(libc::ESRCH)
}
