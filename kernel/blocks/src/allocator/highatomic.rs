//! The highatomic reserve (spec §1.12): a number of whole pageblocks that each zone keeps for atomic requests
//! of high order. The highatomic reserve is not a CPU's reservation of a pageblock. The highatomic reserve
//! grows when an atomic request of high order gets a block only below the low watermark. The highatomic
//! reserve shrinks when another request, which may wait, would otherwise fail.

use pageset_core::{Order, Request, RequestTraits};

use super::needy::Highatomic;
use super::{FRAMES, blocks_in};
use crate::atomic::Relaxed;
use crate::zone::Zone;

/// Whether the request cannot wait until memory is freed, and so may use the last free memory.
pub(super) fn cannot_wait(request: &Request) -> bool {
    !request.traits.intersects(RequestTraits::MAY_WAIT | RequestTraits::NO_RESERVES)
}

/// Whether the highatomic reserve is for this request.
pub(super) fn is_highatomic(request: &Request) -> bool {
    request.order > Order::ZERO
        && cannot_wait(request)
        && request.traits.contains(RequestTraits::HIGH_PRIORITY)
}

/// Whether frames of the highatomic reserve count as free for a request at the minimum watermark.
pub(super) fn counts_highatomic_reserve(request: &Request) -> bool {
    cannot_wait(request)
        || request.traits.intersects(RequestTraits::HIGH_PRIORITY | RequestTraits::OOM_VICTIM)
}

impl Zone {
    /// Grows the highatomic reserve, after an atomic request got a block of this order only below the low
    /// watermark. The limit is a hundredth of the zone, rounded up to whole pageblocks. A zone whose
    /// hundredth is smaller than a pageblock has no highatomic reserve.
    #[cold]
    pub(super) fn grow_highatomic_reserve(&self, order: Order) {
        let percent = self.managed() / 100;
        let limit = if percent < FRAMES as u64 { 0 } else { percent.div_ceil(FRAMES as u64) as usize };
        let grow = |reserved: usize| (reserved < limit).then(|| reserved + blocks_in(order).max(1));
        self.highatomic_reserve.fetch_update(Relaxed, Relaxed, grow).ok();
    }

    /// Gives up one pageblock of the highatomic reserve. Returns `false` if the highatomic reserve is empty.
    pub(super) fn shrink_highatomic_reserve(&self) -> bool {
        self.highatomic_reserve.fetch_update(Relaxed, Relaxed, |reserved| reserved.checked_sub(1)).is_ok()
    }

    pub(super) fn has_highatomic_reserve(&self) -> bool {
        self.highatomic_reserve.load(Relaxed) > 0
    }

    /// Frames that ordinary requests leave to atomic requests: the part of the highatomic reserve that is
    /// whole now.
    pub(super) fn highatomic_frames(&self) -> u64 {
        // Most zones have no highatomic reserve. For a zone without a highatomic reserve, do not read the
        // gauges, which every CPU changes.
        match self.highatomic_reserve.load(Relaxed) {
            0 => 0,
            reserved => (reserved.min(self.whole_blocks()) as u64).saturating_mul(FRAMES as u64),
        }
    }

    /// The number of whole pageblocks that a request may take, up to `wanted`. `highatomic` says whether the
    /// request may use the highatomic reserve.
    pub(super) fn open_blocks(&self, wanted: usize, highatomic: Highatomic) -> usize {
        match (highatomic, self.highatomic_reserve.load(Relaxed)) {
            (Highatomic::Open, _) | (_, 0) => wanted,
            (Highatomic::Closed, reserved) => self.whole_blocks().saturating_sub(reserved).min(wanted),
        }
    }
}
