//! Describes machines for tests: one or two nodes, one to four CPUs, one to three zones. Zones may have
//! holes. Zones need not begin or end at the boundaries of pageblocks.

use std::ops::Range;

use pageset_core::{Config, NodeId, Order, ZoneConfig, ZoneKind};

/// The description of a machine. The tests can build an allocator for every machine.
#[derive(Clone, Debug)]
pub(crate) struct Machine {
    pub(crate) zones: Vec<ZoneShape>,
    pub(crate) cpus: Vec<u16>,
    pub(crate) page_bytes: u32,
    pub(crate) min_free_kbytes: Option<u64>,
    pub(crate) scale_factor: u32,
    pub(crate) boost_factor: u32,
    pub(crate) lowmem_ratio: u32,
    pub(crate) high_fraction: u32,
    /// The distances between all nodes. `None` stands for the default distances.
    pub(crate) distances: Option<[u8; 4]>,
}

#[derive(Clone, Debug)]
pub(crate) struct ZoneShape {
    pub(crate) kind: ZoneKind,
    pub(crate) node: u16,
    pub(crate) span: Range<u64>,
    pub(crate) regions: Vec<Range<u64>>,
}

impl ZoneShape {
    /// Inserts a region in ascending order. Regions that touch each other become one region.
    pub(crate) fn add(&mut self, region: Range<u64>) {
        if region.start >= region.end {
            return;
        }
        self.regions.push(region);
        self.regions.sort_by_key(|region| region.start);
        self.regions.dedup_by(|next, region| {
            let touches = region.end == next.start;
            if touches {
                region.end = next.end;
            }
            touches
        });
    }
}

/// The order with this number.
#[track_caller]
pub(crate) fn order(order: u8) -> Order {
    Order::new(order).expect("an order")
}

impl Machine {
    /// Calls `build` with a configuration for this machine.
    pub(crate) fn with_config<R>(&self, build: impl FnOnce(Config<'_>) -> R) -> R {
        let zones: Vec<_> = self
            .zones
            .iter()
            .map(|zone| ZoneConfig {
                kind: zone.kind,
                node: NodeId(zone.node),
                span: zone.span.clone(),
                regions: &zone.regions,
            })
            .collect();
        let cpus: Vec<_> = self.cpus.iter().map(|node| NodeId(*node)).collect();
        let nodes = usize::from(self.nodes());
        let mut config = Config::new(&zones, &cpus);
        config.distances = self.distances.as_ref().map(|distances| &distances[..nodes * nodes]);
        config.lowmem_reserve_ratio = [self.lowmem_ratio; ZoneKind::COUNT];
        config.percpu_pagelist_high_fraction = self.high_fraction;
        config.page_bytes = self.page_bytes;
        config.min_free_kbytes = self.min_free_kbytes;
        config.watermark_scale_factor = self.scale_factor;
        config.watermark_boost_factor = self.boost_factor;
        build(config)
    }

    /// The zone whose span holds a frame.
    pub(crate) fn zone_of(&self, pfn: u64) -> Option<&ZoneShape> {
        self.zones.iter().find(|zone| zone.span.contains(&pfn))
    }

    /// Whether the machine gave this frame to the allocator.
    pub(crate) fn is_memory(&self, pfn: u64) -> bool {
        self.zone_of(pfn).is_some_and(|zone| zone.regions.iter().any(|region| region.contains(&pfn)))
    }

    /// Whether all frames of a range are memory, in one region.
    pub(crate) fn are_memory(&self, range: &Range<u64>) -> bool {
        let around = |region: &Range<u64>| region.start <= range.start && range.end <= region.end;
        self.zone_of(range.start).is_some_and(|zone| zone.regions.iter().any(around))
    }

    pub(crate) fn nodes(&self) -> u16 {
        let nodes = self.zones.iter().map(|zone| zone.node).chain(self.cpus.iter().copied());
        nodes.max().unwrap_or(0) + 1
    }

    /// A frame of the machine, in a zone's span or just outside it.
    pub(crate) fn frame(&self, zone: usize, offset: u64) -> u64 {
        let span = &self.zones[zone % self.zones.len()].span;
        (span.start + offset % (span.end - span.start + 8)).saturating_sub(4)
    }
}

/// The (node, kind) pairs of machines, in the order that a configuration requires.
pub(crate) const LAYOUTS: &[&[(u16, ZoneKind)]] = &[
    &[(0, ZoneKind::Normal)],
    &[(0, ZoneKind::Normal), (0, ZoneKind::Normal)],
    &[(0, ZoneKind::Dma32), (0, ZoneKind::Normal), (0, ZoneKind::Normal)],
    &[(0, ZoneKind::Dma), (0, ZoneKind::Normal)],
    &[(0, ZoneKind::Dma32), (0, ZoneKind::Normal)],
    &[(0, ZoneKind::Dma32), (0, ZoneKind::Normal), (1, ZoneKind::Normal)],
    &[(0, ZoneKind::Normal), (0, ZoneKind::Movable)],
    &[(0, ZoneKind::Normal), (1, ZoneKind::Normal)],
    &[(1, ZoneKind::Dma32), (1, ZoneKind::Normal)],
    &[(0, ZoneKind::Normal), (0, ZoneKind::HighMem), (1, ZoneKind::Movable)],
];

/// Cuts holes out of a span and returns the remaining regions. A hole is given by its distance from the
/// previous hole and its length.
pub(crate) fn regions(span: Range<u64>, holes: Vec<(u64, u64)>) -> Vec<Range<u64>> {
    let mut regions = vec![];
    let mut from = span.start;
    for (distance, length) in holes {
        let hole = (from + distance).min(span.end)..(from + distance + length).min(span.end);
        regions.push(from..hole.start);
        from = hole.end;
    }
    regions.push(from..span.end);
    regions.retain(|region| !region.is_empty());
    regions
}
