//! Turns the events of a recording into the acts of a replay.

use std::num::NonZeroU32;

use pageset_core::{MigrateType, Order, PAGEBLOCK_FRAMES};
use pageset_trace::{Decision, Decisions, Event, EventKind};

use super::{Decided, Moved, PageSetLoad, Times};
use crate::pressure::highest_zone;
use crate::recorded::{RecordedKinds, needs};
use crate::replay::act::{Act, ActKind, BlockKind};
use crate::replay::error::ReplayError;
use crate::replay::frame_map::FrameMap;
use crate::replay::machine::Machine;
use crate::replay::ticks::Ticks;

/// A bulk allocation of more than this number of pages counts as an impossible event. The limit is twice the
/// number of pointers that fit into a page.
const BULK_PAGES_MAX: u64 = 1 << 10;

/// Number of pages of a task's kernel stack on x86-64. At a fork, the kernel allocates the stack in bulk,
/// unless it reuses the stack of an ended task.
const STACK_PAGES: u64 = 4;

/// The load of the events that were read so far, and notes for the events that follow.
pub(super) struct Reading<'m> {
    machine: &'m Machine,
    ticks: Ticks,
    load: PageSetLoad,
    decisions: Decisions,
    zones: Vec<ZoneNotes>,
    cpus: Vec<CpuNotes>,
    has_bulk_events: bool,
    /// For each fork, the index of an act `Nothing`. `give_stacks` may turn this act into an allocation of
    /// the new task's stack.
    forks: Vec<u32>,
}

/// Facts about the frames of one zone.
struct ZoneNotes {
    start_pfn: u64,
    /// For each frame, the note of the last event about the frame.
    frames: FrameMap,
    /// For each pageblock, the index of the migratetype that was seen last, plus one. The value is 0 if no
    /// migratetype was seen.
    block_types: Vec<u8>,
}

/// The effect of the last event about a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Note {
    /// The frame is the first frame of an allocated block of this order, or of the rest of a block that is
    /// freed in parts.
    Allocated(Order),
    /// The act with this index freed the frame.
    Freed(u32),
}

const ALLOCATED: u32 = 1 << 31;

impl Note {
    fn pack(self) -> NonZeroU32 {
        let note = match self {
            Self::Allocated(order) => ALLOCATED | u32::from(order.get()),
            Self::Freed(act) => (act + 1) & (ALLOCATED - 1),
        };
        NonZeroU32::new(note).unwrap_or(NonZeroU32::MIN)
    }

    fn unpack(note: NonZeroU32) -> Self {
        match note.get().checked_sub(ALLOCATED) {
            Some(order) => Self::Allocated(Order::new(order as u8).unwrap_or(Order::ZERO)),
            None => Self::Freed(note.get() - 1),
        }
    }
}

/// Notes about one CPU: work that has begun and not ended, and the last events.
#[derive(Debug, Default)]
struct CpuNotes {
    /// `None` outside a bulk allocation. Inside a bulk allocation, the zone of the bulk allocation's last
    /// refill, or `Some(None)` before the first refill.
    bulk: Option<Option<usize>>,
    /// The highest zone that the CPU's bulk allocation may use.
    bulk_highest: usize,
    /// The CPU's last event at each level of interrupts.
    last: [Option<Event>; 4],
    /// At each level of interrupts, the block whose pages are being freed one by one.
    split: [SplitBlock; 4],
    /// The last event of a task's batch of frees before an interrupt, and the acts of the frees in the
    /// interrupt. If the batch continues after the interrupt, these frees went past the page set.
    in_batch: Option<(Event, Vec<u32>)>,
}

/// A block that was allocated as a whole, and whose pages are freed one after the other.
#[derive(Debug, Default)]
struct SplitBlock {
    order: Order,
    /// The acts that freed the first pages of the block.
    acts: Vec<u32>,
}

impl<'m> Reading<'m> {
    pub(super) fn new(machine: &'m Machine, ticks: Ticks) -> Self {
        let zones = machine.zones.iter().map(|zone| ZoneNotes {
            start_pfn: zone.start_pfn,
            frames: FrameMap::new(zone.start_pfn, zone.spanned),
            block_types: vec![0; (zone.spanned / u64::from(PAGEBLOCK_FRAMES)) as usize + 2],
        });
        Self {
            machine,
            zones: zones.collect(),
            cpus: (0..machine.cpus()).map(|_| CpuNotes::default()).collect(),
            load: PageSetLoad { tick_interval_s: ticks.interval_s(), ..PageSetLoad::default() },
            ticks,
            decisions: Decisions::default(),
            has_bulk_events: false,
            forks: Vec::new(),
        }
    }

