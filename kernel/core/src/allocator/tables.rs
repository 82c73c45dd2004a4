//! The memory of an allocator's tables. The caller provides the memory, or the heap provides the memory
//! before the build.

use super::{Config, Cpu};
use crate::error::ConfigError;
use crate::pcp::Pageset;
use crate::platform::Platform;
use crate::zone::Zone;
use crate::{Storage, ZoneId};

/// All tables of an allocator. Each table must have exactly the length that [`TableCounts`] says.
///
/// Each zone, page set and CPU must equal the result of its type's `new`, and frame metadata must be all
/// zeros. The zonelists may hold any values.
pub struct Tables<'a, P: Platform> {
    /// The zones. Each zone has its frame metadata.
    pub zones: Storage<'a, Zone<'a, P>>,
    /// The page sets: one for each zone and CPU.
    pub pagesets: Storage<'a, Pageset<P>>,
    /// CPUs.
    pub cpus: Storage<'a, Cpu>,
    /// The zonelists. Each node has one zonelist with all zones.
    pub zonelists: Storage<'a, ZoneId>,
}

/// The tables of all CPUs in one value, for a static: the page sets, the CPUs, and the zonelists. The default
/// parameters are for one zone. For several zones, [`TableCounts::for_config`] computes the parameters:
///
/// ```
/// use std::ops::Range;
///
/// use pageset_core::{Config, CpuMemory, FrameCounts, NodeId, TableCounts, ZoneConfig, ZoneKind};
/// # use pageset_core::Platform;
///
/// const LOW: Range<u64> = 0..16_384; // 64 MiB
/// const HIGH: Range<u64> = 16_384..32_768;
/// const ZONES: [ZoneConfig<'_>; 2] = [
///     ZoneConfig { kind: ZoneKind::Dma32, node: NodeId(0), span: LOW, regions: &[LOW] },
///     ZoneConfig { kind: ZoneKind::Normal, node: NodeId(1), span: HIGH, regions: &[HIGH] },
/// ];
/// const COUNTS: TableCounts = TableCounts::for_config(&Config::new(&ZONES, &[NodeId(0), NodeId(1)]));
/// type Memory<P> = CpuMemory<P, { COUNTS.cpus }, { COUNTS.pagesets }, { COUNTS.zonelists }>;
/// # fn new<P: Platform>() -> Memory<P> { Memory::new() }
/// assert_eq!((COUNTS.cpus, COUNTS.pagesets, COUNTS.zonelists), (2, 4, 4));
/// // The tables of a zone's frames are a `FrameMemory<{ FRAMES.frames }, { FRAMES.pageblocks }>`.
/// const FRAMES: FrameCounts = FrameCounts::for_span(LOW).unwrap();
/// assert_eq!((FRAMES.frames, FRAMES.pageblocks), (16_384, 32));
/// ```
///
/// If the lock's `INIT` is all zeros, so is the new value, and a static `CpuMemory` lies in `.bss`.
#[derive(Debug)]
pub struct CpuMemory<P: Platform, const CPUS: usize, const PAGESETS: usize = CPUS, const ZONELISTS: usize = 1>
{
    pagesets: [Pageset<P>; PAGESETS],
    cpus: [Cpu; CPUS],
    zonelists: [ZoneId; ZONELISTS],
}

impl<P: Platform, const CPUS: usize, const PAGESETS: usize, const ZONELISTS: usize>
    CpuMemory<P, CPUS, PAGESETS, ZONELISTS>
{
    /// Makes the memory for an allocator's tables, except the tables of zones.
    #[must_use]
    #[expect(clippy::new_without_default, reason = "large: for statics, not for the stack")]
    pub const fn new() -> Self {
        Self {
            pagesets: [const { Pageset::new() }; _],
            cpus: [const { Cpu::new() }; _],
            zonelists: [ZoneId(0); _],
        }
    }

    /// All tables, for [`PageAllocator::new`](crate::PageAllocator::new).
    pub fn tables<'a>(&'a mut self, zones: &'a mut [Zone<'a, P>]) -> Tables<'a, P> {
        Tables {
            zones: zones.into(),
            pagesets: (&mut self.pagesets).into(),
            cpus: (&mut self.cpus).into(),
            zonelists: (&mut self.zonelists).into(),
        }
    }
}

