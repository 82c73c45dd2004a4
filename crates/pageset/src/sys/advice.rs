//! Giving memory back and fetching it: advice about ranges that the pool owns for the moment.

use std::io;
use std::ops::Range;

use super::Mapping;

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
#[cfg(not(miri))]
pub(crate) fn discard(mapping: &Mapping, bytes: Range<usize>, how: Giveback) -> Discarded {
    use rustix::mm::{Advice, madvise};
    assert!(bytes.start <= bytes.end && bytes.end <= mapping.bytes());
    let advice = match how {
        Giveback::DontNeed => Advice::LinuxDontNeed,
        Giveback::PunchHole => Advice::LinuxRemove,
        Giveback::Never => return Discarded::No,
    };
    let start = mapping.start().as_ptr().wrapping_add(bytes.start);
    // SAFETY: the range lies inside the mapping, and the caller owns its pages, so that no reference to them exists.
    match unsafe { madvise(start.cast(), bytes.len(), advice) } {
        Ok(()) => Discarded::Yes,
        Err(_) => Discarded::No,
    }
}

/// Under miri: the range is cleared.
#[cfg(miri)]
pub(crate) fn discard(mapping: &Mapping, bytes: Range<usize>, how: Giveback) -> Discarded {
    if how == Giveback::Never {
        return Discarded::No;
    }
    super::zero::clear(mapping, bytes);
    Discarded::Yes
}

/// Makes the bytes of a range resident and writable, without changing them.
///
/// # Errors
/// As `madvise(MADV_POPULATE_WRITE)`: out of memory, or a kernel before 5.14.
#[cfg(not(miri))]
pub(crate) fn populate(mapping: &Mapping, bytes: Range<usize>) -> io::Result<()> {
    use rustix::mm::{Advice, madvise};
    assert!(bytes.start <= bytes.end && bytes.end <= mapping.bytes());
    let start = mapping.start().as_ptr().wrapping_add(bytes.start);
    // SAFETY: the range lies inside the mapping; populating changes no contents.
    unsafe { madvise(start.cast(), bytes.len(), Advice::LinuxPopulateWrite) }.map_err(io::Error::from)
}

/// Under miri all memory is there.
#[cfg(miri)]
pub(crate) fn populate(_: &Mapping, _: Range<usize>) -> io::Result<()> {
    Ok(())
}

/// Hides the mapping from children of this process.
#[cfg(not(miri))]
pub(crate) fn hide_from_children(mapping: &mut Mapping) -> io::Result<()> {
    use rustix::mm::{Advice, madvise};
    mapping.is_hidden = true;
    // SAFETY: the range is the mapping, and this advice changes nothing in this process.
    unsafe { madvise(mapping.start().as_ptr().cast(), mapping.bytes(), Advice::LinuxDontFork) }
        .map_err(io::Error::from)
}

/// Under miri there are no children.
#[cfg(miri)]
pub(crate) fn hide_from_children(_: &mut Mapping) -> io::Result<()> {
    Ok(())
}

/// Undoes [`hide_from_children`].
#[cfg(not(miri))]
pub(crate) fn show_to_children(mapping: &Mapping) -> io::Result<()> {
    use rustix::mm::{Advice, madvise};
    // SAFETY: the range is the mapping, and this advice changes nothing in this process.
    unsafe { madvise(mapping.start().as_ptr().cast(), mapping.bytes(), Advice::LinuxDoFork) }
        .map_err(io::Error::from)
}

/// Under miri there are no children.
#[cfg(miri)]
pub(crate) fn show_to_children(_: &Mapping) -> io::Result<()> {
    Ok(())
}

/// Locks the mapping in memory.
#[cfg(not(miri))]
pub(crate) fn lock(mapping: &Mapping) -> io::Result<()> {
    // SAFETY: the range is the mapping; locking changes no contents.
    unsafe { rustix::mm::mlock(mapping.start().as_ptr().cast(), mapping.bytes()) }.map_err(io::Error::from)
}

/// Under miri all memory stays.
#[cfg(miri)]
pub(crate) fn lock(_: &Mapping) -> io::Result<()> {
    Ok(())
}

/// Has the mapping read as zero in children of this process.
#[cfg(not(miri))]
pub(crate) fn wipe_in_children(mapping: &Mapping) -> io::Result<()> {
    use rustix::mm::{Advice, madvise};
    // SAFETY: the range is the mapping, and this advice changes nothing in this process.
    unsafe { madvise(mapping.start().as_ptr().cast(), mapping.bytes(), Advice::LinuxWipeOnFork) }
        .map_err(io::Error::from)
}

/// Under miri there are no children.
#[cfg(miri)]
pub(crate) fn wipe_in_children(_: &Mapping) -> io::Result<()> {
    Ok(())
}
