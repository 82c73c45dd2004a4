//! The recorded machine's zones: the zone of each frame, and the limits of each zone's page sets.

use crate::memory;
use pageset_core::pcp::Limits;
use pageset_core::{
    FrameCounts, FrameIndex, FrameLinks, FrameState, FrameTables, PageblockType, Policy, Storage,
};
use pageset_trace::{Layout, ZoneDescription};

use crate::limits::{computed, printed_or_computed};
use crate::placeholders::Placeholders;
use crate::pressure::ZonePressure;

/// Maximum number of frames that all zones together span: 64 TiB of 4 KiB frames. The limit bounds memory,
/// because each stretch of frames takes four bytes even without events.
const SPAN_MAX: u64 = 1 << 34;
/// Maximum number of frames in stretches with events: 1 TiB of memory. The tables for this many frames take 6
/// GiB.
const FRAMES_MAX: usize = 1 << 28;
/// Maximum number of page sets. Each page set takes half a kibibyte.
const PAGE_SETS_MAX: usize = 1 << 18;
/// Number of frames in a stretch, equal to the number in the largest block. The frames of a stretch have
/// consecutive numbers in the tables.
const STRETCH: u64 = 1 << pageset_core::MAX_ORDER;

/// One zone.
#[derive(Debug)]
pub(super) struct Zone {
    pub(super) description: ZoneDescription,
    end: u64,
    /// For each stretch, the table number of its first frame divided by the stretch's length, plus one. The
    /// value is 0 if no event was about the stretch.
    stretches: Vec<u32>,
    pub(super) limits: Limits,
    pub(super) pressure: ZonePressure,
}

/// The source of the limits of page sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LimitsFrom {
    /// Use the limits that the recorded kernel printed, and formulas for zones without printed limits.
    Samples,
    /// Use only formulas. Use this variant for settings that differ from the recorded settings, and for
    /// policies with formulas that no kernel has.
    Formulas,
}

/// A frame: the number of its zone, and the frame's number in the tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) zone: usize,
    pub(super) frame: FrameIndex,
}

/// All zones, by node and kind. A tick visits zones in this order.
///
/// The frames of a stretch get table numbers at the first event about one of these frames. The size of the
/// tables therefore depends on the recording, not on the machine.
#[derive(Debug)]
pub(super) struct Geometry {
    pub(super) zones: Vec<Zone>,
    /// Node of each CPU.
    pub(super) nodes: Vec<u16>,
    /// Links and states of each frame with a table number.
    pub(super) frames: FrameTables<'static>,
    /// Frame numbers that stand for blocks whose frames are not known.
    pub(super) placeholders: Placeholders,
    /// The first frame of each stretch that events are about.
    seen: Vec<u64>,
}

impl Geometry {
    pub(super) fn new(machine: &Layout, policy: &Policy, from: LimitsFrom) -> Result<Self, String> {
        machine.check()?;
        let limits = if from == LimitsFrom::Samples { printed_or_computed } else { computed };
        let mut described: Vec<_> = machine.zones.iter().filter(|zone| zone.managed > 0).collect();
        described.sort_by_key(|zone| (zone.node, zone.kind));
        if described.len().saturating_mul(machine.cpus as usize) > PAGE_SETS_MAX {
            return Err(format!("more than {PAGE_SETS_MAX} page sets"));
        }
        let nodes: Vec<u16> = (0..machine.cpus).map(|cpu| machine.node_of_cpu(cpu).unwrap_or(0)).collect();
        let mut zones = Vec::new();
        let mut spanned = 0_u64;
        for description in described {
            let end = description.start_pfn.saturating_add(description.spanned);
            spanned = spanned.saturating_add(description.spanned);
            if description.spanned == 0 || spanned > SPAN_MAX {
                return Err(format!("zones that span no frame, or more than {SPAN_MAX}"));
            }
            let stretches = (end - 1) / STRETCH - description.start_pfn / STRETCH + 1;
            zones.push(Zone {
                description: description.clone(),
                end,
                stretches: vec![0; stretches as usize],
                limits: limits(policy, machine, description),
                pressure: ZonePressure::new(description, machine.online_cpus()),
            });
        }
        let none = FrameCounts { frames: 0, pageblocks: 0 };
        let frames = FrameTables::on_heap(none).map_err(|error| error.to_string())?;
        Ok(Self { zones, nodes, frames, placeholders: Placeholders::new(FRAMES_MAX), seen: Vec::new() })
    }

    /// Returns the number of frames with a table number, which is the length of the tables.
    pub(super) fn numbers(&self) -> usize {
        self.frames.states.len()
    }

    /// Returns the zone of a frame, and the frame's stretch within the zone.
    #[inline]
    fn stretch(&self, pfn: u64) -> Option<(usize, usize)> {
        let zone = self.zones.iter().position(|zone| pfn >= zone.description.start_pfn && pfn < zone.end)?;
        let first = self.zones[zone].description.start_pfn / STRETCH;
        Some((zone, (pfn / STRETCH - first) as usize))
    }

