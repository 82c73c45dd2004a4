//! From events to steps: what a replay has to do, the same under every policy.
//!
//! One thing is found out here: a page freed as part of a list is only prepared at its `mm_page_free`; it reaches the
//! page set at a later `mm_page_free_batched`.

use std::num::NonZeroU32;
use std::ops::Range;

use pageset_core::{
    CpuId, MigrateType, NodeChoice, NodeId, Order, Reclaim, Request, RequestTraits, ZoneKind,
};
use pageset_trace::{Event, EventKind, Layout};

use super::Unreplayed;
use super::build::populated;
use super::frame_map::FrameMap;
use super::ticks::Ticks;
use crate::gfp;

/// One thing to do.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Step {
    /// Allocate a block that the recording calls `pfn`.
    Alloc { cpu: CpuId, pfn: u64, request: Request },
    /// Free the block that the recording calls `pfn`.
    Free { cpu: CpuId, pfn: u64, order: Order, batched: bool },
    /// Allocate single pages that the recording has no names for.
    Bulk { cpu: CpuId, pages: u32 },
    /// One CPU's periodic work.
    Tick { cpu: CpuId },
    /// The reclaimer of a node starts or stops.
    Reclaim { node: NodeId, active: Reclaim },
}

/// Largest bulk allocation that is believed: what one page of pointers holds, many times over.
const BULK_PAGES_MAX: u64 = 1 << 16;

/// Turns events into steps, block by block.
#[derive(Debug)]
pub(super) struct Stepper<'m> {
    machine: &'m Layout,
    zones: Vec<ZoneSteps>,
    pub(super) ticks: Ticks,
    /// What each event of the block does about a free.
    frees: Vec<FreeRole>,
    pub(super) unreplayed: Unreplayed,
}

/// One of the machine's zones that have memory.
#[derive(Debug)]
struct ZoneSteps {
    node: NodeId,
    span: Range<u64>,
    /// Per frame, one more than the place in the block of the event that commits its free.
    commits: FrameMap,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum FreeRole {
    Ordinary,
    /// A free that commits later, or a commit whose free was done already.
    Nothing,
    /// The commit of an earlier free of this order.
    Commit(u8),
}

impl<'m> Stepper<'m> {
    pub(super) fn new(machine: &'m Layout, ticks: Ticks) -> Self {
        Self {
            machine,
            zones: populated(machine)
                .into_iter()
                .map(|(zone, _)| ZoneSteps {
                    node: NodeId(zone.node),
                    span: zone.start_pfn..zone.start_pfn + zone.spanned,
                    commits: FrameMap::new(zone.start_pfn, zone.spanned),
                })
                .collect(),
            ticks,
            frees: Vec::new(),
            unreplayed: Unreplayed::default(),
        }
    }

    fn zone_of(&self, pfn: u64) -> Option<usize> {
        self.zones.iter().position(|zone| zone.span.contains(&pfn))
    }

    /// Replaces `steps` by the steps of the next block of events.
    pub(super) fn steps(&mut self, events: &[Event], steps: &mut Vec<Step>) {
        steps.clear();
        self.find_commits(events);
        for (index, event) in events.iter().enumerate() {
            self.ticks.bring(event, self.machine.cpus, steps);
            if let Some(step) = self.step(event, self.frees[index]) {
                steps.push(step);
            }
        }
    }

    /// Pairs frees with their commits, from the end of the block backwards. A pair that is split between two blocks is
    /// replayed at its free.
    fn find_commits(&mut self, events: &[Event]) {
        self.frees.clear();
        self.frees.resize(events.len(), FreeRole::Ordinary);
        for (index, event) in events.iter().enumerate().rev() {
            match event.kind {
                EventKind::MmPageFreeBatched => {
                    self.frees[index] = FreeRole::Nothing;
                    let place = NonZeroU32::new(index as u32 + 1);
                    if let (Some(zone), Some(place)) = (self.zone_of(event.pfn), place) {
                        self.zones[zone].commits.set(event.pfn, place);
                    }
                }
                EventKind::MmPageFree => {
                    let zone = self.zone_of(event.pfn);
                    let commit = zone.and_then(|zone| self.zones[zone].commits.take(event.pfn));
                    if let Some(commit) = commit {
                        self.frees[index] = FreeRole::Nothing;
                        self.frees[commit.get() as usize - 1] = FreeRole::Commit(event.order);
                    }
                }
                _ => {}
            }
        }
        // Commits whose free is in an earlier block wait for nobody.
        for (event, role) in events.iter().zip(&self.frees) {
            if event.kind == EventKind::MmPageFreeBatched
                && *role == FreeRole::Nothing
                && let Some(zone) = self.zone_of(event.pfn)
            {
                self.zones[zone].commits.take(event.pfn);
            }
        }
    }

