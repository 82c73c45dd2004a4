//! Machines for tests.

use std::ops::Range;

use pageset_blocks::{BlockAllocator, Tables};
use pageset_core::{Config, MigrateType, NodeId, Order, Request, RequestTraits, ZoneConfig, ZoneKind};

pub(crate) fn order(order: u8) -> Order {
    Order::new(order).expect("tests name orders that there are")
}

/// A request that may use every frame there is.
pub(crate) fn request(of: u8, migratetype: MigrateType) -> Request {
    Request::new(order(of)).of_type(migratetype).in_zone(ZoneKind::Movable).with(RequestTraits::NO_WATERMARKS)
}

/// A zone: kind, span and regions.
type Zone = (ZoneKind, Range<u64>, Vec<Range<u64>>);

/// An allocator over zones of one node.
pub(crate) fn allocator(zones: &[Zone], cpus: usize) -> BlockAllocator<'static> {
    let zones: Vec<_> = zones
        .iter()
        .map(|(kind, span, regions)| ZoneConfig { kind: *kind, node: NodeId(0), span: span.clone(), regions })
        .collect();
    let nodes = vec![NodeId(0); cpus];
    let mut config = Config::new(&zones, &nodes);
    config.min_free_kbytes = Some(0);
    let tables = Tables::on_heap(&config).expect("the zones are possible");
    BlockAllocator::new(&config, tables).expect("the zones do not overlap")
}

/// An allocator for one zone without holes.
pub(crate) fn plain(frames: u64, cpus: usize) -> BlockAllocator<'static> {
    allocator(&[(ZoneKind::Normal, 0..frames, vec![0..frames])], cpus)
}

fn ragged_zones() -> [Zone; 2] {
    [(ZoneKind::Dma32, 0..2048, vec![0..700, 800..2048]), (ZoneKind::Normal, 4096..7301, vec![4096..7301])]
}

/// Two zones. The first zone has a hole, ends in the middle of a pageblock, and is followed by a gap.
pub(crate) fn ragged(cpus: usize) -> BlockAllocator<'static> {
    allocator(&ragged_zones(), cpus)
}

/// Frames of [`ragged`].
pub(crate) const RAGGED_FRAMES: u64 = 700 + 1248 + 3205;
