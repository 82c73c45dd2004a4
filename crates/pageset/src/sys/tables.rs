//! Memory for the frames' metadata: zero, mapped, and resident only where it is used.

use std::io;
use std::ptr::NonNull;

use pageset_core::{
    Config, Cpu, FrameCounts, FrameLinks, FrameState, FrameTables, PageAllocator, PageblockOwner,
    PageblockType, Pageset, Storage, TableCounts, Tables, Zone, ZoneId,
};

use super::{Mapping, PAGE_BYTES};
use crate::platform::UserPlatform;
use crate::{Backing, BuildError};

/// The core's allocator with the memory that it lives in. What the pool asks of it is in `core.rs`.
pub(crate) struct Core {
    allocator: PageAllocator<'static, UserPlatform>,
    // Behind the allocator: fields are dropped in this order.
    memory: TableMemory,
}

impl Core {
    /// Builds the allocator of one zone with these frames.
    pub(crate) fn new(config: &Config<'_>, counts: FrameCounts) -> Result<Self, BuildError> {
        let memory = TableMemory::new(counts)
            .map_err(|source| BuildError::System { what: "map the pool's metadata", source })?;
        let needed = TableCounts::for_config(config);
        // SAFETY: called once for this memory; the allocator is dropped before it, also if it cannot be built.
        let frames = unsafe { memory.tables() };
        let owners = Storage::owned(counts.owners(&config.policy, needed.cpus), PageblockOwner::new);
        let tables = Tables {
            zones: Storage::Owned(Box::new([Zone::new(frames).with_owners(owners)])),
            pagesets: Storage::owned(needed.pagesets, Pageset::new),
            cpus: Storage::owned(needed.cpus, Cpu::new),
            zonelists: Storage::owned(needed.zonelists, ZoneId::default),
        };
        let allocator = PageAllocator::new(UserPlatform, config, tables)?;
        Ok(Self { allocator, memory })
    }

    #[inline]
    pub(crate) fn allocator(&self) -> &PageAllocator<'static, UserPlatform> {
        &self.allocator
    }

    /// Bytes mapped for metadata.
    pub(crate) fn mapped_bytes(&self) -> usize {
        self.memory.mapping.bytes()
    }
}

/// A mapping that holds the metadata of one zone.
struct TableMemory {
    mapping: Mapping,
    counts: FrameCounts,
}

impl TableMemory {
    fn new(counts: FrameCounts) -> io::Result<Self> {
        let bytes = Self::bytes(counts).next_multiple_of(PAGE_BYTES);
        Ok(Self { mapping: Mapping::new(bytes, Backing::Plain)?, counts })
    }

    /// Bytes that the tables take: 9 per frame, and 1 per pageblock.
    fn bytes(counts: FrameCounts) -> usize {
        counts.frames * (size_of::<FrameLinks>() + size_of::<FrameState>()) + counts.pageblocks
    }

    /// The tables in this memory. They pretend to live forever.
    ///
    /// # Safety
    /// Call this once, and drop what is made of the tables before the memory.
    unsafe fn tables(&self) -> FrameTables<'static> {
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
