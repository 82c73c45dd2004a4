//! Tables for all frames of a simulated machine. The system provides memory for them only where they are
//! written.
#![expect(unsafe_code, reason = "allocates zeroed memory for types whose all-zero bytes are a valid value")]

use pageset_core::{FrameCounts, FrameLinks, FrameState, FrameTables, PageblockType, Storage};

/// Metadata for one zone. The system gives zeroed pages when they are first written, so the table of 1 TiB
/// takes memory only for the heads of its free blocks.
pub(crate) fn frame_tables(counts: FrameCounts) -> FrameTables<'static> {
    let links = Box::<[FrameLinks]>::new_zeroed_slice(counts.frames);
    let states = Box::<[FrameState]>::new_zeroed_slice(counts.frames);
    let pageblocks = Box::<[PageblockType]>::new_zeroed_slice(counts.pageblocks);
    FrameTables {
        // SAFETY: the documentation of FrameLinks promises that all-zero bytes are a valid value.
        links: Storage::Owned(unsafe { links.assume_init() }),
        // SAFETY: the documentation of FrameState makes the same promise.
        states: Storage::Owned(unsafe { states.assume_init() }),
        // SAFETY: the documentation of PageblockType makes the same promise.
        pageblocks: Storage::Owned(unsafe { pageblocks.assume_init() }),
    }
}
