//! Bugs that random programs found, each as a named test.

use pageset_core::{AllocError, CpuId, FreeError, MigrateType, Order, Pfn, ZoneKind};

use crate::machine::{allocator, order, plain, ragged, request};

const CPU: CpuId = CpuId(0);
const MOVABLE: MigrateType = MigrateType::Movable;

#[test]
fn the_second_half_of_a_block_of_two_pageblocks_has_its_type() {
    let allocator = plain(2048, 1);
    let block = allocator.alloc(CPU, &request(10, MigrateType::Unmovable)).expect("memory enough");
    for pfn in [block.0, block.0 + 511, block.0 + 512, block.0 + 1023] {
        assert_eq!(allocator.pageblock_type(Pfn(pfn)), Some(MigrateType::Unmovable), "{pfn}");
    }
}

#[test]
fn a_cpu_that_does_not_exist_frees_nothing() {
    let nobody = CpuId(1);
    let refused = Err(FreeError::BadCpu(nobody));
    let allocator = plain(4096, 1);
    for of in [0, 3, 9, 10] {
        let block = allocator.alloc(CPU, &request(of, MOVABLE)).expect("memory enough");
        let end = block.0 + u64::from(order(of).frames());
        assert_eq!(allocator.free(nobody, block, order(of)), refused, "order {of}");
        assert_eq!(allocator.free_range(nobody, block.0..end), refused, "order {of}");
        assert_eq!(allocator.split_range(nobody, block.0..end), refused, "order {of}");
        assert_eq!(allocator.free(CPU, block, order(of)), Ok(()), "order {of}");
    }
    assert_eq!(allocator.free(nobody, Pfn(u64::MAX), Order::ZERO), refused);
}

#[test]
fn a_block_that_reaches_beyond_a_range_is_split_as_a_whole() {
    for of in [1, 4, 8, 9, 10] {
        let allocator = plain(4096, 1);
        let neighbour = allocator.alloc(CPU, &request(of, MOVABLE)).expect("memory enough");
        let block = allocator.alloc(CPU, &request(of, MOVABLE)).expect("memory enough");
        let frames = u64::from(order(of).frames());
        let middle = block.0 + frames / 2;
        assert_eq!(allocator.split_range(CPU, middle..middle + 1), Ok(()), "order {of}");
        for frame in block.0..block.0 + frames {
            assert_eq!(allocator.free(CPU, Pfn(frame), Order::ZERO), Ok(()), "order {of}, frame {frame}");
        }
        assert_eq!(allocator.free(CPU, neighbour, order(of)), Ok(()), "order {of}");
    }
}

#[test]
fn a_range_may_reach_into_a_zone_that_begins_in_the_same_pageblock() {
    let zones = [(ZoneKind::Dma32, 0..1211, vec![0..1211]), (ZoneKind::Normal, 1211..3708, vec![1211..3708])];
    let allocator = allocator(&zones, 1);
    while allocator.alloc(CPU, &request(0, MOVABLE)).is_ok() {}
    assert_eq!(allocator.split_range(CPU, 1200..1220), Ok(()));
    assert_eq!(allocator.free_range(CPU, 1024..1536), Ok(()));
    assert_eq!(allocator.validate().map(|census| census.allocated), Ok(3708 - 512));
}

#[test]
fn a_place_that_is_no_memory_is_foreign() {
    let allocator = ragged(1);
    assert_eq!(allocator.alloc_at(CPU, Pfn(750), &request(0, MOVABLE)), Err(AllocError::Foreign(Pfn(750))));
}

#[test]
fn frames_inside_a_block_out_of_service_are_no_blocks() {
    let allocator = plain(4096, 1);
    for of in [2, 8, 9, 10] {
        let block = allocator.alloc(CPU, &request(of, MOVABLE)).expect("memory enough");
        allocator.mark_bad(CPU, block).expect("it is memory");
        let inside = Pfn(block.0 + 1);
        assert_eq!(allocator.free(CPU, inside, Order::ZERO), Err(FreeError::NotABlock(inside)), "order {of}");
        assert_eq!(allocator.free(CPU, block, Order::ZERO), Err(FreeError::Leaked(block)), "order {of}");
    }
}

/// The bug: each failed attempt used up one of the few entries for pageblocks with bad frames.
#[test]
fn a_hole_takes_no_place_among_the_bad_frames() {
    let regions: Vec<_> = (0..20).map(|block| block * 512..block * 512 + 100).collect();
    let allocator = allocator(&[(ZoneKind::Normal, 0..20 * 512, regions)], 1);
    for hole in (0..20).map(|block| Pfn(block * 512 + 300)) {
        assert_eq!(allocator.mark_bad(CPU, hole), Err(FreeError::Foreign(hole)));
    }
    for pfn in (4..20).map(|block| Pfn(block * 512)) {
        assert_eq!(allocator.mark_bad(CPU, pfn), Ok(()));
    }
    assert_eq!(allocator.mark_bad(CPU, Pfn(0)), Err(FreeError::NoRoom(Pfn(0))));
}

#[test]
fn a_frame_that_another_cpu_freed_is_freed_twice_whatever_order_is_given() {
    let (owner, other) = (CPU, CpuId(1));
    for allocator in [plain(4096, 2), ragged(2)] {
        for of in [0, 2] {
            // Requests for blocks at a higher alignment than their order needs.
            let blocks: Vec<_> =
                (0..40).filter_map(|_| allocator.alloc(owner, &request(of, MOVABLE)).ok()).collect();
            let block = blocks.into_iter().find(|pfn| pfn.is_aligned(order(of + 1))).expect("memory enough");
            assert_eq!(allocator.free(other, block, order(of)), Ok(()), "order {of}");
            for given in 0..=10 {
                let again = allocator.free(owner, block, order(given));
                assert_eq!(again, Err(FreeError::DoubleFree(block)), "order {of}, then {given}");
            }
            for inside in block.0 + 1..block.0 + u64::from(order(of).frames()) {
                let again = allocator.free(owner, Pfn(inside), Order::ZERO);
                assert_eq!(again, Err(FreeError::DoubleFree(Pfn(inside))), "order {of}");
            }
        }
    }
}
