//! Allocations that give up soon: for hosts that know where else to look.

use pageset_core::{CpuId, Order, Pfn, Request, Watermark};

use super::reserve::Reserve;
use super::{BlockAllocator, FRAMES};
use crate::cpu_lists::Wanted;

impl BlockAllocator<'_> {
    /// As [`alloc`](Self::alloc), but from the CPU's first zone only, and `None` where that would take memory of another type, or of a
    /// pageblock that another CPU reserves.
    #[must_use]
    pub fn alloc_soon(&self, cpu: CpuId, request: &Request) -> Option<Pfn> {
        if let Some(pfn) = self.alloc_at_hand(cpu, request) {
            return Some(pfn);
        }
        let id = self.home_zone(cpu, request)?;
        let needy = self.needy(id, cpu, request, Reserve::Closed);
        let (_, frame) = self.take_left(needy).or_else(|| self.take_above(needy, request, Watermark::Min))?;
        Some(self.zones[id.index()].pfn(frame))
    }

    /// Allocates a block of the pageblock that a frame lies in, if that is open. Watermarks do not count. If all of it is free it is whole
    /// from then on, which [`alloc_soon`](Self::alloc_soon) finds. O(1).
    #[must_use]
    pub fn alloc_in(&self, pfn: Pfn, request: &Request) -> Option<Pfn> {
        let (zone, index) = self.locate(pfn)?;
        let block = index / FRAMES;
        self.reap_block(block);
        let state = self.states[block].get();
        if !state.serves(request.migratetype) || request.order >= Order::PAGEBLOCK {
            return None;
        }
        Some(zone.pfn(self.take_one(block, Wanted::of(request))?))
    }
}