    pub(super) fn finish(mut self, recorded: &RecordedKinds) -> PageSetLoad {
        if !recorded.has(needs::VISITS) {
            self.take_back_diverted();
        }
        for (cpu, decision) in std::mem::take(&mut self.decisions).finish() {
            self.decided(cpu, decision);
        }
        if !self.has_bulk_events && !recorded.has(&[EventKind::BulkAllocEntry]) {
            self.give_stacks();
        }
        self.load
    }

    /// Returns an error if there was no memory for the notes about frames, or no room for the acts.
    pub(super) fn check(&mut self) -> Result<(), ReplayError> {
        if self.load.acts.is_incomplete() {
            self.load.acts.check().map_err(|error| ReplayError::no_room(&self.load.acts, error))?;
        }
        match self.zones.iter().filter_map(|zone| zone.frames.wanted_bytes()).max() {
            Some(wanted) => Err(ReplayError::NoMemory { wanted }),
            None => Ok(()),
        }
    }

    /// Undoes the corrections for frees past a busy page set. A correction is made when a block leaves the
    /// zone although no recorded drain gave the block back. If drains were not recorded, the kernel may have
    /// drained such a block, so the correction may be wrong.
    fn take_back_diverted(&mut self) {
        self.load.acts.mend_all(|act| {
            if act.kind == ActKind::PastSet {
                act.kind = ActKind::Free;
            }
        });
        self.load.diverted_frees = 0;
    }

    /// Allocates pages for the stacks of forked tasks, if bulk allocations were not recorded. The number of
    /// these pages is the number of frees without a recorded allocation, but at most a whole stack for each
    /// fork. The pages are spread evenly over all forks.
    fn give_stacks(&mut self) {
        let forks = self.forks.len() as u64;
        let pages = self.load.unmatched_frees.min(forks * STACK_PAGES);
        for (fork, act) in (0..forks).zip(&self.forks) {
            let pages = (fork + 1) * pages / forks - fork * pages / forks;
            if pages > 0 {
                let stack = (ActKind::BulkAlloc, pages as u16);
                self.load.acts.mend(*act as usize, |act| (act.kind, act.count) = stack);
            }
        }
        self.load.stack_pages = pages;
    }

    fn forked(&mut self, event: &Event) {
        let highest = highest_zone(0);
        let Some(zone) = self.machine.highest_zone(event.cpu, highest) else { return };
        let at = self.machine.set(zone, event.cpu);
        let block = BlockKind::new(Order::ZERO, MigrateType::Unmovable, highest);
        let act = self.push(ActKind::Nothing, block, at);
        self.forks.push(act);
    }

    /// Adds the acts of `events` to the load. This function is not generic, so that the compiler uses this
    /// crate's optimisation level. For a generic function, the compiler uses the optimisation level of the
    /// calling crate.
    pub(super) fn events(&mut self, events: &[Event], times: Times) {
        for event in events {
            self.event(event);
            if times == Times::Keep {
                self.note_time(event.ts_ns);
            }
        }
    }

