//! One policy's run: the allocator, and which of its frames stand for which of the recording's.

use std::num::NonZeroU32;

use pageset_core::{
    Counters, CpuId, FreeTraits, MigrateType, Order, Pfn, Policy, Request, RequestTraits, ZoneId,
};
use pageset_trace::{Layout, Snapshot};

use super::build::{Allocator, allocator, populated, set_recorded_watermarks};
use super::frame_map::FrameMap;
use super::resident::Resident;
use super::steps::Step;
use super::{Outcome, ReplayError};

/// A replay under one policy.
#[derive(Debug)]
pub(super) struct Run {
    policy: Policy,
    allocator: Allocator,
    zones: Vec<ZoneRun>,
    held: Held,
    /// Frames of a block that is being freed, if they are not one run.
    strays: Vec<Pfn>,
    /// Counters when the recording begins.
    start: Counters,
    unmatched_frees: u64,
    failed_allocs: u64,
    pub(super) allocated_twice: u64,
}

/// One of the recording's zones.
#[derive(Debug)]
struct ZoneRun {
    span: std::ops::Range<u64>,
    /// The recording's frames, by the frame of ours that stands for each, as distance from the start of our memory.
    ours: FrameMap,
    resident: Resident,
}

impl Run {
    pub(super) fn new(
        machine: &Layout,
        before: Option<&Snapshot>,
        policy: &Policy,
    ) -> Result<Self, ReplayError> {
        let allocator = allocator(machine, policy)?;
        let zones: Vec<_> = populated(machine)
            .into_iter()
            .map(|(zone, id)| ZoneRun {
                span: zone.start_pfn..zone.start_pfn + zone.spanned,
                ours: FrameMap::new(zone.start_pfn, zone.spanned),
                resident: Resident::occupy(&allocator, (zone, id), before),
            })
            .collect();
        set_recorded_watermarks(&allocator, machine);
        let start = allocator.counters();
        let held = Held::new(zones.len(), machine.cpus as usize);
        Ok(Self {
            policy: *policy,
            allocator,
            zones,
            held,
            strays: Vec::new(),
            start,
            unmatched_frees: 0,
            failed_allocs: 0,
            allocated_twice: 0,
        })
    }

    pub(super) fn apply(&mut self, steps: &[Step]) {
        for step in steps {
            match *step {
                Step::Alloc { cpu, pfn, ref request } => self.alloc(cpu, pfn, request),
                Step::Free { cpu, pfn, order, batched } => self.free(cpu, pfn, order, batched),
                Step::Bulk { cpu, pages } => self.bulk(cpu, pages),
                Step::Tick { cpu } => {
                    self.allocator.tick(cpu).expect("a CPU of this machine");
                    (0..self.zones.len()).for_each(|zone| self.note_held(cpu, zone));
                }
                Step::Reclaim { node, active } => {
                    let zones: Vec<ZoneId> =
                        self.allocator.zones().filter(|zone| zone.node == node).map(|zone| zone.id).collect();
                    for zone in zones {
                        self.allocator.set_reclaim_active(zone, active).expect("a zone of this machine");
                    }
                }
            }
        }
    }

    #[inline]
    fn zone_of(&self, pfn: u64) -> Option<usize> {
        self.zones.iter().position(|zone| zone.span.contains(&pfn))
    }

    fn alloc(&mut self, cpu: CpuId, pfn: u64, request: &Request) {
        let Some(zone) = self.zone_of(pfn) else { return };
        let Some(ours) = self.alloc_somehow(cpu, request) else {
            self.failed_allocs += 1;
            return;
        };
        for frame in 0..u64::from(request.order.frames()) {
            let Some(name) = name(ours.0 + frame) else { continue };
            if let Some(lost) = self.zones[zone].ours.set(pfn + frame, name) {
                // The recording frees it never, or its free was lost: it stays in use.
                self.allocated_twice += u64::from(frame == 0);
                self.put_resident(lost);
            }
        }
        self.note_held_at(cpu, ours);
    }

    /// Allocates, if need be from the reserves: the recording's kernel found memory too, after reclaiming some.
    fn alloc_somehow(&self, cpu: CpuId, request: &Request) -> Option<Pfn> {
        self.allocator.alloc(cpu, request).ok().or_else(|| {
            let any = Request { traits: request.traits | RequestTraits::NO_WATERMARKS, ..*request };
            self.allocator.alloc(cpu, &any).ok()
        })
    }

    fn free(&mut self, cpu: CpuId, pfn: u64, order: Order, batched: bool) {
        let Some(zone) = self.zone_of(pfn) else { return };
        let traits = if batched { FreeTraits::BATCHED } else { FreeTraits::default() };
        let ours = match self.take_ours(zone, pfn, order) {
            Some(ours) => ours,
            None => {
                self.unmatched_frees += 1;
                let Some(ours) = self.zones[zone].resident.take(order) else { return };
                Pfn(ours)
            }
        };
        if !self.strays.is_empty() {
            return self.free_strays(cpu);
        }
        if self.allocator.free_with(cpu, ours, order, traits).is_err() {
            // Part of a block: the recording allocated it as one and frees it in pieces, or the other way round.
            let frames = ours.0..ours.0 + u64::from(order.frames());
            if self.allocator.free_range(cpu, frames.clone()).is_err() {
                for frame in frames {
                    // Frames that are not in use stay as they are.
                    let _ = self.allocator.free_range(cpu, frame..frame + 1);
                }
            }
        }
        self.note_held_at(cpu, ours);
    }

