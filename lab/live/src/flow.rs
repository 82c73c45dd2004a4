//! Bounds for the number of pages that moved between a zone's free lists and page sets.
//!
//! `/proc` counts neither refills nor drains. Bounds follow from the conservation of pages. In an interval, a
//! zone gives `R` pages to page sets, or to requests that bypass page sets. The zone gets `D` pages back. In
//! the same interval, `A` pages are allocated and `F` pages are freed:
//!
//! ```text
//! change of free pages            = D - R
//! change of pages in page sets    = R - A + F - D
//! ```
//!
//! - **At least**: `R >= -(change of free pages)` and `D >= change of free pages`, because neither `R` nor
//!   `D` is negative.
//! - **At most**: a page that came from the zone is in the end allocated or in a page set, so `R <= A +
//!   growth of page sets`. A page that went to the zone was freed, or was in a page set at the beginning, so
//!   `D <= F + shrinkage of page sets`. The upper bounds ignore pages that went both ways within the interval
//!   without being used. The upper bounds treat all page sets of a zone as one page set.
//!
//! `A` is `pgalloc_*` of the zone's kind, summed over all nodes, so the upper bounds are wide on machines
//! with many nodes. `pgfree` covers all zones, so the conservation of pages usually gives a smaller `F`.
//! `nr_free_pages` lacks the CPUs' pending changes, so the lower bounds may be off by `vm stats threshold`
//! pages per CPU.
//!
//! The use of `pgalloc_*` for `A` and `pgfree` for `F` was checked on Linux 6.18, with one zone in use. In a
//! second, 35 334 pages were allocated. By the sum of the two equations above, 52 206 pages were freed, and
//! by `pgfree` 52 167 pages.

use pageset_core::ZoneKind;
use pageset_trace::{Vmstat, ZoneDescription};
use serde::Serialize;

use crate::difference::{change, increase, per_s};

/// Bounds of a rate that the kernel does not count.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Bounds {
    /// Lower bound.
    pub at_least: f64,
    /// Upper bound. `None` if a counter is missing.
    pub at_most: Option<f64>,
}

/// Bounds of the flow between a zone and its page sets, in pages per second.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Flow {
    /// Pages that went from the zone to page sets, or to requests that bypass page sets.
    pub refilled_pages_per_s: Bounds,
    /// Pages that went to the zone from page sets, or from frees that bypass page sets.
    pub drained_pages_per_s: Bounds,
}

impl Flow {
    /// The flow of a zone between two readings. `None` if no time has passed, or if memory was added or
    /// removed.
    pub(crate) fn between(
        earlier: (&ZoneDescription, &Vmstat),
        later: (&ZoneDescription, &Vmstat),
        interval_ns: u64,
    ) -> Option<Self> {
        if earlier.0.managed != later.0.managed {
            return None;
        }
        let freed = change(earlier.0.free, later.0.free);
        let held = change(pcp_pages(earlier.0), pcp_pages(later.0));
        let allocations = counted(&[pgalloc(later.0.kind)], earlier.1, later.1);
        let left =
            allocations.and_then(|pages| pages.checked_add_signed(freed.saturating_add(held)).or(Some(0)));
        let frees = match (counted(&["pgfree"], earlier.1, later.1), left) {
            (Some(all), Some(left)) => Some(all.min(left)),
            (all, left) => all.or(left),
        };
        let bounds = |least: i64, through: Option<u64>, aside: i64| {
            let least = positive(least);
            // If the counters lag, the upper bound may be below the lower bound. Use the lower bound as the
            // upper bound in such a case.
            let most = through.map(|pages| pages.saturating_add(positive(aside)).max(least));
            let at_most = match most {
                Some(pages) => Some(per_s(pages, interval_ns)?),
                None => None,
            };
            Some(Bounds { at_least: per_s(least, interval_ns)?, at_most })
        };
        Some(Self {
            refilled_pages_per_s: bounds(-freed, allocations, held)?,
            drained_pages_per_s: bounds(freed, frees, -held)?,
        })
    }
}

/// Pages in all page sets of a zone.
pub(crate) fn pcp_pages(zone: &ZoneDescription) -> u64 {
    zone.pagesets.iter().fold(0, |sum, pageset| sum.saturating_add(u64::from(pageset.count)))
}

/// The counter of pages allocated from zones of this kind.
pub(crate) const fn pgalloc(kind: ZoneKind) -> &'static str {
    match kind {
        ZoneKind::Dma => "pgalloc_dma",
        ZoneKind::Dma32 => "pgalloc_dma32",
        ZoneKind::Normal => "pgalloc_normal",
        ZoneKind::HighMem => "pgalloc_high",
        ZoneKind::Movable => "pgalloc_movable",
    }
}

