//! Changes the selection when the user presses a key, and describes the selection in the footer.

use pageset_live::View;

use super::{Selection, Sort};

impl Sort {
    const fn name(self) -> &'static str {
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

impl Selection {
    pub(in super::super) fn next_sort(&mut self) {
        self.sort = self.sort.next();
    }

    /// Chooses the next zone. After the last zone, chooses all zones.
    pub(in super::super) fn next_zone(&mut self, view: &View) {
        let zones: Vec<_> = view.zones.iter().map(|zone| (zone.node, zone.zone)).collect();
        self.zone = following(&zones, self.zone);
    }

    /// Chooses the next CPU. After the last CPU, chooses all CPUs.
    pub(in super::super) fn next_cpu(&mut self, view: &View) {
        let mut cpus: Vec<_> = view.pagesets.iter().map(|pageset| pageset.cpu).collect();
        cpus.sort_unstable();
        cpus.dedup();
        self.cpu = following(&cpus, self.cpu);
    }

    /// Describes the selection in words, for the footer.
    pub(in super::super) fn text(&self) -> String {
        let zone =
            self.zone.map_or_else(|| "all zones".to_owned(), |(node, zone)| format!("zone {node} {zone}"));
        let cpu = self.cpu.map_or_else(|| "all CPUs".to_owned(), |cpu| format!("CPU {cpu}"));
        format!("{zone}, {cpu}, by {}", self.sort.name())
    }
}

/// Returns the item after the chosen item, and `None` after the last item. If no item is chosen, or the
/// chosen item no longer exists, returns the first item.
fn following<T: PartialEq + Copy>(all: &[T], chosen: Option<T>) -> Option<T> {
    let place = chosen.and_then(|chosen| all.iter().position(|one| *one == chosen));
    match place {
        Some(place) => all.get(place + 1).copied(),
        None => all.first().copied(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::sample;
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
        // Choose CPU 1, which the next view does not have. The next call of `next_cpu` chooses the first CPU.
        selection.next_cpu(&view);
        selection.next_cpu(&sample::view(1));
        assert_eq!(selection.cpu, Some(0));
    }
}
