//! The state of a comparison: page sets with the contents of their lists, zones, and CPUs. The other files of
//! `verify` change this state.

use foldhash::HashMap;
use pageset_core::pcp::{Limits, ListIndex};
use pageset_core::{FrameIndex, Order, PAGEBLOCK_FRAMES, Policy, ZoneKind};
use pageset_trace::{Event, EventKind, Layout, Sample, TraceInfo};

use super::classes::Class;
use super::cpu_state::CpuState;
use super::explain::Explainer;
use super::geometry::{Geometry, LimitsFrom, Zone};
use super::links::Chunk;
use super::mode::Mode;
use super::numbers::Place;
use super::page_set::{Home, PageSet};
use super::report::Verification;
use crate::limits::{has_large_slice, to_i32};
use crate::memory;
use crate::pressure::highest_zone;
use crate::recorded::RecordedKinds;

/// The state of a comparison that has begun and not ended.
#[derive(Debug)]
pub(super) struct Engine {
    pub(super) policy: Policy,
    pub(super) mode: Mode,
    pub(super) geometry: Geometry,
    /// The page sets, by zone and CPU.
    pub(super) sets: Vec<PageSet>,
    /// Two indices for each frame. The lower half of an entry is the list that holds the frame, or 0 if no
    /// list holds the frame. The upper half of an entry is the next event about the frame.
    notes: Vec<u64>,
    /// For each pageblock, the index of the migratetype that was seen last, plus one. The value is 0 if no
    /// migratetype was seen.
    block_types: Vec<u8>,
    pub(super) cpus: Vec<CpuState>,
    pub(super) samples: Vec<Sample>,
    pub(super) has_bulk_events: bool,
    pub(super) has_begun: bool,
    /// For each event of the previous chunk from `Chunk::end` on, whether the event was already handled. The
    /// next chunk begins with these events.
    pub(super) done: Vec<bool>,
    pub(super) out: Verification,
    pub(super) explainer: Explainer,
    /// Orders of allocated blocks, by first frame. The orders are needed for kernels that report each page of
    /// a freed block separately.
    pub(super) split: HashMap<FrameIndex, Order>,
    /// Buffers that the engine uses again and again, to save allocations.
    pub(super) run: Vec<(Place, u32)>,
    pub(super) observed: Vec<(Place, Order)>,
    pub(super) predicted: Vec<(FrameIndex, Order)>,
}

impl Engine {
    pub(super) fn new(
        (policy, mode, explainer): (Policy, Mode, Explainer),
        machine: &Layout,
        info: &TraceInfo,
        limits: LimitsFrom,
    ) -> Result<Self, String> {
        let geometry = Geometry::new(machine, &policy, limits)?;
        let mut sets = Vec::new();
        for zone in &geometry.zones {
            for cpu in 0..machine.cpus {
                let large = has_large_slice(&policy, machine, cpu, zone.limits.batch);
                let mut set = PageSet::new(&policy, zone.limits, large);
                let printed = info
                    .before
                    .as_ref()
                    .and_then(|before| before.zoneinfo.zone(zone.description.node, zone.description.kind));
                let printed = printed.unwrap_or(&zone.description);
                if let Some(sample) = printed.pagesets.iter().find(|sample| sample.cpu == cpu) {
                    set.pcp.count = to_i32(u64::from(sample.count));
                    set.pcp.high = to_i32(u64::from(sample.high));
                }
                sets.push(set);
            }
        }
        let mut cpus: Vec<CpuState> = geometry.nodes.iter().map(|_| CpuState::default()).collect();
        for (index, sample) in info.samples.iter().enumerate().rev() {
            if let Some(cpu) = cpus.get_mut(sample.cpu as usize) {
                cpu.samples.push(index);
            }
        }
        Ok(Self {
            policy,
            mode,
            sets,
            notes: Vec::new(),
            block_types: Vec::new(),
            cpus,
            samples: info.samples.clone(),
            // A recorder may record bulk allocations although none happens. Kernels from 7.1 on allocate
            // stacks as blocks, and may make no bulk allocation at all.
            has_bulk_events: RecordedKinds::new(info, &[0; EventKind::COUNT])
                .has(&[EventKind::BulkAllocEntry]),
            has_begun: false,
            done: Vec::new(),
            out: Verification::default(),
            explainer,
            split: HashMap::default(),
            run: Vec::new(),
            observed: Vec::new(),
            predicted: Vec::new(),
            geometry,
        })
    }

