//! Giving blocks back to the zone.

use super::{DrainFrom, Pcp};
use crate::CpuId;
use crate::buddy::Placement;
use crate::event::{DrainReason, Event, EventSink, FoundAt};
use crate::frame::State;
use crate::policy::{DrainOrder, DrainType};
use crate::stats::Counters;
use crate::zone::LockedZone;

impl Pcp {
    /// Drains at least this many pages to the zone, whose lock is held, beginning at a list. Returns the pages drained.
    pub(crate) fn drain<E: EventSink>(
        &mut self,
        zone: &mut LockedZone<'_, E>,
        owner: CpuId,
        order: DrainOrder,
        from: DrainFrom,
        reason: DrainReason,
        counters: &mut Counters,
    ) -> u32 {
        let frames = &zone.body.frames;
        let passage = zone.begin_passage(self.count);
        let mut given = 0;
        let drained = self.remove(frames, order, from, |frame, order| {
            let state = frames.state(frame);
            if !matches!(state, State::Cached { .. }) {
                zone.leak(frame, order, FoundAt::Drain);
                return;
            }
            let migratetype = match (zone.body.rules.drain_type, state) {
                (DrainType::Remembered, State::Cached { migratetype, .. })
                    if zone.body.gauges.isolated_pageblocks() == 0 =>
                {
                    migratetype
                }
                _ => frames.pageblock_type(frame),
            };
            zone.free_block(frame, order, migratetype, Placement::Likely);
            given += i64::from(order.frames());
            zone.emit(|| Event::MmPagePcpuDrain { pfn: zone.pfn(frame), order, migratetype });
        });
        zone.end_passage(passage, given, -(drained as i32), self.count);
        counters.drains += 1;
        counters.drained_pages += u64::from(drained);
        counters.free_high_drains += u64::from(reason == DrainReason::FreeHigh);
        zone.emit(|| Event::PcpDrain { zone: zone.body.id, cpu: owner, reason, pages: drained });
        drained
    }
}
