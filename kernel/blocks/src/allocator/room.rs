//! Whether a zone has enough memory for a request.

use pageset_core::{Order, Request, RequestTraits, Watermark};

use super::highatomic::counts_highatomic_reserve;
use super::needy::Needy;
use super::{BlockAllocator, FRAMES};
use crate::access::Access;
use crate::zone::Zone;

impl<A: Access> BlockAllocator<'_, A> {
    /// Whether a zone has at least the request's floor left after the request gets its block. For blocks
    /// smaller than a pageblock, a whole pageblock must also fit above the minimum. Free frames of reserved
    /// pageblocks do not count.
    pub(super) fn has_room(&self, needy: Needy<'_>, request: &Request, mark: Watermark) -> bool {
        let zone = &self.zones[needy.zone.index()];
        let floor = zone.floor(request, mark);
        if floor == 0 {
            // No frame has to stay free, so there is no need to count.
            return true;
        }
        let mut wanted = floor.saturating_add(u64::from(request.order.frames()));
        let min = zone.floor(request, Watermark::Min);
        if request.order < Order::PAGEBLOCK && min > 0 {
            // A CPU that reserves a pageblock may use all of it without checking the watermark again, so
            // there must be room for all of it.
            wanted = wanted.max(min.saturating_add(FRAMES as u64));
        }
        self.is_free_at_least(zone, wanted)
    }
}

impl Zone {
    /// Frames that this request has to leave free (spec §1.11).
    pub(super) fn floor(&self, request: &Request, mark: Watermark) -> u64 {
        let has = |traits| request.traits.contains(traits);
        if has(RequestTraits::NO_WATERMARKS) && !has(RequestTraits::NO_RESERVES) {
            return 0;
        }
        let mut floor = self.mark(mark);
        if mark == Watermark::Min && !has(RequestTraits::NO_RESERVES) {
            if has(RequestTraits::HIGH_PRIORITY) {
                floor -= floor / 2;
                if !has(RequestTraits::MAY_WAIT) {
                    floor -= floor / 4;
                }
            }
            if has(RequestTraits::OOM_VICTIM) {
                floor -= floor / 2;
            }
        }
        if mark != Watermark::Min || !counts_highatomic_reserve(request) {
            floor = floor.saturating_add(self.highatomic_frames());
        }
        floor.saturating_add(self.lowmem_reserve[request.highest_zone.index()])
    }

    /// Whether the zone, by its count of free frames, keeps its minimum watermark after a block for this
    /// request is taken.
    #[inline]
    pub(super) fn can_spare(&self, request: &Request) -> bool {
        let floor = self.floor(request, Watermark::Min);
        self.free_at_least() >= floor.saturating_add(u64::from(request.order.frames()))
    }
}
