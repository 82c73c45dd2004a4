//! Giving merged blocks back to the zone.

use super::merge::Leaving;
use crate::buddy::Placement;
use crate::event::{DrainReason, Event, FoundAt};
use crate::pcp::pageset::PagesetState;
use crate::pcp::{CpuZone, DrainFrom};
use crate::platform::Platform;

impl<P: Platform> CpuZone<'_, '_, P> {
    /// Drains part of the page set: merges first, then takes the zone's lock. Returns the pages drained.
    pub(in crate::pcp) fn drain_merged(
        self,
        state: &mut PagesetState,
        from: DrainFrom,
        reason: DrainReason,
    ) -> u32 {
        let frames = &self.zone.body.frames;
        let Leaving { mut blocks, pages } = state.pcp.remove_merged(frames, self.policy.drain_order, from);
        self.zone.with_lock(self.platform, self.cpu, |locked| {
            let passage = locked.begin_passage(state.pcp.count);
            let mut given = 0;
            while let Some(frame) = blocks.pop_head(frames) {
                let found = frames.state(frame);
                let Some(order) = found.order() else { continue };
                if !found.is_cached() {
                    locked.leak(frame, order, FoundAt::Drain);
                    continue;
                }
                let migratetype = frames.pageblock_type(frame);
                locked.free_block(frame, order, migratetype, Placement::Likely);
                locked.settle_owner(frame);
                given += i64::from(order.frames());
                locked.emit(|| Event::MmPagePcpuDrain { pfn: locked.pfn(frame), order, migratetype });
            }
            locked.end_passage(passage, given, 0, state.pcp.count);
            locked.emit(|| Event::PcpDrain { zone: locked.body.id, cpu: self.owner, reason, pages });
        });
        state.counters.drains += 1;
        state.counters.drained_pages += u64::from(pages);
        state.counters.free_high_drains += u64::from(reason == DrainReason::FreeHigh);
        pages
    }
}
