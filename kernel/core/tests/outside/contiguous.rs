//! Tests allocations of more frames than the largest block has, with any alignment, and allocations of a
//! given range.

use pageset_core::{
    AllocError, Config, CpuId, NodeChoice, NodeId, Order, Pfn, Request, RequestTraits, ZoneConfig, ZoneKind,
};

use crate::host::{Allocator, build};

const CPU: CpuId = CpuId(0);

/// Makes a machine of two nodes. The first node has a hole of 700 frames.
fn machine() -> Allocator {
    let (first, second) = ([0..3000, 3700..16_384], [16_384..32_768]);
    let zone = |node, span, regions| ZoneConfig { kind: ZoneKind::Normal, node: NodeId(node), span, regions };
    let zones = [zone(0, 0..16_384, &first[..]), zone(1, 16_384..32_768, &second[..])];
    let allocator = build(&Config::new(&zones, &[NodeId(0)]));
    allocator.set_min_free_kbytes(0);
    allocator
}

fn any() -> Request {
    Request::new(Order::ZERO).movable()
}

fn in_use(allocator: &Allocator) -> u64 {
    allocator.validate().expect("everything in its place").allocated
}

#[test]
fn more_frames_than_the_largest_block_has_are_contiguous_and_aligned() {
    let allocator = machine();
    for (frames, align) in [(1025, 1), (5000, 8), (9000, 4096), (1, 2048), (700, 1024), (12_288, 1)] {
        let Pfn(start) = allocator.alloc_contiguous(CPU, frames, align, &any()).expect("memory enough");
        assert!(start.is_multiple_of(align));
        assert_eq!(in_use(&allocator), frames);
        for pfns in [start..start + 1, start + 1..start + frames].into_iter().filter(|pfns| !pfns.is_empty())
        {
            allocator.free_range(CPU, pfns).expect("in use");
        }
        assert_eq!(in_use(&allocator), 0);
    }
}

#[test]
fn the_frames_do_not_overlap_holes_or_what_is_in_use_and_keep_to_the_node() {
    let allocator = machine();
    let first = any().on(NodeChoice::Only(NodeId(0)));
    // After the hole there are 12 684 frames: 396 up to the next pageblock, and 12 288 from that pageblock
    // on.
    assert_eq!(
        allocator.alloc_contiguous(CPU, 12_289, 1, &first).map(|pfn| pfn.0 >= 3700),
        Err(AllocError::OutOfMemory { order: Order::MAX })
    );
    assert_eq!(allocator.alloc_contiguous(CPU, 12_288, 1, &first), Ok(Pfn(4096)));
    let second = allocator.alloc_contiguous(CPU, 12_288, 1, &any()).expect("the other node has memory");
    assert_eq!(second, Pfn(16_384));
    assert_eq!(in_use(&allocator), 2 * 12_288);
}

#[test]
fn pages_in_page_sets_count_as_free() {
    let allocator = machine();
    let pages: Vec<Pfn> = (0..500).map(|_| allocator.alloc(CPU, &any()).expect("memory enough")).collect();
    pages.iter().for_each(|pfn| allocator.free(CPU, *pfn, Order::ZERO).expect("in use"));
    let all = 16_384..32_768;
    let mut last = any();
    last.traits |= RequestTraits::NO_WATERMARKS;
    assert_eq!(allocator.alloc_range(CPU, all, &last), Ok(()));
    assert_eq!(allocator.alloc_range(CPU, 3700..16_384, &last), Ok(()));
    assert_eq!(in_use(&allocator), 16_384 + 12_684);
}

#[test]
fn a_range_that_is_not_free_stays_as_it_is() {
    let allocator = machine();
    allocator.alloc_range(CPU, 20_001..20_002, &any()).expect("free");
    assert_eq!(
        allocator.alloc_range(CPU, 18_000..21_000, &any()).map_err(|error| match error {
            AllocError::NotFree(Pfn(block)) => (20_001 - 1023..=20_001).contains(&block),
            _ => false,
        }),
        Err(true)
    );
    assert_eq!(in_use(&allocator), 1);
    // The block of 128 frames at frame 2944 reaches into the hole.
    assert_eq!(allocator.alloc_range(CPU, 2900..3100, &any()), Err(AllocError::NotFree(Pfn(2944))));
    assert_eq!(allocator.alloc_range(CPU, 3000..3100, &any()), Err(AllocError::Foreign(Pfn(3000))));
    assert_eq!(allocator.alloc_range(CPU, 40_000..40_001, &any()), Err(AllocError::Foreign(Pfn(40_000))));
    assert_eq!(in_use(&allocator), 1);
}

#[test]
fn wrong_arguments_have_errors() {
    let allocator = machine();
    assert_eq!(allocator.alloc_contiguous(CPU, 0, 1, &any()), Err(AllocError::BadCount(0)));
    assert_eq!(allocator.alloc_contiguous(CPU, 1, 3, &any()), Err(AllocError::BadAlign(3)));
    assert_eq!(allocator.alloc_contiguous(CPU, 1, 0, &any()), Err(AllocError::BadAlign(0)));
    assert_eq!(allocator.alloc_contiguous(CpuId(9), 1, 1, &any()), Err(AllocError::BadCpu(CpuId(9))));
    assert_eq!(allocator.alloc_range(CPU, 5..5, &any()), Err(AllocError::BadCount(0)));
    for frames in [20_000, u64::MAX] {
        let short = Err(AllocError::OutOfMemory { order: Order::MAX });
        assert_eq!(allocator.alloc_contiguous(CPU, frames, 1 << 63, &any()), short);
        assert_eq!(allocator.alloc_contiguous(CPU, frames, 1, &any()), short);
    }
}

/// Tests that the min watermark makes the allocation fail, and that the frames that the search had taken are
/// free again.
#[test]
fn the_minimum_watermark_is_kept() {
    let allocator = machine();
    allocator.set_min_free_kbytes(64 * 1024);
    let short = Err(AllocError::OutOfMemory { order: Order::MAX });
    assert_eq!(allocator.alloc_contiguous(CPU, 12_288, 1, &any()), short);
    assert_eq!(in_use(&allocator), 0);
}
