//! Runs work in children of `fork`.

/// Runs `work` in a child, and returns the child's process id. The child exits after `work`.
pub(crate) fn fork(work: impl FnOnce()) -> libc::pid_t {
    // SAFETY: the child is a copy with this thread only. glibc's heap survives a fork, and the child leaves
    // by `_exit`.
    let pid = unsafe { libc::fork() };
    assert!(pid >= 0, "fork failed");
    if pid == 0 {
        // SAFETY: the signal ends a child that waits for ever.
        unsafe { libc::alarm(60) };
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
        // SAFETY: the call ends the process without running the parent's destructors or exit handlers.
        unsafe { libc::_exit(if outcome.is_ok() { 0 } else { 101 }) };
    }
    pid
}

/// Waits for a child. Returns the child's exit status, which is 101 after a panic. If a signal ended the
/// child, returns minus the signal's number.
pub(crate) fn status_of(pid: libc::pid_t) -> i32 {
    let mut status = 0;
    // SAFETY: the call waits for a child, and `status` outlives the call.
    assert_eq!(unsafe { libc::waitpid(pid, &raw mut status, 0) }, pid);
    if libc::WIFEXITED(status) { libc::WEXITSTATUS(status) } else { -libc::WTERMSIG(status) }
}
