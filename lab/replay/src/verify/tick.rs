//! Compares ticks. A tick decays `high`, drains the pages above `high`, and empties idle page sets of remote
//! nodes.

use pageset_core::Order;
use pageset_core::policy::DecayDrain;
use pageset_trace::{Event, EventKind};

use super::classes::Class;
use super::cpu_state::Tick;
use super::engine::Engine;
use super::links::{Chunk, same_context};
use super::mode::Mode;
use super::numbers::Place;
use super::page_set::Home;

/// A page set of a remote node is emptied after this many ticks without use. Source: spec §2.11.
const REMOTE_EXPIRE_TICKS: u8 = 3;

/// The pages that a tick drains from one page set, and the sizes of its drains.
#[derive(Clone, Copy, Debug)]
struct Due {
    excess: i32,
    slice: i32,
    remote: i32,
}

impl Engine {
    pub(super) fn tick_starts(&mut self, event: &Event) {
        self.cpus[usize::from(event.cpu)].tick = Some(Tick { start: *event, zone: 0, differs: false });
    }

    pub(super) fn is_of_tick(&self, event: &Event) -> bool {
        let tick = &self.cpus[usize::from(event.cpu)].tick;
        tick.is_some_and(|tick| same_context(&tick.start, event))
    }

    /// Handles a drain within a tick.
    pub(super) fn tick_drains(&mut self, chunk: &mut Chunk, index: usize) {
        let event = chunk.events[index];
        let cpu = usize::from(event.cpu);
        let Some(mut tick) = self.cpus[cpu].tick else { return };
        let mut observed = std::mem::take(&mut self.observed);
        observed.clear();
        let mut at = Some(index);
        while let Some(index) = at {
            let next = chunk.events[index];
            if next.kind == EventKind::MmPagePcpuDrain && same_context(&next, &event) {
                chunk.done[index] = true;
                let Some((place, order)) = self.block(&next, next.order) else { break };
                if observed.first().is_some_and(|(first, _): &(Place, Order)| first.zone != place.zone) {
                    chunk.done[index] = false;
                    break;
                }
                self.see_block_type(place, next.migratetype);
                observed.push((place, order));
            } else if next.interrupt_level() <= event.interrupt_level()
                && next.kind == EventKind::WorkqueueExecuteEnd
            {
                break;
            }
            at = chunk.after(index).next();
        }
        if let Some(&(first, _)) = observed.first() {
            while tick.zone < first.zone {
                self.tick_zone(chunk, index, &mut tick, cpu, &[]);
            }
            if tick.zone == first.zone {
                self.tick_zone(chunk, index, &mut tick, cpu, &observed);
            } else {
                // In the model, the tick has already left the zone that the kernel drains now.
                let home = Home { set: self.set_index(first.zone, event.cpu), list: 0 };
                if self.mode != Mode::Free {
                    self.carry_out(home, &observed);
                }
                tick.differs = true;
                self.mismatch(chunk, index, Class::Unexplained, home.set, || {
                    "a tick returns to a zone".into()
                });
            }
        }
        self.cpus[cpu].tick = Some(tick);
        self.observed = observed;
    }

    pub(super) fn tick_ends(&mut self, chunk: &Chunk, index: usize) {
        let cpu = usize::from(chunk.events[index].cpu);
        let Some(mut tick) = self.cpus[cpu].tick.take() else { return };
        while tick.zone < self.geometry.zones.len() {
            self.tick_zone(chunk, index, &mut tick, cpu, &[]);
        }
        self.out.decay.observed += 1;
        self.out.decay.exact += u64::from(!tick.differs);
    }

    /// Compares one zone's part of a tick.
    fn tick_zone(
        &mut self,
        chunk: &Chunk,
        index: usize,
        tick: &mut Tick,
        cpu: usize,
        observed: &[(Place, Order)],
    ) {
        let zone = tick.zone;
        tick.zone += 1;
        let set = zone * self.cpus.len() + cpu;
        self.geometry.zones[zone].pressure.fold(cpu);
        let count = self.sets[set].pcp.count;
        let was_expire_known = self.sets[set].expire_known;
        let due = self.due_in_tick(set, zone, cpu);
        let pages: i32 = observed.iter().map(|(_, order)| order.frames() as i32).sum();
        if !is_sum(due, count, observed) {
            let class = match self.is_remote(zone, cpu) {
                _ if self.mode == Mode::Free => self.class_when_free(set),
                true if !was_expire_known => Class::HiddenAtStart,
                // The CPU may have updated the zone's counters without an event, when it became idle. In this
                // case the tick finds no change, and counts down the ticks until the page set is emptied.
                true if due.excess == 0 => Class::UnseenTraffic,
                _ => self.count_class(set),
            };
            tick.differs = true;
            self.mismatch(chunk, index, class, set, || {
                format!(
                    "a tick drains {pages} of {count} pages; the policy: {} above high, {} that expired",
                    due.excess, due.remote
                )
            });
            if self.is_remote(zone, cpu) && self.mode != Mode::Free {
                // The page set is empty: this drain or an earlier drain emptied it.
                self.sets[set].pcp.expire = 0;
            }
        }
        if self.mode == Mode::Free {
            self.drop_placeholders(Home { set, list: 0 }, due.excess + due.remote);
            self.sets[set].touched |= due.excess + due.remote > 0;
        }
        if !observed.is_empty() {
            if self.mode != Mode::Free {
                self.carry_out(Home { set, list: 0 }, observed);
            }
            self.geometry.zones[zone].pressure.change(cpu, i64::from(pages));
            self.sets[set].touched = true;
        }
        self.sets[set].pcp.end_tick();
    }

    fn is_remote(&self, zone: usize, cpu: usize) -> bool {
        self.geometry.zones[zone].description.node != self.geometry.nodes[cpu]
    }

    fn due_in_tick(&mut self, set: usize, zone: usize, cpu: usize) -> Due {
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
        let mut due = Due { excess, slice, remote: 0 };
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

/// Whether the kernel drained the number of pages that was due. The last block of each drain may overshoot.
fn is_sum(due: Due, count: i32, observed: &[(Place, Order)]) -> bool {
    let mut blocks = observed.iter().map(|(_, order)| order.frames() as i32);
    let mut count = count;
    let mut take = |wanted: i32| {
        let mut taken = 0;
        while taken < wanted.min(count) {
            let Some(pages) = blocks.next() else { return false };
            taken += pages;
        }
        count -= taken;
        true
    };
    let mut left = due.excess;
    while left > 0 {
        if !take(left.min(due.slice)) {
            return false;
        }
        left -= left.min(due.slice);
    }
    take(due.remote) && blocks.next().is_none()
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
        let due = |excess, slice, remote| Due { excess, slice, remote };
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