    /// Makes room for frames that occur for the first time in a chunk.
    pub(super) fn make_room(&mut self, chunk: &Chunk) -> Result<(), String> {
        self.geometry.see(&chunk.seen)?;
        let len = self.geometry.table_len();
        let more = len - self.notes.len();
        let room = self.notes.try_reserve_exact(more);
        room.map_err(|_| memory::none_for(len.saturating_mul(size_of::<u64>()), "notes"))?;
        self.notes.resize(len, 0);
        self.block_types.resize(len / PAGEBLOCK_FRAMES as usize, 0);
        Ok(())
    }

    /// Models the zone checks of an allocation. The allocation checks the zones of its node from the highest
    /// down to the zone `taken`. `None` stands for an allocation that checked all zones and begins direct
    /// reclaim.
    pub(super) fn walk_past(&mut self, taken: Option<usize>, gfp: u32) {
        let highest = highest_zone(gfp);
        // Zone `Movable` has index 3 on x86-64, where no zone is high memory (spec §1.13).
        let index = |zone: &Zone| match zone.description.kind {
            ZoneKind::Movable => 3,
            kind => kind.index(),
        };
        let start = taken.map_or(0, |taken| taken + 1);
        let node = taken.map(|taken| self.geometry.zones[taken].description.node);
        for zone in &mut self.geometry.zones[start..] {
            if index(zone) <= highest && node.is_none_or(|node| node == zone.description.node) {
                zone.pressure.passed();
            }
        }
    }

    #[inline]
    pub(super) fn set_index(&self, zone: usize, cpu: u16) -> usize {
        zone * self.cpus.len() + usize::from(cpu)
    }

    /// Returns the block that an event is about, if the event's frame and order are possible.
    #[inline]
    pub(super) fn block(&mut self, event: &Event, order: u8) -> Option<(Place, Order)> {
        let order = Order::new(order).filter(|order| pageset_core::Pfn(event.pfn).is_aligned(*order));
        let block = order.and_then(|order| Some((self.geometry.locate(event.pfn)?, order)));
        self.out.passed_over.impossible += u64::from(block.is_none());
        block
    }

    pub(super) fn place(&self, zone: usize, frame: FrameIndex) -> Place {
        Place { zone, frame }
    }

    /// Returns the list that a frame is on, according to earlier events.
    #[inline]
    pub(super) fn home(&self, place: Place) -> Option<Home> {
        let owner = self.notes[place.frame as usize] as u32;
        (owner != 0).then(|| Home { set: (owner >> 4) as usize - 1, list: (owner & 15) as ListIndex })
    }