    #[inline]
    fn event(&mut self, event: &Event) {
        self.ticks.bring(event, self.machine.cpus() as u32, &mut self.load.acts);
        if !self.machine.has_cpu(event.cpu) {
            let counts = matches!(
                event.kind,
                EventKind::MmPageAlloc
                    | EventKind::MmPageFree
                    | EventKind::MmPageFreeBatched
                    | EventKind::BulkAllocReturn
            );
            self.load.unreplayed.impossible += u64::from(counts);
            return;
        }
        if let Some(decision) = self.decisions.record(event) {
            self.decided(event.cpu, decision);
        }
        self.resolve_batch(event);
        match event.kind {
            EventKind::MmPageAlloc => self.allocated(event),
            EventKind::MmPageFree | EventKind::MmPageFreeBatched if event.is_free() => self.freed(event),
            EventKind::MmPageFreeBatched => self.committed(event),
            EventKind::MmPageAllocZoneLocked => self.fetched(event),
            EventKind::MmPageAllocExtfrag => self.forget_diverted(event),
            EventKind::MmPagePcpuDrain => self.drained(event),
            EventKind::SchedProcessFork => self.forked(event),
            EventKind::BulkAllocEntry => {
                self.has_bulk_events = true;
                let cpu = &mut self.cpus[usize::from(event.cpu)];
                (cpu.bulk, cpu.bulk_highest) = (Some(None), highest_zone(event.gfp));
            }
            EventKind::BulkAllocReturn => self.bulk_ends(event),
            EventKind::KswapdWake => self.reclaim(event, ActKind::ReclaimStarts),
            EventKind::KswapdSleep => self.reclaim(event, ActKind::ReclaimStops),
            // Between two rounds, kswapd sleeps without a sleep event. kswapd runs on the CPUs of its own
            // node, so the event's CPU shows this node.
            EventKind::KswapdSwitchedOut if event.pfn == 1 => {
                let node = self.machine.nodes[usize::from(event.cpu)];
                self.push(ActKind::ReclaimStops, BlockKind::PAGE, u32::from(node));
            }
            _ => {}
        }
        self.cpus[usize::from(event.cpu)].last[usize::from(event.interrupt_level())] = Some(*event);
    }

    /// Sets the time of all acts that have no time yet to `at_ns`.
    fn note_time(&mut self, at_ns: u64) {
        while self.load.times_ns.len() < self.load.acts.len() {
            self.load.times_ns.push(at_ns);
        }
    }

    fn push(&mut self, kind: ActKind, block: BlockKind, at: u32) -> u32 {
        self.load.acts.push(Act { kind, block, count: 1, at });
        (self.load.acts.len() - 1) as u32
    }

    fn decided(&mut self, cpu: u16, decision: Decision) {
        let refill = match decision.refill {
            Some((order, migratetype)) => {
                let Some(order) = Order::new(order) else { return };
                let migratetype = usize::try_from(migratetype).ok().and_then(MigrateType::from_index);
                Some(BlockKind::new(order, migratetype.unwrap_or(MigrateType::Movable), 0))
            }
            None => None,
        };
        let Some(zone) = self.machine.zone_of(decision.pfn) else { return };
        let set = self.machine.set(zone, cpu);
        let before = self.load.acts.len() as u32;
        let pages = u32::try_from(decision.pages).unwrap_or(u32::MAX);
        self.load.decisions.push(Decided { before, set, pages, refill });
    }

    fn moved(&mut self, event: &Event, zone: usize, order: Order, blocks: i32) {
        let migratetype = event.block_type().unwrap_or(MigrateType::Movable);
        let (set, block) = (self.machine.set(zone, event.cpu), BlockKind::new(order, migratetype, 0));
        let before = self.load.acts.len() as u32;
        let added = self.load.moves.mend_last(|last| {
            let is_same = (last.before, last.set, last.block) == (before, set, block);
            last.blocks += if is_same { blocks } else { 0 };
            is_same
        });
        if added != Some(true) {
            self.load.moves.push(Moved { before, set, block, blocks });
        }
    }

    fn allocated(&mut self, event: &Event) {
        let Some(pfn) = event.frame() else {
            self.load.unreplayed.failed_in_recording += 1;
            return;
        };
        let Some((zone, order)) = self.place(event, event.order) else { return };
        let migratetype = event.block_type().unwrap_or(MigrateType::Movable);
        self.load.allocs += 1;
        if let Some(Note::Allocated(_)) = self.leaves_set(event, zone, order) {
            self.load.unreplayed.allocated_twice += 1;
        }
        self.zones[zone].note(pfn.0, Note::Allocated(order));
        self.zones[zone].see_type(pfn.0, migratetype);
        let block = BlockKind::new(order, migratetype, highest_zone(event.gfp));
        self.push(ActKind::Alloc, block, self.machine.set(zone, event.cpu));
    }

