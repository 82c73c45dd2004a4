//! Handles frees: chooses the list of a block, and finds whether the page set drains after the free.

use pageset_core::policy::{FreeDrain, SplitFrees};
use pageset_core::{MigrateType, Order};
use pageset_trace::{Event, EventKind};

use super::after_free::{AfterFree, after_free};
use super::compare::DrainEnds;
use super::cpu_state::Slices;
use super::engine::Engine;
use super::links::{Chunk, same_context};
use super::mode::Mode;
use super::numbers::Place;
use super::page_set::Home;

/// Maximum number of later events of a CPU that are searched for the drain that follows a free.
const SEARCHED: usize = 64;

impl Engine {
    /// Handles a freed block. The block reaches its page set immediately, or later if it is freed in a batch.
    /// If the lock of the page set is busy, the block never reaches the page set.
    pub(super) fn freed(&mut self, chunk: &mut Chunk, index: usize) {
        let event = chunk.events[index];
        let Some((place, order)) = self.block(&event, event.order) else { return };
        let order = self.join_split(chunk, index, place).unwrap_or(order);
        let set = self.set_index(place.zone, event.cpu);
        self.sets[set].touched = true;
        if !self.policy.lists.holds(order) {
            self.displace(place);
            self.geometry.zones[place.zone]
                .pressure
                .change(usize::from(event.cpu), i64::from(order.frames()));
            return;
        }
        match after_free(chunk, index, (order, event.cpu)) {
            AfterFree::Batched => return,
            AfterFree::Diverted => {
                self.displace(place);
                self.geometry.zones[place.zone]
                    .pressure
                    .change(usize::from(event.cpu), i64::from(order.frames()));
                self.out.passed_over.diverted_frees += 1;
                return;
            }
            AfterFree::Unknown if self.is_lock_held(chunk, index) => {
                self.displace(place);
                self.geometry.zones[place.zone]
                    .pressure
                    .change(usize::from(event.cpu), i64::from(order.frames()));
                self.out.passed_over.diverted_frees += 1;
                return;
            }
            AfterFree::Type(_) | AfterFree::Unknown => {}
        }
        self.commit_or_defer(chunk, index);
    }

    /// Some kernels report each page of a freed block separately, although they free the block as a whole. If
    /// this event begins such a series, returns the block's order, and marks the other events as done.
    fn join_split(&mut self, chunk: &mut Chunk, index: usize, place: Place) -> Option<Order> {
        if self.policy.split_frees == SplitFrees::Singly {
            return None;
        }
        let first = chunk.events[index];
        let allocated = self.split.remove(&place.frame);
        // The block was allocated before the recording, so its order is not known yet. The next event about
        // the block may show the order.
        let order = allocated.or_else(|| {
            let next = chunk.events.get(chunk.links[index].of_frame as usize)?;
            let is_block = matches!(next.kind, EventKind::MmPageAlloc | EventKind::MmPagePcpuDrain)
                && next.pfn == first.pfn;
            Order::new(next.order).filter(|_| is_block)
        })?;
        if first.order != 0 || order == Order::ZERO {
            return None;
        }
        let mut pages = vec![index];
        while (pages.len() as u64) < u64::from(order.frames()) {
            let last = *pages.last()?;
            let next = if first.interrupt_level() == 0 {
                chunk.next_in_task(last)
            } else {
                chunk.after(last).next()
            }?;
            let event = &chunk.events[next];
            let follows = event.kind == EventKind::MmPageFree
                && same_context(event, &first)
                && (event.cpu, event.order, event.pfn) == (first.cpu, 0, first.pfn + pages.len() as u64);
            if !follows {
                return None;
            }
            pages.push(next);
        }
        let last = *pages.last()?;
        for page in &pages[1..] {
            chunk.done[*page] = true;
        }
        let end = chunk.links[last];
        let link = &mut chunk.links[index];
        (link.order, link.in_task, link.on_cpu) = (order.get(), end.in_task, end.on_cpu);
        Some(order)
    }

    /// Handles the event `MmPageFreeBatched`: a freed block that waited in a batch reaches its page set.
    pub(super) fn committed(&mut self, chunk: &mut Chunk, index: usize) {
        self.commit_or_defer(chunk, index);
    }

    fn commit_or_defer(&mut self, chunk: &mut Chunk, index: usize) {
        match drain_of(chunk, index) {
            Some((drain, false)) => {
                self.cpus[usize::from(chunk.events[index].cpu)].deferred.push((index, drain));
            }
            Some((drain, true)) => self.commit(chunk, index, Some(drain)),
            None => self.commit(chunk, index, None),
        }
    }