    /// Returns the next event about a frame that is on a list, and the event's index.
    pub(super) fn future<'c>(&self, chunk: &'c Chunk, frame: FrameIndex) -> Option<(usize, &'c Event)> {
        let next = ((self.notes[frame as usize] >> 32) as u32).checked_sub(1)? as usize;
        Some((next, chunk.events.get(next)?))
    }

    /// Returns the index of the next event about a frame that has just left its list.
    pub(super) fn next_of(&self, place: Place) -> u32 {
        ((self.notes[place.frame as usize] >> 32) as u32).wrapping_sub(1)
    }

    /// Records that a frame went to a list. `next` is the next event about the frame.
    #[inline]
    pub(super) fn settle(&mut self, place: Place, home: Home, next: u32) {
        let owner = (home.set as u64 + 1) << 4 | home.list as u64;
        self.notes[place.frame as usize] = u64::from(next.wrapping_add(1)) << 32 | owner;
    }

    /// Forgets the next event about each frame, but not the list that the frame is on.
    pub(super) fn forget_links(&mut self) {
        self.notes.iter_mut().filter(|note| **note >> 32 != 0).for_each(|note| *note &= u64::from(u32::MAX));
    }

    /// Forgets which list a frame is on. The list itself is not changed.
    #[inline]
    pub(super) fn forget(&mut self, frame: FrameIndex) {
        self.notes[frame as usize] = 0;
    }

    /// Takes a frame off the list that the frame is on according to earlier events.
    pub(super) fn evict(&mut self, place: Place) -> Option<Home> {
        let home = self.home(place)?;
        self.forget(place.frame);
        let set = self.sets.get_mut(home.set)?;
        set.unlink(&self.geometry.frames, home.list, place.frame);
        Some(home)
    }

    /// Takes a frame off a list, because an event shows that the frame is not on the list. If bulk
    /// allocations were recorded, every page has events. If so, the page set keeps its count, because only
    /// the frame was wrong. If bulk allocations were not recorded, the page left the list without an event.
    pub(super) fn displace(&mut self, place: Place) -> Option<Home> {
        let home = self.evict(place)?;
        if self.has_bulk_events {
            let pcp = &mut self.sets[home.set].pcp;
            pcp.count += pcp.scheme().order(home.list).frames() as i32;
        }
        Some(home)
    }

    /// Puts a block at the hot end of a list. Allocations take from this end.
    pub(super) fn push(&mut self, place: Place, home: Home, order: Order, next: u32) {
        self.sets[home.set].push(&self.geometry.frames, home.list, place.frame, order);
        self.settle(place, home, next);
    }

    /// Puts a frame at the cold end of a list. Drains take from this end.
    pub(super) fn append(&mut self, place: Place, home: Home, order: Order, next: u32) {
        self.sets[home.set].append(&self.geometry.frames, home.list, place.frame, order);
        self.settle(place, home, next);
    }

    pub(super) fn see_block_type(&mut self, place: Place, migratetype: i8) {
        if (0..6).contains(&migratetype) {
            self.block_types[place.frame as usize / PAGEBLOCK_FRAMES as usize] = migratetype as u8 + 1;
        }
    }

    pub(super) fn block_type(&self, place: Place) -> Option<usize> {
        usize::from(self.block_types[place.frame as usize / PAGEBLOCK_FRAMES as usize]).checked_sub(1)
    }

    /// Counts a mismatch. `what` describes the mismatch, and is called only if the user asked for its
    /// description.
    pub(super) fn mismatch(
        &mut self,
        chunk: &Chunk,
        index: usize,
        class: Class,
        set: usize,
        what: impl FnOnce() -> String,
    ) {
        self.out.mismatches.add(class);
        if self.explainer.wants(class) {
            let state = self.sets.get(set).map_or_else(String::new, |set| {
                let Limits { batch, high_min, high_max } = set.limits;
                format!("{}; batch {batch}, high from {high_min} to {high_max}", set.scalars())
            });
            let zone = self.geometry.zones.get(set / self.cpus.len().max(1));
            let zone = zone.map(|zone| zone.pressure.describe()).unwrap_or_default();
            let what = format!("{}; page set afterwards: {state}; zone: {zone}", what());
            self.explainer.explain(chunk, index, class, what);
        }
    }

    /// Returns the class of a mismatch that a wrong page count causes, if no more specific reason is known.
    pub(super) fn count_class(&self, set: usize) -> Class {
        let pressure = &self.geometry.zones[set / self.cpus.len().max(1)].pressure;
        if !self.has_bulk_events {
            Class::UnseenTraffic
        } else if self.sets[set].is_hidden() || !self.sets[set].count_known {
            Class::HiddenAtStart
        } else if pressure.is_tight() {
            Class::ZonePressure
        } else {
            Class::Unexplained
        }
    }
}
