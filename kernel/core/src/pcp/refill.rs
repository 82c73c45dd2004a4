//! Refills: when a list is empty, fetches blocks from the zone.

use super::{ListIndex, Pcp};
use crate::buddy::FallbackMode;
use crate::event::{Event, EventSink, FoundAt};
use crate::frame::State;
use crate::request::{AllocFlags, Wanted};
use crate::stats::Counters;
use crate::zone::LockedZone;

impl Pcp {
    /// Fetches up to `blocks` blocks under the zone's lock, and appends them to the list (spec §2.7.2).
    pub(crate) fn refill<E: EventSink>(
        &mut self,
        zone: &mut LockedZone<'_, E>,
        list: ListIndex,
        wanted: Wanted,
        blocks: u32,
        flags: AllocFlags,
        counters: &mut Counters,
    ) {
        let Wanted { order, migratetype } = wanted;
        let passage = zone.begin_passage(self.count);
        let mut mode = FallbackMode::default();
        let (mut taken, mut got) = (0, 0);
        for _ in 0..blocks {
            let Some(frame) = zone.take(wanted, flags, &mut mode) else { break };
            taken += order.frames();
            // A bad block has left the free lists, but must not count as fetched.
            if !zone.is_sound(frame, order, FoundAt::Refill) {
                continue;
            }
            // Store the type of the list that the block came from, because Linux 6.1 drains the block to the
            // list of that type.
            let came_from = match zone.body.frames.state(frame) {
                State::Free { migratetype, .. } => migratetype,
                _ => migratetype,
            };
            zone.body.frames.set_state(frame, State::Cached { order, migratetype: came_from });
            self.push_cold(&zone.body.frames, list, frame);
            got += 1;
        }
        let pages = got * order.frames();
        self.count += pages as i32;
        zone.end_passage(passage, -i64::from(taken), pages as i32, self.count);
        counters.refills += 1;
        counters.refilled_blocks += u64::from(got);
        counters.refilled_pages += u64::from(pages);
        zone.emit(|| Event::PcpRefill { zone: zone.body.id, order, migratetype, asked: blocks, got });
    }
}