/// Sum of the increases of these counters. `None` if one of these counters is missing, or fell without a
/// wrap.
pub(crate) fn counted(names: &[&str], earlier: &Vmstat, later: &Vmstat) -> Option<u64> {
    names.iter().try_fold(0_u64, |sum, name| {
        Some(sum.saturating_add(increase(earlier.get(name)?, later.get(name)?)?))
    })
}

fn positive(pages: i64) -> u64 {
    u64::try_from(pages).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use pageset_trace::PcpSample;

    use super::*;

    const SECOND_NS: u64 = 1_000_000_000;

    fn zone(free: u64, counts: &[u32]) -> ZoneDescription {
        let pageset = |(cpu, count): (usize, &u32)| PcpSample {
            cpu: u32::try_from(cpu).unwrap(),
            count: *count,
            ..PcpSample::default()
        };
        let pagesets = counts.iter().enumerate().map(pageset).collect();
        ZoneDescription { free, pagesets, managed: 10_000, ..ZoneDescription::empty(0, ZoneKind::Normal) }
    }

    fn vmstat(allocated: u64, freed: u64) -> Vmstat {
        Vmstat::parse(&format!("pgalloc_normal {allocated}\npgfree {freed}\n")).unwrap()
    }

    /// Lower and upper bound.
    type Ends = (f64, Option<f64>);

    #[track_caller]
    fn flow(
        earlier: (&ZoneDescription, Vmstat),
        later: (&ZoneDescription, Vmstat),
        ns: u64,
    ) -> Option<(Ends, Ends)> {
        let flow = Flow::between((earlier.0, &earlier.1), (later.0, &later.1), ns)?;
        let pair = |bounds: Bounds| (bounds.at_least, bounds.at_most);
        Some((pair(flow.refilled_pages_per_s), pair(flow.drained_pages_per_s)))
    }

    #[test]
    fn allocations_alone_take_pages_from_the_zone() {
        // 63 pages left the zone: 50 are allocated, and 13 are in the page set.
        let found = flow((&zone(1000, &[0]), vmstat(0, 0)), (&zone(937, &[13]), vmstat(50, 0)), SECOND_NS);
        assert_eq!(found, Some(((63.0, Some(63.0)), (0.0, Some(0.0)))));
    }

    #[test]
    fn a_load_that_allocates_and_frees_is_between_nothing_and_all() {
        let found =
            flow((&zone(1000, &[5]), vmstat(7, 3)), (&zone(1000, &[5]), vmstat(107, 103)), SECOND_NS / 2);
        assert_eq!(found, Some(((0.0, Some(200.0)), (0.0, Some(200.0)))));
    }

    #[test]
    fn the_pages_of_a_cpu_that_goes_are_drained() {
        let found = flow((&zone(1000, &[5, 40]), vmstat(0, 0)), (&zone(1040, &[5]), vmstat(0, 0)), SECOND_NS);
        assert_eq!(found, Some(((0.0, Some(0.0)), (40.0, Some(40.0)))));
    }

    #[test]
    fn frees_to_other_zones_do_not_count() {
        // Only 10 of the 500 freed pages belong to this zone, because the zone and its page sets gained only
        // 10 pages.
        let found = flow((&zone(1000, &[0]), vmstat(0, 0)), (&zone(1000, &[10]), vmstat(0, 500)), SECOND_NS);
        assert_eq!(found, Some(((0.0, Some(10.0)), (0.0, Some(10.0)))));
    }

    #[test]
    fn counters_wrap_and_gauges_lag() {
        let wrapping = u64::from(u32::MAX);
        let found =
            flow((&zone(1000, &[0]), vmstat(wrapping, 0)), (&zone(980, &[0]), vmstat(9, 0)), SECOND_NS);
        assert_eq!(found, Some(((20.0, Some(20.0)), (0.0, Some(0.0)))));
    }

    #[test]
    fn without_counters_there_is_no_upper_bound() {
        let found =
            flow((&zone(1000, &[0]), Vmstat::default()), (&zone(980, &[0]), Vmstat::default()), SECOND_NS);
        assert_eq!(found, Some(((20.0, None), (0.0, None))));
    }

    #[test]
    fn memory_that_comes_is_not_traffic() {
        let grown = ZoneDescription { managed: 20_000, ..zone(11_000, &[0]) };
        assert_eq!(flow((&zone(1000, &[0]), vmstat(0, 0)), (&grown, vmstat(0, 0)), SECOND_NS), None);
        assert_eq!(flow((&zone(1, &[0]), vmstat(0, 0)), (&zone(1, &[0]), vmstat(0, 0)), 0), None);
    }
}
