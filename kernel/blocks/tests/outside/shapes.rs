//! Memory of every shape: tiny regions, ends within a pageblock, spans at the limits of frame numbers. A
//! program of a kernel's author tried these shapes.

use std::ops::Range;

use pageset_core::{CpuId, MigrateType, Order, Pfn, ZoneKind};

use crate::machine::{allocator, order, request};

const CPU: CpuId = CpuId(0);

/// A span of a zone, and its only region.
fn shapes() -> Vec<(Range<u64>, Range<u64>)> {
    let tiny = [
        (0..3, 0..3),
        (1..4, 1..4),
        (0..1024, 1..4),
        (0..1024, 510..514),
        (0..1024, 5..517),
        (0..512, 0..511),
        (0..2048, 700..1701),
        (0..1024, 1..1024),
    ];
    let sizes = [1, 2, 511, 512, 513, 1000, 1024, 1025, 65_537];
    let bases =
        [1 << 28, (1 << 28) + 12_345, 0xffff_8000_0020_0000 >> 12, (1 << 52) - 65_536, u64::MAX - 66_559];
    let at = |base: u64, frames: u64| (base..base + frames, base..base + frames);
    let of_sizes = sizes.map(|frames| at(0, frames));
    let of_bases = bases.map(|base| at(base, 3000));
    tiny.into_iter().chain(of_sizes).chain(of_bases).collect()
}

#[test]
fn every_frame_of_every_shape_can_be_had_in_one_piece_and_in_single_frames() {
    for (span, region) in shapes() {
        let of_shape = || allocator(&[(ZoneKind::Normal, span.clone(), vec![region.clone()])], 1);
        let (any, frames) = (request(0, MigrateType::Movable), region.end - region.start);
        let all = region.clone();

        let allocator = of_shape();
        assert_eq!(allocator.alloc_contiguous(CPU, frames, 1, &any), Ok(Pfn(region.start)), "{all:?}");
        assert_eq!(allocator.free_range(CPU, region.clone()), Ok(()), "{all:?}");
        let mut pages = Vec::new();
        while let Ok(page) = allocator.alloc(CPU, &any) {
            pages.push(page.0);
        }
        pages.sort_unstable();
        assert!(pages.iter().copied().eq(region.clone()), "{all:?}: {} pages", pages.len());
        for page in pages {
            assert_eq!(allocator.free(CPU, Pfn(page), Order::ZERO), Ok(()), "{all:?}: {page:#x}");
        }

        // The largest aligned block of the region, where it lies and wherever the allocator takes one.
        let fits = |of: u8| {
            let start = region.start.next_multiple_of(1 << of);
            (start + (1 << of) <= region.end).then_some((start, of))
        };
        let (start, largest) = (0..=10).rev().find_map(fits).expect("a frame");
        let allocator = of_shape();
        let block = request(largest, MigrateType::Movable);
        assert_eq!(allocator.largest_free_order(), Some(order(largest)), "{all:?}");
        assert_eq!(allocator.alloc_at(CPU, Pfn(start), &block), Ok(()), "{all:?}");
        assert_eq!(allocator.free(CPU, Pfn(start), order(largest)), Ok(()), "{all:?}");
        let taken = allocator.alloc(CPU, &block).expect("such a block is free");
        assert_eq!(allocator.free(CPU, taken, order(largest)), Ok(()), "{all:?}");
        allocator.drain_all();
        let census = allocator.validate().expect("all tables agree");
        assert_eq!((census.free, census.allocated), (frames, 0), "{all:?}");
    }
}
