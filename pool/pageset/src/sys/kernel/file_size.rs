//! Sets a file's size. If the size exceeds the process's limit (`ulimit -f`), the kernel also sends SIGXFSZ,
//! which would end the program. This module blocks SIGXFSZ and consumes SIGXFSZ, so that the program does not
//! end.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::AsFd;
use std::ptr;

use rustix::fs::ftruncate;

/// Sets the size of a file. If the size exceeds `ulimit -f`, returns the error `EFBIG`, and the program gets
/// no signal.
pub(super) fn set(file: impl AsFd, bytes: u64) -> io::Result<()> {
    let limit = signal_of_limit();
    let before = change_mask(libc::SIG_BLOCK, &limit)?;
    // Do not consume a SIGXFSZ that was pending before this call, because the program may wait for the
    // signal.
    let is_pending = is_pending();
    let outcome = ftruncate(file, bytes).map_err(io::Error::from);
    if outcome.is_err() && !is_pending {
        consume(&limit);
    }
    change_mask(libc::SIG_SETMASK, &before)?;
    outcome
}

/// The signal set that contains only SIGXFSZ.
fn signal_of_limit() -> libc::sigset_t {
    let mut set = MaybeUninit::uninit();
    // SAFETY: the call fills the set, which outlives it.
    unsafe { libc::sigemptyset(set.as_mut_ptr()) };
    // SAFETY: the set was filled above, and the signal exists.
    unsafe { libc::sigaddset(set.as_mut_ptr(), libc::SIGXFSZ) };
    // SAFETY: `sigemptyset` filled the set.
    unsafe { set.assume_init() }
}

/// Changes this thread's signal mask. Returns the previous mask.
fn change_mask(how: libc::c_int, set: &libc::sigset_t) -> io::Result<libc::sigset_t> {
    let mut before = MaybeUninit::uninit();
    // SAFETY: both sets outlive the call, which reads `set` and fills `before`.
    let error = unsafe { libc::pthread_sigmask(how, set, before.as_mut_ptr()) };
    if error != 0 {
        return Err(io::Error::from_raw_os_error(error));
    }
    // SAFETY: `pthread_sigmask` filled the set.
    Ok(unsafe { before.assume_init() })
}

/// Whether SIGXFSZ is pending for this thread or its process.
fn is_pending() -> bool {
    let mut pending = MaybeUninit::uninit();
    // SAFETY: the call fills the set, which outlives it.
    if unsafe { libc::sigpending(pending.as_mut_ptr()) } != 0 {
        return false;
    }
    // SAFETY: `sigpending` filled the set, and the signal exists.
    unsafe { libc::sigismember(pending.as_ptr(), libc::SIGXFSZ) == 1 }
}

/// Consumes the pending signal of `set`, if such a signal is pending.
fn consume(set: &libc::sigset_t) {
    let now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    let is_interrupted = || {
        // SAFETY: the set and the time outlive the call. A null pointer means that no details of the signal
        // are wanted.
        let taken = unsafe { libc::sigtimedwait(set, ptr::null_mut(), &raw const now) };
        taken < 0 && io::Error::last_os_error().kind() == io::ErrorKind::Interrupted
    };
    while is_interrupted() {}
}
