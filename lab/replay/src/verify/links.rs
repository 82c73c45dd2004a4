//! Links from each event to other events: the next event on the same CPU, the next and the previous event of
//! the same task, and the next event about the same frame.

use foldhash::HashMap;
use pageset_trace::{Event, EventKind};

use super::numbers::FrameNumbers;
use crate::memory;

/// Number of bytes for the machine's tables and for reading. The events of a chunk take further memory.
pub(super) const BESIDE_BYTES: usize = 32 << 20;

/// The index that stands for no event.
pub(super) const NEVER: u32 = u32::MAX;

/// The links of one event.
#[derive(Clone, Copy, Debug)]
pub(super) struct Link {
    /// The next event on this CPU.
    pub(super) on_cpu: u32,
    /// The next event about this frame.
    pub(super) of_frame: u32,
    /// The next event of this task, on any CPU. [`NEVER`] for interrupts, which belong to no task.
    pub(super) in_task: u32,
    /// The previous event of this task.
    pub(super) before_in_task: u32,
    /// Order of the block. A batched free has two events, and only the first event has the order. For the
    /// second event, this field has the order of the first event.
    pub(super) order: u8,
}

/// A chunk is a part of the recording. `links` names for each event the related events before and after it.
#[derive(Debug, Default)]
pub(super) struct Chunk {
    pub(super) events: Vec<Event>,
    pub(super) links: Vec<Link>,
    /// For each event, whether it was already handled together with an earlier event.
    pub(super) done: Vec<bool>,
    /// Frames whose stretches get numbers with this chunk, in the order of the numbers.
    pub(super) seen: Vec<u64>,
    /// Number of events that are compared with this chunk. Later events are compared with the next chunk, but
    /// comparisons of this chunk may search the later events.
    pub(super) end: usize,
}

/// Returns an error if the system does not provide `bytes` bytes of memory.
pub(super) fn room_for(bytes: usize, what: &str) -> Result<(), String> {
    if memory::gives(bytes) { Ok(()) } else { Err(memory::none_for(bytes, what)) }
}

impl Chunk {
    /// Makes room for `events` events and their links.
    pub(super) fn reserve(&mut self, events: usize) -> Result<(), String> {
        let bytes = events.saturating_mul(size_of::<Event>() + size_of::<Link>() + size_of::<bool>());
        let room = [
            self.events.try_reserve_exact(events),
            self.links.try_reserve_exact(events),
            self.done.try_reserve_exact(events),
        ];
        match room.into_iter().all(|room| room.is_ok()) {
            true => Ok(()),
            false => Err(memory::none_for(bytes, "events")),
        }
    }

    /// Links the events, from the last to the first. The frames of all events must have numbers.
    pub(super) fn link(&mut self, numbers: &FrameNumbers, cpus: usize) -> Result<(), String> {
        let mut next_on_cpu = vec![NEVER; cpus];
        // For each frame, the index of the next event about the frame, plus 1. The value is 0 if no later
        // event is about the frame. Most frames never occur, and a table of zeros takes memory only where it
        // is written.
        let bytes = numbers.count().saturating_mul(size_of::<u32>());
        room_for(bytes.saturating_add(BESIDE_BYTES), "links of pages")?;
        let mut next_of_frame = vec![0_u32; numbers.count()];
        self.done.clear();
        self.done.resize(self.events.len(), false);
        self.links.clear();
        let unlinked =
            Link { on_cpu: NEVER, of_frame: NEVER, in_task: NEVER, before_in_task: NEVER, order: 0 };
        self.links.resize(self.events.len(), unlinked);
        let mut next_in_task = HashMap::default();
        for index in (0..self.events.len()).rev() {
            let event = &self.events[index];
            let mut link =
                Link { order: event.order, before_in_task: self.links[index].before_in_task, ..unlinked };
            if event.interrupt_level() == 0 {
                // Each CPU has its own idle task, and all idle tasks have number 0.
                let task = (event.pid, if event.pid == 0 { event.cpu } else { 0 });
                if let Some(next) = next_in_task.insert(task, index as u32) {
                    link.in_task = next;
                    self.links[next as usize].before_in_task = index as u32;
                }
            }
            if let Some(next) = next_on_cpu.get_mut(usize::from(event.cpu)) {
                link.on_cpu = std::mem::replace(next, index as u32);
            }
            if let Some(place) = event.frame().and_then(|pfn| numbers.locate(pfn.0)) {
                let start = place.frame as usize;
                let next = next_of_frame[start].wrapping_sub(1);
                link.of_frame = next;
                if event.kind == EventKind::MmPageFree
                    && let Some(commit) = self.events.get(next as usize)
                    && commit.kind == EventKind::MmPageFreeBatched
                {
                    self.links[next as usize].order = event.order;
                }
                // The event of a block that leaves the free lists is about all frames of the block.
                let frames = match event.kind {
                    EventKind::MmPageAllocZoneLocked | EventKind::MmPageAllocExtfrag => {
                        1_usize << event.order.min(pageset_core::MAX_ORDER as u8)
                    }
                    _ => 1,
                };
                let end = (start + frames).min(next_of_frame.len());
                next_of_frame[start..end].fill(index as u32 + 1);
            }
            self.links[index] = Link {
                order: if event.kind == EventKind::MmPageFreeBatched { 0 } else { link.order },
                ..link
            };
        }
        Ok(())
    }

