//! Tests blocks that are split into single frames.

use pageset_core::{CpuId, FreeError, Order, Pfn, Request};

use crate::host::{Allocator, build, order};
use pageset_core::{Config, NodeId, ZoneConfig, ZoneKind};

const CPU: CpuId = CpuId(0);

fn machine() -> Allocator {
    let regions = [0..8192];
    let zones = [ZoneConfig { kind: ZoneKind::Normal, node: NodeId(0), span: 0..8192, regions: &regions }];
    build(&Config::new(&zones, &[NodeId(0)]))
}

#[test]
fn each_frame_of_a_split_block_is_freed_by_itself() {
    let allocator = machine();
    for of in [1, 4, 9, 10] {
        let of = order(of);
        let pfn = allocator.alloc(CPU, &Request::new(of)).expect("memory enough");
        let end = pfn.0 + u64::from(of.frames());
        assert_eq!(allocator.split_range(CPU, pfn.0..end), Ok(()));
        let wrong = FreeError::WrongOrder { pfn, given: of, allocated: Order::ZERO };
        assert_eq!(allocator.free(CPU, pfn, of), Err(wrong));
        assert_eq!(allocator.validate().expect("everything in its place").allocated, end - pfn.0);
        for frame in (pfn.0..end).rev() {
            assert_eq!(allocator.free(CPU, Pfn(frame), Order::ZERO), Ok(()), "{frame:#x}");
        }
        assert_eq!(allocator.validate().expect("everything in its place").allocated, 0);
    }
    // A drain merges the frames again.
    allocator.drain_all(CPU).expect("a CPU");
    assert_eq!(allocator.zones().next().expect("a zone").nr_free[10], 8);
}

#[test]
fn exact_counts_are_split_too_and_what_is_not_in_use_is_named() {
    let allocator = machine();
    let pfn = allocator.alloc_exact(CPU, 11, &Request::new(Order::ZERO)).expect("memory enough");
    let behind = Pfn(pfn.0 + 11);
    assert_eq!(allocator.split_range(CPU, pfn.0..behind.0 + 1), Err(FreeError::DoubleFree(behind)));
    assert_eq!(
        allocator.free(CPU, pfn, Order::ZERO),
        Err(FreeError::WrongOrder { pfn, given: Order::ZERO, allocated: order(3) })
    );
    assert_eq!(allocator.split_range(CpuId(1), pfn.0..behind.0), Err(FreeError::BadCpu(CpuId(1))));
    assert_eq!(allocator.split_range(CPU, 8192..8193), Err(FreeError::Foreign(Pfn(8192))));
    assert_eq!(allocator.split_range(CPU, pfn.0..behind.0), Ok(()));
    for frame in pfn.0..behind.0 {
        assert_eq!(allocator.free(CPU, Pfn(frame), Order::ZERO), Ok(()));
    }
    assert_eq!(allocator.validate().expect("everything in its place").allocated, 0);
}
