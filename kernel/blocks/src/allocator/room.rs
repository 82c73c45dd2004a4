//! Whether a zone has enough memory for a request.

use pageset_core::{Order, Request, Watermark};

use super::refill::Needy;
use super::{BlockAllocator, FRAMES};
use crate::access::Access;

impl<A: Access> BlockAllocator<'_, A> {
    /// Whether a zone stays above a watermark after a request gets its block.
    pub(super) fn has_room(&self, needy: Needy<'_>, request: &Request, mark: Watermark) -> bool {
        let zone = &self.zones[needy.zone.index()];
        let floor = zone.floor(request, mark);
        if floor == 0 {
            // Nothing has to stay free, so there is no need to count.
            return true;
        }
        let mut wanted = floor.saturating_add(u64::from(request.order.frames()));
        let min = zone.floor(request, Watermark::Min);
        if request.order < Order::PAGEBLOCK && min > 0 {
            // A CPU that reserves a pageblock uses all of it without checking the watermark again.
            wanted = wanted.max(min.saturating_add(FRAMES as u64));
        }
        self.is_free_at_least(zone, wanted)
    }
}