    /// Handles an event of a drain. The event belongs to the delayed drain of an earlier free, to the next
    /// slice of an unfinished drain, to a tick, or to a drain on demand.
    pub(super) fn drained(&mut self, chunk: &mut Chunk, index: usize) {
        let cpu = usize::from(chunk.events[index].cpu);
        if let Some(at) = self.cpus[cpu].deferred.iter().position(|(_, drain)| *drain == index) {
            let (commit, _) = self.cpus[cpu].deferred.swap_remove(at);
            return self.commit(chunk, commit, Some(index));
        }
        if let Some(at) = self.cpus[cpu].slices.iter().position(|slices| slices.next == index) {
            let slices = self.cpus[cpu].slices.swap_remove(at);
            return self.next_slices(chunk, index, slices);
        }
        if self.is_of_tick(&chunk.events[index]) {
            return self.tick_drains(chunk, index);
        }
        chunk.done[index] = true;
        let event = chunk.events[index];
        let Some((place, order)) = self.block(&event, event.order) else { return };
        self.out.passed_over.demand_pages += u64::from(order.frames());
        self.see_block_type(place, event.migratetype);
        self.geometry.zones[place.zone].pressure.change(cpu, i64::from(order.frames()));
        if self.mode == Mode::Free {
            let home = Home { set: self.set_index(place.zone, event.cpu), list: 0 };
            self.drop_placeholders(home, order.frames() as i32);
        } else {
            let owner = match self.evict(place) {
                Some(home) => home.set,
                None => {
                    let owner = self.drained_owner(chunk, index, place.zone);
                    self.sets[owner].pcp.count -= order.frames() as i32;
                    owner
                }
            };
            self.cpus[cpu].drained_owner = Some((index, owner));
        }
    }

    /// Finds the page set that is drained on demand, if the page set that held the block is not known. Page
    /// sets are drained one after the other, so the drained blocks before and after belong to the same page
    /// set.
    fn drained_owner(&self, chunk: &Chunk, index: usize, zone: usize) -> usize {
        let event = &chunk.events[index];
        let own = self.set_index(zone, event.cpu);
        let is_here = |set: usize| set / self.cpus.len() == zone;
        if let Some((last, owner)) = self.cpus[usize::from(event.cpu)].drained_owner
            && chunk.links[last].on_cpu == index as u32
            && is_here(owner)
        {
            return owner;
        }
        let later = chunk.after(index).take(SEARCHED).map(|at| &chunk.events[at]);
        later
            .take_while(|next| next.kind == EventKind::MmPagePcpuDrain)
            .filter_map(|next| self.home(self.geometry.locate(next.pfn)?))
            .map(|home| home.set)
            .find(|set| is_here(*set))
            .unwrap_or(own)
    }

    /// Whether an interrupt freed this block while the interrupted thread held the page set's lock, in the
    /// middle of a batch, drain or refill.
    fn is_lock_held(&self, chunk: &Chunk, index: usize) -> bool {
        let event = &chunk.events[index];
        let depth = event.interrupt_level();
        if depth == 0 {
            return false;
        }
        let last = &self.cpus[usize::from(event.cpu)].last_by_level;
        let Some(interrupted) = last[..usize::from(depth)].iter().flatten().max() else { return false };
        let interrupted = &chunk.events[*interrupted];
        match interrupted.kind {
            // The interrupt came in the middle of a batch if the batch continues after the interrupt.
            EventKind::MmPageFreeBatched => {
                let mut later = chunk.after(index).take(SEARCHED).map(|at| &chunk.events[at]);
                later.find(|next| next.interrupt_level() < depth).is_some_and(|resumed| {
                    resumed.pid == interrupted.pid
                        && matches!(resumed.kind, EventKind::MmPageFreeBatched | EventKind::MmPagePcpuDrain)
                })
            }
            // The interrupt may come after a drain or refill has moved its last block, but before the thread
            // releases the lock.
            EventKind::MmPagePcpuDrain | EventKind::MmPageAllocZoneLocked => {
                let zone = |event: &Event| self.geometry.locate(event.pfn).map(|place| place.zone);
                zone(interrupted) == zone(event)
            }
            _ => false,
        }
    }

