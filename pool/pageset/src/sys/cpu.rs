//! Tells how many CPUs can exist, how many CPUs this thread may use, and which CPU runs this thread.

use super::host;

/// One more than the highest CPU id that can ever exist.
pub(crate) fn possible() -> usize {
    host::possible_cpus().or_else(host::usable_cpus).unwrap_or(1).clamp(1, 8192)
}

/// The number of CPUs that this thread may run on now. If the kernel does not report which CPUs the thread
/// may run on, the number of all CPUs.
pub(crate) fn usable() -> usize {
    host::usable_cpus().or_else(host::possible_cpus).unwrap_or(1)
}

/// The CPU that runs this thread. The system may move the thread to another CPU at any time.
#[inline]
pub(crate) fn current() -> usize {
    host::current_cpu()
}
