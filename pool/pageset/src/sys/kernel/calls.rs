//! System calls about a mapping, and about CPUs.

use std::ffi::CStr;
use std::io;
use std::ops::Range;

use rustix::mm::{Advice, madvise, mlock, munlock};

use super::Mapping;
use crate::sys::lines;

/// One more than the highest CPU id that can ever exist, if the kernel says so.
pub(in crate::sys) fn possible_cpus() -> Option<usize> {
    let mut highest = None;
    lines::for_each("/sys/devices/system/cpu/possible", |listed| highest = highest_of(listed)).ok()?;
    highest.map(|highest: usize| highest + 1)
}

/// The number of CPUs that this thread may run on now, if the kernel says so. (The standard library's
/// function uses the heap.)
pub(in crate::sys) fn usable_cpus() -> Option<usize> {
    // The call fails if the machine has more CPUs than the set has bits: 1024.
    let usable = rustix::thread::sched_getaffinity(None).ok()?;
    usize::try_from(usable.count()).ok().filter(|count| *count > 0)
}

/// Whether an environment variable has this value. (The standard library would copy the value to the heap.)
pub(in crate::sys) fn environment_says(name: &CStr, value: &CStr) -> bool {
    // SAFETY: the name is a C string. Rust requires that no thread changes the environment while another
    // thread reads it.
    let found = unsafe { libc::getenv(name.as_ptr()) };
    // SAFETY: the pointer is not null, so it is a C string. No thread changes the string meanwhile.
    !found.is_null() && unsafe { CStr::from_ptr(found) } == value
}

/// The last number of a list of ranges such as `0-3,8-11`.
fn highest_of(list: &str) -> Option<usize> {
    list.trim().rsplit([',', '-']).next()?.parse().ok()
}

/// The CPU that runs this thread. The system may move the thread to another CPU at any time.
#[inline]
pub(in crate::sys) fn current_cpu() -> usize {
    // If the thread has a registered area, glibc reads the CPU from this area, which is faster than the vDSO.
    // SAFETY: the call has no arguments and no effects.
    let cpu = unsafe { libc::sched_getcpu() };
    // The call fails only on a kernel that lacks the system call. On a kernel without this system call, all
    // threads count as running on CPU 0.
    usize::try_from(cpu).unwrap_or(0)
}

/// Calls membarrier(2). Returns `false` if the kernel refuses the command.
pub(in crate::sys) fn membarrier(command: libc::c_int) -> bool {
    // SAFETY: membarrier takes three integers and touches no memory.
    unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) == 0 }
}

/// Calls mbind(2) for the whole mapping. An empty mask stands for no nodes, as the default policy needs.
pub(in crate::sys) fn bind_to(mapping: &Mapping, mode: libc::c_int, mask: &[u64]) -> io::Result<()> {
    let start = mapping.start().as_ptr();
    let (mask, bits) = match mask {
        [] => (std::ptr::null(), 0),
        // The kernel expects one more than the number of bits in the mask.
        _ => (mask.as_ptr(), mask.len() * u64::BITS as usize + 1),
    };
    // SAFETY: the range is the mapping. The kernel reads one bit fewer of the mask than `bits`.
    let outcome = unsafe { libc::syscall(libc::SYS_mbind, start, mapping.bytes(), mode, mask, bits, 0) };
    if outcome == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Calls madvise(2) for bytes of the mapping.
///
/// The caller must own all pages of the range if the advice changes contents.
pub(in crate::sys) fn advise(mapping: &Mapping, bytes: Range<usize>, advice: Advice) -> io::Result<()> {
    assert!(bytes.start <= bytes.end && bytes.end <= mapping.bytes());
    let start = mapping.start().as_ptr().wrapping_add(bytes.start);
    // SAFETY: the range lies inside the mapping. Only `discard` gives an advice that changes contents, and
    // its caller owns the pages, so that no reference to them exists.
    unsafe { madvise(start.cast(), bytes.len(), advice) }.map_err(io::Error::from)
}

/// `MADV_COLLAPSE`, which some C libraries do not define.
const MADV_COLLAPSE: libc::c_int = 25;

/// Asks the system to replace small pages by huge pages.
pub(in crate::sys) fn collapse(mapping: &Mapping, bytes: Range<usize>) -> io::Result<()> {
    assert!(bytes.start <= bytes.end && bytes.end <= mapping.bytes());
    let start = mapping.start().as_ptr().wrapping_add(bytes.start);
    // SAFETY: the range lies inside the mapping, and the advice leaves contents as they are.
    let outcome = unsafe { libc::madvise(start.cast(), bytes.len(), MADV_COLLAPSE) };
    if outcome == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Gives bytes back to the system by the given advice. The caller must own all pages of the range.
pub(in crate::sys) fn discard(mapping: &Mapping, bytes: Range<usize>, advice: Advice) -> io::Result<()> {
    advise(mapping, bytes, advice)
}

/// Calls mlock(2) for the whole mapping.
pub(in crate::sys) fn lock(mapping: &Mapping) -> io::Result<()> {
    // SAFETY: the range is the mapping, and locking changes no contents.
    unsafe { mlock(mapping.start().as_ptr().cast(), mapping.bytes()) }.map_err(io::Error::from)
}

/// Undoes [`lock`].
pub(super) fn unlock(mapping: &Mapping) -> io::Result<()> {
    // SAFETY: the range is the mapping, and unlocking changes no contents.
    unsafe { munlock(mapping.start().as_ptr().cast(), mapping.bytes()) }.map_err(io::Error::from)
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
