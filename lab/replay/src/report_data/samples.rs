//! The counts and limits of page sets, and the free pages of zones, over time. Each interval has the smallest
//! and the largest sampled value.

use std::collections::BTreeMap;

use pageset_core::ZoneKind;
use pageset_trace::TraceInfo;

use crate::Timeline;

/// For each interval: its beginning in nanoseconds after the first event, the smallest value, and the largest
/// value. Intervals without a sample are left out.
pub type Extremes = Vec<(u64, u64, u64)>;

/// The samples of `/proc/zoneinfo`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Samples {
    /// CPUs with samples.
    pub cpus: Vec<CpuSamples>,
    /// Zones with samples, by node and kind.
    pub zones: Vec<ZoneSamples>,
}

/// The page sets of one CPU, added up over all zones.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CpuSamples {
    /// The CPU.
    pub cpu: u32,
    /// The number of pages that the CPU's page sets hold.
    pub held: Extremes,
    /// The sum of the limits `high` of the CPU's page sets.
    pub limit: Extremes,
}

/// The samples of one zone, from all CPUs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ZoneSamples {
    /// NUMA node.
    pub node: u16,
    /// The kind of the zone.
    pub kind: ZoneKind,
    /// The number of free pages of the zone.
    pub free: Extremes,
    /// Watermarks when the recording began: min, low and high; `None` if the state of the zones is not
    /// recorded.
    pub watermarks: Option<(u64, u64, u64)>,
}

impl ZoneSamples {
    /// Whether all samples of the zone have the same number of free pages.
    #[must_use]
    pub fn is_quiet(&self) -> bool {
        let all = self.free.iter().flat_map(|(_, least, most)| [*least, *most]);
        all.clone().min() == all.max()
    }
}

impl Samples {
    pub(super) fn new(info: &TraceInfo, timeline: &Timeline) -> Self {
        let mut cpus: BTreeMap<u32, CpuSamples> = BTreeMap::new();
        let mut zones: BTreeMap<(u16, ZoneKind), Extremes> = BTreeMap::new();
        let interval_ns = timeline.interval_ns.max(1);
        let last = timeline.intervals.saturating_sub(1) as u64;
        for sample in &info.samples {
            // A sample before the first event counts in the first interval. A sample after the last event
            // counts in the last interval.
            let interval = (sample.t0_ns.saturating_sub(timeline.first_ns) / interval_ns).min(last);
            let at_ns = interval * interval_ns;
            let cpu = cpus.entry(sample.cpu).or_default();
            cpu.cpu = sample.cpu;
            let sum = |of: fn(&pageset_trace::ZoneSample) -> u32| {
                sample.zones.iter().map(|zone| u64::from(of(zone))).sum()
            };
            widen(&mut cpu.held, at_ns, sum(|zone| zone.count));
            widen(&mut cpu.limit, at_ns, sum(|zone| zone.high));
            for zone in &sample.zones {
                widen(zones.entry((zone.node, zone.kind)).or_default(), at_ns, zone.free);
            }
        }
        let zones = zones.into_iter().map(|((node, kind), free)| {
            let described = info.machine.iter().flat_map(|machine| &machine.zones);
            let mut described = described.filter(|zone| (zone.node, zone.kind) == (node, kind));
            let watermarks = described.next().map(|zone| (zone.min, zone.low, zone.high));
            ZoneSamples { node, kind, free, watermarks }
        });
        Self { zones: zones.collect(), cpus: cpus.into_values().collect() }
    }

    /// An estimate of the most pages that all page sets held together: the largest sum of the CPUs' maxima in
    /// one interval. A CPU without a sample in the interval counts with its last maximum. `None` without
    /// samples.
    #[must_use]
    pub fn held_peak(&self) -> Option<u64> {
        let mut changes: Vec<(u64, usize, u64)> = Vec::new();
        for (at, cpu) in self.cpus.iter().enumerate() {
            changes.extend(cpu.held.iter().map(|(at_ns, _, most)| (*at_ns, at, *most)));
        }
        changes.sort_unstable();
        let mut held = vec![0_u64; self.cpus.len()];
        let mut peak = None;
        for interval in changes.chunk_by(|left, right| left.0 == right.0) {
            interval.iter().for_each(|(_, cpu, most)| held[*cpu] = *most);
            peak = peak.max(Some(held.iter().sum()));
        }
        peak
    }

    /// Whether the recording has no samples.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.cpus.is_empty()
    }
}

/// Adds a sampled value to its interval. Samples are not perfectly sorted by time: a sample may be up to a
/// few intervals late.
fn widen(extremes: &mut Extremes, at_ns: u64, value: u64) {
    let place = extremes.partition_point(|interval| interval.0 < at_ns);
    match extremes.get_mut(place) {
        Some(interval) if interval.0 == at_ns => {
            *interval = (at_ns, interval.1.min(value), interval.2.max(value));
        }
        _ => extremes.insert(place, (at_ns, value, value)),
    }
}

#[cfg(test)]
mod tests {
    use pageset_trace::{Sample, ZoneSample};

    use super::*;

    #[test]
    fn extremes_of_an_interval_are_kept() {
        let sample = |t0_ns, count| Sample {
            t0_ns,
            t1_ns: t0_ns + 1,
            cpu: 1,
            zones: vec![ZoneSample {
                node: 0,
                kind: ZoneKind::Normal,
                free: 1000 - u64::from(count),
                count,
                high: 50,
                batch: 31,
                high_min: None,
                high_max: None,
            }],
        };
        let info = TraceInfo {
            samples: [(90, 5), (100, 9), (139, 1), (150, 7), (120, 3)]
                .map(|(at, count)| sample(at, count))
                .into(),
            ..TraceInfo::default()
        };
        let timeline = Timeline { first_ns: 100, interval_ns: 40, intervals: 2, ..Timeline::default() };
        let samples = Samples::new(&info, &timeline);
        assert_eq!(samples.cpus[0].held, [(0, 1, 9), (40, 7, 7)]);
        assert_eq!(samples.cpus[0].limit, [(0, 50, 50), (40, 50, 50)]);
        assert_eq!(samples.zones[0].free, [(0, 991, 999), (40, 993, 993)]);
        assert_eq!(samples.zones[0].watermarks, None);
        assert!(!samples.zones[0].is_quiet());
        assert_eq!((samples.held_peak(), Samples::default().held_peak()), (Some(9), None));
    }

    #[test]
    fn what_all_hold_is_the_sum_of_what_each_held_last() {
        let cpu = |cpu, held: &[(u64, u64, u64)]| CpuSamples { cpu, held: held.to_vec(), limit: Vec::new() };
        let cpus = vec![cpu(0, &[(0, 1, 5), (40, 2, 2)]), cpu(1, &[(40, 4, 9)]), cpu(2, &[(80, 1, 1)])];
        assert_eq!(Samples { cpus, zones: Vec::new() }.held_peak(), Some(12));
        let zone = |free: &[(u64, u64, u64)]| ZoneSamples {
            node: 0,
            kind: ZoneKind::Dma,
            free: free.to_vec(),
            watermarks: None,
        };
        assert!(zone(&[(0, 7, 7), (40, 7, 7)]).is_quiet());
        assert!(!zone(&[(0, 7, 7), (40, 6, 7)]).is_quiet());
    }
}
