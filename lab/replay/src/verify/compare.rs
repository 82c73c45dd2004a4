//! Compares the drain that a free should cause under the policy (the *due drain*) with the kernel's drain.

use std::collections::HashSet;

use pageset_core::pcp::{DueDrain, Pressure};
use pageset_core::policy::FreeHistory;
use pageset_core::{DrainReason, FrameIndex, Order};
use pageset_trace::EventKind;

use super::after_free::{AfterFree, after_free};
use super::classes::Class;
use super::cpu_state::Slices;
use super::doubt::Doubt;
use super::engine::Engine;
use super::explain::describe;
use super::links::Chunk;
use super::numbers::Place;
use super::page_set::{Home, Scalars};

/// Maximum number of later events of a CPU that are searched for the next event of an interrupted thread.
const SEARCHED: usize = 4096;

/// Whether the kernel's drain ends after the collected blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DrainEnds {
    /// The last collected block is the last block of the drain.
    Here,
    /// Other tasks run after the last collected block, and then the drain goes on with its next slice. The
    /// field is the index of the first event of the next slice.
    GoesOn(usize),
    /// The task that drains moves to another CPU after the last collected block, so the rest of the drain is
    /// unknown.
    TaskMoved,
}

impl Engine {
    /// Compares the kernel's drain after a free with the policy's drain, and applies the kernel's drain to
    /// the model. The model's page set already holds the freed block.
    pub(super) fn compare_free(
        &mut self,
        chunk: &Chunk,
        index: usize,
        (home, order): (Home, Order),
        (observed, end): (&[(Place, Order)], DrainEnds),
    ) {
        let zone = home.set / self.cpus.len();
        let flags = self.geometry.zones[zone].pressure.flags();
        let (policy, limits) = (self.policy, self.sets[home.set].limits);
        let undetermined = self.narrow_at_free((home, order), flags, !observed.is_empty());
        let before = self.sets[home.set].scalars();
        let other = self.sets[home.set].other_scalars();
        let frames = &self.geometry.frames;
        let due = self.sets[home.set].decide(|pcp| {
            let due = pcp.note_free(&policy, limits, flags, order);
            due.filter(|due| pcp.is_due(frames, policy.counting, home.list, due))
        });
        let count = before.count;
        self.out.drains.observed += u64::from(!observed.is_empty());
        self.out.drains.predicted += u64::from(due.is_some() && !undetermined);
        if let DrainEnds::GoesOn(next) = end {
            let left = match due.map(|due| (due, self.progress(home, due, count, observed))) {
                Some((due, Progress::Ends(pages))) => Some(DueDrain { pages, ..due }),
                _ => None,
            };
            self.wait_for_slices(Slices { home, next, left, undetermined });
            // The kernel has drained whole slices of the due drain, and more slices follow. `compare_slices`
            // compares these further slices when their events are reached.
            if left.is_some() {
                self.sets[home.set].above_at_most = None;
                self.carry_out_drain(home, observed);
                return;
            }
        }
        let agrees = self.agrees_with(home, due, count, (observed, end))
            || self.explain_by_order(chunk, index, (home, order), before, observed);
        if agrees {
            self.note_agreement(!observed.is_empty(), undetermined);
        } else if self.ended_early(chunk, index, home, (due, count, observed)) {
            self.note_ended_early(chunk, index, home, (due, observed));
        } else {
            let class = match self.class_of_free((home, order), (before, other), flags, (due, observed)) {
                // Under the policy, this free in an interrupt causes a drain, but the kernel did not drain.
                // If later events do not show where the block went, the free may have gone past the page set.
                Class::Unexplained
                    if observed.is_empty()
                        && chunk.events[index].interrupt_level() > 0
                        && matches!(
                            after_free(chunk, index, (order, chunk.events[index].cpu)),
                            AfterFree::Unknown
                        ) =>
                {
                    Class::FailedTrylock
                }
                Class::Unexplained if observed.iter().any(|(_, order)| *order == Order::THP) => {
                    Class::HugeOvershoot
                }
                class => class,
            };
            self.mismatch(chunk, index, class, home.set, || {
                let pages: u32 = observed.iter().map(|(_, order)| order.frames()).sum();
                format!(
                    "a free of order {order} to list {} drains {pages} pages; the policy: {}; before: {before}",
                    home.list,
                    describe(due)
                )
            });
        }
        let set = &mut self.sets[home.set];
        let is_limit_high = observed.is_empty() && flags == Pressure::default();
        set.above_at_most = is_limit_high.then(|| set.pcp.high - 1 - set.pcp.count);
        if !observed.is_empty() {
            self.carry_out_drain(home, observed);
        }
    }