    /// Assigns table numbers to the stretch of a frame, if the frame is in a zone and has no number yet.
    #[inline]
    pub(super) fn see(&mut self, pfn: u64) -> Result<Option<Place>, String> {
        let Some((zone, stretch)) = self.stretch(pfn) else { return Ok(None) };
        if self.zones[zone].stretches[stretch] == 0 {
            self.seen.push(pfn / STRETCH * STRETCH);
            self.make_room(self.seen.len() * STRETCH as usize)?;
            self.zones[zone].stretches[stretch] = self.seen.len() as u32;
        }
        Ok(self.locate(pfn))
    }

    /// Makes the tables long enough for this many frames.
    pub(super) fn make_room(&mut self, numbers: usize) -> Result<(), String> {
        if numbers <= self.numbers() {
            return Ok(());
        }
        if numbers > FRAMES_MAX {
            return Err(format!("frames of more than {} stretches of memory", FRAMES_MAX / STRETCH as usize));
        }
        let numbers = numbers.next_power_of_two();
        grow(&mut self.frames.links, numbers, FrameLinks::new)?;
        grow(&mut self.frames.states, numbers, FrameState::new)?;
        grow(
            &mut self.frames.pageblocks,
            numbers / pageset_core::PAGEBLOCK_FRAMES as usize,
            PageblockType::new,
        )
    }

    /// The zone and number of a frame; `None` if the frame is in no zone or has no number yet.
    #[inline]
    pub(super) fn locate(&self, pfn: u64) -> Option<Place> {
        let (zone, stretch) = self.stretch(pfn)?;
        let first = self.zones[zone].stretches[stretch].checked_sub(1)?;
        Some(Place { zone, frame: first * STRETCH as u32 + (pfn % STRETCH) as u32 })
    }

    pub(super) fn pfn(&self, frame: FrameIndex) -> u64 {
        let stretch = self.seen.get(frame as usize / STRETCH as usize).copied();
        stretch.unwrap_or_default() + u64::from(frame) % STRETCH
    }
}

/// Makes a table longer.
fn grow<T>(table: &mut Storage<'static, T>, len: usize, make: impl FnMut() -> T) -> Result<(), String> {
    let Storage::Owned(owned) = table else { return Ok(()) };
    let mut entries = std::mem::take(owned).into_vec();
    let more = len.saturating_sub(entries.len());
    let room = entries.try_reserve_exact(more);
    if room.is_err() || memory::is_short() {
        let bytes = len.saturating_mul(size_of::<T>());
        return Err(format!("there is no memory for tables of {} MiB", (bytes >> 20).max(1)));
    }
    entries.extend(std::iter::repeat_with(make).take(more));
    *owned = entries.into_boxed_slice();
    Ok(())
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
        let geometry = Geometry::new(&machine(), &LINUX_6_12, LimitsFrom::Samples).unwrap();
        assert_eq!(geometry.zones[0].limits, Limits { batch: 63, high_min: 6985, high_max: 31_308 });
        let geometry = Geometry::new(&machine(), &LINUX_6_1, LimitsFrom::Samples).unwrap();
        assert_eq!(geometry.zones[0].limits, Limits { batch: 63, high_min: 6985, high_max: 6985 });
    }

    #[test]
    fn frames_are_found_and_named_again() {
        let mut geometry = Geometry::new(&machine(), &LINUX_6_12, LimitsFrom::Samples).unwrap();
        assert_eq!(geometry.locate(5000), None, "expected no number for a frame that no event is about");
        let place = geometry.see(5000).unwrap().unwrap();
        assert_eq!((place.zone, geometry.pfn(place.frame), geometry.locate(5000)), (0, 5000, Some(place)));
        let far = geometry.see(500_000).unwrap().unwrap();
        assert_eq!((geometry.pfn(far.frame), geometry.locate(5000)), (500_000, Some(place)));
        let neighbour = geometry.locate(5001).unwrap();
        assert_eq!(
            neighbour.frame,
            place.frame + 1,
            "expected consecutive numbers for the frames of a stretch"
        );
        assert_eq!(geometry.see(4095), Ok(None));
        assert_eq!(geometry.see(u64::MAX), Ok(None));
    }

    #[test]
    fn tables_grow_with_what_was_seen_and_not_with_the_machine() {
        let mut machine = machine();
        machine.zones[0].spanned = 1 << 33;
        let mut geometry = Geometry::new(&machine, &LINUX_6_12, LimitsFrom::Samples).unwrap();
        for pfn in [4096, 1 << 30, (1 << 33) + 4000] {
            assert_eq!(geometry.see(pfn).unwrap().map(|place| geometry.pfn(place.frame)), Some(pfn));
        }
        assert_eq!(
            geometry.numbers(),
            4096,
            "expected tables for three stretches, and for one spare stretch"
        );
        assert_eq!(geometry.frames.links.len(), 4096);
        assert_eq!(geometry.frames.pageblocks.len(), 8);
    }

    #[test]
    fn more_than_the_tables_can_hold_is_an_error() {
        let mut geometry = Geometry::new(&machine(), &LINUX_6_12, LimitsFrom::Samples).unwrap();
        assert!(geometry.make_room(FRAMES_MAX + 1).unwrap_err().contains("stretches"));
    }

    #[test]
    fn a_machine_too_large_for_the_tables_is_refused() {
        let mut machine = machine();
        machine.zones[0].spanned = 1 << 40;
        assert!(Geometry::new(&machine, &LINUX_6_12, LimitsFrom::Samples).unwrap_err().contains("span"));
    }
}
