//! Random machines: one to three zones with holes and odd ends on one or two nodes, one to four CPUs.

use std::ops::Range;

use pageset_core::{Config, NodeId, Policy, ZoneConfig, ZoneKind};
use proptest::prelude::*;

use crate::host::{Allocator, build};

/// A machine that an allocator can be built for.
#[derive(Clone, Debug)]
pub(crate) struct Machine {
    pub(crate) zones: Vec<ZoneShape>,
    pub(crate) cpus: Vec<u16>,
    pub(crate) page_bytes: u32,
    pub(crate) min_free_kbytes: Option<u64>,
    pub(crate) scale_factor: u32,
    pub(crate) boost_factor: u32,
}

#[derive(Clone, Debug)]
pub(crate) struct ZoneShape {
    pub(crate) kind: ZoneKind,
    pub(crate) node: u16,
    pub(crate) span: Range<u64>,
    pub(crate) regions: Vec<Range<u64>>,
}

impl Machine {
    pub(crate) fn build(&self, policy: Policy) -> Allocator {
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
        build(&Config {
            page_bytes: self.page_bytes,
            min_free_kbytes: self.min_free_kbytes,
            watermark_scale_factor: self.scale_factor,
            watermark_boost_factor: self.boost_factor,
            ..Config::new(&zones, &cpus).with_policy(policy)
        })
    }

    /// The zone whose span holds a frame.
    pub(crate) fn zone_of(&self, pfn: u64) -> Option<&ZoneShape> {
        self.zones.iter().find(|zone| zone.span.contains(&pfn))
    }

    /// Whether a frame is memory that the allocator was given.
    pub(crate) fn is_memory(&self, pfn: u64) -> bool {
        self.zone_of(pfn).is_some_and(|zone| zone.regions.iter().any(|region| region.contains(&pfn)))
    }

    pub(crate) fn nodes(&self) -> u16 {
        let nodes = self.zones.iter().map(|zone| zone.node).chain(self.cpus.iter().copied());
        nodes.max().unwrap_or(0) + 1
    }

    /// Some frame of the machine: any of a zone's span, or one just outside.
    pub(crate) fn frame(&self, zone: usize, offset: u64) -> u64 {
        let span = &self.zones[zone % self.zones.len()].span;
        (span.start + offset % (span.end - span.start + 8)).saturating_sub(4)
    }
}

/// (node, kind) pairs that machines are made of, in the order that a configuration wants.
const LAYOUTS: &[&[(u16, ZoneKind)]] = &[
    &[(0, ZoneKind::Normal)],
    &[(0, ZoneKind::Dma), (0, ZoneKind::Normal)],
    &[(0, ZoneKind::Dma32), (0, ZoneKind::Normal)],
    &[(0, ZoneKind::Dma32), (0, ZoneKind::Normal), (1, ZoneKind::Normal)],
    &[(0, ZoneKind::Normal), (0, ZoneKind::Movable)],
    &[(0, ZoneKind::Normal), (1, ZoneKind::Normal)],
    &[(1, ZoneKind::Dma32), (1, ZoneKind::Normal)],
    &[(0, ZoneKind::Normal), (0, ZoneKind::HighMem), (1, ZoneKind::Movable)],
];

fn sizes() -> BoxedStrategy<u64> {
    if cfg!(miri) {
        return (1_u64..200).boxed();
    }
    prop_oneof![
        3 => 1_u64..2000,
        4 => 2000_u64..6000,
        3 => 12_000_u64..26_000,
        // Large enough for a reserve of atomic blocks under Linux 6.12.
        1 => 51_200_u64..53_000,
    ]
    .boxed()
}

/// A span of about `size` frames behind `gap` frames, and up to three regions in it.
fn shape() -> impl Strategy<Value = (u64, u64, Vec<(u64, u64)>)> {
    let gaps = prop_oneof![Just(0_u64), 1_u64..5000, Just(1024_u64)];
    let holes = prop_oneof![
        3 => Just(vec![]),
        2 => prop::collection::vec((0_u64..4000, 1_u64..700), 1..3),
    ];
    (gaps, sizes(), holes)
}

/// Any machine.
pub(crate) fn machines() -> impl Strategy<Value = Machine> {
    let layouts = prop::sample::select(LAYOUTS);
    let min_free = prop_oneof![Just(None), (0_u64..400).prop_map(Some), (0_u64..8000).prop_map(Some)];
    (
        layouts,
        prop::collection::vec(shape(), 3),
        prop::collection::vec(0_u16..2, 1..=4),
        prop::sample::select(&[4096_u32, 4096, 16_384, 0, 1][..]),
        min_free,
        prop::sample::select(&[10_u32, 10, 200, 3000][..]),
        prop::sample::select(&[15_000_u32, 15_000, 0][..]),
        0_u64..3,
    )
        .prop_map(
            |(layout, shapes, cpus, page_bytes, min_free_kbytes, scale_factor, boost_factor, start)| {
                let mut at = start * 0x10_0001;
                let zones = layout
                    .iter()
                    .zip(shapes)
                    .map(|(&(node, kind), (gap, size, holes))| {
                        at += gap;
                        let span = at..at + size;
                        at = span.end;
                        ZoneShape { kind, node, regions: regions(span.clone(), holes), span }
                    })
                    .collect();
                Machine { zones, cpus, page_bytes, min_free_kbytes, scale_factor, boost_factor }
            },
        )
}

/// What is left of a span when the holes (distance from the last one, length) are taken out.
fn regions(span: Range<u64>, holes: Vec<(u64, u64)>) -> Vec<Range<u64>> {
    let mut regions = vec![];
    let mut from = span.start;
    for (distance, length) in holes {
        let hole = (from + distance).min(span.end)..(from + distance + length).min(span.end);
        regions.push(from..hole.start);
        from = hole.end;
    }
    regions.push(from..span.end);
    regions
}
