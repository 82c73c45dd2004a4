//! Compares allocations. The policy and the kernel may take a block from a list, or may refill the list
//! before they take the block.

use pageset_core::policy::{Fallback, SplitFrees};
use pageset_core::{FrameIndex, Order};
use pageset_trace::EventKind;

use super::classes::Class;
use super::engine::Engine;
use super::late::is_late;
use super::links::{Chunk, same_context};
use super::mode::Mode;
use super::numbers::Place;
use super::page_set::Home;

/// Maximum number of later events of a CPU that are searched for the allocation that a refill served.
const SEARCHED: usize = 512;
/// The largest number of blocks above an allocated block on its list that the model examines.
const LOOKED_AT: usize = 32;

impl Engine {
    /// Handles blocks that leave the zone's free lists: a refill, or an allocation without a page set.
    pub(super) fn fetched(&mut self, chunk: &mut Chunk, index: usize) {
        let first = chunk.events[index];
        let mut run = std::mem::take(&mut self.run);
        run.clear();
        let last = self.collect(chunk, index, &mut run);
        if let Some(&(place, _)) = run.first() {
            let frames = 1_i64 << first.order.min(pageset_core::MAX_ORDER as u8);
            let pfn = self.geometry.pfn(place.frame);
            let reports =
                |at: &usize| chunk.events[*at].kind == EventKind::MmPageAlloc && chunk.events[*at].pfn == pfn;
            // A task may be interrupted between its allocation and the event that reports it. The event of an
            // interrupted task comes much later, perhaps on another CPU.
            let alloc = chunk.after(last).take(SEARCHED).find(reports);
            let alloc = alloc.or_else(|| chunk.next_in_task(last).filter(reports));
            if let Some(alloc) = alloc {
                let event = chunk.events[alloc];
                self.geometry.zones[place.zone].pressure.walk(event.gfp, frames);
                self.walk_past(Some(place.zone), event.gfp);
            }
            let change = -(run.len() as i64 * frames);
            self.geometry.zones[place.zone].pressure.change(usize::from(first.cpu), change);
            let set = self.set_index(place.zone, first.cpu);
            self.sets[set].touched = true;
            match alloc {
                Some(alloc) => {
                    chunk.done[alloc] = true;
                    self.allocated(chunk, (index, alloc), Some(&run));
                }
                None if self.is_in_bulk(&first) => self.bulk_refilled(chunk, index, &run),
                None => self.orphan(chunk, (index, set), &run),
            }
        }
        self.run = run;
    }

    /// Handles a refill that no event of an allocation follows.
    fn orphan(&mut self, chunk: &Chunk, (index, set): (usize, usize), run: &[(Place, u32)]) {
        self.out.passed_over.orphan_refills += 1;
        let event = chunk.events[index];
        let list_of = |(order, migratetype)| Some((order, self.policy.lists.list(order, migratetype)?));
        match event.block_order().zip(event.block_type()).and_then(list_of) {
            Some((order, list)) if run.len() > 1 => {
                let home = Home { set, list };
                if self.mode == Mode::Free {
                    return self.free_alloc(chunk, index, (home, order), Some(run.len() as u32));
                }
                self.refilled(chunk, index, (home, order), run);
                self.evict(run[0].0);
            }
            _ => {
                for (place, _) in run {
                    self.displace(*place);
                }
            }
        }
    }

    /// Collects the blocks that a CPU fetched under one hold of the zone lock, each with the next event about
    /// the block. Returns the index of the last event of the fetch.
    fn collect(&mut self, chunk: &mut Chunk, index: usize, run: &mut Vec<(Place, u32)>) -> usize {
        let first = chunk.events[index];
        let takes_stolen = self.takes_stolen();
        let mut at = index;
        loop {
            let event = chunk.events[at];
            let is_stolen = event.kind == EventKind::MmPageAllocExtfrag;
            chunk.done[at] = true;
            if let Some((place, _)) = self.block(&event, event.order) {
                let owned = !is_stolen || event.gfp >> 8 & 1 != 0;
                if owned {
                    self.see_block_type(place, event.migratetype);
                } else {
                    self.see_block_type(place, event.gfp as u8 as i8);
                }
                let known = run.last().is_some_and(|(last, _)| *last == place);
                if !is_stolen || takes_stolen && !known {
                    run.push((place, chunk.links[at].of_frame));
                } else if known && let Some(last) = run.last_mut() {
                    last.1 = chunk.links[at].of_frame;
                }
            }
            let Some(next) = chunk.after(at).next() else { return at };
            let event = &chunk.events[next];
            let belongs =
                matches!(event.kind, EventKind::MmPageAllocZoneLocked | EventKind::MmPageAllocExtfrag)
                    && same_context(event, &first)
                    && (event.order, event.migratetype) == (first.order, first.migratetype)
                    && run.first().is_none_or(|(place, _)| {
                        self.geometry.locate(event.pfn).is_none_or(|next| next.zone == place.zone)
                    });
            if !belongs {
                return at;
            }
            at = next;
        }
    }

