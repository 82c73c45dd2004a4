//! Which page sets are shown, and in which order.

use pageset_live::{PagesetView, View, ZoneView};

/// Order of page sets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Sort {
    /// Those that changed most first.
    #[default]
    Change,
    /// Those that hold most first.
    Count,
    /// Those that have been unchanged for longest first.
    Unchanged,
    /// As `/proc/zoneinfo` lists them.
    Place,
}

impl Sort {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Change => "change",
            Self::Count => "count",
            Self::Unchanged => "unchanged",
            Self::Place => "zone and CPU",
        }
    }

    const fn next(self) -> Self {
        match self {
            Self::Change => Self::Count,
            Self::Count => Self::Unchanged,
            Self::Unchanged => Self::Place,
            Self::Place => Self::Change,
        }
    }
}

/// What was chosen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Selection {
    pub(super) sort: Sort,
    /// Node and zone; all if none.
    zone: Option<(u16, &'static str)>,
    /// All if none.
    pub(super) cpu: Option<u32>,
}

// Keys choose, and only a screen has keys.
#[cfg_attr(not(any(feature = "screen", test)), expect(dead_code, reason = "only a screen has keys"))]
impl Selection {
    pub(super) fn next_sort(&mut self) {
        self.sort = self.sort.next();
    }

    /// The zone after the chosen one; all after the last.
    pub(super) fn next_zone(&mut self, view: &View) {
        let zones: Vec<_> = view.zones.iter().map(|zone| (zone.node, zone.zone)).collect();
        self.zone = following(&zones, self.zone);
    }

    /// The CPU after the chosen one; all after the last.
    pub(super) fn next_cpu(&mut self, view: &View) {
        let mut cpus: Vec<_> = view.pagesets.iter().map(|pageset| pageset.cpu).collect();
        cpus.sort_unstable();
        cpus.dedup();
        self.cpu = following(&cpus, self.cpu);
    }
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
                // Page sets at rest in the order of what they hold.
                chosen.sort_by_key(|set| std::cmp::Reverse((moved(set), set.count)));
            }
            Sort::Count => chosen.sort_by_key(|set| std::cmp::Reverse(set.count)),
            Sort::Unchanged => chosen.sort_by_key(|set| std::cmp::Reverse(set.unchanged_ns)),
            Sort::Place => {}
        }
        chosen
    }

    /// Whether the zone is shown.
    pub(super) fn has_zone(&self, zone: &ZoneView) -> bool {
        self.zone.is_none_or(|chosen| chosen == (zone.node, zone.zone))
    }

    /// In words.
    pub(super) fn text(&self) -> String {
        let zone =
            self.zone.map_or_else(|| "all zones".to_owned(), |(node, zone)| format!("zone {node} {zone}"));
        let cpu = self.cpu.map_or_else(|| "all CPUs".to_owned(), |cpu| format!("CPU {cpu}"));
        format!("{zone}, {cpu}, by {}", self.sort.name())
    }
}

/// The first if none was chosen or the chosen one is gone, and none after the last.
#[cfg_attr(not(any(feature = "screen", test)), expect(dead_code, reason = "only a screen has keys"))]
fn following<T: PartialEq + Copy>(all: &[T], chosen: Option<T>) -> Option<T> {
    let place = chosen.and_then(|chosen| all.iter().position(|one| *one == chosen));
    match place {
        Some(place) => all.get(place + 1).copied(),
        None => all.first().copied(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;

    fn shown(selection: &Selection, view: &View) -> Vec<(&'static str, u32)> {
        selection.of(view).iter().map(|set| (set.zone, set.cpu)).collect()
    }

    #[test]
    fn keys_go_round() {
        let view = sample::view(2);
        let mut selection = Selection::default();
        let mut sorts = Vec::new();
        for _ in 0..5 {
            sorts.push(selection.sort.name());
            selection.next_sort();
        }
        assert_eq!(sorts, ["change", "count", "unchanged", "zone and CPU", "change"]);
        selection = Selection { sort: Sort::Place, ..Selection::default() };
        selection.next_zone(&view);
        assert_eq!(shown(&selection, &view), [("DMA32", 0), ("DMA32", 1)]);
        selection.next_cpu(&view);
        assert_eq!(shown(&selection, &view), [("DMA32", 0)]);
        assert_eq!(selection.text(), "zone 0 DMA32, CPU 0, by zone and CPU");
        selection.next_zone(&view);
        selection.next_zone(&view);
        assert_eq!(shown(&selection, &view), [("DMA32", 0), ("Normal", 0)]);
        // A CPU that went away no longer hides the others.
        selection.next_cpu(&view);
        selection.next_cpu(&sample::view(1));
        assert_eq!(selection.cpu, Some(0));
    }

    #[test]
    fn those_that_moved_are_first() {
        let view = sample::view(3);
        let found: Vec<_> = Selection::default().of(&view).iter().map(|set| set.change).collect();
        assert_eq!(found, [Some(-20), Some(-10), Some(0), Some(0), Some(0), Some(0)]);
    }
}
