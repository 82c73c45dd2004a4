//! Building an allocator in the caller's tables.

use core::ops::Range;

use pageset_core::{Config, ConfigError, CpuId, MigrateType, ZoneId, ZoneKind};

use super::sets::Members;
use super::tables::{covering, pageblocks_of};
use super::{BlockAllocator, FRAMES, TableCounts, Tables, WholeUse};
use crate::access::{Access, Alone};
use crate::atomic::{AtomicUsize, Relaxed};
use crate::cpu_share::{CpuHome, MAX_BLOCKS};
use crate::ids::{BlockId, FrameId, each};
use crate::index::Index;
use crate::row::{ROWS, rows_of};
use crate::state::{MAX_CPUS, State};
use crate::zone::Zone;

impl<'a> BlockAllocator<'a> {
    /// Builds an allocator. Every frame of every region is free. The configuration's policy is ignored.
    /// O(pageblocks).
    ///
    /// # Errors
    /// A [`ConfigError`] if a table has the wrong length, the configuration contradicts itself, or the
    /// allocator cannot have so many CPUs or pageblocks.
    pub fn new(config: &Config<'_>, tables: Tables<'a>) -> Result<Self, ConfigError> {
        Self::build(config, tables)
    }
}

impl<'a> BlockAllocator<'a, Alone> {
    /// Builds an allocator that one thread uses at a time. The allocator changes words by stores, which are
    /// cheaper than exchanges. In all other ways, the allocator works like one from
    /// [`new`](BlockAllocator::new).
    ///
    /// # Errors
    /// The errors of `new`.
    pub fn for_one(config: &Config<'_>, tables: Tables<'a, Alone>) -> Result<Self, ConfigError> {
        Self::build(config, tables)
    }
}

impl<'a, A: Access> BlockAllocator<'a, A> {
    fn build(config: &Config<'_>, mut tables: Tables<'a, A>) -> Result<Self, ConfigError> {
        config.check()?;
        if config.cpus.len() > MAX_CPUS {
            return Err(ConfigError::BadCpu(config.cpus.len() as u32 - 1));
        }
        let counts = TableCounts::for_config(config)?;
        tables.check(counts)?;
        if counts.pageblocks > MAX_BLOCKS {
            return Err(ConfigError::BadZoneSpan(config.zones.len() - 1));
        }
        let mut first = BlockId(0);
        for (index, (zone, of)) in tables.zones.iter_mut().zip(config.zones).enumerate() {
            let blocks = pageblocks_of(of).ok_or(ConfigError::BadZoneSpan(index))?;
            let first_frame = covering(of).ok_or(ConfigError::BadZoneSpan(index))?.start;
            zone.id = ZoneId(index as u16);
            zone.kind = of.kind;
            zone.node = of.node;
            zone.span = of.span.clone();
            zone.managed.store(of.managed() as usize, Relaxed);
            zone.blocks = first..first.after(blocks);
            zone.offset = first_frame.wrapping_sub(FrameId::of(first, 0).0 as u64);
            zone.lowmem_reserve = config.lowmem_reserve(index);
            zone.set_marks(config.watermarks(index));
            first = zone.blocks.end;
        }
        config.fill_zonelists(&mut tables.zonelists)?;
        for (home, node) in tables.homes.iter_mut().zip(config.cpus) {
            let zonelist = &tables.zonelists[node.index() * config.zones.len()..][..config.zones.len()];
            *home = CpuHome { node: *node, zones: first_zones(config, zonelist) };
        }
        for (zone, shares) in tables.zones.iter().zip(tables.shares.chunks_mut(config.cpus.len())) {
            shares.iter_mut().for_each(|share| share.offset = zone.offset);
        }
        let min_free_kbytes = config.min_free_kbytes_or_default();
        let allocator = Self {
            rows: tables.rows,
            bad: tables.bad,
            states: tables.states,
            index: Index::new(tables.index, counts.pageblocks),
            shares: tables.shares,
            homes: tables.homes,
            zones: tables.zones,
            zonelists: tables.zonelists,
            whole_use: WholeUse::default(),
            min_free_kbytes: AtomicUsize::new(usize::try_from(min_free_kbytes).unwrap_or(usize::MAX)),
            page_bytes: config.page_bytes,
            watermark_scale_factor: config.watermark_scale_factor,
            #[cfg(feature = "line-counts")]
            now_ns: || 0,
        };
        for (index, of) in config.zones.iter().enumerate() {
            allocator.populate(ZoneId(index as u16), of.regions);
            allocator.spread_cpus(ZoneId(index as u16));
        }
        Ok(allocator)
    }

