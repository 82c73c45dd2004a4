//! Handles bulk allocations, whose pages leave a list without separate events.

use pageset_core::{MigrateType, Order};
use pageset_trace::{Event, EventKind};

use super::classes::Class;
use super::cpu_state::Bulk;
use super::engine::Engine;
use super::links::{Chunk, same_context};
use super::mode::Mode;
use super::numbers::Place;
use super::page_set::Home;
use crate::gfp;
use crate::pressure::highest_zone;

/// Maximum number of later events of a CPU that are searched for the return of a bulk allocation.
const SEARCHED: usize = 4096;

impl Engine {
    /// Handles the beginning of a bulk allocation, which first takes the blocks on the list. Later refills
    /// deliver the pages that the list did not have.
    pub(super) fn bulk_starts(&mut self, chunk: &Chunk, index: usize) {
        let entry = chunk.events[index];
        let Some((pages, zone)) = self.outcome_of_bulk(chunk, index) else { return };
        let migratetype = match entry.gfp & (gfp::MOVABLE | gfp::RECLAIMABLE) {
            0 => MigrateType::Unmovable,
            gfp::RECLAIMABLE => MigrateType::Reclaimable,
            _ => MigrateType::Movable,
        };
        let list = self
            .policy
            .lists
            .list(Order::ZERO, migratetype)
            .expect("every list scheme has a list for single pages");
        let home = Home { set: self.set_index(zone, entry.cpu), list };
        self.sets[home.set].touched = true;
        if self.mode == Mode::Free {
            let wanted = (0..pages).filter_map(|_| self.free_take(home, Order::ZERO)).collect();
            self.cpus[usize::from(entry.cpu)].bulk = Some(Bulk { home, left: 0, nameless: 0, wanted, entry });
            return;
        }
        let named = self.take_named(home, pages);
        let (mut left, mut nameless) = (pages - named, 0);
        if !self.sets[home.set].is_warm(home.list) {
            self.sets[home.set].pcp.count -= left as i32;
            (left, nameless) = (0, left);
        }
        self.cpus[usize::from(entry.cpu)].bulk =
            Some(Bulk { home, left, nameless, wanted: Vec::new(), entry });
    }

    /// Returns the number of pages that a bulk allocation takes without separate events, and their zone.
    /// Pages that a bulk allocation takes by ordinary allocations have events of their own, and are not
    /// counted.
    pub(super) fn outcome_of_bulk(&self, chunk: &Chunk, index: usize) -> Option<(u32, usize)> {
        let entry = &chunk.events[index];
        let (mut ordinary, mut zone) = (0, None);
        let mut end = None;
        for at in chunk.after(index).take(SEARCHED) {
            let event = &chunk.events[at];
            if !same_context(event, entry) {
                continue;
            }
            match event.kind {
                EventKind::BulkAllocReturn => {
                    end = event.bulk_frames();
                    break;
                }
                EventKind::MmPageAlloc => ordinary += 1,
                EventKind::MmPageAllocZoneLocked | EventKind::MmPageAllocExtfrag => {
                    zone = zone.or_else(|| self.geometry.locate(event.pfn)).or(zone);
                }
                EventKind::BulkAllocEntry => return None,
                _ => {}
            }
        }
        let pages = end?.saturating_sub(ordinary).min(entry.pfn).min(1 << 20) as u32;
        let zone = match zone {
            Some(place) => place.zone,
            None => {
                let node = self.geometry.nodes[usize::from(entry.cpu)];
                let usable = |kind: pageset_core::ZoneKind| {
                    kind.index() <= highest_zone(entry.gfp) + usize::from(highest_zone(entry.gfp) == 3)
                };
                self.geometry
                    .zones
                    .iter()
                    .rposition(|zone| zone.description.node == node && usable(zone.description.kind))?
            }
        };
        (pages > 0).then_some((pages, zone))
    }

