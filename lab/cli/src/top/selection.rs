//! Which page sets are shown, and in which order. The file `keys` has the effects of keys.

#[cfg(any(feature = "screen", test))]
mod keys;

use std::cmp::Reverse;

use pageset_live::{PagesetView, View, ZoneView};

/// Order of page sets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Sort {
    /// The largest change first.
    #[default]
    Change,
    /// The most pages first.
    #[cfg_attr(not(any(feature = "screen", test)), expect(dead_code, reason = "chosen by a key"))]
    Count,
    /// The longest time without a change first.
    #[cfg_attr(not(any(feature = "screen", test)), expect(dead_code, reason = "chosen by a key"))]
    Unchanged,
    /// As `/proc/zoneinfo` lists them.
    #[cfg_attr(not(any(feature = "screen", test)), expect(dead_code, reason = "chosen by a key"))]
    Place,
}

/// The zone, the CPU and the order that the user has chosen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Selection {
    sort: Sort,
    /// The chosen node and zone; `None` shows all.
    zone: Option<(u16, &'static str)>,
    /// The chosen CPU; `None` shows all.
    pub(super) cpu: Option<u32>,
}

impl Selection {
    /// The page sets that are shown, in their order.
    pub(super) fn of<'a>(&self, view: &'a View) -> Vec<&'a PagesetView> {
        let is_chosen = |pageset: &&PagesetView| {
            self.zone.is_none_or(|zone| zone == (pageset.node, pageset.zone))
                && self.cpu.is_none_or(|cpu| cpu == pageset.cpu)
        };
        let mut chosen: Vec<_> = view.pagesets.iter().filter(is_chosen).collect();
        match self.sort {
            Sort::Change => {
                let moved = |set: &&PagesetView| set.change.unwrap_or(0).unsigned_abs();
                // Page sets without a change are sorted by their count.
                chosen.sort_by_key(|set| Reverse((moved(set), set.count)));
            }
            Sort::Count => chosen.sort_by_key(|set| Reverse(set.count)),
            Sort::Unchanged => chosen.sort_by_key(|set| Reverse(set.unchanged_ns)),
            Sort::Place => {}
        }
        chosen
    }

    /// Whether the zone is shown.
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