    /// Compares the next slices of a drain with the due drain, and applies these slices to the model. Other
    /// tasks have interrupted the drain between two slices.
    pub(super) fn compare_slices(
        &mut self,
        chunk: &Chunk,
        index: usize,
        slices: Slices,
        (observed, end): (&[(Place, Order)], DrainEnds),
    ) {
        let home = slices.home;
        let count = self.sets[home.set].pcp.count;
        let mut left = None;
        if let Some(due) = slices.left {
            match (self.progress(home, due, count, observed), end) {
                (Progress::Ends(pages), DrainEnds::GoesOn(_)) => left = Some(DueDrain { pages, ..due }),
                (Progress::Whole, DrainEnds::Here | DrainEnds::TaskMoved)
                | (Progress::Ends(_), DrainEnds::TaskMoved) => {
                    self.note_agreement(true, slices.undetermined);
                }
                (Progress::Ends(_), DrainEnds::Here) if self.is_accompanied(chunk, index, home) => {
                    self.note_ended_early(chunk, index, home, (Some(due), observed));
                }
                _ => {
                    let class = self.count_class(home.set);
                    self.mismatch(chunk, index, class, home.set, || {
                        let pages: u32 = observed.iter().map(|(_, order)| order.frames()).sum();
                        format!("a drain goes on with {pages} pages; the policy: {}", describe(Some(due)))
                    });
                }
            }
        }
        if let DrainEnds::GoesOn(next) = end {
            self.wait_for_slices(Slices { next, left, ..slices });
        }
        self.carry_out_drain(home, observed);
    }

    /// Counts a free after which the policy and the kernel decide the same. `undetermined` says that the
    /// bounds of the count were narrowed to fit the kernel's decision.
    fn note_agreement(&mut self, is_drained: bool, undetermined: bool) {
        let counted = match (is_drained, undetermined) {
            (true, false) => &mut self.out.drains.exact,
            (true, true) => &mut self.out.undetermined.drains,
            (false, true) => &mut self.out.undetermined.frees,
            (false, false) => return,
        };
        *counted += 1;
    }

    /// Whether the kernel's drain has some whole slices of the due drain, but not all, and another CPU had an
    /// event in the zone during the drain. The recording does not show why such a drain ended early (decision
    /// 0037).
    fn ended_early(
        &self,
        chunk: &Chunk,
        index: usize,
        home: Home,
        (due, count, observed): (Option<DueDrain>, i32, &[(Place, Order)]),
    ) -> bool {
        let took_slices =
            due.is_some_and(|due| matches!(self.progress(home, due, count, observed), Progress::Ends(_)));
        took_slices && self.is_accompanied(chunk, index, home)
    }

    /// Whether another CPU had an event about a frame of the same zone during the drain. The time of the
    /// drain is from the event `index` to this CPU's first event after the drain.
    fn is_accompanied(&self, chunk: &Chunk, index: usize, home: Home) -> bool {
        let zone = home.set / self.cpus.len();
        let is_drain = |at: &usize| chunk.events[*at].kind == EventKind::MmPagePcpuDrain;
        let end = chunk.after(index).find(|at| !is_drain(at)).unwrap_or(chunk.events.len());
        let cpu = chunk.events[index].cpu;
        let during = chunk.events.get(index..end).unwrap_or_default();
        during
            .iter()
            .filter(|event| event.cpu != cpu && event.kind.has_frame())
            .any(|event| self.geometry.locate(event.pfn).is_some_and(|place| place.zone == zone))
    }

    fn note_ended_early(
        &mut self,
        chunk: &Chunk,
        index: usize,
        home: Home,
        (due, observed): (Option<DueDrain>, &[(Place, Order)]),
    ) {
        self.out.drains.ended_early += 1;
        self.mismatch(chunk, index, Class::EndedEarly, home.set, || {
            let pages: u32 = observed.iter().map(|(_, order)| order.frames()).sum();
            format!(
                "a drain ends after {pages} pages, while another CPU is at the zone; the policy: {}",
                describe(due)
            )
        });
    }

    fn wait_for_slices(&mut self, slices: Slices) {
        let cpu = slices.home.set % self.cpus.len();
        self.cpus[cpu].slices.push(slices);
    }

