//! Divides a machine's memory into zones.

use std::ops::Range;

use pageset_core::{NodeId, ZoneKind};

/// End of the zone [`ZoneKind::Dma`], as an address in bytes. Source: spec pcp.md §0.2, x86-64.
const DMA_END: u64 = 16 << 20;
/// End of the zone [`ZoneKind::Dma32`], as an address in bytes. `Dma32` begins where [`ZoneKind::Dma`] ends.
/// Source: spec pcp.md §0.2, x86-64.
const DMA32_END: u64 = 4 << 30;

/// The zones of a machine: the kind, node and frames of each zone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ZoneLayout {
    /// Zones in ascending order of (node, kind).
    pub zones: Vec<(ZoneKind, NodeId, Range<u64>)>,
}

impl ZoneLayout {
    /// Makes a layout with the same amount of memory for each node, one node after another. With `has_dma`,
    /// the lowest 16 MiB and the rest of the lowest 4 GiB are separate zones, as on x86-64.
    ///
    /// On a real computer, firmware reserves some memory and there are holes below 4 GiB. In a simulated
    /// machine, every frame is usable.
    pub(super) fn even(nodes: u32, bytes_per_node: u64, page_bytes: u32, has_dma: bool) -> Self {
        let limits: &[(ZoneKind, u64)] = if has_dma {
            &[(ZoneKind::Dma, DMA_END), (ZoneKind::Dma32, DMA32_END), (ZoneKind::Normal, u64::MAX)]
        } else {
            &[(ZoneKind::Normal, u64::MAX)]
        };
        let page = u64::from(page_bytes);
        let mut zones = Vec::new();
        for node in 0..nodes {
            let (mut start, end) = (u64::from(node) * bytes_per_node, u64::from(node + 1) * bytes_per_node);
            for &(kind, limit) in limits {
                let zone_end = end.min(limit);
                if start < zone_end {
                    // No zone has frame 0, because a kernel keeps frame 0 for itself.
                    zones.push((kind, NodeId(node as u16), (start / page).max(1)..zone_end / page));
                    start = zone_end;
                }
            }
        }
        Self { zones }
    }

    /// Makes a layout of one zone with `pages` pages on one node.
    #[must_use]
    pub fn single(pages: u64) -> Self {
        Self { zones: vec![(ZoneKind::Normal, NodeId(0), 1..pages.saturating_add(1))] }
    }

    /// Pages of all zones.
    #[must_use]
    pub fn pages(&self) -> u64 {
        self.zones.iter().map(|(_, _, frames)| frames.end - frames.start).sum()
    }

    /// The highest frame number, plus one.
    #[must_use]
    pub fn end(&self) -> u64 {
        self.zones.iter().map(|(_, _, frames)| frames.end).max().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_node_has_the_low_zones() {
        let layout = ZoneLayout::even(2, 8 << 30, 4096, true);
        let kinds: Vec<_> =
            layout.zones.iter().map(|(kind, node, frames)| (*kind, node.0, frames.clone())).collect();
        let normal = ZoneKind::Normal;
        assert_eq!(
            kinds,
            [
                (ZoneKind::Dma, 0, 1..4096),
                (ZoneKind::Dma32, 0, 4096..1 << 20),
                (normal, 0, 1 << 20..2 << 20),
                (normal, 1, 2 << 20..4 << 20),
            ]
        );
        assert_eq!(layout.end(), 4 << 20);
    }
}
