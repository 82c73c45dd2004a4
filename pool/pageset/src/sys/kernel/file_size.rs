//! Sets a file's size. If a limit of the process forbids it, the kernel also sends a signal, which ends a
//! program that does not expect it.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::AsFd;
use std::ptr;

use rustix::fs::ftruncate;

/// Sets the size of a file. A limit of file sizes (`ulimit -f`) is the error `EFBIG`, without a signal.
pub(super) fn set(file: impl AsFd, bytes: u64) -> io::Result<()> {
    let limit = signal_of_limit();
    let before = change_mask(libc::SIG_BLOCK, &limit)?;
    // A signal that the program itself waits for stays pending.
    let is_pending = is_pending();
    let outcome = ftruncate(file, bytes).map_err(io::Error::from);
    if outcome.is_err() && !is_pending {
        consume(&limit);
    }
    change_mask(libc::SIG_SETMASK, &before)?;
    outcome
}

/// The set that has only this signal.
fn signal_of_limit() -> libc::sigset_t {
    let mut set = MaybeUninit::uninit();
    // SAFETY: fills the set, which outlives the call.
    unsafe { libc::sigemptyset(set.as_mut_ptr()) };
    // SAFETY: the set was filled above, and the signal exists.
    unsafe { libc::sigaddset(set.as_mut_ptr(), libc::SIGXFSZ) };
    // SAFETY: filled above.
    unsafe { set.assume_init() }
}

/// Changes this thread's signal mask. Returns the mask before.
fn change_mask(how: libc::c_int, set: &libc::sigset_t) -> io::Result<libc::sigset_t> {
    let mut before = MaybeUninit::uninit();
    // SAFETY: both sets outlive the call, which reads the one and fills the other.
    let error = unsafe { libc::pthread_sigmask(how, set, before.as_mut_ptr()) };
    if error != 0 {
        return Err(io::Error::from_raw_os_error(error));
    }
    // SAFETY: filled by the call.
    Ok(unsafe { before.assume_init() })
}

/// Whether the signal is pending for this thread or its process.
fn is_pending() -> bool {
    let mut pending = MaybeUninit::uninit();
    // SAFETY: fills the set, which outlives the call.
    if unsafe { libc::sigpending(pending.as_mut_ptr()) } != 0 {
        return false;
    }
    // SAFETY: filled by the call, and the signal exists.
    unsafe { libc::sigismember(pending.as_ptr(), libc::SIGXFSZ) == 1 }
}

/// Takes the pending signal, if there is one.
fn consume(set: &libc::sigset_t) {
    let now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    let is_interrupted = || {
        // SAFETY: set and time outlive the call; nothing is to be told of the signal.
        let taken = unsafe { libc::sigtimedwait(set, ptr::null_mut(), &raw const now) };
        taken < 0 && io::Error::last_os_error().kind() == io::ErrorKind::Interrupted
    };
    while is_interrupted() {}
}
