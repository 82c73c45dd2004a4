//! Compares the blocks of the policy's refills with the blocks that the kernel fetched.

use pageset_core::Order;
use pageset_trace::{Event, EventKind};

use super::classes::Class;
use super::engine::Engine;
use super::late::is_late;
use super::links::Chunk;
use super::numbers::Place;
use super::page_set::{Home, Scalars};

/// Maximum number of later events of a CPU that are searched for the late report of an allocation.
const SEARCHED: usize = 512;

impl Engine {
    /// Compares the kernel's refill with the policy's refill, and applies the kernel's refill to the model.
    pub(super) fn refilled(
        &mut self,
        chunk: &Chunk,
        index: usize,
        (home, order): (Home, Order),
        run: &[(Place, u32)],
    ) {
        let zone = home.set / self.cpus.len();
        let is_warm = self.sets[home.set].is_warm(home.list);
        let surplus = self.clear_leftovers(chunk, index, (home, order));
        let flags = self.geometry.zones[zone].pressure.flags();
        let before = self.sets[home.set].scalars();
        let other = self.sets[home.set].other_scalars();
        let wanted = self.sets[home.set].refill_size(&self.policy, flags, order);
        let got = run.len() as u32;
        if is_warm {
            self.out.refills.observed += 1;
            self.out.refills.predicted += u64::from(surplus.is_none());
            if surplus.is_none() && wanted == got {
                self.out.refills.exact += 1;
            } else {
                let class = match surplus {
                    Some(class) => class,
                    None => self.class_of_refill((home, order), (wanted, got), (before, other)),
                };
                self.mismatch(chunk, index, class, home.set, || {
                    format!(
                        "refill of {got} blocks of order {order} to list {}; the policy: {}; before: {before}",
                        home.list,
                        if surplus.is_some() { "a hit".to_owned() } else { format!("{wanted} blocks") }
                    )
                });
            }
        } else {
            self.out.refills.cold += 1;
            if wanted != got {
                self.class_of_refill((home, order), (wanted, got), (before, other));
            }
        }
        for &(place, next) in run {
            self.displace(place);
            self.append(place, home, order, next);
        }
        self.sets[home.set].warm_up(home.list);
    }

    /// Removes the model's blocks from a list that the kernel found empty. Returns `None` if late reports of
    /// allocations explain all of these blocks, and otherwise the class of the mismatch.
    fn clear_leftovers(
        &mut self,
        chunk: &Chunk,
        index: usize,
        (home, order): (Home, Order),
    ) -> Option<Class> {
        let zone = home.set / self.cpus.len();
        let mut worst = None;
        while let Some(frame) = self.sets[home.set].head(&self.geometry.frames, home.list) {
            let place = self.place(zone, frame);
            let future = self.future(chunk, place.frame).map(|(at, event)| (at, *event));
            let was_warm = self.sets[home.set].is_warm(home.list);
            self.evict(place);
            let class = match future {
                Some((at, event))
                    if self.is_soon(chunk, (index, at), &event, home)
                        || self.has_bulk_events && was_warm && is_late(chunk, (index, at)) =>
                {
                    self.expect_report(place, event.cpu);
                    self.sets[home.set].note_alloc(&self.policy);
                    continue;
                }
                Some((_, event))
                    if matches!(event.kind, EventKind::MmPageFree | EventKind::MmPageFreeBatched) =>
                {
                    if self.has_bulk_events {
                        self.sets[home.set].pcp.count += order.frames() as i32;
                        Class::BulkAllocation
                    } else {
                        self.sets[home.set].note_alloc(&self.policy);
                        Class::UnseenTraffic
                    }
                }
                Some((at, event)) => {
                    // The block was on another list of this page set.
                    let other = event.block_type().and_then(|t| self.policy.lists.list(order, t));
                    match other.filter(|list| *list != home.list) {
                        Some(list) => self.append(place, Home { list, ..home }, order, at as u32),
                        None => self.sets[home.set].pcp.count += order.frames() as i32,
                    }
                    Class::PageblockType
                }
                None if !self.has_bulk_events => Class::UnseenTraffic,
                None => {
                    self.sets[home.set].pcp.count += order.frames() as i32;
                    Class::PageblockType
                }
            };
            if was_warm {
                worst = worst.or(Some(class));
            }
        }
        worst
    }

    /// Whether an event is the late report of an allocation from this list.
    fn is_soon(&self, chunk: &Chunk, (now, at): (usize, usize), event: &Event, home: Home) -> bool {
        event.kind == EventKind::MmPageAlloc
            && home.set % self.cpus.len() == usize::from(event.cpu)
            && at >= now
            && chunk.after(now).take(SEARCHED).any(|next| next == at)
    }

    /// Returns the class of the difference between the size of the kernel's refill and the size of the
    /// policy's refill. If other values of the page set's numbers explain the kernel's refill, the page set
    /// keeps these values.
    fn class_of_refill(
        &mut self,
        (home, order): (Home, Order),
        (wanted, got): (u32, u32),
        (before, other): (Scalars, Option<Scalars>),
    ) -> Class {
        let zone = home.set / self.cpus.len();
        let flags = self.geometry.zones[zone].pressure.flags();
        let is_tight = self.geometry.zones[zone].pressure.is_tight();
        let policy = self.policy;
        let set = &mut self.sets[home.set];
        let after = set.scalars();
        // Find a value of `alloc_factor` that gives the size of the kernel's refill.
        let factors = (0..=policy.scale_max).filter(|factor| *factor != before.alloc_factor);
        for alloc_factor in factors {
            set.set_scalars(Scalars { alloc_factor, ..before });
            if set.pcp.refill_size(&policy, set.limits, flags, order) == got {
                if other.is_some() {
                    return Class::HiddenAtStart;
                }
                return match self.count_class(home.set) {
                    Class::Unexplained => Class::EventOrder,
                    class => class,
                };
            }
        }
        set.set_scalars(after);
        if got < wanted && is_tight { Class::ZonePressure } else { self.count_class(home.set) }
    }
}
