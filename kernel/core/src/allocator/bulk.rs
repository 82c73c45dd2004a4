//! Allocates many single pages under one hold of the page set's lock (spec §2.13).

use super::PageAllocator;
use crate::error::AllocError;
use crate::platform::Platform;
use crate::request::{AllocFlags, Request};
use crate::zone::Watermark;
use crate::{CpuId, Order, Pfn};

impl<P: Platform> PageAllocator<'_, P> {
    /// Fills the empty slots of `pages` with single pages and skips filled slots. Returns the number of
    /// filled slots. Slots may stay empty if memory is short, if the page set's lock is taken, or if the
    /// request bypasses page sets.
    ///
    /// As in Linux, a bulk allocation does not halve the page set's free history, and emits no event per
    /// page. If only one slot is empty, or if the page set gives no page, this function allocates one page as
    /// [`alloc`](Self::alloc) does.
    ///
    /// # Errors
    /// [`AllocError::BulkOrder`] if the request's order is not 0. The errors of [`alloc`](Self::alloc) if not
    /// even one page could be allocated.
    pub fn alloc_bulk(
        &self,
        cpu: CpuId,
        request: &Request,
        pages: &mut [Option<Pfn>],
    ) -> Result<usize, AllocError> {
        if request.order != Order::ZERO {
            return Err(AllocError::BulkOrder(request.order));
        }
        self.check_request(cpu, request)?;
        let missing = pages.iter().filter(|page| page.is_none()).count();
        let got = if missing > 1 { self.fill_slots(cpu, request, pages) } else { 0 };
        if missing > 0 && got == 0 {
            let page = self.alloc(cpu, request)?;
            if let Some(slot) = pages.iter_mut().find(|slot| slot.is_none()) {
                *slot = Some(page);
            }
        }
        Ok(pages.iter().flatten().count())
    }

    /// Fills slots from the page set of one zone. Returns the number of slots that this call filled. The
    /// result is 0, for example, if no zone of the preferred node has enough memory, or if the request
    /// bypasses page sets.
    fn fill_slots(&self, cpu: CpuId, request: &Request, pages: &mut [Option<Pfn>]) -> usize {
        let Ok(walk) = self.start(cpu, request) else { return 0 };
        let flags = AllocFlags::fast(request) - AllocFlags::KSWAPD;
        let preferred = walk.preferred;
        let zone = self
            .zones_for(request, walk.node)
            .take_while(|zone| zone.body.node == preferred.body.node)
            .find(|zone| {
                let mark = zone.body.marks.boosted(Watermark::Low).saturating_add(pages.len() as u64);
                zone.body.is_watermark_ok(Order::ZERO, mark, preferred.body.kind, flags)
            });
        let Some(zone) = zone else { return 0 };
        if flags.contains(AllocFlags::BYPASS_PCP) {
            return 0;
        }
        let at = self.pagesets.at(zone, cpu, &self.policy, &self.platform);
        let wanted = at.wanted(request);
        let list = self.policy.lists.list_of_held(wanted.order, wanted.migratetype);
        let filled = at.pageset.try_with(|state| {
            let mut got = 0;
            for slot in pages.iter_mut().filter(|slot| slot.is_none()) {
                let Some(frame) = at.pop_or_refill(state, list, wanted, flags) else { break };
                *slot = Some(zone.body.span.pfn(frame));
                got += 1;
                state.counters.pcp_alloc += 1;
                walk.count(&mut state.counters, zone);
            }
            got
        });
        filled.unwrap_or_else(|| {
            zone.body.trylock_failures.add_one();
            0
        })
    }
}
