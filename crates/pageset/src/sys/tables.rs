//! Memory for the frames' metadata: zero, mapped, and resident only where it is used.

use std::io;
use std::ptr::NonNull;

use pageset_core::{FrameCounts, FrameLinks, FrameState, FrameTables, PageblockType, Storage};

use super::{Mapping, PAGE_BYTES};
use crate::Backing;

/// A mapping that holds the metadata of one zone.
pub(crate) struct TableMemory {
    mapping: Mapping,
    counts: FrameCounts,
}

impl TableMemory {
    pub(crate) fn new(counts: FrameCounts) -> io::Result<Self> {
        let bytes = Self::bytes(counts).next_multiple_of(PAGE_BYTES);
        Ok(Self { mapping: Mapping::new(bytes, Backing::Plain)?, counts })
    }

    /// Bytes that the tables take: 9 per frame, and 1 per pageblock.
    fn bytes(counts: FrameCounts) -> usize {
        counts.frames * (size_of::<FrameLinks>() + size_of::<FrameState>()) + counts.pageblocks
    }

    /// Bytes mapped.
    pub(crate) fn mapped_bytes(&self) -> usize {
        self.mapping.bytes()
    }

    /// The tables in this memory. They pretend to live forever.
    ///
    /// # Safety
    /// Call this once, and drop what is made of the tables before the memory.
    pub(crate) unsafe fn tables(&self) -> FrameTables<'static> {
        let FrameCounts { frames, pageblocks } = self.counts;
        let links = self.mapping.start();
        let states = links.as_ptr().wrapping_add(frames * size_of::<FrameLinks>());
        let types = states.wrapping_add(frames * size_of::<FrameState>());
        // SAFETY: the mapping is long enough, page-aligned and zero, which is a valid value; the caller promises that
        // this is the only slice of it.
        let links = unsafe { slice(links.as_ptr().cast::<FrameLinks>(), frames) };
        // SAFETY: as above; the part behind the links.
        let states = unsafe { slice(states.cast::<FrameState>(), frames) };
        // SAFETY: as above; the part behind the states.
        let types = unsafe { slice(types.cast::<PageblockType>(), pageblocks) };
        FrameTables {
            links: Storage::Borrowed(links),
            states: Storage::Borrowed(states),
            pageblocks: Storage::Borrowed(types),
        }
    }
}

/// A slice that pretends to live forever.
///
/// # Safety
/// As for [`NonNull::as_mut`] on a slice, for as long as the slice is used.
unsafe fn slice<T>(start: *mut T, len: usize) -> &'static mut [T] {
    let start = NonNull::new(start).expect("a mapping does not begin at zero");
    let mut slice = NonNull::slice_from_raw_parts(start, len);
    // SAFETY: the caller promises it.
    unsafe { slice.as_mut() }
}
