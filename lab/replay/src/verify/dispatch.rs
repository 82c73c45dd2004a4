//! Passes each event to the file that handles events of its kind. Also does the work before the first event
//! and after the last event.
//!
//! The methods that handle one kind of event are in other files, such as `alloc.rs`.

use pageset_trace::{Event, EventKind, Work};

use super::engine::Engine;
use super::geometry::LimitsFrom;
use super::links::Chunk;
use super::mode::Mode;

impl Engine {
    /// Sets the state before the first event.
    pub(super) fn prepare(&mut self, limits: LimitsFrom) {
        if limits == LimitsFrom::Samples {
            self.learn_limits();
        }
        if self.mode == Mode::Free {
            self.seed_placeholders();
        }
    }

    /// Compares the events of a chunk up to the chunk's end. The chunk's links must be set, and room must be
    /// made for the chunk's frames.
    pub(super) fn compare(&mut self, chunk: &mut Chunk) {
        let end = chunk.end;
        // The chunk begins with the last events of the chunk before. Some of these events were already
        // handled.
        chunk.done[..self.done.len()].copy_from_slice(&self.done);
        let has_begun = std::mem::replace(&mut self.has_begun, true);
        if has_begun {
            // Links lead only to events of the same chunk, so drop the old links.
            self.forget_links();
        }
        self.has_bulk_events |= chunk.events.iter().any(|event| event.kind == EventKind::BulkAllocEntry);
        if !has_begun && self.has_bulk_events && self.mode != Mode::Free {
            self.calibrate(chunk);
        }
        for index in 0..end {
            if !chunk.done[index] {
                self.event(chunk, index);
            }
            let event = &chunk.events[index];
            if let Some(cpu) = self.cpus.get_mut(usize::from(event.cpu)) {
                cpu.last_by_level[usize::from(event.interrupt_level())] = Some(index);
            }
        }
        for cpu in 0..self.cpus.len() {
            for (commit, drain) in std::mem::take(&mut self.cpus[cpu].deferred) {
                self.commit(chunk, commit, Some(drain));
            }
        }
        self.cpus.iter_mut().for_each(|cpu| {
            cpu.slices.iter_mut().for_each(|slices| slices.next -= end.min(slices.next));
            cpu.last_free = None;
            cpu.drained_owner = None;
            cpu.last_by_level = [None; 4];
        });
        self.done.clear();
        self.done.extend_from_slice(&chunk.done[end..]);
    }

    #[inline]
    fn event(&mut self, chunk: &mut Chunk, index: usize) {
        let event = chunk.events[index];
        if usize::from(event.cpu) >= self.cpus.len() {
            self.out.passed_over.impossible += 1;
            return;
        }
        match event.kind {
            EventKind::MmPageAlloc => self.hit(chunk, index),
            EventKind::MmPageFree | EventKind::MmPageFreeBatched if event.is_free() => {
                self.freed(chunk, index)
            }
            EventKind::MmPageFreeBatched => self.committed(chunk, index),
            EventKind::MmPagePcpuDrain => self.drained(chunk, index),
            EventKind::MmPageAllocZoneLocked | EventKind::MmPageAllocExtfrag => self.fetched(chunk, index),
            EventKind::WorkqueueExecuteStart if event.work() == Some(Work::VmstatUpdate) => {
                self.tick_starts(&event);
            }
            EventKind::WorkqueueExecuteEnd if event.work() == Some(Work::VmstatUpdate) => {
                self.tick_ends(chunk, index);
            }
            EventKind::Marker => self.marker(chunk, index),
            EventKind::BulkAllocEntry => self.bulk_starts(chunk, index),
            EventKind::BulkAllocReturn => self.bulk_ends(chunk, index),
            // The allocation failed in every zone that its request may use.
            EventKind::DirectReclaimBegin => self.walk_past(None, event.gfp),
            EventKind::KswapdWake => self.reclaim(event.pfn, true),
            EventKind::KswapdSleep => self.reclaim(event.pfn, false),
            EventKind::KswapdSwitchedOut if event.pfn == 1 => self.kswapd_naps(&event),
            _ => {}
        }
    }

    fn reclaim(&mut self, node: u64, active: bool) {
        for zone in self.geometry.zones.iter_mut().filter(|zone| u64::from(zone.description.node) == node) {
            zone.pressure.reclaim_active = active;
        }
    }

    /// Handles kswapd's sleep between two rounds, which has no sleep event. kswapd runs on the CPUs of its
    /// own node, so the event's CPU shows this node.
    fn kswapd_naps(&mut self, event: &Event) {
        let node = self.geometry.nodes[usize::from(event.cpu)];
        self.reclaim(u64::from(node), false);
    }
}
