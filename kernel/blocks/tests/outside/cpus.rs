//! CPUs that go off-line and come back.

use pageset_core::{ConfigError, CpuId, MigrateType, Order, Pfn};

use crate::machine::{order, plain, request};

const MOVABLE: MigrateType = MigrateType::Movable;

#[test]
fn a_cpu_that_is_off_line_has_nothing() {
    let allocator = plain(8192, 2);
    let held = || allocator.zones().next().map(|zone| (0_u64, zone.at_hand)).unwrap();
    let page = allocator.alloc(CpuId(0), &request(0, MOVABLE)).unwrap();
    let huge = allocator.alloc(CpuId(0), &request(9, MOVABLE)).unwrap();
    allocator.free(CpuId(0), huge, order(9)).unwrap();
    allocator.cpu_offline(CpuId(0)).unwrap();
    assert_eq!(held(), (0, 0));
    // Another CPU takes over the pageblock.
    let next = allocator.alloc(CpuId(1), &request(0, MOVABLE)).unwrap();
    assert_eq!((next.0 / 512, allocator.owner_of(page)), (page.0 / 512, Some(CpuId(1))));
    // A thread still runs as the CPU that went off-line.
    let late: Vec<Pfn> =
        (0..1000).map(|_| allocator.alloc(CpuId(0), &request(0, MOVABLE)).unwrap()).collect();
    late.iter().for_each(|pfn| allocator.free(CpuId(0), *pfn, Order::ZERO).unwrap());
    allocator.tick(CpuId(0)).unwrap();
    allocator.drain_cpu(CpuId(1)).unwrap();
    assert_eq!(held(), (0, 0));
    assert_eq!(allocator.validate().unwrap().allocated, 2);
}

#[test]
fn a_cpu_that_is_back_keeps_what_it_freed() {
    let allocator = plain(8192, 1);
    allocator.cpu_offline(CpuId(0)).unwrap();
    allocator.cpu_online(CpuId(0)).unwrap();
    let page = allocator.alloc(CpuId(0), &request(0, MOVABLE)).unwrap();
    allocator.tick(CpuId(0)).unwrap();
    assert_eq!(allocator.zones().next().unwrap().at_hand % 512, 511, "it is active");
    allocator.free(CpuId(0), page, Order::ZERO).unwrap();
}

#[test]
fn an_unknown_cpu_neither_comes_nor_goes() {
    let allocator = plain(1024, 2);
    assert_eq!(allocator.cpu_offline(CpuId(2)), Err(ConfigError::BadCpu(2)));
    assert_eq!(allocator.cpu_online(CpuId(2)), Err(ConfigError::BadCpu(2)));
}
