//! Compares the kernel's ticks with the policy's ticks. A tick decays `high`, and drains the pages above
//! `high`. A tick also drains at most a batch from a page set of a remote node that was not used for some
//! ticks.

use pageset_core::Order;
use pageset_core::policy::DecayDrain;
use pageset_trace::{Event, EventKind};

use super::classes::Class;
use super::cpu_state::{DueInTick, OpenDrain, Tick};
use super::engine::Engine;
use super::links::{Chunk, same_context};
use super::mode::Mode;
use super::numbers::Place;
use super::page_set::Home;

/// After this number of ticks without use, a page set of a remote node is drained. Source: spec §2.11.
const REMOTE_EXPIRE_TICKS: u8 = 3;

impl Engine {
    pub(super) fn tick_starts(&mut self, event: &Event) {
        self.cpus[usize::from(event.cpu)].tick =
            Some(Tick { start: *event, zone: 0, differs: false, open: None });
    }

    pub(super) fn is_of_tick(&self, event: &Event) -> bool {
        let tick = &self.cpus[usize::from(event.cpu)].tick;
        tick.is_some_and(|tick| same_context(&tick.start, event))
    }

    /// Handles a tick's drain of one zone's page set, or a further part of this drain.
    pub(super) fn tick_drains(&mut self, chunk: &mut Chunk, index: usize) {
        let event = chunk.events[index];
        let cpu = usize::from(event.cpu);
        let Some(mut tick) = self.cpus[cpu].tick else { return };
        let mut observed = std::mem::take(&mut self.observed);
        observed.clear();
        let goes_on = self.collect_tick(chunk, index, &mut observed);
        let part = Part { blocks: &observed, goes_on };
        if let Some(&(first, _)) = observed.first() {
            if tick.open.is_some_and(|open| open.zone == first.zone) {
                self.tick_goes_on(chunk, index, &mut tick, part);
            } else {
                self.tick_drains_zone(chunk, index, &mut tick, (first.zone, part));
            }
        }
        self.cpus[cpu].tick = Some(tick);
        self.observed = observed;
    }