    fn step(&mut self, event: &Event, free: FreeRole) -> Option<Step> {
        let cpu = event.cpu_id();
        let is_step = matches!(
            event.kind,
            EventKind::MmPageAlloc
                | EventKind::MmPageFree
                | EventKind::MmPageFreeBatched
                | EventKind::BulkAllocReturn
                | EventKind::WorkqueueExecuteStart
                | EventKind::KswapdWake
                | EventKind::KswapdSleep
        );
        if !is_step {
            return None;
        }
        if cpu.0 >= self.machine.cpus {
            self.unreplayed.impossible += 1;
            return None;
        }
        match event.kind {
            EventKind::MmPageAlloc => self.alloc(event),
            EventKind::MmPageFree if free == FreeRole::Ordinary => self.free(event, event.order, false),
            EventKind::MmPageFreeBatched => match free {
                FreeRole::Commit(order) => self.free(event, order, true),
                _ => None,
            },
            EventKind::BulkAllocReturn => {
                Some(Step::Bulk { cpu, pages: event.bulk_frames()?.min(BULK_PAGES_MAX) as u32 })
            }
            EventKind::KswapdWake => self.reclaim(event, Reclaim::Active),
            EventKind::KswapdSleep => self.reclaim(event, Reclaim::Idle),
            _ => None,
        }
    }

    fn alloc(&mut self, event: &Event) -> Option<Step> {
        let Some(pfn) = event.frame() else {
            self.unreplayed.failed_in_recording += 1;
            return None;
        };
        let Some(zone) = self.zone_of(pfn.0) else {
            self.unreplayed.foreign_frames += 1;
            return None;
        };
        let Some(order) = event.block_order() else {
            self.unreplayed.impossible += 1;
            return None;
        };
        let request = request(event, order, self.zones[zone].node);
        Some(Step::Alloc { cpu: event.cpu_id(), pfn: pfn.0, request })
    }

    fn free(&mut self, event: &Event, order: u8, batched: bool) -> Option<Step> {
        if self.zone_of(event.pfn).is_none() {
            self.unreplayed.foreign_frames += 1;
            return None;
        }
        let Some(order) = Order::new(order) else {
            self.unreplayed.impossible += 1;
            return None;
        };
        Some(Step::Free { cpu: event.cpu_id(), pfn: event.pfn, order, batched })
    }

    fn reclaim(&mut self, event: &Event, active: Reclaim) -> Option<Step> {
        // The event's node is where others have their frame.
        let Ok(node) = u16::try_from(event.pfn) else {
            self.unreplayed.impossible += 1;
            return None;
        };
        Some(Step::Reclaim { node: NodeId(node), active })
    }
}

/// The request behind an allocation event. The node is the one that the recording's kernel chose: a memory policy may
/// have asked for it, and the event does not say.
fn request(event: &Event, order: Order, node: NodeId) -> Request {
    let has = |bits| event.gfp & bits == bits;
    let highest_zone = match () {
        () if has(gfp::DMA) => ZoneKind::Dma,
        () if has(gfp::DMA32) => ZoneKind::Dma32,
        () if has(gfp::HIGHMEM | gfp::MOVABLE) => ZoneKind::Movable,
        () if has(gfp::HIGHMEM) => ZoneKind::HighMem,
        () => ZoneKind::Normal,
    };
    let mut traits = RequestTraits::empty();
    traits.set(RequestTraits::WAKE_KSWAPD, has(gfp::KSWAPD_RECLAIM));
    traits.set(RequestTraits::MAY_WAIT, has(gfp::DIRECT_RECLAIM));
    traits.set(RequestTraits::HIGH_PRIORITY, has(gfp::HIGH));
    traits.set(RequestTraits::NO_WATERMARKS, has(gfp::MEMALLOC));
    traits.set(RequestTraits::NO_RESERVES, has(gfp::NOMEMALLOC));
    let migratetype = event.block_type().filter(|of| of.is_mergeable()).unwrap_or(MigrateType::Movable);
    Request { order, migratetype, highest_zone, nodes: NodeChoice::Prefer(node), below: None, traits }
}

#[cfg(test)]
mod tests {
    use pageset_trace::ZoneDescription;

