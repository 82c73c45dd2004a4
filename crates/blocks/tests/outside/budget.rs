//! CPUs that have many pageblocks with free frames leave some to those that have few.

use pageset_core::{CpuId, MigrateType, Order, Pfn};

use crate::machine::{plain, request};

#[test]
fn a_rich_cpu_gives_to_a_poor_one_while_it_is_active() {
    const MOVABLE: MigrateType = MigrateType::Movable;
    let allocator = plain(64 * 512, 2);
    let alloc = |cpu: u32| allocator.alloc(CpuId(cpu), &request(0, MOVABLE));
    let pages: Vec<Pfn> = std::iter::from_fn(|| alloc(0).ok()).collect();
    assert_eq!(pages.len(), 64 * 512);
    // Half of each of 12 pageblocks: CPU 0 may have 16.
    let is_freed = |pfn: &&Pfn| pfn.0 < 12 * 512 && pfn.0.is_multiple_of(2);
    for pfn in pages.iter().filter(is_freed) {
        allocator.free(CpuId(0), *pfn, Order::ZERO).unwrap();
    }
    let before = allocator.counters().adopted;
    // It needs nothing from elsewhere, tick by tick, but is not idle.
    for _ in 0..12 {
        let mine: Vec<Pfn> = (0..257).map(|_| alloc(0).unwrap()).collect();
        mine.iter().for_each(|pfn| allocator.free(CpuId(0), *pfn, Order::ZERO).unwrap());
        allocator.tick(CpuId(0)).unwrap();
    }
    let rescued = allocator.counters().rescued;
    let theirs: Vec<Pfn> = (0..256 * 4).map(|_| alloc(1).unwrap()).collect();
    assert!(theirs.iter().all(|pfn| pfn.0 < 12 * 512));
    assert!(allocator.counters().adopted >= before + 4);
    assert_eq!(allocator.counters().rescued, rescued, "nothing had to be searched for");
    assert!(allocator.validate().is_ok());
}
