//! The machine of a replay: zones with memory, the zone of each frame, the node of each CPU.

use std::ops::Range;

use pageset_core::FrameCounts;
use pageset_trace::{Layout, ZoneDescription};

use super::error::ReplayError;

/// Maximum number of page sets of a machine. In a play of each policy, a page set takes half a kibibyte.
const PAGE_SETS_MAX: usize = 1 << 18;

/// A machine that has been checked.
#[derive(Clone, Debug)]
pub(super) struct Machine {
    pub(super) layout: Layout,
    /// The zones with memory, by node and kind. The kernel visits zones in this order.
    pub(super) zones: Vec<ZoneDescription>,
    spans: Vec<Range<u64>>,
    /// The node of each CPU.
    pub(super) nodes: Vec<u16>,
    is_online: Vec<bool>,
}

impl Machine {
    pub(super) fn new(layout: Layout) -> Result<Self, ReplayError> {
        layout.check().map_err(ReplayError::Layout)?;
        let mut zones: Vec<_> = layout.zones.iter().filter(|zone| zone.managed > 0).cloned().collect();
        zones.sort_by_key(|zone| (zone.node, zone.kind));
        if zones.len().saturating_mul(layout.cpus as usize) > PAGE_SETS_MAX {
            return Err(ReplayError::Layout(format!("it has more than {PAGE_SETS_MAX} page sets")));
        }
        let too_large = |zone: &ZoneDescription| {
            FrameCounts::for_span(zone.start_pfn..zone.start_pfn.saturating_add(zone.spanned)).is_none()
        };
        if let Some(zone) = zones.iter().find(|zone| too_large(zone)) {
            return Err(ReplayError::Layout(format!("zone {} spans more than 2^32 frames", zone.kind)));
        }
        let spans =
            zones.iter().map(|zone| zone.start_pfn..zone.start_pfn.saturating_add(zone.spanned)).collect();
        let nodes = (0..layout.cpus).map(|cpu| layout.node_of_cpu(cpu).unwrap_or(0)).collect();
        let is_online = (0..layout.cpus).map(|cpu| layout.node_of_cpu(cpu).is_some()).collect();
        Ok(Self { layout, zones, spans, nodes, is_online })
    }

    /// Whether the CPU `cpu` exists and is online.
    #[inline]
    pub(super) fn has_cpu(&self, cpu: u16) -> bool {
        self.is_online.get(usize::from(cpu)).is_some_and(|is_online| *is_online)
    }

    /// One more than the number of the last CPU.
    pub(super) fn cpus(&self) -> usize {
        self.nodes.len()
    }

    pub(super) fn sets(&self) -> usize {
        self.zones.len() * self.cpus()
    }

    #[inline]
    pub(super) fn zone_of(&self, pfn: u64) -> Option<usize> {
        self.spans.iter().position(|span| span.contains(&pfn))
    }

    #[inline]
    pub(super) fn set(&self, zone: usize, cpu: u16) -> u32 {
        (zone * self.cpus() + usize::from(cpu)) as u32
    }

    /// The highest zone of a CPU's node that a request may use.
    pub(super) fn highest_zone(&self, cpu: u16, index: usize) -> Option<usize> {
        let node = *self.nodes.get(usize::from(cpu))?;
        self.zones.iter().rposition(|zone| zone.node == node && index_of(zone) <= index)
    }
}

/// The kernel's number of a zone on x86-64, where no zone is high memory (spec §1.13).
pub(super) fn index_of(zone: &ZoneDescription) -> usize {
    match zone.kind {
        pageset_core::ZoneKind::Movable => 3,
        kind => kind.index(),
    }
}
