//! Merges the blocks of a drain without the zone's lock.

use crate::frame::{FrameIndex, FrameTables, List, State};
use crate::pcp::drain::Leaving;
use crate::pcp::{DrainFrom, Pcp};
use crate::policy::DrainOrder;
use crate::{MigrateType, Order};

impl Pcp {
    /// Takes at least `from.pages` pages off the lists, or all pages if the page set has fewer. Merges each
    /// block with its buddies in the page set.
    pub(in crate::pcp) fn remove_merged(
        &mut self,
        frames: &FrameTables<'_>,
        order: DrainOrder,
        from: DrainFrom,
    ) -> Leaving {
        let held = self.count;
        let (mut rest, mut blocks) = (List::EMPTY, List::EMPTY);
        self.remove(frames, order, from, |frame, _| rest.push_tail(frames, frame));
        while let Some(frame) = rest.pop_head(frames) {
            let merged = self.merge(frames, frame, &mut rest, &mut blocks);
            blocks.push_tail(frames, merged);
        }
        let orders = blocks.iter(frames).filter_map(|frame| frames.state(frame).order());
        let pages = orders.map(Order::frames).sum();
        self.count = held - pages as i32;
        Leaving { blocks, pages }
    }

    /// Merges a block with its buddy as long as the buddy is in this page set or among the leaving blocks.
    /// Returns the first frame of the result.
    fn merge(
        &mut self,
        frames: &FrameTables<'_>,
        mut frame: FrameIndex,
        rest: &mut List,
        merged: &mut List,
    ) -> FrameIndex {
        while let State::Owned { order } = frames.state(frame)
            && order < Order::PAGEBLOCK
        {
            let buddy = frame ^ order.frames();
            if frames.state(buddy) != (State::Owned { order }) || !join(frames, frame & buddy, order) {
                break;
            }
            let types = MigrateType::ALL.into_iter().take(MigrateType::PCP_COUNT);
            let mut of_set = types.map(|migratetype| self.scheme.list_of_held(order, migratetype));
            // To remove the first or last block, find the right list, because the removal changes the list's
            // ends. For a block in the middle any list will do, because the removal changes only the links of
            // the blocks beside the removed block.
            let list = if rest.ends_with(buddy) {
                &mut *rest
            } else if merged.ends_with(buddy) {
                &mut *merged
            } else {
                // Search the lists of all types for the buddy, because the pageblock may have had another
                // type when the buddy was freed.
                let of_buddy = of_set.find(|list| self.lists[*list].ends_with(buddy)).unwrap_or(0);
                &mut self.lists[of_buddy]
            };
            list.remove(frames, buddy);
            frame &= buddy;
        }
        frame
    }
}

/// Merges two buddies. Returns `false`, and leaves the buddies unmerged, if another CPU marked one of the
/// buddies bad meanwhile.
///
/// Race: another CPU calls [`FrameTables::covering_block`] without the lock meanwhile. This CPU writes the
/// lower half first, so the search finds either the half or the merged block.
fn join(frames: &FrameTables<'_>, lower: FrameIndex, order: Order) -> bool {
    let (half, whole) = (State::Owned { order }, State::Owned { order: order.up() });
    if !frames.exchange_state(lower, half, whole) {
        return false;
    }
    if frames.exchange_state(lower + order.frames(), half, State::Interior) {
        return true;
    }
    if !frames.exchange_state(lower, whole, half) {
        // Another CPU has marked the lower half bad since this CPU wrote the state `whole`.
        frames.set_state(lower, State::Leaked { order });
    }
    false
}
