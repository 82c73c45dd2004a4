//! Settings that an administrator changes.

use pageset_blocks::BlockAllocator;
use pageset_core::{AllocError, ConfigError, CpuId, Order, Request, Watermarks, ZoneConfig, ZoneId};

use crate::machine::plain;

const CPU: CpuId = CpuId(0);

fn fill(allocator: &BlockAllocator<'_>) -> usize {
    std::iter::from_fn(|| allocator.alloc(CPU, &Request::new(Order::ZERO)).ok()).count()
}

#[test]
fn what_is_below_the_minimum_is_not_handed_out() {
    let allocator = plain(8192, 1);
    allocator.set_watermarks(ZoneId(0), Watermarks { min: 2048, low: 4096, high: 5120 }).unwrap();
    assert_eq!(allocator.counters().below_low, 0);
    let got = fill(&allocator);
    assert_eq!(got, 8192 - 2048);
    assert!(allocator.counters().below_low > 0, "somebody has to reclaim");
    allocator.set_watermarks(ZoneId(0), Watermarks::default()).unwrap();
    assert_eq!(fill(&allocator), 2048);
    assert_eq!(
        allocator.set_watermarks(ZoneId(1), Watermarks::default()),
        Err(ConfigError::BadZone(ZoneId(1)))
    );
    let error = allocator.alloc(CPU, &Request::new(Order::ZERO));
    assert_eq!(error, Err(AllocError::OutOfMemory { order: Order::ZERO }));
}

#[test]
fn watermarks_follow_from_the_memory_to_keep_free() {
    let allocator = plain(8192, 1);
    let zone = || allocator.zones().next().unwrap();
    allocator.set_min_free_kbytes(4096);
    // The watermarks equal those of an allocator that was built with this setting.
    let frames = [0..8192];
    let zones = [ZoneConfig { kind: zone().kind, node: zone().node, span: 0..8192, regions: &frames }];
    let nodes = [zone().node];
    let mut config = pageset_core::Config::new(&zones, &nodes);
    config.min_free_kbytes = Some(4096);
    assert_eq!(zone().watermarks, config.watermarks(0));
    assert_eq!(zone().watermarks.min, 1024);
    allocator.set_min_free_kbytes(u64::MAX);
    assert_eq!(fill(&allocator), 0);
}