    /// Makes the frames of a zone's regions free.
    fn populate(&self, id: ZoneId, regions: &[Range<u64>]) {
        let zone = &self.zones[id.index()];
        // Pageblocks that lie in one region. Their states are zeros, which means `Whole`. Their rows stay
        // zeros, too: no CPU can take from zeros, and a row's memory is not touched before the pageblock is
        // used.
        let covered = |region: &Range<u64>| {
            let frame = |number: u64| number.wrapping_sub(zone.offset) as usize;
            let first = BlockId(frame(region.start.max(zone.span.start)).div_ceil(FRAMES));
            first..FrameId(frame(region.end)).block().max(first)
        };
        for blocks in regions.iter().map(covered) {
            self.set(Members::Whole).fill(&blocks, false);
            self.set(Members::Pairs).fill(&blocks, true);
            zone.add_whole::<A>(each(&blocks).len());
        }
        self.note_units(zone);
        let mut block = zone.blocks.start;
        while block < zone.blocks.end {
            match regions.iter().map(covered).find(|blocks| blocks.contains(&block)) {
                Some(blocks) => block = blocks.end,
                None => {
                    self.populate_part(zone, block, regions);
                    block = block.after(1);
                }
            }
        }
    }

    /// Makes those frames of a pageblock free that lie in a region. No single region covers the pageblock.
    fn populate_part(&self, zone: &Zone, block: BlockId, regions: &[Range<u64>]) {
        let start = zone.pfn(FrameId::of(block, 0)).0;
        let mut free = [0; ROWS];
        for region in regions {
            let part = region.start.max(start)..region.end.min(start + FRAMES as u64);
            if !part.is_empty() {
                let frames = (part.start - start) as usize..(part.end - start) as usize;
                rows_of(frames).for_each(|(row, bits)| free[row] |= bits);
            }
        }
        if free.iter().any(|bits| *bits != 0) {
            self.open_with_holes(block, free);
        } else {
            self.state(block).set(State::ABSENT);
        }
    }

    fn open_with_holes(&self, block: BlockId, free: [usize; ROWS]) {
        self.rows(block).withhold_everything();
        for (row, bits) in free.into_iter().enumerate() {
            self.rows(block).offer(row, bits).ok();
        }
        self.state(block).set(State::open(MigrateType::Movable).holed());
        self.settle(block);
        #[cfg(feature = "line-counts")]
        self.rows(block).last_change.forget_moves();
    }

    /// Lets CPUs begin their searches for whole pageblocks far from each other.
    fn spread_cpus(&self, id: ZoneId) {
        let blocks = &self.zones[id.index()].blocks;
        for cpu in 0..self.cpus() {
            // The search begins at the first pageblock of a pair, so that the largest blocks stay whole.
            let near = (each(blocks).len() * cpu / self.cpus()) & !1;
            self.share_at(id, CpuId(cpu as u32)).set_near(blocks.start.after(near));
        }
    }
}

/// For each kind, the first zone of the zonelist that has this kind or a lower kind.
fn first_zones(config: &Config<'_>, zonelist: &[ZoneId]) -> [ZoneId; ZoneKind::COUNT] {
    ZoneKind::ALL.map(|kind| {
        let first = zonelist.iter().find(|id| config.zones[id.index()].kind <= kind);
        *first.unwrap_or(&CpuHome::NO_ZONE)
    })
}