    /// Adds a freed block to its page set, and compares the drain that follows. `drain` is the index of the
    /// first event of this drain.
    pub(super) fn commit(&mut self, chunk: &mut Chunk, index: usize, drain: Option<usize>) {
        let event = chunk.events[index];
        let mut observed = std::mem::take(&mut self.observed);
        observed.clear();
        let mut end = DrainEnds::Here;
        if let Some(drain) = drain {
            end = self.collect_drain(chunk, drain, &event, &mut observed);
            while self.mode == Mode::Free
                && let DrainEnds::GoesOn(next) = end
            {
                end = self.collect_drain(chunk, next, &event, &mut observed);
            }
        }
        if let Some((place, order)) = self.block(&event, chunk.links[index].order)
            && self.policy.lists.holds(order)
        {
            let set = self.set_index(place.zone, event.cpu);
            self.sets[set].touched = true;
            let migratetype = match after_free(chunk, index, (order, event.cpu)) {
                AfterFree::Type(migratetype) => migratetype,
                _ => {
                    let seen = self.block_type(place).and_then(MigrateType::from_index);
                    seen.unwrap_or(MigrateType::Movable)
                }
            };
            let list = self
                .policy
                .lists
                .list(order, migratetype)
                .expect("the condition above has checked that page sets hold this order");
            let home = Home { set, list };
            if self.mode == Mode::Free {
                self.free_free(chunk, index, (home, order), &observed);
            } else {
                self.displace(place);
                self.take_before_free(chunk, index, home);
                self.push(place, home, order, chunk.links[index].of_frame);
                self.compare_free(chunk, index, (home, order), (&observed, end));
            }
            let cpu = &mut self.cpus[usize::from(event.cpu)];
            cpu.last_free = observed.is_empty().then_some(index);
        }
        self.observed = observed;
    }

    /// Handles a task that continues its drain after other tasks ran between two slices.
    fn next_slices(&mut self, chunk: &mut Chunk, index: usize, slices: Slices) {
        let event = chunk.events[index];
        let mut observed = std::mem::take(&mut self.observed);
        observed.clear();
        let end = self.collect_drain(chunk, index, &event, &mut observed);
        self.compare_slices(chunk, index, slices, (&observed, end));
        self.observed = observed;
    }

    /// Collects the blocks that one thread or interrupt drains from a page set, up to the first event of
    /// another thread on this CPU.
    fn collect_drain(
        &mut self,
        chunk: &mut Chunk,
        drain: usize,
        commit: &Event,
        observed: &mut Vec<(Place, Order)>,
    ) -> DrainEnds {
        let mut at = drain;
        let mut last = drain;
        loop {
            let event = chunk.events[at];
            match event.kind {
                EventKind::MmPagePcpuDrain if same_context(&event, commit) => {
                    let Some((place, order)) = self.block(&event, event.order) else { break };
                    if observed.first().is_some_and(|(first, _)| first.zone != place.zone) {
                        break;
                    }
                    chunk.done[at] = true;
                    self.see_block_type(place, event.migratetype);
                    observed.push((place, order));
                    last = at;
                }
                EventKind::ContentionBegin | EventKind::ContentionEnd | EventKind::ContendedRelease => {}
                // If other tasks may run between two slices, stop at any other event. Otherwise, skip the
                // events of an interrupt.
                _ if self.policy.free_drain != FreeDrain::Whole && commit.interrupt_level() == 0 => break,
                _ if event.interrupt_level() > commit.interrupt_level() => {}
                _ => break,
            }
            let Some(next) = chunk.after(at).next() else { break };
            at = next;
        }
        if self.policy.free_drain == FreeDrain::Whole || commit.interrupt_level() > 0 {
            return DrainEnds::Here;
        }
        let waits = [EventKind::ContentionBegin, EventKind::ContentionEnd, EventKind::ContendedRelease];
        let mut next = chunk.next_in_task(last);
        while let Some(at) = next.filter(|at| waits.contains(&chunk.events[*at].kind)) {
            next = chunk.next_in_task(at);
        }
        let zone = observed.first().map(|(place, _)| place.zone);
        match next.map(|at| (at, &chunk.events[at])) {
            Some((_, next)) if next.cpu != commit.cpu => DrainEnds::TaskMoved,
            Some((at, next))
                if next.kind == EventKind::MmPagePcpuDrain
                    && !chunk.done[at]
                    && self.geometry.locate(next.pfn).map(|place| place.zone) == zone =>
            {
                DrainEnds::GoesOn(at)
            }
            _ => DrainEnds::Here,
        }
    }
}

/// Returns the index of the first event of the drain after a block has reached its page set, and whether this
/// event is the CPU's next event.
fn drain_of(chunk: &Chunk, index: usize) -> Option<(usize, bool)> {
    let commit = &chunk.events[index];
    // If other tasks run between a task's free and its drain, the drain is the task's next event.
    if commit.interrupt_level() == 0
        && let Some(at) = chunk.next_in_task(index)
        && let Some(next) = chunk.events.get(at)
        && next.kind == EventKind::MmPagePcpuDrain
        && next.cpu == commit.cpu
        && !chunk.done[at]
    {
        return Some((at, chunk.after(index).next() == Some(at)));
    }
    let mut at_once = true;
    for at in chunk.after(index).take(SEARCHED) {
        let event = &chunk.events[at];
        if matches!(event.kind, EventKind::ContentionBegin | EventKind::ContentionEnd) {
            continue;
        }
        if same_context(event, commit) {
            return (event.kind == EventKind::MmPagePcpuDrain && !chunk.done[at]).then_some((at, at_once));
        }
        if event.interrupt_level() < commit.interrupt_level() {
            return None;
        }
        at_once = false;
    }
    None
}