    fn freed(&mut self, event: &Event) {
        let Some((zone, order)) = self.place(event, event.order) else { return };
        let migratetype = self.zones[zone].type_of(event.pfn);
        let act = self.push(
            ActKind::Free,
            BlockKind::new(order, migratetype, 0),
            self.machine.set(zone, event.cpu),
        );
        self.load.frees += 1;
        let before = self.zones[zone].free(event.pfn, order, act);
        match before {
            None => self.load.unmatched_frees += 1,
            Some(Note::Freed(_)) => {
                self.load.unmatched_frees += 1;
                self.load.unseen_allocs += 1;
            }
            Some(Note::Allocated(_)) => {}
        }
        if event.kind == EventKind::MmPageFree && order == Order::ZERO {
            self.freed_page(event, before, act);
        }
        if let Some((_, frees)) = &mut self.cpus[usize::from(event.cpu)].in_batch {
            frees.push(act);
        }
    }

    /// Finds a block that was allocated as a whole, and whose pages are freed one directly after the other.
    /// Some kernels report a free of each page of a block, although they free the block as a whole.
    fn freed_page(&mut self, event: &Event, before: Option<Note>, act: u32) {
        let level = usize::from(event.interrupt_level());
        let cpu = &mut self.cpus[usize::from(event.cpu)];
        let split = &mut cpu.split[level];
        let goes_on = cpu.last[level].is_some_and(|last| {
            (last.kind, last.pid, last.order) == (event.kind, event.pid, 0)
                && event.pfn.checked_sub(1) == Some(last.pfn)
        });
        if goes_on && !split.acts.is_empty() {
            split.acts.push(act);
        } else {
            split.acts.clear();
            if let Some(Note::Allocated(order)) = before
                && order != Order::ZERO
                && event.pfn.is_multiple_of(u64::from(order.frames()))
            {
                split.order = order;
                split.acts.push(act);
            }
        }
        if split.acts.len() as u64 == u64::from(split.order.frames()) {
            let split = std::mem::take(split);
            self.join(&split.acts, split.order);
        }
    }

    /// Notes that the acts `acts` together free one block. The last of these acts becomes `FreeLastPart`, and
    /// the other acts become `FreePart`.
    fn join(&mut self, acts: &[u32], order: Order) {
        let Some((last, parts)) = acts.split_last() else { return };
        for part in parts {
            self.load.acts.mend(*part as usize, |act| act.kind = ActKind::FreePart);
        }
        self.load.acts.mend(*last as usize, |act| {
            (act.kind, act.block) = (ActKind::FreeLastPart, act.block.of_order(order));
        });
        self.load.split_blocks += 1;
    }

    /// Handles a block that leaves its page set. If each page of the block was freed by its own act, joins
    /// these acts, because the page set held the pages as one block. Returns the note of the block's first
    /// frame, and removes all notes of the block.
    fn leaves_set(&mut self, event: &Event, zone: usize, order: Order) -> Option<Note> {
        let first = self.zones[zone].take(event.pfn);
        let others = (event.pfn..event.pfn.saturating_add(u64::from(order.frames()))).skip(1);
        let others = others.filter_map(|pfn| self.zones[zone].take(pfn));
        let mut acts = Vec::new();
        for note in first.into_iter().chain(others) {
            if let Note::Freed(act) = note {
                acts.push(act);
            }
        }
        if order != Order::ZERO && acts.len() as u64 == u64::from(order.frames()) && acts.is_sorted() {
            let is_page = |act: &mut Act| act.kind == ActKind::Free && act.block.order() == Order::ZERO;
            if acts.iter().all(|act| self.load.acts.mend(*act as usize, is_page) == Some(true)) {
                self.join(&acts, order);
            }
        }
        acts.into_iter().for_each(|act| self.reveal_type(act, event, zone));
        first
    }

    /// Handles the event `MmPageFreeBatched`: a freed block that waited in a batch reaches its page set. The
    /// act of the earlier free becomes `Nothing`, and a new act frees the block.
    fn committed(&mut self, event: &Event) {
        let Some(zone) = self.machine.zone_of(event.pfn) else { return };
        let Some(Note::Freed(earlier)) = self.zones[zone].take(event.pfn) else { return };
        let moved = self.load.acts.mend(earlier as usize, |act| {
            let block = match act.kind {
                ActKind::Free => act.block,
                // A page of a batch enters the page set as a single page.
                ActKind::FreePart | ActKind::FreeLastPart => act.block.of_order(Order::ZERO),
                _ => return None,
            };
            act.kind = ActKind::Nothing;
            Some(block)
        });
        let Some(block) = moved.flatten() else { return };
        let act = self.push(ActKind::Free, block, self.machine.set(zone, event.cpu));
        self.zones[zone].note(event.pfn, Note::Freed(act));
    }

