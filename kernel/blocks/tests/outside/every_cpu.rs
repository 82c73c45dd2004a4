//! Tests `EveryCpu`: one allocator, with arrays for each CPU above it.

use pageset_blocks::EveryCpu;
use pageset_core::{AllocError, CpuId, FrameAllocator, MigrateType, Order, Pfn};

use crate::machine::{plain, request};

#[test]
fn memory_in_arrays_of_other_cpus_is_found_before_memory_is_short() {
    let below = plain(1024, 2);
    let allocator = EveryCpu::new(&below).unwrap();
    let page = request(0, MigrateType::Movable);
    let all: Vec<Pfn> = std::iter::from_fn(|| allocator.alloc(CpuId(0), &page).ok()).collect();
    assert_eq!(all.len(), 1024);
    all[..20].iter().for_each(|pfn| allocator.free(CpuId(1), *pfn, Order::ZERO).unwrap());
    let usage = allocator.usage();
    assert_eq!((usage.held, usage.free + usage.at_hand), (20, 0), "for the allocator they are in use");
    let census = allocator.validate().unwrap();
    assert_eq!((census.cached, census.allocated), (20, 1004));
    assert_eq!(std::iter::from_fn(|| allocator.alloc(CpuId(0), &page).ok()).count(), 20);
    assert_eq!(allocator.alloc(CpuId(1), &page), Err(AllocError::OutOfMemory { order: Order::ZERO }));
}

#[test]
fn a_drain_reaches_the_arrays_of_a_cpu() {
    let below = plain(2048, 2);
    let allocator = EveryCpu::new(&below).unwrap();
    for cpu in [CpuId(0), CpuId(1)] {
        let pfn = allocator.alloc(cpu, &request(0, MigrateType::Movable)).unwrap();
        allocator.free(cpu, pfn, Order::ZERO).unwrap();
    }
    let held = allocator.usage().held;
    allocator.drain_cpu(CpuId(1)).unwrap();
    assert_eq!(allocator.usage().held, held / 2);
    allocator.drain_all();
    assert_eq!((allocator.usage().held, allocator.usage().whole_pageblocks), (0, 4));
}
