//! Replacements for system calls under miri, which has no kernel.

use std::ffi::CStr;
use std::io;
use std::ops::Range;

use rustix::mm::Advice;

use super::Mapping;

/// Returns two CPUs, so that tests run with arrays of more than one CPU.
pub(in crate::sys) fn possible_cpus() -> Option<usize> {
    Some(2)
}

/// Returns one CPU, because miri gives a program only one CPU.
pub(in crate::sys) fn usable_cpus() -> Option<usize> {
    Some(1)
}

/// Does nothing: miri never unloads code.
pub(in crate::sys) fn stay_loaded() {}

/// Returns `false`: under miri, the environment is the machine's, not the program's.
pub(in crate::sys) fn environment_says(_: &CStr, _: &CStr) -> bool {
    false
}

/// Spreads threads over the CPUs by the address of a thread-local.
pub(in crate::sys) fn current_cpu() -> usize {
    std::thread_local!(static HERE: u8 = const { 0 });
    HERE.with(|here| (std::ptr::from_ref(here).addr() >> 4) & 1)
}

/// Returns `false`: miri has no restartable sequences.
pub(in crate::sys) fn membarrier(_: libc::c_int) -> bool {
    false
}

pub(in crate::sys) fn bind_to(_: &Mapping, _: libc::c_int, _: &[u64]) -> io::Result<()> {
    Ok(())
}

pub(in crate::sys) fn advise(mapping: &Mapping, bytes: Range<usize>, _: Advice) -> io::Result<()> {
    assert!(bytes.start <= bytes.end && bytes.end <= mapping.bytes());
    Ok(())
}

/// Returns an error: miri has no huge pages.
pub(in crate::sys) fn collapse(_: &Mapping, _: Range<usize>) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Clears the bytes, because bytes that the system took back read as zero.
pub(in crate::sys) fn discard(mapping: &Mapping, bytes: Range<usize>, _: Advice) -> io::Result<()> {
    crate::sys::zero::clear(mapping, bytes);
    Ok(())
}

/// Miri has no signals to block.
pub(crate) type SignalsBlocked = ();

pub(in crate::sys) fn block_signals() {}

/// Returns an error: miri cannot fork.
pub(in crate::sys) fn at_forks(_: extern "C" fn(), _: extern "C" fn(), _: extern "C" fn()) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

pub(in crate::sys) fn process_id() -> i32 {
    1
}

pub(in crate::sys) fn is_process(_: i32) -> bool {
    true
}

pub(in crate::sys) fn use_all_cpus() {}

pub(in crate::sys) fn leave_real_time() {}

pub(in crate::sys) fn lock(_: &Mapping) -> io::Result<()> {
    Ok(())
}
