//! Makes the tables of frame metadata for a zone of a simulated machine, in zeroed memory.
#![expect(unsafe_code, reason = "allocates zeroed memory for types whose all-zero bytes are a valid value")]

use pageset_core::{FrameCounts, FrameLinks, FrameState, FrameTables, PageblockType, Storage};

/// Makes the metadata for one zone. The operating system provides a zeroed page when the page is first
/// written. So the tables of a free zone of 1 TiB need memory only for the heads of the free blocks.
pub(crate) fn frame_tables(counts: FrameCounts) -> FrameTables<'static> {
    let links = Box::<[FrameLinks]>::new_zeroed_slice(counts.frames);
    let states = Box::<[FrameState]>::new_zeroed_slice(counts.frames);
    let pageblocks = Box::<[PageblockType]>::new_zeroed_slice(counts.pageblocks);
    FrameTables {
        // SAFETY: the documentation of FrameLinks promises that all-zero bytes are a valid value.
        links: Storage::Owned(unsafe { links.assume_init() }),
        // SAFETY: the documentation of FrameState promises that all-zero bytes are a valid value.
        states: Storage::Owned(unsafe { states.assume_init() }),
        // SAFETY: the documentation of PageblockType promises that all-zero bytes are a valid value.
        pageblocks: Storage::Owned(unsafe { pageblocks.assume_init() }),
    }
}
