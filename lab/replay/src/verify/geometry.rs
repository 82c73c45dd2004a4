//! The recorded machine's zones: the zone of each frame, and the limits of each zone's page sets.

use crate::memory;
use pageset_core::pcp::Limits;
use pageset_core::{
    FrameCounts, FrameIndex, FrameLinks, FrameState, FrameTables, PageblockType, Policy, Storage,
};
use pageset_trace::{Layout, ZoneDescription};

use super::numbers::{self, FRAMES_MAX, FrameNumbers, Place};
use crate::limits::{computed, printed_or_computed};
use crate::placeholders::Placeholders;
use crate::pressure::ZonePressure;

/// Maximum number of frames that all zones together span: 64 TiB of 4 KiB frames. The limit bounds memory,
/// because each stretch of frames takes four bytes even without events.
const SPAN_MAX: u64 = 1 << 34;
/// Maximum number of page sets. Each page set takes half a kibibyte.
const PAGE_SETS_MAX: usize = 1 << 18;

/// One zone.
#[derive(Debug)]
pub(super) struct Zone {
    pub(super) description: ZoneDescription,
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

/// All zones, by node and kind. A tick visits zones in this order.
#[derive(Debug)]
pub(super) struct Geometry {
    pub(super) zones: Vec<Zone>,
    /// Node of each CPU.
    pub(super) nodes: Vec<u16>,
    /// The links and states of the frames that have a number in the tables.
    pub(super) frames: FrameTables<'static>,
    /// Frame numbers that stand for blocks whose frames are not known.
    pub(super) placeholders: Placeholders,
    /// The numbers of frames in the tables.
    pub(super) numbers: FrameNumbers,
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
        let (mut zones, mut numbers) = (Vec::new(), FrameNumbers::default());
        let mut spanned = 0_u64;
        for description in described {
            let end = description.start_pfn.saturating_add(description.spanned);
            spanned = spanned.saturating_add(description.spanned);
            if description.spanned == 0 || spanned > SPAN_MAX {
                return Err(format!("zones that span no frame, or more than {SPAN_MAX}"));
            }
            numbers.add_zone(description.start_pfn, end);
            zones.push(Zone {
                description: description.clone(),
                limits: limits(policy, machine, description),
                pressure: ZonePressure::new(description, machine.online_cpus()),
            });
        }
        let none = FrameCounts { frames: 0, pageblocks: 0 };
        let frames = FrameTables::on_heap(none).map_err(|error| error.to_string())?;
        Ok(Self { zones, nodes, frames, placeholders: Placeholders::new(FRAMES_MAX), numbers })
    }

    /// Returns the length of the tables.
    pub(super) fn table_len(&self) -> usize {
        self.frames.states.len()
    }

    /// Assigns numbers to the stretches of the frames `frames`, and makes room in the tables for the frames
    /// of these stretches.
    pub(super) fn see(&mut self, frames: &[u64]) -> Result<(), String> {
        frames.iter().try_for_each(|pfn| self.numbers.see(*pfn))?;
        self.make_room(self.numbers.count())
    }

    /// Makes the tables long enough for the frames with the first `numbers` numbers.
    pub(super) fn make_room(&mut self, numbers: usize) -> Result<(), String> {
        if numbers <= self.table_len() {
            return Ok(());
        }
        numbers::check(numbers)?;
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
        self.numbers.locate(pfn)
    }

    pub(super) fn pfn(&self, frame: FrameIndex) -> u64 {
        self.numbers.pfn(frame)
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
    fn tables_grow_with_what_was_seen_and_not_with_the_machine() {
        let mut machine = machine();
        machine.zones[0].spanned = 1 << 33;
        let mut geometry = Geometry::new(&machine, &LINUX_6_12, LimitsFrom::Samples).unwrap();
        let frames = [4096, 1 << 30, (1 << 33) + 4000];
        geometry.see(&frames).unwrap();
        for pfn in frames {
            assert_eq!(geometry.locate(pfn).map(|place| geometry.pfn(place.frame)), Some(pfn));
        }
        assert_eq!(
            geometry.table_len(),
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
