//! A recording as a list of what to do, in its own order.

use std::collections::HashMap;

use pageset_core::{MigrateType, Order, ZoneKind};
use pageset_trace::{Event, EventKind, TraceError, TraceReader};
use serde::Serialize;

use pageset_replay::highest_zone;
use pageset_replay::recorded::{self, RecordedKinds, needs};

/// A recording, ready to be played any number of times.
#[derive(Clone, Debug, Default)]
pub struct Script {
    pub(super) acts: Vec<Act>,
    /// Blocks that it allocates.
    pub(super) blocks: usize,
    /// CPUs that it names: the highest number plus 1.
    pub cpus: u32,
    /// What of it is not played.
    pub left_out: LeftOut,
}

/// Events of a recording that are not played, or not as they stand. Bulk allocations are none of them: a recording does not
/// name their frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct LeftOut {
    /// Frees of blocks whose allocation the recording does not show.
    pub unmatched_frees: u64,
    /// Allocations that failed in the recording already.
    pub failed_in_recording: u64,
    /// Allocations of an order that no block has.
    pub impossible: u64,
    /// Allocations of frames that were in use. Their free is lost, and is played just before.
    pub allocated_twice: u64,
}

/// One thing that a CPU did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Act {
    pub(super) ts_ns: u64,
    pub(super) cpu: u16,
    pub(super) what: What,
    /// Which block, in the order of their allocations.
    pub(super) block: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What {
    Alloc { order: Order, migratetype: MigrateType, highest: ZoneKind },
    Free,
}

impl Script {
    /// Reads a whole recording. Bulk allocations, whose frames it does not name, are left out. `progress` hears how many
    /// events were read.
    ///
    /// # Errors
    /// If it cannot be read, or has no allocations or no frees.
    pub fn read(reader: &mut dyn TraceReader, mut progress: impl FnMut(u64)) -> Result<Self, TraceError> {
        let mut script = Self::default();
        let mut in_use = HashMap::new();
        let mut events = Vec::new();
        let (mut read, mut kinds) = (0, [0; EventKind::COUNT]);
        while reader.read_block(&mut events)? > 0 {
            script.take_all(&events, &mut in_use);
            read += events.len() as u64;
            recorded::count(&mut kinds, &events);
            progress(read);
        }
        RecordedKinds::new(reader.info(), &kinds).require(needs::LOAD, reader.info())?;
        Ok(script)
    }

    /// Allocations and frees that are played.
    #[must_use]
    pub fn events(&self) -> usize {
        self.acts.len()
    }

    /// A loop of this crate, and not of the generic function that calls it, so that it is optimised as this crate is.
    fn take_all(&mut self, events: &[Event], in_use: &mut HashMap<u64, u32>) {
        events.iter().for_each(|event| self.take(event, in_use));
    }

    fn take(&mut self, event: &Event, in_use: &mut HashMap<u64, u32>) {
        self.cpus = self.cpus.max(u32::from(event.cpu) + 1);
        let free = |block| Act { ts_ns: event.ts_ns, cpu: event.cpu, what: What::Free, block };
        match event.kind {
            EventKind::MmPageAlloc if event.is_failed_allocation() => self.left_out.failed_in_recording += 1,
            EventKind::MmPageAlloc => {
                let Some(order) = event.block_order() else {
                    self.left_out.impossible += 1;
                    return;
                };
                let block = self.blocks as u32;
                self.blocks += 1;
                // A block that is in use when its frame is allocated once more was freed unseen.
                if let Some(lost) = in_use.insert(event.pfn, block) {
                    self.left_out.allocated_twice += 1;
                    self.acts.push(free(lost));
                }
                let migratetype =
                    event.block_type().filter(|of| of.is_mergeable()).unwrap_or(MigrateType::Movable);
                let highest = match highest_zone(event.gfp) {
                    0 => ZoneKind::Dma,
                    1 => ZoneKind::Dma32,
                    2 => ZoneKind::Normal,
                    _ => ZoneKind::Movable,
                };
                let what = What::Alloc { order, migratetype, highest };
                self.acts.push(Act { ts_ns: event.ts_ns, cpu: event.cpu, what, block });
            }
            EventKind::MmPageFree | EventKind::MmPageFreeBatched if event.is_free() => {
                match in_use.remove(&event.pfn) {
                    Some(block) => self.acts.push(free(block)),
                    None => self.left_out.unmatched_frees += 1,
                }
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frees_find_their_allocation() {
        let event = |ts_ns, kind, pfn| Event { pfn, migratetype: 0, ..Event::new(kind, ts_ns, 1) };
        let mut script = Script::default();
        let mut in_use = HashMap::new();
        for event in [
            event(1, EventKind::MmPageFree, 9),
            event(2, EventKind::MmPageAlloc, 7),
            event(3, EventKind::MmPageAlloc, 7),
            event(4, EventKind::MmPageFree, 7),
        ] {
            script.take(&event, &mut in_use);
        }
        let told: Vec<_> =
            script.acts.iter().map(|act| (act.ts_ns, act.block, act.what == What::Free)).collect();
        assert_eq!(told, [(2, 0, false), (3, 0, true), (3, 1, false), (4, 1, true)]);
        assert_eq!((script.blocks, script.cpus), (2, 2));
        let left_out = LeftOut { unmatched_frees: 1, allocated_twice: 1, ..LeftOut::default() };
        assert_eq!(script.left_out, left_out);
    }
}
