//! How long each page set has kept its count.

use std::collections::BTreeMap;

use pageset_core::ZoneKind;

use crate::reading::Reading;

/// The node, the zone and the CPU of a page set.
type Place = (u16, usize, u32);

/// The time when each page set first had its current count.
///
/// Readings are snapshots: a page set that changed and returned to its count between two readings counts as
/// unchanged.
#[derive(Clone, Debug, Default)]
pub struct Unchanged {
    since: BTreeMap<Place, Since>,
}

#[derive(Clone, Copy, Debug)]
struct Since {
    count: u32,
    at_ns: u64,
}

impl Unchanged {
    /// Adds the next reading. Forgets page sets that the reading does not have.
    pub fn note(&mut self, reading: &Reading) {
        let mut since = BTreeMap::new();
        for zone in &reading.zoneinfo.zones {
            for pageset in &zone.pagesets {
                let place = (zone.node, zone.kind.index(), pageset.cpu);
                let before = self.since.get(&place).filter(|before| before.count == pageset.count);
                let at_ns = before.map_or(reading.at_ns, |before| before.at_ns);
                since.insert(place, Since { count: pageset.count, at_ns });
            }
        }
        self.since = since;
    }

    /// Returns how long the page set has been unchanged at `at_ns`, or 0 if the page set has just changed or
    /// appeared.
    #[must_use]
    pub fn ns(&self, node: u16, zone: ZoneKind, cpu: u32, at_ns: u64) -> u64 {
        self.since.get(&(node, zone.index(), cpu)).map_or(0, |since| at_ns.saturating_sub(since.at_ns))
    }
}

#[cfg(test)]
mod tests {
    use pageset_trace::{PcpSample, Vmstat, ZoneDescription, Zoneinfo};

    use super::*;

    fn reading(at_ns: u64, counts: &[(u32, u32)]) -> Reading {
        let pagesets =
            counts.iter().map(|(cpu, count)| PcpSample { cpu: *cpu, count: *count, ..PcpSample::default() });
        let zone =
            ZoneDescription { pagesets: pagesets.collect(), ..ZoneDescription::empty(0, ZoneKind::Normal) };
        Reading {
            at_ns,
            zoneinfo: Zoneinfo { zones: vec![zone], zone_names: Vec::new() },
            vmstat: Vmstat::default(),
        }
    }

    #[test]
    fn time_goes_on_until_the_count_differs_or_the_cpu_goes() {
        let mut unchanged = Unchanged::default();
        let mut after = |at_ns, counts: &[(u32, u32)]| {
            unchanged.note(&reading(at_ns, counts));
            [0, 1].map(|cpu| unchanged.ns(0, ZoneKind::Normal, cpu, at_ns))
        };
        assert_eq!(after(10, &[(0, 5), (1, 7)]), [0, 0]);
        assert_eq!(after(20, &[(0, 5), (1, 8)]), [10, 0]);
        assert_eq!(after(30, &[(0, 5)]), [20, 0]);
        assert_eq!(after(40, &[(0, 5), (1, 8)]), [30, 0]);
        assert_eq!(after(50, &[(0, 5), (1, 8)]), [40, 10]);
    }
}