    /// Whether a request that falls back takes exactly the block that the fallback's event names. Under such
    /// a policy, no event of a fetch follows the event of the fallback.
    pub(super) fn takes_stolen(&self) -> bool {
        self.policy.buddy.fallback == Fallback::ClaimOrTakeOne
    }

    /// Handles an allocation without a refill.
    pub(super) fn hit(&mut self, chunk: &mut Chunk, index: usize) {
        self.allocated(chunk, (index, index), None);
    }

    /// Handles an allocation. `begin` is the index of the allocation's first event, and `index` is the index
    /// of the event that reports the allocation.
    fn allocated(&mut self, chunk: &Chunk, (begin, index): (usize, usize), run: Option<&[(Place, u32)]>) {
        let event = chunk.events[index];
        if event.is_failed_allocation() {
            return;
        }
        let Some((place, order)) = self.block(&event, event.order) else { return };
        let cpu = &mut self.cpus[usize::from(event.cpu)];
        if let Some(at) = cpu.popped_early.iter().position(|early| *early == place.frame) {
            cpu.popped_early.swap_remove(at);
            return;
        }
        if self.policy.split_frees == SplitFrees::Joined && order != Order::ZERO {
            self.split.insert(place.frame, order);
        }
        // A block comes from the list of its pageblock's migratetype. The event of the allocation therefore
        // shows the migratetype, if no earlier event has shown it.
        if self.block_type(place).is_none() {
            self.see_block_type(place, event.migratetype);
        }
        if run.is_none() {
            self.geometry.zones[place.zone].pressure.walk(event.gfp, i64::from(order.frames()));
            self.walk_past(Some(place.zone), event.gfp);
        }
        let Some(list) = event.block_type().and_then(|t| self.policy.lists.list(order, t)) else {
            self.displace(place);
            return;
        };
        let mut home = Home { set: self.set_index(place.zone, chunk.events[begin].cpu), list };
        if run.is_none()
            && self.has_bulk_events
            && let Some(found) = self.taken_elsewhere(chunk, index, place, home)
        {
            home = found;
        }
        if matches!(run, Some([_])) {
            if !self.is_refill_of_one(home, order) {
                self.out.passed_over.diverted_allocs += 1;
                self.displace(place);
                return;
            }
            self.out.refills.of_one += 1;
        }
        match run {
            _ if self.mode == Mode::Free => {
                self.free_alloc(chunk, begin, (home, order), run.map(|run| run.len() as u32));
            }
            None => {
                self.sets[home.set].note_alloc(&self.policy);
                self.take(chunk, index, (place, order), home);
            }
            Some(run) => {
                self.sets[home.set].note_alloc(&self.policy);
                self.refilled(chunk, begin, (home, order), run);
                self.take(chunk, index, (place, order), home);
            }
        }
    }

    /// Returns the list of another CPU that the block came from, if there is such a list. The task took the
    /// block on the other CPU, moved to this CPU, and only then reported the allocation.
    fn taken_elsewhere(&self, chunk: &Chunk, index: usize, place: Place, home: Home) -> Option<Home> {
        let found = self.home(place).filter(|found| found.set != home.set && found.list == home.list)?;
        let before = chunk.events.get(chunk.links[index].before_in_task as usize)?;
        (found.set % self.cpus.len() == usize::from(before.cpu)).then_some(found)
    }