    /// Handles the first part of a tick's drain of one zone's page set.
    fn tick_drains_zone(
        &mut self,
        chunk: &Chunk,
        index: usize,
        tick: &mut Tick,
        (zone, part): (usize, Part<'_>),
    ) {
        while tick.zone < zone {
            self.tick_zone(chunk, index, tick, Part::NOTHING);
        }
        if tick.zone == zone {
            return self.tick_zone(chunk, index, tick, part);
        }
        // In the model, the tick has already left the zone that the kernel drains now.
        let home = Home { set: self.set_index(zone, tick.start.cpu), list: 0 };
        if self.mode != Mode::Free {
            self.carry_out(home, part.blocks);
        }
        tick.differs = true;
        self.mismatch(chunk, index, Class::Unexplained, home.set, || "a tick returns to a zone".into());
    }

    /// Collects the blocks that a tick drains from the page set of one zone. If other tasks may run between
    /// two slices, stops at the first event that may read or change the page set. Returns whether the tick
    /// drains more blocks of this zone after the collected blocks.
    fn collect_tick(&mut self, chunk: &mut Chunk, index: usize, observed: &mut Vec<(Place, Order)>) -> bool {
        let event = chunk.events[index];
        let can_stop = self.policy.decay_drain == DecayDrain::Slices && self.mode != Mode::Free;
        let (mut at, mut last) = (Some(index), index);
        while let Some(index) = at {
            let next = chunk.events[index];
            if next.kind == EventKind::MmPagePcpuDrain && same_context(&next, &event) {
                let Some((place, order)) = self.block(&next, next.order) else { break };
                if observed.first().is_some_and(|(first, _)| first.zone != place.zone) {
                    break;
                }
                chunk.done[index] = true;
                self.see_block_type(place, next.migratetype);
                observed.push((place, order));
                last = index;
            } else {
                let ends = next.interrupt_level() <= event.interrupt_level()
                    && next.kind == EventKind::WorkqueueExecuteEnd;
                if ends || can_stop && (next.kind.has_frame() || next.kind == EventKind::Marker) {
                    break;
                }
            }
            at = chunk.after(index).next();
        }
        let zone = observed.first().map(|(place, _)| place.zone);
        let mut next = chunk.next_in_task(last);
        while let Some(at) = next.filter(|at| is_wait(chunk.events[*at].kind)) {
            next = chunk.next_in_task(at);
        }
        next.is_some_and(|at| {
            let next = &chunk.events[at];
            next.kind == EventKind::MmPagePcpuDrain
                && !chunk.done[at]
                && self.geometry.locate(next.pfn).map(|place| place.zone) == zone
        })
    }

    pub(super) fn tick_ends(&mut self, chunk: &Chunk, index: usize) {
        let cpu = usize::from(chunk.events[index].cpu);
        let Some(mut tick) = self.cpus[cpu].tick.take() else { return };
        while tick.zone < self.geometry.zones.len() {
            self.tick_zone(chunk, index, &mut tick, Part::NOTHING);
        }
        self.out.decay.observed += 1;
        self.out.decay.exact += u64::from(!tick.differs);
    }

    /// Compares the first part of a tick's drain of the next zone's page set with the policy's drain.
    fn tick_zone(&mut self, chunk: &Chunk, index: usize, tick: &mut Tick, part: Part<'_>) {
        let (zone, cpu) = (tick.zone, usize::from(tick.start.cpu));
        tick.zone += 1;
        let set = self.set_index(zone, tick.start.cpu);
        self.geometry.zones[zone].pressure.fold(cpu);
        let count = self.sets[set].pcp.count;
        let was_expire_known = self.sets[set].expire_known;
        let due = self.due_in_tick(set, zone, cpu);
        let left = due.left_after(count, part);
        if left.is_none() {
            let class = match self.is_remote(zone, cpu) {
                _ if self.mode == Mode::Free => self.class_when_free(set),
                true if !was_expire_known => Class::HiddenAtStart,
                // When the CPU became idle, the CPU may have updated the zone's counters without an event.
                // After such an update, the tick finds no change of the counters, and counts down to the
                // drain of the remote page set.
                true if due.excess == 0 => Class::UnseenTraffic,
                _ => self.count_class(set),
            };
            tick.differs = true;
            self.mismatch(chunk, index, class, set, || {
                format!(
                    "a tick drains {} of {count} pages; the policy: {} above high, {} that expired",
                    part.pages(),
                    due.excess,
                    due.remote
                )
            });
            if self.is_remote(zone, cpu) && self.mode != Mode::Free {
                // Assume that this drain or an earlier drain has emptied the page set.
                self.sets[set].pcp.expire = 0;
            }
        }
        let shows_count = !part.goes_on && (left.is_none() || !part.blocks.is_empty());
        if shows_count && !self.is_remote(zone, cpu) && self.mode != Mode::Free {
            self.learn_from_tick(set, due.excess, part.blocks);
        }
        if self.mode == Mode::Free {
            self.drop_placeholders(Home { set, list: 0 }, due.excess + due.remote);
            self.sets[set].touched |= due.excess + due.remote > 0;
        }
        self.end_part(tick, (set, part), OpenDrain { zone, left });
    }

    /// Compares a further part of a tick's drain with the policy's drain, and applies this part to the model.
    fn tick_goes_on(&mut self, chunk: &Chunk, index: usize, tick: &mut Tick, part: Part<'_>) {
        let Some(open) = tick.open.take() else { return };
        let set = self.set_index(open.zone, tick.start.cpu);
        let count = self.sets[set].pcp.count;
        let mut left = None;
        if let Some(due) = open.left {
            left = due.left_after(count, part);
            if left.is_none() {
                let class = self.count_class(set);
                tick.differs = true;
                self.mismatch(chunk, index, class, set, || {
                    format!(
                        "a tick goes on to drain {} of {count} pages; the policy: {} above high, {} that \
                         expired",
                        part.pages(),
                        due.excess,
                        due.remote
                    )
                });
            }
        }
        self.end_part(tick, (set, part), OpenDrain { left, ..open });
    }

    /// Applies a part of a tick's drain to the model. If the drain goes on, `open` is the rest of it.
    fn end_part(&mut self, tick: &mut Tick, (set, part): (usize, Part<'_>), open: OpenDrain) {
        if !part.blocks.is_empty() {
            if self.mode != Mode::Free {
                self.carry_out(Home { set, list: 0 }, part.blocks);
            }
            let cpu = usize::from(tick.start.cpu);
            self.geometry.zones[open.zone].pressure.change(cpu, i64::from(part.pages()));
            self.sets[set].touched = true;
        }
        tick.open = part.goes_on.then_some(open);
        if !part.goes_on {
            self.sets[set].pcp.end_tick();
        }
    }

    fn is_remote(&self, zone: usize, cpu: usize) -> bool {
        self.geometry.zones[zone].description.node != self.geometry.nodes[cpu]
    }

    fn due_in_tick(&mut self, set: usize, zone: usize, cpu: usize) -> DueInTick {
        let is_remote = self.is_remote(zone, cpu);
        let policy = self.policy;
        let set = &mut self.sets[set];
        if std::mem::take(&mut set.touched) {
            set.pcp.expire = REMOTE_EXPIRE_TICKS;
            set.expire_known = true;
        }
        let excess = set.pcp.decay(&policy, set.limits).map_or(0, |decayed| decayed.excess);
        let slice = match policy.decay_drain {
            DecayDrain::Whole => i32::MAX,
            DecayDrain::Slices => set.limits.batch,
        };
        let left = set.pcp.count - excess;
        let mut due = DueInTick { excess, slice, remote: 0 };
        if set.pcp.expire == 0 || left <= 0 {
            return due;
        }
        if !is_remote {
            set.pcp.expire = 0;
            return due;
        }
        set.pcp.expire -= 1;
        if set.pcp.expire == 0 {
            due.remote = left.min(set.limits.batch);
        }
        due
    }
}

/// Whether events of this kind report the wait for a lock.
const fn is_wait(kind: EventKind) -> bool {
    matches!(kind, EventKind::ContentionBegin | EventKind::ContentionEnd | EventKind::ContendedRelease)
}

/// A part of a tick's drain of one zone's page set, without events of other tasks between its blocks.
#[derive(Clone, Copy)]
struct Part<'o> {
    blocks: &'o [(Place, Order)],
    /// Whether the tick drains more blocks of the zone after other tasks have run.
    goes_on: bool,
}

impl Part<'_> {
    const NOTHING: Self = Self { blocks: &[], goes_on: false };