/// Number of entries of each table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableCounts {
    /// Number of entries of [`Tables::zones`].
    pub zones: usize,
    /// Number of entries of [`Tables::pagesets`].
    pub pagesets: usize,
    /// Number of entries of [`Tables::cpus`].
    pub cpus: usize,
    /// Number of entries of [`Tables::zonelists`].
    pub zonelists: usize,
}

impl TableCounts {
    /// Returns how many entries each table needs for a configuration. [`FrameCounts`](crate::FrameCounts) has
    /// the numbers for frame metadata. This function is `const`, so a program can use the counts as lengths
    /// of static tables.
    #[must_use]
    pub const fn for_config(config: &Config<'_>) -> Self {
        let (zones, cpus) = (config.zones.len(), config.cpus.len());
        Self { zones, cpus, pagesets: zones * cpus, zonelists: zones * config.nodes() }
    }
}

impl<P: Platform> Tables<'_, P> {
    pub(super) fn check(&self, needed: TableCounts) -> Result<(), ConfigError> {
        for (table, len, needed) in [
            ("zones", self.zones.len(), needed.zones),
            ("pagesets", self.pagesets.len(), needed.pagesets),
            ("cpus", self.cpus.len(), needed.cpus),
            ("zonelists", self.zonelists.len(), needed.zonelists),
        ] {
            if len != needed {
                return Err(ConfigError::TableLength(table, needed));
            }
        }
        Ok(())
    }
}

#[cfg(feature = "alloc")]
impl<P: Platform> Tables<'static, P> {
    /// Allocates the tables for `config` on the heap.
    ///
    /// # Errors
    /// An error if a zone's span is empty or too large, or the heap has too little memory.
    pub fn on_heap(config: &Config<'_>) -> Result<Self, ConfigError> {
        let needed = TableCounts::for_config(config);
        let mut zones = alloc::vec::Vec::new();
        let bytes = needed.zones.saturating_mul(size_of::<Zone<'static, P>>());
        zones.try_reserve_exact(needed.zones).map_err(|_| ConfigError::OutOfMemory(bytes))?;
        for (index, zone) in config.zones.iter().enumerate() {
            let counts =
                crate::FrameCounts::for_span(zone.span.clone()).ok_or(ConfigError::BadZoneSpan(index))?;
            let zone = Zone::new(crate::frame::FrameTables::on_heap(counts)?);
            let owners = counts.owners(&config.policy, needed.cpus);
            zones.push(zone.with_owners(Storage::owned(owners, crate::frame::PageblockOwner::new)?));
        }
        Ok(Self {
            zones: Storage::Owned(zones.into()),
            pagesets: Storage::owned(needed.pagesets, Pageset::new)?,
            cpus: Storage::owned(needed.cpus, Cpu::new)?,
            zonelists: Storage::owned(needed.zonelists, ZoneId::default)?,
        })
    }
}

#[cfg(feature = "alloc")]
impl crate::frame::FrameTables<'static> {
    /// Allocates the metadata of one zone on the heap.
    ///
    /// # Errors
    /// [`ConfigError::OutOfMemory`] if the heap has too little memory.
    pub fn on_heap(counts: crate::FrameCounts) -> Result<Self, ConfigError> {
        Ok(Self {
            links: Storage::owned(counts.frames, crate::frame::FrameLinks::new)?,
            states: Storage::owned(counts.frames, crate::frame::FrameState::new)?,
            pageblocks: Storage::owned(counts.pageblocks, crate::frame::PageblockType::new)?,
        })
    }
}

impl<P: Platform> core::fmt::Debug for Tables<'_, P> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Tables").field("zones", &self.zones.len()).finish_non_exhaustive()
    }
}
