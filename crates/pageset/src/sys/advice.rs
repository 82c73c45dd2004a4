//! Giving memory back and fetching it, advice about ranges that the pool owns for the moment; and what holds for a whole
//! mapping. Under miri there is no kernel: all memory stays, and there are no children.

use std::ffi::c_void;
use std::io;
use std::ops::Range;

use rustix::mm::{Advice, madvise, mlock};

use super::{Change, Mapping};

/// How free memory goes back to the system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Giveback {
    /// `MADV_DONTNEED`: private memory.
    DontNeed,
    /// `MADV_REMOVE`, a hole in the file: shared memory.
    PunchHole,
    /// Not at all: a caller's region, or pages larger than a pageblock.
    Never,
}

/// What a call of [`discard`] did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Discarded {
    /// The memory is gone, and reads as zero.
    Yes,
    /// The system kept it, contents and all.
    No,
}

/// Gives the bytes of a range, relative to the mapping, back to the system. They read as zero afterwards.
///
/// The caller owns all pages of the range.
pub(crate) fn discard(mapping: &Mapping, bytes: Range<usize>, how: Giveback) -> Discarded {
    let advice = match how {
        Giveback::DontNeed => Advice::LinuxDontNeed,
        Giveback::PunchHole => Advice::LinuxRemove,
        Giveback::Never => return Discarded::No,
    };
    if cfg!(miri) {
        super::zero::clear(mapping, bytes);
        return Discarded::Yes;
    }
    match advise(mapping, bytes, advice) {
        Ok(()) => Discarded::Yes,
        Err(_) => Discarded::No,
    }
}

/// Makes the bytes of a range resident and writable, without changing them.
///
/// # Errors
/// As `madvise(MADV_POPULATE_WRITE)`: out of memory, or a kernel before 5.14.
pub(crate) fn populate(mapping: &Mapping, bytes: Range<usize>) -> io::Result<()> {
    advise(mapping, bytes, Advice::LinuxPopulateWrite)
}

/// Hides the mapping from children of this process.
pub(crate) fn hide_from_children(mapping: &mut Mapping) -> io::Result<()> {
    mapping.note(Change::Hidden);
    advise(mapping, 0..mapping.bytes(), Advice::LinuxDontFork)
}

/// Undoes [`hide_from_children`].
#[cfg(not(miri))]
pub(super) fn show_to_children(mapping: &Mapping) -> io::Result<()> {
    advise(mapping, 0..mapping.bytes(), Advice::LinuxDoFork)
}

/// Has the mapping read as zero in children of this process.
pub(crate) fn wipe_in_children(mapping: &Mapping) -> io::Result<()> {
    advise(mapping, 0..mapping.bytes(), Advice::LinuxWipeOnFork)
}

fn advise(mapping: &Mapping, bytes: Range<usize>, advice: Advice) -> io::Result<()> {
    assert!(bytes.start <= bytes.end && bytes.end <= mapping.bytes());
    if cfg!(miri) {
        return Ok(());
    }
    let start = mapping.start().as_ptr().wrapping_add(bytes.start);
    // SAFETY: the range lies inside the mapping. Only `discard` gives an advice that changes contents here, and its
    // caller owns the pages, so that no reference to them exists.
    unsafe { madvise(start.cast(), bytes.len(), advice) }.map_err(io::Error::from)
}

/// Locks the mapping in memory.
pub(crate) fn lock(mapping: &mut Mapping) -> io::Result<()> {
    mapping.note(Change::Locked);
    let (start, bytes) = whole(mapping);
    if cfg!(miri) {
        return Ok(());
    }
    // SAFETY: the range is the mapping; locking changes no contents.
    unsafe { mlock(start, bytes) }.map_err(io::Error::from)
}

/// Undoes [`lock`].
#[cfg(not(miri))]
pub(super) fn unlock(mapping: &Mapping) -> io::Result<()> {
    let (start, bytes) = whole(mapping);
    // SAFETY: the range is the mapping; unlocking changes no contents.
    unsafe { rustix::mm::munlock(start, bytes) }.map_err(io::Error::from)
}

fn whole(mapping: &Mapping) -> (*mut c_void, usize) {
    (mapping.start().as_ptr().cast(), mapping.bytes())
}