    fn fetched(&mut self, event: &Event) {
        self.forget_diverted(event);
        let Some((zone, order)) = self.place(event, event.order) else { return };
        if let Some(migratetype) = event.block_type() {
            self.zones[zone].see_type(event.pfn, migratetype);
        }
        if let Some(of_bulk) = &mut self.cpus[usize::from(event.cpu)].bulk {
            *of_bulk = Some(zone);
        }
        if event.is_pcp_refill() {
            self.moved(event, zone, order, 1);
        }
    }

    /// Handles a block that leaves the zone. An act may have freed a frame of the block that no drain gave
    /// back. This act freed the frame directly to the zone, because the lock of the page set was busy.
    fn forget_diverted(&mut self, event: &Event) {
        let Some(zone) = event.frame().and_then(|pfn| self.machine.zone_of(pfn.0)) else { return };
        let frames = event.block_order().map_or(1, |order| u64::from(order.frames()));
        for pfn in event.pfn..event.pfn.saturating_add(frames) {
            if let Some(Note::Freed(act)) = self.zones[zone].take(pfn) {
                self.divert(act);
            }
        }
    }

    fn divert(&mut self, act: u32) {
        let diverted = self.load.acts.mend(act as usize, |act| {
            let is_free = act.kind.is_free();
            if act.kind == ActKind::FreeLastPart {
                act.block = act.block.of_order(Order::ZERO);
            }
            if is_free {
                act.kind = ActKind::PastSet;
            }
            is_free
        });
        self.load.diverted_frees += u64::from(diverted == Some(true));
    }

    fn drained(&mut self, event: &Event) {
        let Some((zone, order)) = self.place(event, event.order) else { return };
        self.leaves_set(event, zone, order);
        if let Some(migratetype) = event.block_type() {
            self.zones[zone].see_type(event.pfn, migratetype);
        }
        self.moved(event, zone, order, -1);
    }

    /// Corrects the migratetype of an act that freed a block, when the block leaves its page set. `event`
    /// shows that the block leaves, and shows the block's list.
    fn reveal_type(&mut self, act: u32, event: &Event, zone: usize) {
        let set = self.machine.set(zone, event.cpu);
        let Some(migratetype) = event.block_type() else { return };
        self.load.acts.mend(act as usize, |act| {
            let is_here = event.kind == EventKind::MmPagePcpuDrain || act.at == set;
            let is_part = matches!(act.kind, ActKind::FreePart | ActKind::FreeLastPart);
            if is_here && (is_part || act.block.order().get() == event.order) {
                act.block = act.block.of_type(migratetype);
            }
        });
    }

    fn bulk_ends(&mut self, event: &Event) {
        // Some recordings have only the events of the ends of bulk allocations, without the allocations'
        // flags. Assume that a bulk allocation without flags may use the zones up to `Normal`, as nearly all
        // bulk allocations may.
        self.has_bulk_events = true;
        let cpu = &mut self.cpus[usize::from(event.cpu)];
        let highest = if cpu.bulk.is_some() { cpu.bulk_highest } else { highest_zone(0) };
        let zone = cpu.bulk.take().flatten();
        let Some(zone) = zone.or_else(|| self.machine.highest_zone(event.cpu, highest)) else { return };
        let pages = event.bulk_frames().unwrap_or(0);
        if pages > BULK_PAGES_MAX {
            self.load.unreplayed.impossible += 1;
            return;
        }
        self.load.allocs += pages;
        let block = BlockKind::new(Order::ZERO, MigrateType::Unmovable, highest);
        let act = self.push(ActKind::BulkAlloc, block, self.machine.set(zone, event.cpu));
        self.load.acts.mend(act as usize, |act| act.count = pages as u16);
    }

    fn reclaim(&mut self, event: &Event, kind: ActKind) {
        // An event about kswapd stores a node in `pfn`.
        match u16::try_from(event.pfn) {
            Ok(node) => drop(self.push(kind, BlockKind::PAGE, u32::from(node))),
            Err(_) => self.load.unreplayed.impossible += 1,
        }
    }

