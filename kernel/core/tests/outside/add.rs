//! Tests memory that is added after the allocator was built.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use pageset_core::{Config, ConfigError, CpuId, NodeId, Order, Pfn, Request, ZoneConfig, ZoneKind};

use crate::host::{Allocator, build};

const CPU: CpuId = CpuId(0);

/// A machine of 16 MiB with two CPUs. At first, the boot code uses a part of the memory.
fn machine() -> Allocator {
    let regions = [5..600, 2048..4096];
    let zones = [ZoneConfig { kind: ZoneKind::Normal, node: NodeId(0), span: 0..4096, regions: &regions }];
    let mut config = Config::new(&zones, &[NodeId(0); 2]);
    config.watermark_scale_factor = 1000;
    build(&config)
}

#[test]
fn what_the_boot_code_gives_back_is_memory_like_any_other() {
    let allocator = machine();
    let managed = |allocator: &Allocator| allocator.zones().next().expect("a zone").managed;
    let high = |allocator: &Allocator| allocator.zones().next().expect("a zone").watermarks.high;
    let (before, mark) = (managed(&allocator), high(&allocator));
    for pfns in [600..2048, 3..5, 0..3] {
        assert_eq!(allocator.add_memory(CPU, pfns), Ok(()));
    }
    assert_eq!(managed(&allocator), before + 1453);
    assert!(high(&allocator) > mark, "watermarks follow");
    assert_eq!(allocator.validate().expect("everything in its place").free, 4096);
    // The new memory has merged with the old memory.
    assert_eq!(allocator.zones().next().expect("a zone").nr_free[Order::MAX.index()], 4);
    let pages: Vec<_> =
        std::iter::from_fn(|| allocator.alloc(CPU, &Request::new(Order::ZERO)).ok()).collect();
    assert!(pages.iter().any(|pfn| pfn.0 < 5) && pages.iter().any(|pfn| (600..2048).contains(&pfn.0)));
    pages.iter().for_each(|pfn| allocator.free(CPU, *pfn, Order::ZERO).expect("just allocated"));
    assert_eq!(allocator.validate().expect("everything in its place").allocated, 0);
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
    assert_eq!(allocator.validate().expect("unchanged").free, 595 + 2048);
    assert_eq!(ConfigError::AlreadyManaged(Pfn(5)).to_string(), "frame 0x5 is the allocator's already");
}

#[test]
fn one_of_two_cpus_that_add_the_same_frames_succeeds() {
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
        assert_eq!(allocator.validate().expect("each frame once").free, 595 + 2048 + 100);
    }
}