    /// Whether a refill could consist of one block. The list must be empty. In addition, the page set must
    /// want one block, or the zone may have no second block.
    fn is_refill_of_one(&mut self, home: Home, order: Order) -> bool {
        let pressure = &self.geometry.zones[home.set / self.cpus.len()].pressure;
        let (flags, is_tight) = (pressure.flags(), pressure.is_tight());
        let set = &mut self.sets[home.set];
        let before = set.scalars();
        let wanted = set.pcp.refill_size(&self.policy, set.limits, flags, order);
        set.set_scalars(before);
        set.len(home.list) == 0 && (wanted == 1 || is_tight && order != Order::ZERO && set.is_warm(home.list))
    }

    /// Takes an allocated block off its list in the model.
    fn take(&mut self, chunk: &Chunk, index: usize, (place, order): (Place, Order), home: Home) {
        let pages = order.frames() as i32;
        let set = &self.sets[home.set];
        let was_empty = set.is_warm(home.list) && set.len(home.list) == 0;
        let found = self.home(place);
        if found == Some(home) {
            self.drop_missed(chunk, index, place, home);
        }
        match found {
            Some(found) if found.set == home.set => {
                self.evict(place);
            }
            _ => {
                self.displace(place);
                // The block was in another CPU's page set, or in no page set. This list may have lost a block
                // without an event, so reduce the page set's count by the block's pages.
                if self.has_bulk_events || !self.sets[home.set].is_warm(home.list) {
                    self.sets[home.set].pcp.count -= pages;
                }
            }
        }
        if was_empty {
            self.out.refills.predicted += 1;
            let class = match found {
                Some(found) if found.set == home.set => Class::PageblockType,
                _ if !self.has_bulk_events => Class::UnseenTraffic,
                _ => self.count_class(home.set),
            };
            self.mismatch(chunk, index, class, home.set, || {
                format!("a hit on list {}; the policy: a refill", home.list)
            });
        }
    }

    /// Finds blocks that a task took before this free, but reported only after this free. Takes these blocks
    /// off the list. A list hands out the block that was freed last. If a later event allocates an older
    /// block while this free's block is still on the list, the task took the older block before this free.
    pub(super) fn take_before_free(&mut self, chunk: &Chunk, index: usize, home: Home) {
        // The order of blocks on a list is reliable only if all pages have events.
        if !self.has_bulk_events {
            return;
        }
        let zone = home.set / self.cpus.len();
        while let Some(head) = self.sets[home.set].head(&self.geometry.frames, home.list) {
            let below = self.place(zone, head);
            let Some((at, event)) = self.future(chunk, below.frame).map(|(at, event)| (at, *event)) else {
                return;
            };
            let stays = chunk.links[index].of_frame as usize > at;
            if !(stays && is_late(chunk, (index, at))) {
                return;
            }
            self.take_early(below, home, event.cpu);
        }
    }

    /// Takes a block off its list now. The event of the block's allocation comes later, on the CPU
    /// `reported_on`.
    pub(super) fn take_early(&mut self, place: Place, home: Home, reported_on: u16) {
        self.evict(place);
        self.expect_report(place, reported_on);
        self.sets[home.set].note_alloc(&self.policy);
    }

    /// Removes the blocks that lie above the allocated block on the model's list. The kernel's list hands out
    /// its head first, so these blocks were taken earlier, without an event.
    fn drop_missed(&mut self, chunk: &Chunk, index: usize, place: Place, home: Home) {
        let frames = &self.geometry.frames;
        let set = &self.sets[home.set];
        if set.head(frames, home.list) == Some(place.frame) {
            return;
        }
        let above: Vec<FrameIndex> = set
            .pcp
            .blocks(frames, home.list)
            .take(LOOKED_AT)
            .take_while(|frame| *frame != place.frame)
            .collect();
        if above.len() == LOOKED_AT {
            return;
        }
        for frame in above {
            let missed = self.place(place.zone, frame);
            let is_gone = match self.future(chunk, missed.frame).map(|(at, event)| (at, *event)) {
                Some((at, event)) if self.has_bulk_events && is_late(chunk, (index, at)) => {
                    // A task took the block, but was interrupted before it reported the allocation.
                    self.take_early(missed, home, event.cpu);
                    continue;
                }
                Some((at, event)) => {
                    matches!(event.kind, EventKind::MmPageFree | EventKind::MmPageFreeBatched) && at > index
                }
                // No later event is about the block, so assume that the kernel never had the block on this
                // list.
                None => true,
            };
            if is_gone {
                self.displace(missed);
                if !self.has_bulk_events {
                    self.sets[home.set].note_alloc(&self.policy);
                }
            }
        }
    }
}
