//! The state of the zones before and after the recording, as `/proc/zoneinfo` showed it.

use std::collections::BTreeMap;

use pageset_core::{NodeId, ZoneKind};
use pageset_trace::{Sample, TraceInfo, ZoneDescription, Zoneinfo};
use serde::{Serialize, Serializer};

/// The state of one zone that has frames.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ZoneSurvey {
    /// NUMA node.
    #[serde(serialize_with = "number_of")]
    pub node: NodeId,
    /// The kind of the zone.
    #[serde(rename = "name", serialize_with = "name_of")]
    pub kind: ZoneKind,
    /// The state before the recording.
    pub before: Option<ZoneState>,
    /// The state after the recording.
    pub after: Option<ZoneState>,
    /// The largest number of pages that the page sets of all CPUs held together, according to the samples of
    /// the recording.
    pub pcp_pages_peak: Option<u64>,
}

/// A zone at one moment. Counts are in pages.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ZoneState {
    /// Number of pages that the allocator manages.
    pub managed: u64,
    /// Number of free pages.
    pub free: u64,
    /// Min watermark.
    pub min: u64,
    /// Low watermark.
    pub low: u64,
    /// High watermark.
    pub high: u64,
    /// Number of pages in all page sets.
    pub pcp_pages: u64,
    /// Page sets, by CPU.
    pub pagesets: Vec<PagesetState>,
}

/// A page set at one moment. Counts are in pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct PagesetState {
    /// The CPU.
    pub cpu: u32,
    /// Number of pages that the page set holds.
    pub count: u32,
    /// `high`, the limit of the page set, at this moment.
    pub high: u32,
    /// `batch`: the number of pages that a plain refill fetches, and the smallest number that a drain gives
    /// back.
    pub batch: u32,
}

impl ZoneState {
    fn of(zone: &ZoneDescription) -> Self {
        let state = |pcp: &pageset_trace::PcpSample| PagesetState {
            cpu: pcp.cpu,
            count: pcp.count,
            high: pcp.high,
            batch: pcp.batch,
        };
        Self {
            managed: zone.managed,
            free: zone.free,
            min: zone.min,
            low: zone.low,
            high: zone.high,
            pcp_pages: zone.pagesets.iter().map(|pageset| u64::from(pageset.count)).sum(),
            pagesets: zone.pagesets.iter().map(state).collect(),
        }
    }
}

fn number_of<S: Serializer>(node: &NodeId, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u16(node.0)
}

fn name_of<S: Serializer>(kind: &ZoneKind, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(kind.name())
}

/// Returns the zones that appear in the state before or after the recording, by node and kind. If neither
/// state was recorded, the zones come from the machine's description.
pub(super) fn zones(info: &TraceInfo) -> Vec<ZoneSurvey> {
    let mut zones: BTreeMap<(u16, ZoneKind), ZoneSurvey> = BTreeMap::new();
    let mut note = |zone: &ZoneDescription, is_before: bool| {
        let key = (zone.node, zone.kind);
        let entry = zones.entry(key).or_insert_with(|| ZoneSurvey {
            node: NodeId(zone.node),
            kind: zone.kind,
            before: None,
            after: None,
            pcp_pages_peak: None,
        });
        let state = Some(ZoneState::of(zone));
        if is_before { entry.before = state } else { entry.after = state }
    };
    if let Some(before) = &info.before {
        Zoneinfo::populated(&before.zoneinfo).for_each(|zone| note(zone, true));
    } else if let Some(machine) = &info.machine {
        machine.zones.iter().for_each(|zone| note(zone, true));
    }
    if let Some(after) = &info.after {
        Zoneinfo::populated(&after.zoneinfo).for_each(|zone| note(zone, false));
    }
    let mut peaks = peaks(&info.samples);
    zones.into_iter().map(|(key, zone)| ZoneSurvey { pcp_pages_peak: peaks.remove(&key), ..zone }).collect()
}

/// Finds, for each zone, the most pages that its page sets held together. The sum at each moment adds the
/// latest samples of all CPUs.
fn peaks(samples: &[Sample]) -> BTreeMap<(u16, ZoneKind), u64> {
    let mut latest: BTreeMap<(u16, ZoneKind, u32), u64> = BTreeMap::new();
    let mut sums: BTreeMap<(u16, ZoneKind), u64> = BTreeMap::new();
    let mut peaks = BTreeMap::new();
    for sample in samples {
        for zone in &sample.zones {
            let key = (zone.node, zone.kind);
            let count = u64::from(zone.count);
            let before = latest.insert((zone.node, zone.kind, sample.cpu), count).unwrap_or(0);
            let sum = sums.entry(key).or_insert(0);
            *sum = *sum - before + count;
            let peak = peaks.entry(key).or_insert(0);
            *peak = (*sum).max(*peak);
        }
    }
    peaks
}

#[cfg(test)]
mod tests {
    use pageset_trace::{Snapshot, ZoneSample};

    use super::*;

    fn zone(free: u64) -> Snapshot {
        let zone = ZoneDescription { managed: 100, free, ..ZoneDescription::empty(0, ZoneKind::Normal) };
        let zoneinfo = Zoneinfo { zones: vec![zone], zone_names: Vec::new() };
        Snapshot { zoneinfo, ..Snapshot::default() }
    }

    #[test]
    fn a_zone_has_both_states() {
        let info = TraceInfo { before: Some(zone(50)), after: Some(zone(40)), ..TraceInfo::default() };
        let zones = zones(&info);
        assert_eq!(zones.len(), 1);
        let free = |state: &Option<ZoneState>| state.as_ref().map(|state| state.free);
        assert_eq!((free(&zones[0].before), free(&zones[0].after)), (Some(50), Some(40)));
        assert_eq!(zones[0].pcp_pages_peak, None);
    }

    #[test]
    fn a_peak_is_that_of_all_cpus_together() {
        let sample = |cpu, count| Sample {
            t0_ns: 0,
            t1_ns: 0,
            cpu,
            zones: vec![ZoneSample {
                node: 0,
                kind: ZoneKind::Normal,
                free: 0,
                count,
                high: 0,
                batch: 0,
                high_min: None,
                high_max: None,
            }],
        };
        let peaks = peaks(&[sample(0, 10), sample(1, 5), sample(0, 2), sample(1, 9)]);
        assert_eq!(peaks[&(0, ZoneKind::Normal)], 15);
    }
}
