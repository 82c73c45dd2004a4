//! A kernel that learns the size of memory at boot, and lends a part of it for the tables. The guide shows
//! this file.

use core::mem::{MaybeUninit, take};
use core::ops::Range;
use core::slice;

use pageset_blocks::{Alone, BlockAllocator, TableCounts, TableLender, TableMemory, Tables, table_memory};
use pageset_core::{Config, ConfigError, NodeId, ZoneConfig, ZoneKind};
use pageset_core::{CpuId, MigrateType, Pfn};

use crate::machine::{order, request};

// ANCHOR: lent
/// Hands out memory that nothing else uses, from its beginning.
struct Bump<'a>(&'a mut [MaybeUninit<u8>]);

impl<'a> TableLender<'a> for Bump<'a> {
    fn lend<T: 'a>(&mut self, len: usize, mut make: impl FnMut() -> T) -> Option<&'a mut [T]> {
        let memory = take(&mut self.0);
        let gap = memory.as_ptr().align_offset(align_of::<T>());
        let (_, memory) = memory.split_at_mut_checked(gap)?;
        let (table, rest) = memory.split_at_mut_checked(len.checked_mul(size_of::<T>())?)?;
        self.0 = rest;
        let first = table.as_mut_ptr().cast::<MaybeUninit<T>>();
        // SAFETY: `table` is aligned for T, has room for `len` of them, and is lent for 'a. From here on,
        // nothing else refers to `table`.
        let table = unsafe { slice::from_raw_parts_mut(first, len) };
        table.iter_mut().for_each(|entry| _ = entry.write(make()));
        // SAFETY: each entry was just written.
        Some(unsafe { table.assume_init_mut() })
    }
}

/// Builds an allocator for the usable frames that the boot loader reports, in ascending order. The tables lie
/// at the end of the largest range. `map` makes these frames accessible.
fn boot<'a>(
    usable: &mut [Range<u64>],
    cpus: &[NodeId],
    map: impl FnOnce(Range<u64>) -> &'a mut [MaybeUninit<u8>],
) -> Result<BlockAllocator<'a>, ConfigError> {
    let end = usable.last().map_or(0, |last| last.end);
    // The length of the tables depends on the span, not on the frames that they take away from it.
    let zones = [zone(end, usable)];
    let config = Config::new(&zones, cpus);
    config.check()?;
    let bytes = TableCounts::for_config(&config)?.bytes();
    let frames = bytes.div_ceil(config.page_bytes as usize) as u64;
    let largest = usable.iter_mut().max_by_key(|range| range.end - range.start);
    let largest = largest.filter(|range| range.end - range.start > frames);
    let largest = largest.ok_or(ConfigError::OutOfMemory(bytes))?;
    largest.end -= frames;
    let mut lender = Bump(map(largest.end..largest.end + frames));
    let zones = [zone(end, usable)];
    let config = Config::new(&zones, cpus);
    BlockAllocator::new(&config, Tables::lent(&config, &mut lender)?)
}

fn zone(end: u64, regions: &[Range<u64>]) -> ZoneConfig<'_> {
    ZoneConfig { kind: ZoneKind::Normal, node: NodeId(0), span: 0..end, regions }
}
// ANCHOR_END: lent

/// Memory full of old bytes, as a kernel finds it at boot. The memory begins at a page boundary.
fn frames(count: u64) -> &'static mut [MaybeUninit<u8>] {
    let memory = vec![MaybeUninit::new(0xa5); (count as usize + 1) * 4096].leak();
    let start = memory.as_ptr().align_offset(4096);
    &mut memory[start..start + count as usize * 4096]
}

#[test]
fn a_memory_map_with_holes_becomes_an_allocator() {
    // The memory has 640 KiB, a hole, and 256 MiB with a hole of 19 frames.
    let mut usable = [1..160, 256..0xb000, 0xb013..0x1_0000];
    let all: u64 = usable.iter().map(|range| range.end - range.start).sum();
    let mut lent = 0..0;
    let allocator = boot(&mut usable, &[NodeId(0); 4], |range| {
        lent = range.clone();
        frames(range.end - range.start)
    });
    let allocator = allocator.unwrap();
    assert_eq!(lent.end, 0xb000, "the tables lie at the end of the largest range");
    // Some features of the crate, such as `line-counts`, make tables longer.
    assert!((6..=9).contains(&(lent.end - lent.start)), "256 MiB and 4 CPUs need some 24 KiB: {lent:?}");
    let census = allocator.validate().unwrap();
    assert_eq!(census.free, all - (lent.end - lent.start));
    let single = request(0, MigrateType::Movable);
    let mut had = 0;
    while let Ok(Pfn(pfn)) = allocator.alloc(CpuId(3), &single) {
        assert!(usable.iter().any(|range| range.contains(&pfn)), "{pfn:#x} is no memory, or has tables");
        had += 1;
    }
    assert_eq!(had, census.free);
}