    /// Removes the blocks that the kernel drained from the model's page set, and adds their pages to the
    /// zone's free pages.
    fn carry_out_drain(&mut self, home: Home, observed: &[(Place, Order)]) {
        let zone = home.set / self.cpus.len();
        self.carry_out(home, observed);
        let pages: i64 = observed.iter().map(|(_, order)| i64::from(order.frames())).sum();
        let pressure = &mut self.geometry.zones[zone].pressure;
        pressure.change(home.set % self.cpus.len(), pages);
        pressure.drained();
    }

    /// Whether the drained blocks add up to the due drain, slice by slice. If the task moved to another CPU
    /// before the drain ended, the drained blocks need add up only to the first slices of the due drain.
    /// Without a due drain, no block may be drained.
    fn agrees_with(
        &self,
        home: Home,
        due: Option<DueDrain>,
        count: i32,
        (observed, end): (&[(Place, Order)], DrainEnds),
    ) -> bool {
        let Some(due) = due else { return observed.is_empty() };
        match self.progress(home, due, count, observed) {
            Progress::Whole => true,
            Progress::Ends(_) => end == DrainEnds::TaskMoved,
            Progress::Differs => false,
        }
    }

    /// Whether the drained blocks add up to the whole due drain, slice by slice. Without a due drain, no
    /// block may be drained.
    pub(super) fn agrees(
        &self,
        home: Home,
        due: Option<DueDrain>,
        count: i32,
        observed: &[(Place, Order)],
    ) -> bool {
        self.agrees_with(home, due, count, (observed, DrainEnds::Here))
    }

    /// Finds which part of the due drain the kernel has drained, from the sizes of the drained blocks.
    fn progress(&self, home: Home, due: DueDrain, count: i32, observed: &[(Place, Order)]) -> Progress {
        let is_whole = |is_it: bool| if is_it { Progress::Whole } else { Progress::Differs };
        let (rule, batch) = (self.policy.free_drain, self.sets[home.set].limits.batch);
        let mut blocks = observed.iter().map(|(_, order)| order.frames() as i32);
        let (count_before, mut left, mut count) = (count, due.pages.min(count), count);
        if left <= 0 {
            return is_whole(observed.is_empty());
        }
        loop {
            let wanted = rule.slice(left, batch).min(count);
            let mut taken = 0;
            while taken < wanted {
                let Some(pages) = blocks.next() else {
                    let is_between = taken == 0 && left < due.pages.min(count_before);
                    return if is_between { Progress::Ends(left) } else { Progress::Differs };
                };
                taken += pages;
            }
            left -= wanted;
            count -= taken;
            if left <= 0 || !rule.goes_on(count, due.limit) {
                return is_whole(blocks.next().is_none());
            }
        }
    }

    /// Sets the page set's numbers to `from`, and repeats the policy's decision about the free. Returns the
    /// due drain. The page set keeps the numbers that the decision leaves.
    pub(super) fn retry(
        &mut self,
        (home, order): (Home, Order),
        from: Scalars,
        flags: Pressure,
    ) -> Option<DueDrain> {
        let policy = self.policy;
        let set = &mut self.sets[home.set];
        set.set_scalars(from);
        let due = set.pcp.note_free(&policy, set.limits, flags, order);
        due.filter(|due| set.pcp.is_due(&self.geometry.frames, policy.counting, home.list, due))
    }

