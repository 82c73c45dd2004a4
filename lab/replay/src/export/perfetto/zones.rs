//! Finds the zone of a frame.

use pageset_trace::{Layout, ZoneDescription};

/// The zones of a machine that have memory, by node and kind.
pub(super) struct Zones {
    zones: Vec<ZoneDescription>,
    last: usize,
}

impl Zones {
    pub(super) fn new(machine: &Layout) -> Self {
        let mut zones: Vec<_> = machine.zones.iter().filter(|zone| zone.managed > 0).cloned().collect();
        zones.sort_by_key(|zone| (zone.node, zone.kind));
        Self { zones, last: 0 }
    }

    pub(super) fn all(&self) -> &[ZoneDescription] {
        &self.zones
    }

    /// Returns the zone of a frame. The last result is tried first, because most frames lie in the same zone
    /// as the frame before.
    pub(super) fn of(&mut self, pfn: u64) -> Option<usize> {
        let is_in = |zone: &ZoneDescription| {
            pfn.checked_sub(zone.start_pfn).is_some_and(|distance| distance < zone.spanned)
        };
        if self.zones.get(self.last).is_some_and(is_in) {
            return Some(self.last);
        }
        let found = self.zones.iter().position(is_in)?;
        self.last = found;
        Some(found)
    }

    /// Returns the zone of a node with this kind, as `/proc/zoneinfo` names zones.
    pub(super) fn named(&self, node: u16, kind: pageset_core::ZoneKind) -> Option<usize> {
        self.zones.iter().position(|zone| (zone.node, zone.kind) == (node, kind))
    }

    /// Returns the highest zone of a node, except the zone `Movable`.
    pub(super) fn highest(&self, node: u16) -> Option<usize> {
        self.zones.iter().rposition(|zone| zone.node == node && zone.kind != pageset_core::ZoneKind::Movable)
    }
}