    /// Takes up to `pages` pages off a list, but only blocks whose frames are known. Returns the number of
    /// pages taken.
    fn take_named(&mut self, home: Home, pages: u32) -> u32 {
        let zone = home.set / self.cpus.len();
        let mut taken = 0;
        while taken < pages {
            let Some(frame) = self.sets[home.set].head(&self.geometry.frames, home.list) else {
                break;
            };
            self.evict(self.place(zone, frame));
            taken += 1;
        }
        taken
    }

    pub(super) fn is_in_bulk(&self, event: &Event) -> bool {
        let bulk = &self.cpus[usize::from(event.cpu)].bulk;
        bulk.as_ref().is_some_and(|bulk| same_context(&bulk.entry, event))
    }

    /// Handles a refill for a bulk allocation. The list was empty, so the remaining pages are taken from the
    /// refill.
    pub(super) fn bulk_refilled(&mut self, chunk: &Chunk, index: usize, run: &[(Place, u32)]) {
        let cpu = usize::from(chunk.events[index].cpu);
        let Some(mut bulk) = self.cpus[cpu].bulk.take() else { return };
        if self.mode == Mode::Free {
            let wanted = (!bulk.wanted.is_empty()).then(|| bulk.wanted.remove(0));
            self.compare_sizes(chunk, index, bulk.home, (wanted, Some(run.len() as u32)));
            self.cpus[cpu].bulk = Some(bulk);
            return;
        }
        let mut rest = run;
        while !rest.is_empty() {
            // Events do not show where a refill ends and the next refill begins.
            let zone = bulk.home.set / self.cpus.len();
            let flags = self.geometry.zones[zone].pressure.flags();
            let set = &mut self.sets[bulk.home.set];
            let before = set.scalars();
            let wanted = set.pcp.refill_size(&self.policy, set.limits, flags, Order::ZERO) as usize;
            set.set_scalars(before);
            let is_last = bulk.left as usize <= wanted || rest.len() <= wanted;
            let (part, later) = rest.split_at(if is_last { rest.len() } else { wanted.max(1) });
            if !self.sets[bulk.home.set].is_warm(bulk.home.list) {
                // The list was empty, so from now on its contents are known.
                self.sets[bulk.home.set].warm_up(bulk.home.list);
                self.out.refills.cold += 1;
                self.sets[bulk.home.set].refill_size(&self.policy, flags, Order::ZERO);
                for &(place, next) in part {
                    self.displace(place);
                    self.append(place, bulk.home, Order::ZERO, next);
                }
                // The bulk allocation took the first blocks of the refill. No event reports that the bulk
                // allocation took these blocks. Later events may report their frees.
                let gone = part.iter().take(bulk.nameless as usize).take_while(|(_, next)| {
                    chunk.events.get(*next as usize).is_none_or(|event| event.kind != EventKind::MmPageAlloc)
                });
                for &(place, _) in gone {
                    self.displace(place);
                }
            } else {
                self.refilled(chunk, index, (bulk.home, Order::ZERO), part);
            }
            bulk.left -= self.take_named(bulk.home, bulk.left);
            rest = later;
        }
        self.cpus[cpu].bulk = Some(bulk);
    }

    pub(super) fn bulk_ends(&mut self, chunk: &Chunk, index: usize) {
        let event = chunk.events[index];
        if !self.is_in_bulk(&event) {
            return;
        }
        let Some(bulk) = self.cpus[usize::from(event.cpu)].bulk.take() else { return };
        for wanted in bulk.wanted {
            self.compare_sizes(chunk, index, bulk.home, (Some(wanted), None));
        }
        if bulk.left > 0 {
            // The kernel's list held more blocks than the model's list.
            self.out.refills.predicted += 1;
            self.sets[bulk.home.set].pcp.count -= bulk.left as i32;
            self.mismatch(chunk, index, Class::BulkAllocation, bulk.home.set, || {
                format!("a bulk allocation takes {} pages more than list {} holds", bulk.left, bulk.home.list)
            });
        }
    }
}