#[test]
fn a_map_that_cannot_be_is_an_error_and_no_panic() {
    let refused = |usable: &mut [Range<u64>]| {
        let map = |range: Range<u64>| frames(range.end - range.start);
        boot(usable, &[NodeId(0)], map).map(drop).unwrap_err()
    };
    assert_eq!(refused(&mut []), ConfigError::BadZoneSpan(0));
    assert!(matches!(refused(&mut [100..200, 150..1000]), ConfigError::BadRegion { region: 1, .. }));
    assert!(
        matches!(refused(&mut [1..2, 1000..1001]), ConfigError::OutOfMemory(_)),
        "no range has room for tables"
    );
}

/// For each of five machines, `TableCounts::bytes` bytes are enough for its tables, and one byte less is too
/// little.
#[test]
fn tables_take_as_many_bytes_as_was_said_before() {
    for (frames_of_zone, cpus) in [(1_u64, 1), (1024, 1), (5000, 3), (700_000, 7), (1 << 20, 64)] {
        let regions = [0..frames_of_zone];
        let zones = [(ZoneKind::Dma32, 0..frames_of_zone), (ZoneKind::Normal, 1 << 30..(1 << 30) + 3000)];
        let zones = zones.map(|(kind, span)| ZoneConfig { kind, node: NodeId(0), span, regions: &[] });
        let zones = [ZoneConfig { regions: &regions, ..zones[0].clone() }, zones[1].clone()];
        let nodes = vec![NodeId(0); cpus];
        let config = Config::new(&zones, &nodes);
        let counts = TableCounts::for_config(&config).unwrap();
        let blocks = (frames_of_zone.next_multiple_of(1024) / 512) as usize + 6;
        assert_eq!(counts, TableCounts::new(blocks, 2, cpus, 1));
        const { assert!(TableCounts::ALIGN <= 4096) };
        let bytes = counts.bytes();
        let memory = frames(bytes.div_ceil(4096) as u64);
        assert!(<Tables>::lent(&config, &mut Bump(&mut memory[..bytes - 1])).is_err(), "{counts:?}");
        let tables = Tables::lent(&config, &mut Bump(&mut memory[..bytes])).unwrap();
        let gaps = bytes - tables.bytes();
        assert!(gaps < 9 * TableCounts::ALIGN, "{gaps} bytes are between the tables");
        BlockAllocator::new(&config, tables).unwrap().validate().unwrap();
    }
}

/// A kernel has statics for the largest machine, and lends the beginning of each table.
#[test]
fn static_tables_serve_smaller_machines_and_refuse_larger_ones() {
    const COUNTS: TableCounts = TableCounts::new(4, 1, 2, 1);
    let mut memory = Box::<table_memory!(COUNTS)>::new(TableMemory::new());
    for (frames, cpus) in [(2048, 2), (1024, 1), (2048, 1)] {
        let region = [0..frames];
        let (zones, cpus) = ([zone(frames, &region)], vec![NodeId(0); cpus]);
        let config = Config::new(&zones, &cpus);
        let tables = memory.tables(&config).expect("long enough");
        assert_eq!(BlockAllocator::new(&config, tables).expect("possible").free_frames(), frames);
        *memory = TableMemory::new(); // a kernel boots once
    }
    for (frames, cpus, error) in [(3072, 2, ("rows", 6)), (2048, 3, ("shares", 3))] {
        let region = [0..frames];
        let (zones, cpus) = ([zone(frames, &region)], vec![NodeId(0); cpus]);
        let refused = memory.tables(&Config::new(&zones, &cpus)).map(drop);
        assert_eq!(refused, Err(ConfigError::TableLength(error.0, error.1)));
    }
}

/// Tables of an allocator for one thread come from a lender, from a static, or from the heap.
#[test]
fn for_one_takes_tables_from_every_source() {
    const COUNTS: TableCounts = TableCounts::new(4, 1, 1, 1);
    let region = [0..2048];
    let zones = [zone(2048, &region)];
    let config = Config::new(&zones, &[NodeId(0)]);
    let mut memory = Box::<table_memory!(COUNTS, Alone)>::new(TableMemory::new());
    let lent = frames(COUNTS.bytes().div_ceil(4096) as u64);
    let sources: [Tables<'_, Alone>; 3] = [
        memory.tables(&config).expect("long enough"),
        Tables::lent(&config, &mut Bump(lent)).expect("long enough"),
        Tables::on_heap(&config).expect("heap"),
    ];
    for tables in sources {
        let allocator = BlockAllocator::for_one(&config, tables).expect("possible");
        let pfn = allocator.alloc(CpuId(0), &request(3, MigrateType::Movable)).expect("memory enough");
        assert_eq!(allocator.free_frames(), 2040);
        allocator.free(CpuId(0), pfn, order(3)).expect("in use");
        allocator.validate().expect("nothing broke");
        assert_eq!(allocator.free_frames(), 2048);
    }
}
