//! Mode `free`: from the first event to the last, the page sets carry out their own decisions.
//!
//! In mode `free`, decisions do not depend on the pages that are on a list, so lists hold placeholders: frame
//! numbers that stand for any page. The contents of the lists at the beginning are unknown, so each page set
//! begins with as many movable pages as `/proc/zoneinfo` showed.

use pageset_core::Order;

use super::classes::Class;
use super::engine::Engine;
use super::explain::describe;
use super::links::Chunk;
use super::numbers::Place;
use super::page_set::Home;

/// Index of the list of movable pages of order 0 in every scheme. Source: spec §2.1.
const MOVABLE_PAGES: usize = 1;

impl Engine {
    /// Fills each page set with as many placeholders as its count says.
    pub(super) fn seed_placeholders(&mut self) {
        for set in 0..self.sets.len() {
            let pages = std::mem::take(&mut self.sets[set].pcp.count);
            for _ in 0..pages {
                self.add_placeholder(Home { set, list: MOVABLE_PAGES }, Order::ZERO, End::Cold);
            }
        }
    }

    fn add_placeholder(&mut self, home: Home, order: Order, end: End) {
        // If a page set has more blocks than there are frames, the recording is damaged or malicious.
        let Some(placeholder) = self.geometry.placeholders.take() else { return };
        if self.geometry.make_room(placeholder as usize + 1).is_err() {
            return;
        }
        match end {
            End::Hot => self.sets[home.set].push(&self.geometry.frames, home.list, placeholder, order),
            End::Cold => self.sets[home.set].append(&self.geometry.frames, home.list, placeholder, order),
        }
    }

    /// Makes an allocation in the model. `observed` is the size of the kernel's refill, if there was one.
    pub(super) fn free_alloc(
        &mut self,
        chunk: &Chunk,
        index: usize,
        (home, order): (Home, Order),
        observed: Option<u32>,
    ) {
        self.sets[home.set].note_alloc(&self.policy);
        let wanted = self.free_take(home, order);
        self.compare_sizes(chunk, index, home, (wanted, observed));
    }

    /// Counts a refill that the model, the kernel, or both have made.
    pub(super) fn compare_sizes(
        &mut self,
        chunk: &Chunk,
        index: usize,
        home: Home,
        (wanted, observed): (Option<u32>, Option<u32>),
    ) {
        self.out.refills.observed += u64::from(observed.is_some());
        self.out.refills.predicted += u64::from(wanted.is_some());
        if wanted == observed {
            self.out.refills.exact += u64::from(wanted.is_some());
        } else {
            let class = self.class_when_free(home.set);
            self.mismatch(chunk, index, class, home.set, || {
                let blocks = |refill: Option<u32>| {
                    refill.map_or_else(|| "a hit".to_owned(), |blocks| format!("a refill of {blocks} blocks"))
                };
                format!("{} on list {}; the policy: {}", blocks(observed), home.list, blocks(wanted))
            });
        }
    }

    /// Takes a block off the list `home`. If this list is empty, refills the list before, and returns the
    /// size of the refill.
    pub(super) fn free_take(&mut self, home: Home, order: Order) -> Option<u32> {
        let zone = home.set / self.cpus.len();
        let wanted = (self.sets[home.set].len(home.list) == 0).then(|| {
            let flags = self.geometry.zones[zone].pressure.flags();
            let wanted = self.sets[home.set].refill_size(&self.policy, flags, order);
            (0..wanted).for_each(|_| self.add_placeholder(home, order, End::Cold));
            wanted
        });
        if let Some(placeholder) = self.sets[home.set].head(&self.geometry.frames, home.list) {
            self.sets[home.set].unlink(&self.geometry.frames, home.list, placeholder);
            self.geometry.placeholders.give(placeholder);
        }
        wanted
    }

    /// Makes a free in the model. `observed` is the kernel's drain.
    pub(super) fn free_free(
        &mut self,
        chunk: &Chunk,
        index: usize,
        (home, order): (Home, Order),
        observed: &[(Place, Order)],
    ) {
        let zone = home.set / self.cpus.len();
        self.add_placeholder(home, order, End::Hot);
        let flags = self.geometry.zones[zone].pressure.flags();
        let (policy, limits) = (self.policy, self.sets[home.set].limits);
        let count = self.sets[home.set].pcp.count;
        let frames = &self.geometry.frames;
        let due = self.sets[home.set].decide(|pcp| {
            let due = pcp.note_free(&policy, limits, flags, order);
            due.filter(|due| pcp.is_due(frames, policy.counting, home.list, due))
        });
        self.out.drains.observed += u64::from(!observed.is_empty());
        self.out.drains.predicted += u64::from(due.is_some());
        if self.agrees(home, due, count, observed) {
            self.out.drains.exact += u64::from(!observed.is_empty());
        } else {
            let pages: u32 = observed.iter().map(|(_, order)| order.frames()).sum();
            let class = self.class_when_free(home.set);
            self.mismatch(chunk, index, class, home.set, || {
                format!("a free of order {order} drains {pages} pages; the policy: {}", describe(due))
            });
        }
        if let Some(due) = due {
            let rule = policy.free_drain;
            let mut left = due.pages;
            loop {
                let slice = rule.slice(left, limits.batch);
                self.drop_placeholders(home, slice);
                left -= slice;
                if left <= 0 || !rule.goes_on(self.sets[home.set].pcp.count, due.limit) {
                    break;
                }
            }
        }
        if !observed.is_empty() {
            let pages = observed.iter().map(|(_, order)| i64::from(order.frames())).sum();
            let pressure = &mut self.geometry.zones[zone].pressure;
            pressure.change(home.set % self.cpus.len(), pages);
            pressure.drained();
        }
    }

    /// Drains `pages` pages from a page set, beginning with the list `home`.
    pub(super) fn drop_placeholders(&mut self, home: Home, pages: i32) {
        let mut removed = std::mem::take(&mut self.predicted);
        removed.clear();
        let set = &mut self.sets[home.set];
        set.remove(
            &self.geometry.frames,
            self.policy.drain_order,
            (pages.min(set.pcp.count), home.list),
            &mut removed,
        );
        removed.iter().for_each(|(placeholder, _)| self.geometry.placeholders.give(*placeholder));
        set.recount(&self.geometry.frames);
        self.predicted = removed;
    }

    /// Returns the class of a mismatch in mode `free`. No page set is corrected, so a difference causes
    /// further differences. The first difference usually comes from the unknown contents of page sets at the
    /// beginning.
    pub(super) fn class_when_free(&self, set: usize) -> Class {
        match self.count_class(set) {
            Class::Unexplained => Class::HiddenAtStart,
            class => class,
        }
    }
}

/// An end of a list.
#[derive(Clone, Copy, Debug)]
enum End {
    /// The end that allocations take from.
    Hot,
    /// The end that drains take from.
    Cold,
}
