//! Memory that is added after the allocator was built.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use pageset_blocks::{BlockAllocator, Tables};
use pageset_core::{
    Config, ConfigError, CpuId, MigrateType, NodeId, Order, Pfn, Watermarks, ZoneConfig, ZoneId, ZoneKind,
};

use crate::machine::{allocator, request};

const CPU: CpuId = CpuId(0);

/// 16 MiB of memory. At first the boot code keeps a part of the memory. Two CPUs.
fn machine() -> BlockAllocator<'static> {
    allocator(&[(ZoneKind::Normal, 0..4096, vec![5..600, 2048..4096])], 2)
}

#[test]
fn what_the_boot_code_gives_back_is_memory_like_any_other() {
    let allocator = machine();
    // The test adds the rest of a pageblock, a whole pageblock, and parts of other pageblocks.
    for pfns in [600..1024, 1024..1536, 1536..1600, 1600..2048, 0..5] {
        assert_eq!(allocator.add_memory(CPU, pfns.clone()), Ok(()), "{pfns:?}");
        allocator.validate().expect("everything in its place");
    }
    let census = allocator.validate().expect("everything in its place");
    assert_eq!((census.free + census.cached, census.allocated), (4096, 0));
    let any = request(0, MigrateType::Movable);
    let pages: Vec<_> = std::iter::from_fn(|| allocator.alloc(CPU, &any).ok()).collect();
    assert_eq!(pages.len(), 4096);
    pages.iter().for_each(|pfn| allocator.free(CPU, *pfn, Order::ZERO).expect("just allocated"));
    allocator.validate().expect("everything in its place");
    // All added frames are free. So pageblocks that were added in parts are whole, too.
    let whole = request(9, MigrateType::Movable);
    let blocks = std::iter::from_fn(|| allocator.alloc(CPU, &whole).ok()).count();
    assert_eq!(blocks, 8);
}

#[test]
fn only_holes_can_be_added() {
    let allocator = machine();
    for (pfns, error) in [
        (0..6, ConfigError::AlreadyManaged(Pfn(5))),
        (599..700, ConfigError::AlreadyManaged(Pfn(599))),
        (4000..5000, ConfigError::AlreadyManaged(Pfn(4000))),
        (1000..u64::MAX, ConfigError::AlreadyManaged(Pfn(2048))),
        (4096..4097, ConfigError::Foreign(Pfn(4096))),
        (u64::MAX - 1..u64::MAX, ConfigError::Foreign(Pfn(u64::MAX - 1))),
    ] {
        assert_eq!(allocator.add_memory(CPU, pfns.clone()), Err(error), "{pfns:?}");
    }
    assert_eq!(allocator.add_memory(CpuId(2), 0..1), Err(ConfigError::BadCpu(2)));
    assert_eq!(allocator.add_memory(CPU, 7..7), Err(ConfigError::BadRange(Pfn(7), Pfn(7))));
    let census = allocator.validate().expect("unchanged");
    assert_eq!(census.free + census.cached, 595 + 2048);
}

#[test]
fn watermarks_follow_the_memory_that_comes() {
    let zone_of = |regions: &[std::ops::Range<u64>]| {
        let zones = [ZoneConfig { kind: ZoneKind::Normal, node: NodeId(0), span: 0..8192, regions }];
        let mut config = Config::new(&zones, &[NodeId(0)]);
        config.min_free_kbytes = Some(16);
        let tables = Tables::on_heap(&config).expect("the zone is possible");
        BlockAllocator::new(&config, tables).expect("the zone is possible")
    };
    let marks = |allocator: &BlockAllocator<'_>| allocator.zones().next().expect("one zone").watermarks;
    let (grown, large) = (zone_of(&[0..2048]), zone_of(&[0..8000]));
    let before = marks(&grown);
    grown.add_memory(CPU, 2048..8000).expect("these are holes");
    assert_ne!(marks(&grown), before, "the distance of watermarks is a share of the zone");
    assert_eq!(marks(&grown), marks(&large));
    // `add_memory` overrides watermarks that were set directly, as in `pageset-core`.
    grown.set_watermarks(ZoneId(0), Watermarks { min: 1, low: 2, high: 3 }).expect("it is a zone");
    grown.add_memory(CPU, 8000..8192).expect("these are holes");
    assert_eq!(marks(&grown), marks(&zone_of(&[0..8192])));
}

#[test]
fn of_two_who_add_the_same_frames_one_does() {
    for _ in 0..50 {
        let allocator = machine();
        let added = AtomicU64::new(0);
        std::thread::scope(|scope| {
            for cpu in 0..2 {
                let (allocator, added) = (&allocator, &added);
                scope.spawn(move || {
                    for pfn in 600..700 {
                        if allocator.add_memory(CpuId(cpu), pfn..pfn + 1).is_ok() {
                            added.fetch_add(1, Relaxed);
                        }
                    }
                });
            }
        });
        assert_eq!(added.into_inner(), 100);
        let census = allocator.validate().expect("each frame once");
        assert_eq!(census.free + census.cached, 595 + 2048 + 100);
    }
}
