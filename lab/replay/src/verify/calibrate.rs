//! Finds the number of pages in each page set when the recording began. The result is the number in the page
//! set's first sample, minus the changes by earlier events.
//!
//! The result may be wrong, because the sample shows the page set at a slightly different time. Also, some
//! pages may come or go without an event.

use pageset_trace::EventKind;

use super::after_free::{AfterFree, after_free};
use super::engine::Engine;
use super::links::Chunk;
use super::numbers::Place;
use crate::limits::to_i32;

impl Engine {
    /// Sets each page set's count from the first sample of its CPU in this chunk.
    pub(super) fn calibrate(&mut self, chunk: &Chunk) {
        let mut changes = vec![0_i64; self.sets.len()];
        let mut waiting: Vec<bool> = self.cpus.iter().map(|cpu| !cpu.samples.is_empty()).collect();
        let mut left = waiting.iter().filter(|waiting| **waiting).count();
        let mut fetched: Vec<Option<Place>> = vec![None; self.cpus.len()];
        for index in 0..chunk.events.len() {
            if left == 0 {
                return;
            }
            let event = &chunk.events[index];
            let cpu = usize::from(event.cpu);
            if !waiting.get(cpu).is_some_and(|waiting| *waiting) {
                continue;
            }
            if event.kind == EventKind::Marker {
                if let Some(sample) = self.sample_at(event) {
                    waiting[cpu] = false;
                    left -= 1;
                    let next = chunk.after(index).next().map(|next| chunk.events[next].kind);
                    if next == Some(EventKind::Marker) {
                        self.start_from(sample, cpu, &changes);
                    }
                }
                continue;
            }
            let last = std::mem::take(&mut fetched[cpu]);
            if event.kind == EventKind::BulkAllocEntry {
                if let Some((pages, zone)) = self.outcome_of_bulk(chunk, index) {
                    changes[zone * self.cpus.len() + cpu] -= i64::from(pages);
                }
                continue;
            }
            let order = chunk.links[index].order;
            let Some(order) = pageset_core::Order::new(order).filter(|order| self.policy.lists.holds(*order))
            else {
                continue;
            };
            let Some(place) = event.frame().and_then(|pfn| self.geometry.locate(pfn.0)) else { continue };
            let set = place.zone * self.cpus.len() + cpu;
            let pages = i64::from(order.frames());
            changes[set] += match event.kind {
                EventKind::MmPageAlloc | EventKind::MmPagePcpuDrain => -pages,
                EventKind::MmPageFreeBatched => pages,
                EventKind::MmPageFree => match after_free(chunk, index, (order, event.cpu)) {
                    AfterFree::Batched | AfterFree::Diverted => 0,
                    AfterFree::Type(_) | AfterFree::Unknown => pages,
                },
                EventKind::MmPageAllocZoneLocked => {
                    fetched[cpu] = Some(place);
                    pages
                }
                EventKind::MmPageAllocExtfrag if self.takes_stolen() && last != Some(place) => pages,
                _ => 0,
            };
        }
    }

    fn start_from(&mut self, sample: usize, cpu: usize, changes: &[i64]) {
        for printed in &self.samples[sample].zones {
            let zone = self.geometry.zones.iter().position(|zone| {
                (zone.description.node, zone.description.kind) == (printed.node, printed.kind)
            });
            let Some(zone) = zone else { continue };
            let set = zone * self.cpus.len() + cpu;
            let count = i64::from(to_i32(u64::from(printed.count))) - changes[set];
            if let Ok(count @ 0..) = i32::try_from(count) {
                self.sets[set].pcp.count = count.min(i32::MAX / 4);
            }
        }
    }
}
