//! CPUs: how many can exist, how many this process may use, and which one runs this thread.

use super::host;

/// One more than the highest CPU id that can ever exist.
pub(crate) fn possible() -> usize {
    host::possible_cpus().unwrap_or_else(usable).clamp(1, 8192)
}

/// CPUs that this process may run on now.
pub(crate) fn usable() -> usize {
    std::thread::available_parallelism().map_or(1, |cpus| cpus.get())
}

/// The CPU that runs this thread, which may be another one a moment later.
#[inline]
pub(crate) fn current() -> usize {
    host::current_cpu()
}