    /// Decides whether an interrupt's frees went past the page set. If a thread's batch of frees continues
    /// after the interrupt, the thread held the page set's lock during the interrupt, so the interrupt's
    /// frees went past the page set.
    fn resolve_batch(&mut self, event: &Event) {
        let level = event.interrupt_level();
        let cpu = &mut self.cpus[usize::from(event.cpu)];
        if level > 0 {
            if cpu.in_batch.is_none()
                && let Some(interrupted) = cpu.last[0]
                && interrupted.kind == EventKind::MmPageFreeBatched
            {
                cpu.in_batch = Some((interrupted, Vec::new()));
            }
            return;
        }
        let Some((interrupted, frees)) = cpu.in_batch.take() else { return };
        let goes_on = event.pid == interrupted.pid
            && matches!(event.kind, EventKind::MmPageFreeBatched | EventKind::MmPagePcpuDrain);
        if goes_on {
            frees.into_iter().for_each(|act| self.divert(act));
        }
    }

    /// Returns the zone and order of an event's block. Counts an event with an impossible order, and an
    /// allocation or free of a frame outside all zones.
    #[inline]
    fn place(&mut self, event: &Event, order: u8) -> Option<(usize, Order)> {
        let Some(zone) = self.machine.zone_of(event.pfn) else {
            let counts = matches!(event.kind, EventKind::MmPageAlloc | EventKind::MmPageFree);
            self.load.unreplayed.foreign_frames += u64::from(counts);
            return None;
        };
        let order = Order::new(order);
        self.load.unreplayed.impossible += u64::from(order.is_none());
        Some((zone, order?))
    }
}

impl ZoneNotes {
    /// Notes that an act frees a block. Returns the earlier note of the block, or of the larger allocated
    /// block that contains the block. The rest of a larger allocated block stays allocated.
    fn free(&mut self, pfn: u64, order: Order, act: u32) -> Option<Note> {
        let before = self.note(pfn, Note::Freed(act));
        let (mut first, whole) = match before {
            Some(Note::Freed(_)) => return before,
            Some(Note::Allocated(whole)) => (pfn, whole),
            None => self.allocated_around(pfn, order)?,
        };
        let mut part = whole.get();
        while part > order.get() {
            part -= 1;
            let half = 1 << part;
            let rest = if pfn < first + half { first + half } else { first };
            if rest == first {
                first += half;
            }
            if let Some(part) = Order::new(part) {
                self.note(rest, Note::Allocated(part));
            }
        }
        Some(Note::Allocated(whole))
    }

    /// Finds the allocated block that contains the block of order `order` at frame `pfn`. Returns the first
    /// frame and the order of the containing block.
    fn allocated_around(&self, pfn: u64, order: Order) -> Option<(u64, Order)> {
        order.and_above().skip(1).find_map(|above| {
            let first = pfn - pfn % u64::from(above.frames());
            match self.frames.get(first).map(Note::unpack)? {
                Note::Allocated(whole) if whole >= above && first != pfn => Some((first, whole)),
                _ => None,
            }
        })
    }

    fn note(&mut self, pfn: u64, note: Note) -> Option<Note> {
        self.frames.set(pfn, note.pack()).map(Note::unpack)
    }

    fn take(&mut self, pfn: u64) -> Option<Note> {
        self.frames.take(pfn).map(Note::unpack)
    }

    fn pageblock(&mut self, pfn: u64) -> Option<&mut u8> {
        let first = self.start_pfn / u64::from(PAGEBLOCK_FRAMES);
        self.block_types.get_mut((pfn / u64::from(PAGEBLOCK_FRAMES)).checked_sub(first)? as usize)
    }

    fn see_type(&mut self, pfn: u64, migratetype: MigrateType) {
        if migratetype.is_mergeable()
            && let Some(seen) = self.pageblock(pfn)
        {
            *seen = migratetype.index() as u8 + 1;
        }
    }

    fn type_of(&mut self, pfn: u64) -> MigrateType {
        let seen = self.pageblock(pfn).and_then(|seen| seen.checked_sub(1));
        seen.and_then(|index| MigrateType::from_index(usize::from(index))).unwrap_or(MigrateType::Movable)
    }
}
