//! CPUs: how many can exist, how many this process may use, and which one runs this thread.

/// One more than the highest CPU id that can ever exist.
#[cfg(not(miri))]
pub(crate) fn possible() -> usize {
    let listed = std::fs::read_to_string("/sys/devices/system/cpu/possible");
    let highest = listed.ok().and_then(|list| highest_of(&list));
    let configured = std::thread::available_parallelism().map_or(1, |cpus| cpus.get());
    highest.map_or(configured, |highest| highest + 1).clamp(1, 8192)
}

/// Two CPUs, so that tests see more than one.
#[cfg(miri)]
pub(crate) fn possible() -> usize {
    2
}

/// CPUs that this process may run on now.
pub(crate) fn usable() -> usize {
    std::thread::available_parallelism().map_or(1, |cpus| cpus.get())
}

/// The CPU that runs this thread, which may be another one a moment later.
#[cfg(not(miri))]
#[inline]
pub(crate) fn current() -> usize {
    // glibc reads the thread's registered area where there is one, which is faster than the vDSO.
    // SAFETY: the call has no arguments and no effects.
    let cpu = unsafe { libc::sched_getcpu() };
    // Only a kernel without the call fails; then everybody is on one CPU.
    usize::try_from(cpu).unwrap_or(0)
}

/// Under miri, threads are spread over two CPUs by the address of something of theirs.
#[cfg(miri)]
pub(crate) fn current() -> usize {
    std::thread_local!(static HERE: u8 = const { 0 });
    HERE.with(|here| (std::ptr::from_ref(here).addr() >> 4) & 1)
}

/// The last number of a list such as `0-3,8-11`.
#[cfg(any(test, not(miri)))]
fn highest_of(list: &str) -> Option<usize> {
    list.trim().rsplit([',', '-']).next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_highest_cpu_of_a_list_is_its_last() {
        assert_eq!(highest_of("0-1\n"), Some(1));
        assert_eq!(highest_of("0"), Some(0));
        assert_eq!(highest_of("0-3,8-11"), Some(11));
        assert_eq!(highest_of(""), None);
    }
}