    /// The frame of ours that stands for a block's first, and those that stand for its others, which are forgotten. If
    /// they are not one run, all of them are in `strays` too: an allocation between was lost, and what lies behind the
    /// first may be in use for another block.
    #[inline]
    fn take_ours(&mut self, zone: usize, pfn: u64, order: Order) -> Option<Pfn> {
        let map = &mut self.zones[zone].ours;
        let first = unname(map.take(pfn)?);
        let frames = u64::from(order.frames());
        self.strays.clear();
        self.strays.push(first);
        self.strays.extend((1..frames).filter_map(|frame| map.take(pfn + frame)).map(unname));
        let is_run = self.strays.len() as u64 == frames
            && self.strays.iter().zip(first.0..).all(|(ours, expected)| ours.0 == expected);
        if is_run {
            self.strays.clear();
        }
        Some(first)
    }

    #[cold]
    fn free_strays(&mut self, cpu: CpuId) {
        for ours in std::mem::take(&mut self.strays) {
            // Frames that are not in use stay as they are.
            let _ = self.allocator.free_range(cpu, ours.0..ours.0 + 1);
            self.note_held_at(cpu, ours);
        }
    }

    fn bulk(&mut self, cpu: CpuId, pages: u32) {
        let mut got = vec![None; pages as usize];
        // Errors leave the slots empty.
        let _ = self.allocator.alloc_bulk(cpu, &Request::new(Order::ZERO), &mut got);
        for pfn in got.into_iter().flatten() {
            if let Some(name) = name(pfn.0) {
                self.put_resident(name);
            }
            self.note_held_at(cpu, pfn);
        }
    }

    /// Gives a page that the recording lost track of to the pages in use before.
    fn put_resident(&mut self, ours: NonZeroU32) {
        let ours = unname(ours);
        if let Some(zone) = self.allocator.zone_of(ours) {
            self.zones[zone.index()].resident.put(ours.0, Order::ZERO, MigrateType::Movable);
        }
    }

    #[inline]
    fn note_held_at(&mut self, cpu: CpuId, ours: Pfn) {
        if let Some(zone) = self.allocator.zone_of(ours) {
            self.note_held(cpu, zone.index());
        }
    }

    #[inline]
    fn note_held(&mut self, cpu: CpuId, zone: usize) {
        if let Some(info) = self.allocator.pageset_info(ZoneId(zone as u16), cpu) {
            self.held.note(zone, cpu.index(), i64::from(info.count));
        }
    }

    /// Lets a minute pass in which nobody allocates or frees.
    fn rest(&self) {
        const TICKS: u32 = 60;
        for _ in 0..TICKS {
            for cpu in 0..self.allocator.cpus() as u32 {
                self.allocator.tick(CpuId(cpu)).expect("one of its CPUs");
            }
        }
    }

    /// The run's row. Afterwards all CPUs have been idle for a minute.
    pub(super) fn finish(&mut self) -> Outcome {
        debug_assert_eq!(self.allocator.validate().err(), None, "no frame is lost, doubled or miscounted");
        let counters = self.allocator.counters().since(&self.start);
        let pcp_pages_end = self.allocator.cached_pages();
        self.rest();
        Outcome {
            pcp_pages_peak: self.held.peak.max(0) as u64,
            pcp_pages_end,
            pcp_pages_idle: self.allocator.cached_pages(),
            unmatched_frees: self.unmatched_frees,
            failed_allocs: self.failed_allocs,
            ..Outcome::new(&self.policy, &counters)
        }
    }
}

/// Our frame as the recording's frame map keeps it. Replays use frames below 2^32 − 1 (16 TiB).
#[inline]
fn name(pfn: u64) -> Option<NonZeroU32> {
    NonZeroU32::new(u32::try_from(pfn).ok()?.checked_add(1)?)
}

#[inline]
fn unname(name: NonZeroU32) -> Pfn {
    Pfn(u64::from(name.get()) - 1)
}

/// Pages held by all page sets together, and the most there were.
#[derive(Debug)]
struct Held {
    cpus: usize,
    /// Per zone and CPU.
    pages: Vec<i64>,
    sum: i64,
    peak: i64,
}

impl Held {
    fn new(zones: usize, cpus: usize) -> Self {
        Self { cpus, pages: vec![0; zones * cpus], sum: 0, peak: 0 }
    }

    #[inline]
    fn note(&mut self, zone: usize, cpu: usize, pages: i64) {
        let before = std::mem::replace(&mut self.pages[zone * self.cpus + cpu], pages);
        self.sum += pages - before;
        self.peak = self.peak.max(self.sum);
    }
}

#[cfg(test)]
mod tests {
    use pageset_core::policy::LINUX_6_12;

    use super::*;
    use crate::replay::tests::small_layout;

    /// Pages allocated one by one, freed as one block: the recording lost what happened in between.
    #[test]
    fn a_block_of_strays_frees_its_own_frames_only() {
        let mut run = Run::new(&small_layout(), None, &LINUX_6_12).unwrap();
        let cpu = CpuId(0);
        let alloc = |pfn| Step::Alloc { cpu, pfn, request: Request::new(Order::ZERO) };
        // 8000 and 8001 belong to the block; what lies behind the first of ours belongs to 9000.
        run.apply(&[alloc(8000), alloc(9000), alloc(8001)]);
        let in_use = run.allocator.validate().unwrap().allocated;
        run.apply(&[Step::Free { cpu, pfn: 8000, order: Order::new(1).unwrap(), batched: false }]);
        assert_eq!(run.allocator.validate().unwrap().allocated, in_use - 2);
        let of_9000 = unname(run.zones[1].ours.take(9000).unwrap());
        run.allocator.free(cpu, of_9000, Order::ZERO).expect("still in use");
    }
}
