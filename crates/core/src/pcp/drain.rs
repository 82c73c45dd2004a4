//! Giving blocks back to the zone.

use super::{ListIndex, Pcp};
use crate::buddy::{LockedZone, Placement};
use crate::event::{DrainReason, Event, EventSink};
use crate::frame::{FrameIndex, FrameTables, State};
use crate::policy::DrainType;
use crate::stats::Counters;
use crate::{CpuId, Order};

impl Pcp {
    /// Removes at least `pages` pages (or all there are), handing each block to `give`: from list `start` on, each
    /// list from its cold end until it is empty (spec §2.10). Returns the pages removed; the last block may overshoot.
    fn remove(
        &mut self,
        frames: &FrameTables<'_>,
        pages: i32,
        start: ListIndex,
        mut give: impl FnMut(FrameIndex, Order),
    ) -> u32 {
        let lists = self.scheme().lists();
        let mut left = pages.min(self.count);
        let mut removed = 0;
        for list in (0..lists).map(|step| (start + step) % lists) {
            let order = self.scheme().order(list);
            while left > 0 {
                let Some(frame) = self.pop_cold(frames, list, order) else { break };
                left -= order.frames() as i32;
                removed += order.frames();
                give(frame, order);
            }
        }
        removed
    }

    /// Drains at least `pages` pages to the zone, whose lock is held. Returns the pages drained.
    pub(crate) fn drain<E: EventSink>(
        &mut self,
        zone: &mut LockedZone<'_, E>,
        owner: CpuId,
        (pages, start): (i32, ListIndex),
        reason: DrainReason,
        counters: &mut Counters,
    ) -> u32 {
        let frames = &zone.body.frames;
        let drained = self.remove(frames, pages, start, |frame, order| {
            let migratetype = match (zone.body.rules.drain_type, frames.state(frame)) {
                (DrainType::Remembered, State::Cached { migratetype, .. })
                    if zone.body.gauges.isolated_pageblocks() == 0 =>
                {
                    migratetype
                }
                _ => frames.pageblock_type(frame),
            };
            zone.free_block(frame, order, migratetype, Placement::Likely);
            zone.emit(|| Event::MmPagePcpuDrain { pfn: zone.pfn(frame), order, migratetype });
        });
        counters.drains += 1;
        counters.drained_pages += u64::from(drained);
        counters.free_high_drains += u64::from(reason == DrainReason::FreeHigh);
        zone.emit(|| Event::PcpDrain { zone: zone.body.id, cpu: owner, reason, pages: drained });
        drained
    }
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use super::*;
    use crate::frame::tests::owned;
    use crate::pcp::ListScheme;

    fn filled(blocks: &[(ListIndex, FrameIndex)]) -> (FrameTables<'static>, Pcp) {
        let (frames, mut pcp) = (owned(1024), Pcp::with_scheme(ListScheme::TwoHugeLists));
        for &(list, frame) in blocks {
            pcp.push(&frames, list, frame, pcp.scheme().order(list));
        }
        (frames, pcp)
    }

    #[track_caller]
    fn removes(blocks: &[(ListIndex, FrameIndex)], pages: i32, start: ListIndex, order: &[FrameIndex]) -> u32 {
        let (frames, mut pcp) = filled(blocks);
        let mut seen = Vec::new();
        let removed = pcp.remove(&frames, pages, start, |frame, _| seen.push(frame));
        assert_eq!(seen, order);
        removed
    }

    /// Worked example E11: three order-3 blocks, 20 pages wanted.
    #[test]
    fn example_e11_the_last_block_overshoots() {
        assert_eq!(removes(&[(9, 0), (9, 8), (9, 16)], 20, 9, &[0, 8, 16]), 24);
    }

    #[test]
    fn a_list_is_emptied_before_the_next_is_visited() {
        let blocks = [(0, 1), (0, 2), (1, 3), (3, 4)];
        assert_eq!(removes(&blocks, 3, 1, &[3, 4]), 3);
        assert_eq!(removes(&blocks, 100, 1, &[3, 4, 1, 2]), 5);
        assert_eq!(removes(&blocks, 0, 1, &[]), 0);
    }
}