    /// Whether the policy agrees with the kernel if a thread's action and an interrupt's free came in another
    /// order than their events. An interrupt may come between a thread's action and the event that reports
    /// this action.
    fn explain_by_order(
        &mut self,
        chunk: &Chunk,
        index: usize,
        (home, order): (Home, Order),
        before: Scalars,
        observed: &[(Place, Order)],
    ) -> bool {
        let free = chunk.events[index];
        let depth = free.interrupt_level();
        let after = self.sets[home.set].scalars();
        let flags = self.geometry.zones[home.set / self.cpus.len()].pressure.flags();
        if depth > 0
            && let Some(at) =
                chunk.after(index).take(SEARCHED).find(|at| chunk.events[*at].interrupt_level() < depth)
            && chunk.events[at].kind == EventKind::MmPageAlloc
            && let Some(place) = self.geometry.locate(chunk.events[at].pfn)
            && let Some(from) = self.home(place).filter(|from| from.set == home.set)
        {
            // First attempt: assume that the interrupted thread had already taken the page that its next
            // event reports.
            let pages = self.sets[home.set].pcp.scheme().order(from.list).frames() as i32;
            let popped =
                Scalars { count: before.count - pages, free_count: before.free_count >> 1, ..before };
            let due = self.retry((home, order), popped, flags);
            if self.agrees(home, due, popped.count, observed) {
                let count = self.sets[home.set].pcp.count;
                self.evict(place);
                self.sets[home.set].pcp.count = count;
                self.expect_report(place, free.cpu);
                return true;
            }
        }
        if depth > 0
            && let Some(last) = self.cpus[usize::from(free.cpu)].last_free
            && let Some(earlier) = chunk.events.get(last)
            && earlier.interrupt_level() < depth
            && let Some(pages) = Order::new(chunk.links[last].order).map(|order| order.frames() as i32)
        {
            // Second attempt: assume that the page set did not yet hold the block that the interrupted thread
            // freed.
            let without = Scalars {
                count: before.count - pages,
                free_count: (before.free_count - pages).max(0),
                ..before
            };
            let due = self.retry((home, order), without, flags);
            if self.agrees(home, due, without.count, observed) {
                let set = &mut self.sets[home.set].pcp;
                set.count += pages;
                set.free_count += pages;
                return true;
            }
        }
        self.sets[home.set].set_scalars(after);
        self.has_bulk_events
            && observed.is_empty()
            && self.explain_by_late_report(chunk, index, (home, order), before)
    }

    /// Whether late events of allocations explain why the kernel did not drain. An interrupted task may have
    /// taken pages before this free, while its events come after this free. Without the pages that the task
    /// took, no drain is due.
    fn explain_by_late_report(
        &mut self,
        chunk: &Chunk,
        index: usize,
        (home, order): (Home, Order),
        before: Scalars,
    ) -> bool {
        let after = self.sets[home.set].scalars();
        let flags = self.geometry.zones[home.set / self.cpus.len()].pressure.flags();
        let mut without = before;
        let mut taken = Vec::new();
        for (place, cpu) in self.reported_late(chunk, index, home.set) {
            let Some(from) = self.home(place) else { continue };
            without.count -= self.sets[home.set].pcp.scheme().order(from.list).frames() as i32;
            taken.push((place, cpu));
            if self.retry((home, order), without, flags).is_none() {
                let decided = self.sets[home.set].scalars();
                for (place, cpu) in taken {
                    self.evict(place);
                    self.expect_report(place, cpu);
                }
                self.sets[home.set].set_scalars(decided);
                return true;
            }
        }
        self.sets[home.set].set_scalars(after);
        false
    }

    /// Returns the class of the difference between the kernel's drain after a free and the policy's drain.
    /// Corrects numbers of the model's page set, or of its zone, to fit the kernel's decision.
    fn class_of_free(
        &mut self,
        (home, order): (Home, Order),
        (before, other): (Scalars, Option<Scalars>),
        flags: Pressure,
        (due, observed): (Option<DueDrain>, &[(Place, Order)]),
    ) -> Class {
        let zone = home.set / self.cpus.len();
        let after = self.sets[home.set].scalars();
        if let Some(other) = other {
            let retried = self.retry((home, order), other, flags);
            if self.agrees(home, retried, before.count, observed) {
                self.sets[home.set].reveal();
                return Class::HiddenAtStart;
            }
        }
        // If the page set exceeds its limit by less than the freed block, a small error of the count is more
        // likely than an error of the flag `reclaim_active`.
        let is_edge = flags.reclaim_active
            && observed.is_empty()
            && due.is_some_and(|due| due.limit > 0 && before.count - due.limit < order.frames() as i32);
        let guesses = [(true, false), (false, false), (false, true), (true, true)];
        for (below_high, reclaim_active) in guesses.into_iter().filter(|_| !is_edge) {
            let others = Pressure { below_high, reclaim_active };
            if others == flags || !self.geometry.zones[zone].pressure.is_tight() {
                continue;
            }
            let retried = self.retry((home, order), before, others);
            if self.agrees(home, retried, before.count, observed) {
                self.geometry.zones[zone].pressure.learn(others);
                return Class::ZonePressure;
            }
        }
        self.sets[home.set].set_scalars(after);
        let class = self.count_class(home.set);
        let pages: i32 = observed.iter().map(|(_, order)| order.frames() as i32).sum();
        // Correct `high` if bulk allocations have events and memory may be short, because the model was
        // probably wrong about the shortage. Otherwise correct `count`, because some pages probably have no
        // events.
        let is_high_wrong = self.has_bulk_events && class == Class::ZonePressure && !is_edge;
        let limits = self.sets[home.set].limits;
        let corrected = match due {
            None if is_high_wrong => Scalars { high: before.count, ..before },
            None => Scalars { count: after.high.max(before.count), ..before },
            Some(due) if observed.is_empty() && is_high_wrong && due.reason == DrainReason::High => {
                Scalars { high: limits.high_max.max(before.high), ..before }
            }
            Some(due) if observed.is_empty() => {
                Scalars { count: (due.limit - 1).min(before.count), ..before }
            }
            Some(_) => before,
        };
        let retried = self.retry((home, order), corrected, flags);
        if corrected.high == before.high && due.is_some() == observed.is_empty() {
            // The kernel's decision after this free shows only a lower bound or only an upper bound of the
            // count.
            let set = &mut self.sets[home.set];
            let above = set.above_at_most.map(|above| above - (corrected.count - before.count));
            set.doubt = if due.is_some() { Doubt::AT_MOST } else { Doubt::at_least(above) };
        }
        if let (Some((_, last)), FreeHistory::Count { .. }) = (observed.last(), self.policy.free_history)
            && !self.agrees(home, retried, corrected.count, observed)
        {
            // Under such a policy, a drain takes as many pages as were freed recently (`free_count`), but at
            // least a batch. The drain's last block may have more pages than needed. The number of drained
            // pages therefore gives a lower and an upper bound of `free_count`.
            let set = &mut self.sets[home.set];
            let fewest = pages - last.frames() as i32 + 1;
            let least = if fewest <= set.limits.batch { 0 } else { fewest };
            set.pcp.free_count = set.pcp.free_count.clamp(least, pages);
        }
        class
    }

