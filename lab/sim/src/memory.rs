//! Makes the tables of Linux's allocator for a simulated machine, in zeroed memory.
#![expect(unsafe_code, reason = "allocates zeroed memory for types whose all-zero bytes are a valid value")]

use pageset_core::{
    Config, ConfigError, FrameCounts, FrameLinks, FrameState, FrameTables, PageblockType, Platform, Storage,
    TableCounts, Tables, Zone,
};

/// Makes the metadata for one zone. The operating system provides a zeroed page when the page is first
/// written. So the tables of a free zone of 1 TiB need memory only for the heads of the free blocks.
fn frame_tables(counts: FrameCounts) -> FrameTables<'static> {
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

/// Makes the tables of Linux's allocator on the heap. The operating system provides memory for a page of the
/// frames' tables only when a CPU writes to this page. `pageset_core::Tables::on_heap` makes the same tables,
/// but writes to all of their pages.
///
/// # Errors
/// An error if a zone's span is empty or too large, or the heap has too little memory.
pub fn zeroed_tables<P: Platform>(config: &Config<'_>) -> Result<Tables<'static, P>, ConfigError> {
    let needed = TableCounts::for_config(config);
    let zones = config.zones.iter().enumerate().map(|(index, zone)| {
        let counts = FrameCounts::for_span(zone.span.clone());
        let counts = counts.ok_or(ConfigError::BadZoneSpan(index))?;
        let owners = Storage::owned(counts.owners(&config.policy, needed.cpus), Default::default)?;
        Ok(Zone::new(frame_tables(counts)).with_owners(owners))
    });
    Ok(Tables {
        zones: Storage::Owned(zones.collect::<Result<_, ConfigError>>()?),
        pagesets: Storage::owned(needed.pagesets, Default::default)?,
        cpus: Storage::owned(needed.cpus, Default::default)?,
        zonelists: Storage::owned(needed.zonelists, Default::default)?,
    })
}
