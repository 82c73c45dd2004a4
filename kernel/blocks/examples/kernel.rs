//! The page allocator of a kernel without a heap. The example has a memory map with a hole, static tables,
//! requests of any count and alignment, a range that the firmware uses, and a reclaimer.
//!
//! `cargo run -p pageset-blocks --example kernel`

// ANCHOR: tables
use std::sync::Mutex;

use pageset_blocks::{BlockAllocator, TableCounts, TableMemory, table_memory};
use pageset_core::{
    AllocError, Config, CpuId, FrameAllocator as _, MigrateType, NodeId, Order, Pfn, Request, ZoneConfig,
    ZoneKind,
};

/// Frames of 4 KiB: nearly 256 MiB, with a hole for the firmware. The end is not a multiple of a pageblock.
const MEMORY: [core::ops::Range<u64>; 2] = [1..0x7f31, 0x8000..0xfff3];
const CPUS: usize = 2;
/// The lengths of all tables: pageblocks of 512 frames, zones, CPUs, nodes.
const COUNTS: TableCounts = TableCounts::new(0x1_0000 / 512, 1, CPUS, 1);

/// All tables: zeros at first, so the kernel's image does not hold them.
static TABLES: Mutex<table_memory!(COUNTS)> = Mutex::new(TableMemory::new());
// ANCHOR_END: tables

// ANCHOR: use
/// Serves the requests of a kernel's drivers and memory manager.
fn serve(frames: &BlockAllocator<'_>) -> Result<(), AllocError> {
    let cpu = CpuId(0);
    let request = Request::new(Order::ZERO).of_type(MigrateType::Unmovable);

    // 17 MiB for a frame buffer, aligned to 1 MiB: more than the largest block has.
    let buffer = frames.alloc_contiguous(cpu, 17 * 256, 256, &request)?;
    // Three frames for a ring, and only three, at a multiple of eight.
    let ring = frames.alloc_contiguous(cpu, 3, 8, &request)?;
    assert!(buffer.0.is_multiple_of(256) && ring.0.is_multiple_of(8));

    // A trampoline below 1 MiB, where the processor wants it.
    frames.alloc_range(cpu, 8..9, &request)?;
    // No request gets the firmware's frames.
    assert!(frames.alloc_range(cpu, 0x7f00..0x8100, &request).is_err());

    // The driver keeps the first half of its buffer. Each owner frees its part.
    let half = Pfn(buffer.0 + 17 * 128);
    frames.split_at(cpu, half).expect("the buffer is in use");
    frames.free_range(cpu, half.0..buffer.0 + 17 * 256).expect("the second half is ours");
    frames.free_range(cpu, buffer.0..half.0).expect("and so is the first");
    frames.free_range(cpu, ring.0..ring.0 + 3).expect("the ring is in use");
    frames.free_range(cpu, 8..9).expect("the trampoline is in use");
    Ok(())
}

/// A page cache that gives pages up when memory is short.
fn fill(frames: &BlockAllocator<'_>) -> Result<(), AllocError> {
    let cpu = CpuId(1);
    let request = Request::new(Order::ZERO).of_type(MigrateType::Movable);
    let mut cache = std::collections::VecDeque::new();
    let mut reclaimed = 0;
    for _ in 0..100_000 {
        let page = frames.alloc_or_reclaim(cpu, &request, |_zone, wanted| {
            let oldest = cache.drain(..cache.len().min(64.max(wanted as usize)));
            let freed = oldest.filter(|page| frames.free(cpu, *page, Order::ZERO).is_ok()).count() as u64;
            reclaimed += freed;
            freed
        })?;
        cache.push_back(page);
    }
    assert!(reclaimed > 0 && reclaimed + cache.len() as u64 == 100_000);
    cache.into_iter().for_each(|page| frames.free(cpu, page, Order::ZERO).expect("the cache has it"));
    Ok(())
}
// ANCHOR_END: use

/// Runs the whole example.
///
/// # Errors
/// An error if memory is short, or if a table has another length than the configuration needs.
pub(crate) fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut tables = TABLES.lock().map_err(|_| "another thread panicked with the tables")?;
    let zone = ZoneConfig {
        kind: ZoneKind::Normal,
        node: NodeId(0),
        span: MEMORY[0].start..MEMORY[1].end,
        regions: &MEMORY,
    };
    let (zones, cpus) = ([zone], [NodeId(0); CPUS]);
    let config = Config::new(&zones, &cpus);
    let frames = BlockAllocator::new(&config, tables.tables(&config)?)?;
    let all = frames.free_frames();
    assert_eq!(all, MEMORY.iter().map(|region| region.end - region.start).sum());
    serve(&frames)?;
    fill(&frames)?;
    frames.drain_all();
    assert_eq!(frames.free_frames(), all);
    frames.validate()?;
    println!("{all} frames, all of them free again");
    Ok(())
}
