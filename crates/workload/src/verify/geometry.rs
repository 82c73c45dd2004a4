//! The recorded machine's zones: which frame is whose, and the limits of each zone's page sets.

use pageset_core::pcp::Limits;
use pageset_core::{FrameCounts, FrameIndex, FrameTables, Policy};
use pageset_trace::{Layout, ZoneDescription};

use crate::limits::printed_or_computed;
use crate::pressure::ZonePressure;
use crate::tokens::Tokens;

/// Frames that all zones together may span: 1 TiB of 4 KiB frames, whose tables take 6 GiB.
const FRAMES_MAX: usize = 1 << 28;
/// Page sets at most; each takes half a kibibyte.
const PAGE_SETS_MAX: usize = 1 << 18;
/// Blocks are aligned to their size, so a zone's frames are numbered from a multiple of the largest.
const BASE_ALIGN: u64 = 1 << pageset_core::MAX_ORDER;

/// One zone.
#[derive(Debug)]
pub(super) struct Zone {
    pub(super) description: ZoneDescription,
    /// Frame that has index 0.
    base: u64,
    end: u64,
    /// What the zone's frames are numbered from in tables of all frames.
    offset: usize,
    pub(super) frames: FrameTables<'static>,
    pub(super) limits: Limits,
    pub(super) pressure: ZonePressure,
    pub(super) tokens: Tokens,
}

/// A frame: its zone's number, its index in the zone, its index among all frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) zone: usize,
    pub(super) frame: FrameIndex,
    pub(super) global: usize,
}

/// All zones, by node and kind, as the kernel visits them in a tick.
#[derive(Debug)]
pub(super) struct Geometry {
    pub(super) zones: Vec<Zone>,
    /// Node of each CPU.
    pub(super) nodes: Vec<u16>,
    pub(super) frames: usize,
}

impl Geometry {
    pub(super) fn new(machine: &Layout, policy: &Policy) -> Result<Self, String> {
        machine.check()?;
        let mut described: Vec<_> = machine.zones.iter().filter(|zone| zone.managed > 0).collect();
        described.sort_by_key(|zone| (zone.node, zone.kind));
        if described.len().saturating_mul(machine.cpus as usize) > PAGE_SETS_MAX {
            return Err(format!("more than {PAGE_SETS_MAX} page sets"));
        }
        let nodes: Vec<u16> = (0..machine.cpus).map(|cpu| machine.node_of_cpu(cpu).unwrap_or(0)).collect();
        let mut zones = Vec::new();
        let mut offset = 0_usize;
        for description in described {
            let span = description.start_pfn..description.start_pfn.saturating_add(description.spanned);
            let counts = FrameCounts::for_span(span.clone())
                .filter(|counts| offset.saturating_add(counts.frames) <= FRAMES_MAX)
                .ok_or_else(|| format!("zones that span more than {FRAMES_MAX} frames"))?;
            let limits = printed_or_computed(policy, machine, description);
            zones.push(Zone {
                description: description.clone(),
                base: span.start / BASE_ALIGN * BASE_ALIGN,
                end: span.end,
                offset,
                frames: FrameTables::on_heap(counts).map_err(|error| error.to_string())?,
                tokens: Tokens::new(counts.frames),
                limits,
                pressure: ZonePressure::new(description, machine.online_cpus()),
            });
            offset += counts.frames;
        }
        Ok(Self { zones, nodes, frames: offset })
    }

    #[inline]
    pub(super) fn locate(&self, pfn: u64) -> Option<Place> {
        let zone = self.zones.iter().position(|zone| pfn >= zone.description.start_pfn && pfn < zone.end)?;
        let frame = (pfn - self.zones[zone].base) as FrameIndex;
        Some(Place { zone, frame, global: self.zones[zone].offset + frame as usize })
    }

    pub(super) fn pfn(&self, zone: usize, frame: FrameIndex) -> u64 {
        self.zones[zone].base + u64::from(frame)
    }

    #[inline]
    pub(super) fn global(&self, zone: usize, frame: FrameIndex) -> usize {
        self.zones[zone].offset + frame as usize
    }
}

#[cfg(test)]
mod tests {
    use pageset_core::ZoneKind;
    use pageset_core::policy::{LINUX_6_1, LINUX_6_12};
    use pageset_trace::{Node, Sysctls};

    use super::*;

    fn machine() -> Layout {
        Layout {
            kernel: "6.12".into(),
            architecture: "x86_64".into(),
            page_size: 4096,
            assumed: Vec::new(),
            cpus: 2,
            sysctls: Sysctls::default(),
            nodes: vec![Node { id: 0, cpus: vec![0, 1], distances: vec![10] }],
            caches: Vec::new(),
            zones: vec![ZoneDescription {
                start_pfn: 4096,
                spanned: 520_157,
                present: 520_157,
                managed: 500_943,
                low: 13_971,
                ..ZoneDescription::empty(0, ZoneKind::Dma32)
            }],
        }
    }

    #[test]
    fn limits_follow_from_watermark_and_size() {
        let geometry = Geometry::new(&machine(), &LINUX_6_12).unwrap();
        assert_eq!(geometry.zones[0].limits, Limits { batch: 63, high_min: 6985, high_max: 31_308 });
        let geometry = Geometry::new(&machine(), &LINUX_6_1).unwrap();
        assert_eq!(geometry.zones[0].limits, Limits { batch: 63, high_min: 6985, high_max: 6985 });
    }

    #[test]
    fn frames_are_found_and_named_again() {
        let geometry = Geometry::new(&machine(), &LINUX_6_12).unwrap();
        let place = geometry.locate(5000).unwrap();
        assert_eq!((place.zone, geometry.pfn(0, place.frame)), (0, 5000));
        assert_eq!(geometry.locate(4095), None);
        assert_eq!(geometry.locate(u64::MAX), None);
    }

    #[test]
    fn a_machine_too_large_for_the_tables_is_refused() {
        let mut machine = machine();
        machine.zones[0].spanned = 1 << 40;
        assert!(Geometry::new(&machine, &LINUX_6_12).unwrap_err().contains("span"));
    }
}
