//! Calls of madvise(2) and mlock(2) on mappings and parts of mappings.

use std::io;
use std::ops::Range;

use rustix::mm::Advice;

use super::{Change, Mapping, host};

/// The system call that gives free memory back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Giveback {
    /// `MADV_DONTNEED`, for private memory.
    DontNeed,
    /// `MADV_REMOVE`, which makes a hole in the file, for shared memory.
    PunchHole,
    /// The memory never goes back, because it is locked, pinned, hugetlb, or a caller's region.
    Never,
}

/// The outcome of [`discard`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Discarded {
    /// The system has the memory back, and the bytes read as zero.
    Yes,
    /// The system kept the memory with its contents.
    No,
}

/// Gives a range of bytes, counted from the mapping's start, back to the system. Bytes that the system took
/// back read as zero after the call.
///
/// The caller must own all pages of the range.
pub(crate) fn discard(mapping: &Mapping, bytes: Range<usize>, how: Giveback) -> Discarded {
    let advice = match how {
        Giveback::DontNeed => Advice::LinuxDontNeed,
        Giveback::PunchHole => Advice::LinuxRemove,
        Giveback::Never => return Discarded::No,
    };
    match host::discard(mapping, bytes, advice) {
        Ok(()) => Discarded::Yes,
        Err(_) => Discarded::No,
    }
}

/// Makes the bytes of a range resident and writable, without changing them.
///
/// # Errors
/// The errors of `madvise(MADV_POPULATE_WRITE)`, for example if memory is short, or on a kernel before 5.14.
pub(crate) fn populate(mapping: &Mapping, bytes: Range<usize>) -> io::Result<()> {
    host::advise(mapping, bytes, Advice::LinuxPopulateWrite)
}

/// Asks the system to replace small pages by huge pages with the same contents.
///
/// # Errors
/// The errors of `madvise(MADV_COLLAPSE)`, for example if no huge page is free, or on a kernel before 6.1.
pub(crate) fn collapse(mapping: &Mapping, bytes: Range<usize>) -> io::Result<()> {
    host::collapse(mapping, bytes)
}

/// Hides the mapping from later children of this process.
pub(crate) fn hide_from_children(mapping: &mut Mapping) -> io::Result<()> {
    mapping.note(Change::Hidden);
    host::advise(mapping, 0..mapping.bytes(), Advice::LinuxDontFork)
}

/// Makes the mapping read as zero in later children of this process.
pub(crate) fn wipe_in_children(mapping: &Mapping) -> io::Result<()> {
    host::advise(mapping, 0..mapping.bytes(), Advice::LinuxWipeOnFork)
}

/// Locks the mapping in memory.
pub(crate) fn lock(mapping: &mut Mapping) -> io::Result<()> {
    mapping.note(Change::Locked);
    host::lock(mapping)
}