    /// Removes the blocks that the kernel drained from the model's page set. As far as the contents of the
    /// lists are known, also compares the blocks that the kernel drained with the policy's choice.
    pub(super) fn carry_out(&mut self, home: Home, observed: &[(Place, Order)]) {
        let zone = home.set / self.cpus.len();
        let pages: i32 = observed.iter().map(|(_, order)| order.frames() as i32).sum();
        let known = self.sets[home.set].known_pages(home.list).min(pages);
        let mut predicted = std::mem::take(&mut self.predicted);
        predicted.clear();
        let count = self.sets[home.set].pcp.count;
        if known > 0 {
            let frames = &self.geometry.frames;
            self.sets[home.set].remove(frames, self.policy.drain_order, (known, home.list), &mut predicted);
        }
        let mut wrong = Vec::new();
        for (at, &(frame, order)) in predicted.iter().enumerate() {
            let place = self.place(zone, frame);
            let list = self.home(place).map_or(home.list, |home| home.list);
            let right = observed.get(at).is_some_and(|(seen, _)| *seen == place);
            self.out.drains.identity_pages += u64::from(order.frames());
            self.out.drains.identity_exact += u64::from(right) * u64::from(order.frames());
            self.sets[home.set].note_removed(list);
            if right {
                self.forget(place.frame);
            } else {
                wrong.push((at, place, list, order));
            }
        }
        if !wrong.is_empty() {
            let drained: HashSet<FrameIndex> = observed.iter().map(|(place, _)| place.frame).collect();
            let is_drained = |(frame, _): &(FrameIndex, Order)| drained.contains(frame);
            let last = predicted.iter().rposition(is_drained).unwrap_or(0);
            // The kernel did not drain some blocks that the policy chose. Put these blocks back to the cold
            // ends of their lists, in reverse order. If the kernel drained a later block of the policy's
            // choice, the earlier block was not on its list, so forget the earlier block.
            for &(at, place, list, order) in wrong.iter().rev() {
                if at > last || drained.contains(&place.frame) {
                    let next = self.next_of(place);
                    self.append(place, Home { list, ..home }, order, next);
                } else {
                    self.forget(place.frame);
                }
            }
        }
        for &(place, _) in observed {
            self.displace(place);
        }
        self.sets[home.set].pcp.count = count - pages;
        self.predicted = predicted;
    }
}

/// The part of the due drain that the kernel has drained.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Progress {
    /// The kernel's drain is the whole due drain.
    Whole,
    /// The kernel's drain has some whole slices of the due drain, but not all. The field is the number of
    /// pages of the due drain that are left.
    Ends(i32),
    Differs,
}