    use super::*;
    use crate::replay::tests::small_layout;

    fn event(kind: EventKind, ts_ns: u64, pfn: u64, order: u8) -> Event {
        Event { pfn, order, gfp: 0xcc0, migratetype: 0, ..Event::new(kind, ts_ns, 0) }
    }

    fn steps(events: &[Event]) -> (Vec<Step>, Unreplayed) {
        let machine = small_layout();
        let (mut stepper, mut steps) = (Stepper::new(&machine, Ticks::by_the_clock(&machine)), Vec::new());
        stepper.steps(events, &mut steps);
        (steps, stepper.unreplayed)
    }

    #[test]
    fn a_batched_free_happens_at_its_commit() {
        let events = [
            event(EventKind::MmPageFree, 0, 100, 2),
            event(EventKind::MmPageFree, 1, 200, 0),
            event(EventKind::MmPageFreeBatched, 2, 100, 0),
            event(EventKind::MmPageFreeBatched, 3, 300, 0),
        ];
        let free = |pfn, order, batched| Step::Free {
            cpu: CpuId(0),
            pfn,
            order: Order::new(order).unwrap(),
            batched,
        };
        assert_eq!(steps(&events).0, [free(200, 0, false), free(100, 2, true)]);
    }

    #[test]
    fn impossible_events_are_counted() {
        let mut strange = event(EventKind::MmPageAlloc, 0, 100, 255);
        let failed = event(EventKind::MmPageAlloc, 0, u64::MAX, 0);
        let foreign = event(EventKind::MmPageFree, 0, 1 << 50, 0);
        let (_, unreplayed) = steps(&[strange, failed, foreign]);
        assert_eq!(
            (unreplayed.impossible, unreplayed.failed_in_recording, unreplayed.foreign_frames),
            (1, 1, 1)
        );
        strange.cpu = u16::MAX;
        assert_eq!(steps(&[strange]).1.impossible, 1);
        // Not node 0, whose number has the same lower half.
        let (done, unreplayed) = steps(&[event(EventKind::KswapdWake, 0, 1 << 16, 0)]);
        assert_eq!((done.len(), unreplayed.impossible), (0, 1));
    }

    /// A machine file may claim any span for a zone that has no memory.
    #[test]
    fn a_zone_without_memory_has_no_frames() {
        let mut machine = small_layout();
        let empty = ZoneDescription { start_pfn: 1 << 40, spanned: 1 << 62, ..EMPTY };
        machine.zones.push(empty);
        machine.check().unwrap();
        let mut stepper = Stepper::new(&machine, Ticks::by_the_clock(&machine));
        stepper.steps(&[event(EventKind::MmPageFree, 0, 1 << 50, 0)], &mut Vec::new());
        assert_eq!(stepper.unreplayed.foreign_frames, 1);
    }

    const EMPTY: ZoneDescription = ZoneDescription::empty(0, ZoneKind::Movable);

    #[test]
    fn flags_say_which_zone_and_how_urgent() {
        let of =
            |gfp| request(&Event { gfp, ..event(EventKind::MmPageAlloc, 0, 100, 0) }, Order::ZERO, NodeId(0));
        assert_eq!(of(0xcc0).highest_zone, ZoneKind::Normal);
        assert_eq!(of(0x10_0cca).highest_zone, ZoneKind::Movable);
        assert_eq!(of(0xcc4).highest_zone, ZoneKind::Dma32);
        assert_eq!(of(0x820).traits, RequestTraits::WAKE_KSWAPD | RequestTraits::HIGH_PRIORITY);
        assert!(of(0xcc0).traits.contains(RequestTraits::MAY_WAIT));
    }
}