    fn pages(self) -> i32 {
        self.blocks.iter().map(|(_, order)| order.frames() as i32).sum()
    }
}

impl DueInTick {
    /// Returns the part of the due drain that is left after the kernel drained a part from a page set of
    /// `count` pages. Returns `None` if the blocks are not whole slices of the due drain, or if the kernel's
    /// drain ends and the due drain does not. The last block of each slice may have more pages than the slice
    /// needs.
    fn left_after(self, count: i32, part: Part<'_>) -> Option<Self> {
        let mut blocks = part.blocks.iter().map(|(_, order)| order.frames() as i32).peekable();
        let (mut due, mut count) = (self, count);
        while blocks.peek().is_some() {
            let wanted = if due.excess > 0 { due.excess.min(due.slice) } else { due.remote };
            let (possible, mut taken) = (wanted.min(count), 0);
            if possible <= 0 {
                return None;
            }
            while taken < possible {
                taken += blocks.next()?;
            }
            count -= taken;
            if due.excess > 0 {
                due.excess -= wanted;
            } else {
                due.remote = 0;
            }
        }
        let is_done = due.excess + due.remote <= 0 || count <= 0;
        (part.goes_on || is_done).then_some(due)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blocks(orders: &[u8]) -> Vec<(Place, Order)> {
        let place = Place { zone: 0, frame: 0 };
        orders.iter().map(|order| (place, Order::new(*order).expect("an order"))).collect()
    }

    #[test]
    fn the_last_block_of_each_slice_may_overshoot() {
        let due = |excess, slice, remote| DueInTick { excess, slice, remote };
        let is_sum = |due: DueInTick, count: i32, observed: &[(Place, Order)]| {
            due.left_after(count, Part { blocks: observed, goes_on: false }).is_some()
        };
        assert!(is_sum(due(0, 63, 0), 100, &[]));
        assert!(!is_sum(due(1, 63, 0), 100, &[]));
        assert!(
            is_sum(due(9, 63, 0), 100, &blocks(&[3, 3])),
            "two blocks of 8 pages are a possible drain when 9 pages are due"
        );
        assert!(
            !is_sum(due(8, 63, 0), 100, &blocks(&[3, 3])),
            "not a possible drain, because one block of 8 pages would have been enough"
        );
        // Two slices, of 7 and of 2 pages, take a block of 8 pages each. A single drain of 9 pages would take
        // the same two blocks.
        assert!(is_sum(due(9, 7, 0), 100, &blocks(&[3, 3])));
        assert!(
            is_sum(due(14, 7, 0), 100, &blocks(&[3, 3]))
                && !is_sum(due(17, i32::MAX, 0), 100, &blocks(&[3, 3]))
        );
        assert!(is_sum(due(1, 63, 3), 100, &blocks(&[0, 1, 1])), "one that is too much, then 3 that expired");
        assert!(is_sum(due(50, 63, 0), 2, &blocks(&[0, 0])), "there were only two");
    }
}
