//! System calls about this thread.

use std::mem::MaybeUninit;
use std::ptr;

/// The number of words of a CPU mask with a bit for each of 8192 CPUs, the most that a kernel supports.
const CPU_WORDS: usize = 8192 / 64;

/// The earlier signal mask of this thread. Dropping the value gives the thread its earlier mask again.
pub(crate) struct SignalsBlocked(Option<libc::sigset_t>);

/// Blocks all signals for this thread.
pub(in crate::sys) fn block_signals() -> SignalsBlocked {
    let mut all = MaybeUninit::uninit();
    // SAFETY: `sigfillset` initialises the set `all`.
    unsafe { libc::sigfillset(all.as_mut_ptr()) };
    let mut before = MaybeUninit::uninit();
    // SAFETY: both sets outlive the call, and the first one is initialised.
    let outcome = unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr()) };
    // SAFETY: `pthread_sigmask` has succeeded, so the previous mask is in `before`.
    SignalsBlocked((outcome == 0).then(|| unsafe { before.assume_init() }))
}

impl Drop for SignalsBlocked {
    fn drop(&mut self) {
        if let Some(before) = &self.0 {
            // SAFETY: the set outlives the call, and a null pointer means that the present mask is not
            // wanted.
            unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, before, ptr::null_mut()) };
        }
    }
}

/// Lets this thread run on all CPUs that its cpuset allows.
pub(in crate::sys) fn use_all_cpus() {
    let all = [u64::MAX; CPU_WORDS];
    // SAFETY: the kernel reads as many bytes as `all` has, and ignores CPUs that do not exist.
    unsafe { libc::syscall(libc::SYS_sched_setaffinity, 0, size_of_val(&all), all.as_ptr()) };
}

/// Gives this thread the ordinary policy if the thread has a real-time policy. Makes the system calls
/// directly, because musl's functions for the scheduling policy always fail.
pub(in crate::sys) fn leave_real_time() {
    // SAFETY: the call has no memory arguments.
    let policy = unsafe { libc::syscall(libc::SYS_sched_getscheduler, 0) };
    let policy = policy & !libc::c_long::from(libc::SCHED_RESET_ON_FORK);
    if [libc::SCHED_FIFO, libc::SCHED_RR].map(libc::c_long::from).contains(&policy) {
        // `sched_setscheduler` reads a `sched_param`, which the kernel defines as one number: the priority.
        let priority: libc::c_int = 0;
        // SAFETY: the parameter outlives the call.
        unsafe { libc::syscall(libc::SYS_sched_setscheduler, 0, libc::SCHED_OTHER, &raw const priority) };
    }
}
