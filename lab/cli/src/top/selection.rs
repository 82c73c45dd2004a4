//! Chooses the page sets to show, and their order. The module `keys` changes this choice when the user
//! presses keys.

#[cfg(any(feature = "screen", test))]
mod keys;

use std::cmp::Reverse;

use pageset_live::{PagesetView, View, ZoneView};

/// Order of the page sets on the screen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Sort {
    /// The page set with the largest change of its count comes first.
    #[default]
    Change,
    /// The page set with the most pages comes first.
    #[cfg_attr(not(any(feature = "screen", test)), expect(dead_code, reason = "chosen by a key"))]
    Count,
    /// The page set whose count has not changed for the longest time comes first.
    #[cfg_attr(not(any(feature = "screen", test)), expect(dead_code, reason = "chosen by a key"))]
    Unchanged,
    /// Page sets have the order of `/proc/zoneinfo`.
    #[cfg_attr(not(any(feature = "screen", test)), expect(dead_code, reason = "chosen by a key"))]
    Place,
}

/// The zone, the CPU and the order that the user has chosen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Selection {
    sort: Sort,
    /// The chosen node and zone. With `None`, the page sets of all zones are shown.
    zone: Option<(u16, &'static str)>,
    /// The chosen CPU. With `None`, the page sets of all CPUs are shown.
    pub(super) cpu: Option<u32>,
}

impl Selection {
    /// Returns the page sets that are shown, in the chosen order.
    pub(super) fn of<'a>(&self, view: &'a View) -> Vec<&'a PagesetView> {
        let is_chosen = |pageset: &&PagesetView| {
            self.zone.is_none_or(|zone| zone == (pageset.node, pageset.zone))
                && self.cpu.is_none_or(|cpu| cpu == pageset.cpu)
        };
        let mut chosen: Vec<_> = view.pagesets.iter().filter(is_chosen).collect();
        match self.sort {
            Sort::Change => {
                let moved = |set: &&PagesetView| set.change.unwrap_or(0).unsigned_abs();
                // Among page sets with the same change, the page set with the most pages comes first.
                chosen.sort_by_key(|set| Reverse((moved(set), set.count)));
            }
            Sort::Count => chosen.sort_by_key(|set| Reverse(set.count)),
            Sort::Unchanged => chosen.sort_by_key(|set| Reverse(set.unchanged_ns)),
            Sort::Place => {}
        }
        chosen
    }

    /// Whether page sets of this zone are shown.
    pub(super) fn has_zone(&self, zone: &ZoneView) -> bool {
        self.zone.is_none_or(|chosen| chosen == (zone.node, zone.zone))
    }
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;

    #[test]
    fn those_that_moved_are_first() {
        let view = sample::view(3);
        let found: Vec<_> = Selection::default().of(&view).iter().map(|set| set.change).collect();
        assert_eq!(found, [Some(-20), Some(-10), Some(0), Some(0), Some(0), Some(0)]);
    }
}
