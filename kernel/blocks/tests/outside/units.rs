//! Tests units of 1 GiB: memory that cannot be moved stays in few units, so that other units can be
//! allocated whole.

use pageset_blocks::{BlockAllocator, EveryCpu, Tables};
use pageset_core::{
    AllocError, Config, CpuId, FrameAllocator, FreeError, NodeId, Order, Pfn, Request, ZoneConfig, ZoneKind,
};

use crate::machine;

/// Frames of 1 GiB.
const GIB: u64 = 1 << 18;

#[test]
fn what_cannot_be_moved_lies_in_few_units_and_what_can_be_moved_elsewhere() {
    let regions = [0..8 * GIB];
    let zones = [ZoneConfig { kind: ZoneKind::Normal, node: NodeId(0), span: 0..8 * GIB, regions: &regions }];
    let config = Config::new(&zones, &[NodeId(0); 2]);
    let allocator = BlockAllocator::new(&config, Tables::on_heap(&config).unwrap()).unwrap();
    let cpus = EveryCpu::new(&allocator).unwrap();
    let mut units = [[0_u32; 8]; 2];
    for round in 0..GIB as u32 {
        for (index, request) in
            [Request::new(Order::ZERO).movable(), Request::new(Order::ZERO)].iter().enumerate()
        {
            let cpu = CpuId(round % 2);
            let pfn = cpus.alloc(cpu, request).unwrap();
            units[index][(pfn.0 / GIB) as usize] += 1;
        }
    }
    let both = (0..8).filter(|unit| units[0][*unit] > 0 && units[1][*unit] > 0).count();
    let unmovable = units[1].iter().filter(|pages| **pages > 0).count();
    assert!(both <= 1 && unmovable <= 2, "{units:?}");
}

#[test]
fn a_gib_is_had_while_one_is_whole_and_comes_back() {
    // The zone begins and ends in the middle of a GiB, so its first and last parts are no whole units.
    let span = GIB / 2..3 * GIB + GIB / 2;
    let allocator = machine::allocator(&[(ZoneKind::Normal, span.clone(), vec![span])], 1);
    let (cpu, request) = (CpuId(0), Request::new(Order::ZERO).movable());
    let gib = || allocator.alloc_contiguous(cpu, GIB, GIB, &request);
    let free_gib = |first: Pfn| allocator.free_range(cpu, first.0..first.0 + GIB);
    let first = gib().unwrap();
    assert_eq!(first, Pfn(GIB));
    let page = allocator.alloc_at(cpu, Pfn(2 * GIB + 77), &request);
    assert_eq!(page, Ok(()));
    let none = gib();
    assert_eq!(none, Err(AllocError::OutOfMemory { order: Order::MAX }));
    allocator.free(cpu, Pfn(2 * GIB + 77), Order::ZERO).unwrap();
    assert_eq!(gib(), Ok(Pfn(2 * GIB)));
    assert_eq!(free_gib(first), Ok(()));
    assert_eq!(free_gib(first), Err(FreeError::DoubleFree(first)));
    assert_eq!(gib(), Ok(first));
    assert!(allocator.validate().is_ok());
}