    /// The next event of the same task.
    pub(super) fn next_in_task(&self, index: usize) -> Option<usize> {
        let next = self.links.get(index)?.in_task;
        (next != NEVER).then_some(next as usize)
    }

    /// Returns the previous event of the task of event `at`, if this previous event came before `now`. The
    /// task then did not run at `now`, but other tasks did.
    pub(super) fn stopped_at(&self, at: usize, now: usize) -> Option<usize> {
        let before = self.links.get(at)?.before_in_task as usize;
        (before < now && now < at && self.events[at].interrupt_level() == 0).then_some(before)
    }

    /// The events of this CPU after `index`.
    pub(super) fn after(&self, index: usize) -> impl Iterator<Item = usize> + '_ {
        let mut at = index;
        std::iter::from_fn(move || {
            let next = self.links.get(at)?.on_cpu;
            at = next as usize;
            (next != NEVER).then_some(at)
        })
    }
}

/// Whether two events of one CPU are of the same task and of the same level of interrupts.
#[inline]
pub(super) const fn same_context(a: &Event, b: &Event) -> bool {
    a.interrupt_level() == b.interrupt_level() && a.pid == b.pid
}

#[cfg(test)]
mod tests {
    use pageset_trace::irq_flag;

    use super::*;

    fn linked(events: Vec<Event>) -> Chunk {
        let mut numbers = FrameNumbers::default();
        numbers.add_zone(4096, 8192);
        events.iter().for_each(|event| numbers.see(event.pfn).expect("a small zone"));
        let mut chunk = Chunk { events, ..Chunk::default() };
        chunk.link(&numbers, 2).expect("expected enough memory for the links of a few frames");
        chunk
    }

    fn event(kind: EventKind, cpu: u16, pfn: u64, order: u8) -> Event {
        Event { pfn, order, ..Event::new(kind, 0, cpu) }
    }

    #[test]
    fn the_next_event_of_a_cpu_and_of_a_frame_are_found() {
        let chunk = linked(vec![
            event(EventKind::MmPageFree, 0, 5001, 0),
            event(EventKind::MmPageFree, 1, 5008, 3),
            event(EventKind::MmPageFreeBatched, 1, 5008, 0),
            // A block of four frames leaves the free lists. Frame 5001 is part of the block.
            event(EventKind::MmPageAllocZoneLocked, 0, 5000, 2),
            event(EventKind::MmPageAlloc, 0, 5000, 2),
        ]);
        let links: Vec<_> = chunk.links.iter().map(|link| (link.on_cpu, link.of_frame)).collect();
        assert_eq!(links, [(3, 3), (2, 2), (NEVER, NEVER), (4, 4), (NEVER, NEVER)]);
        assert_eq!(
            chunk.links[2].order, 3,
            "expected the second event of a batched free to have the order of the first event"
        );
        assert_eq!(chunk.after(0).collect::<Vec<_>>(), [3, 4]);
    }

    #[test]
    fn what_the_machine_does_not_have_is_linked_to_nothing() {
        let chunk = linked(vec![
            event(EventKind::MmPageFree, 9, 5000, 0),
            event(EventKind::MmPageFree, 0, u64::MAX, 200),
            event(EventKind::MmPageAllocZoneLocked, 0, 8191, 255),
        ]);
        assert_eq!(chunk.links[0].on_cpu, NEVER);
        assert_eq!(chunk.links[1].of_frame, NEVER);
        assert_eq!(chunk.after(0).count(), 0);
    }

    #[test]
    fn interrupts_are_told_from_the_threads_they_interrupt() {
        let thread = Event { pid: 7, ..event(EventKind::MmPageFree, 0, 5000, 0) };
        let softirq = Event { irq_flags: irq_flag::SOFTIRQ, ..thread };
        let hardirq = Event { irq_flags: irq_flag::HARDIRQ | irq_flag::SOFTIRQ, ..thread };
        assert_eq!([thread, softirq, hardirq].map(|event| event.interrupt_level()), [0, 1, 2]);
        let irqs_off = Event { irq_flags: irq_flag::IRQS_OFF, ..thread };
        assert!(same_context(&thread, &irqs_off) && !same_context(&thread, &softirq));
        assert!(!same_context(&thread, &Event { pid: 8, ..thread }));
    }
}
