//! Charges virtual time for the allocator's events, and for frames that CPUs touch. [`Charges`] receives the
//! events.

use pageset_core::{CpuId, Event, EventSink, Order, Pfn, Platform};

use crate::engine::{Engine, current};
use crate::footprint::Touched;
use crate::lock::VirtualLock;
use crate::machine::{FrameLayout, Near};
use crate::outcome::{CacheCounts, drain_index};
use crate::prices::DataPrices;
use crate::recency::Held;

/// The platform of `pageset-core` in a simulation: CPUs spend virtual time on locks and events.
#[derive(Clone, Copy, Debug, Default)]
pub struct VirtualPlatform(Charges);

impl Platform for VirtualPlatform {
    type RawLock = VirtualLock;
    type Events = Charges;

    fn events(&self) -> &Charges {
        &self.0
    }
}

/// The event sink that charges the cost of each event to the running virtual CPU. Outside a simulation, this
/// event sink does nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Charges(());

impl EventSink for Charges {
    #[inline]
    fn emit(&self, _: CpuId, event: Event) {
        current::with(|engine| {
            if let Some(engine) = engine {
                engine.charge_event(event);
            }
        });
    }
}

impl Engine {
    /// Returns how near two CPUs are.
    #[inline]
    pub(crate) fn near(&self, one: u32, other: u32) -> Near {
        let (left, right) = (&self.cpus[one as usize], &self.cpus[other as usize]);
        if one == other {
            Near::Same
        } else if left.core == right.core {
            Near::Sibling
        } else if left.cache == right.cache {
            Near::Cache
        } else if left.node == right.node {
            Near::Node
        } else {
            Near::Remote
        }
    }

    /// Returns the cost, in picoseconds, of a cache line that CPU `to` fetches from CPU `from`, the line's
    /// last writer.
    #[inline]
    pub(crate) fn line(&self, from: u32, to: u32) -> u64 {
        match self.near(from, to) {
            Near::Same => 0,
            Near::Sibling => self.prices.sibling,
            Near::Cache => self.prices.cache,
            Near::Node => self.prices.node,
            Near::Remote => {
                let (from, to) = (self.cpus[from as usize].node, self.cpus[to as usize].node);
                self.prices.remote[usize::from(from) * self.prices.nodes + usize::from(to)].0
            }
        }
    }

    /// Whether a cache line that moves between the CPUs `from` and `to` uses a plane. A plane is a network
    /// between groups of nodes; see [`Planes`](crate::machine::Planes).
    pub(crate) fn is_between_bricks(&self, from: u32, to: u32) -> bool {
        let brick_nodes = self.prices.planes.as_ref().map_or(u16::MAX, |planes| planes.brick_nodes);
        self.cpus[from as usize].node / brick_nodes != self.cpus[to as usize].node / brick_nodes
    }

    /// Records that the running CPU touches a frame. Returns the cost of the touch, in picoseconds.
    #[inline]
    pub(crate) fn touch(&self, pfn: Pfn, touched: Touched<'_>) -> u64 {
        let (prices, me) = (&self.prices, self.cpu_index());
        let mut footprint = self.footprint.borrow_mut();
        let Some(last) = footprint.touch(me, pfn, touched) else { return 0 };
        let levels = match touched {
            Touched::Data(_, data) => &data.levels,
            Touched::Metadata => &prices.metadata,
        };
        // The machine file gives the cost of data from another core under the same last-level cache. For a
        // more distant core, the cost of data is multiplied by a ratio. The ratio is the cost of a line from
        // the distant core, divided by the cost of a line from a core under the same last-level cache.
        let from = |last| self.line(last, me);
        let other = |last| match touched {
            Touched::Data(_, DataPrices { core: Some(core), .. }) => {
                in_proportion(*core, from(last), prices.cache)
            }
            Touched::Data(_, DataPrices { core: None, .. }) => levels[2],
            Touched::Metadata => from(last),
        };
        let mut waited = 0;
        let mut tally = self.tally.borrow_mut();
        let CacheCounts { near, shared, other_core, other_cache, memory } = &mut tally.caches;
        let (counter, line) = match last.map(|(last, held)| (self.near(last, me), held, last)) {
            Some((Near::Same | Near::Sibling, Held::Near, _)) => (near, levels[0]),
            Some((Near::Same | Near::Sibling | Near::Cache, Held::Shared, _)) => (shared, levels[1]),
            Some((Near::Cache, Held::Near, last)) => (other_core, other(last)),
            Some((Near::Node | Near::Remote, Held::Near | Held::Shared, last)) => (other_cache, other(last)),
            Some((_, Held::Nowhere, _)) | None => {
                let node = footprint.node(pfn, prices.nodes);
                let (_, from_there) = prices.remote[usize::from(self.cpu().node) * prices.nodes + node];
                let from_memory = in_proportion(levels[2], from_there, prices.metadata[2]);
                waited = match touched {
                    Touched::Data(lines, DataPrices { service: service @ 1.., .. }) => {
                        let now = self.cpu().clock.get();
                        self.bandwidth.wait_ps(node, now, lines * service)
                    }
                    Touched::Data(..) | Touched::Metadata => 0,
                };
                (memory, from_memory)
            }
        };
        *counter += touched.lines();
        touched.lines() * line + waited
    }

    /// Charges the running CPU for touching a frame's metadata.
    #[inline]
    fn touch_metadata(&self, pfn: Pfn) {
        let cost = self.touch(pfn, Touched::Metadata);
        self.charge(cost);
    }

    /// Charges the running CPU for taking a block from a free list, or for putting a block back. The CPU also
    /// writes the links of the block's neighbours in the list. The CPU pays nothing for the cache lines of
    /// the neighbours, because the CPU does not read these lines.
    fn move_block(&self, pfn: Pfn, work: u64) {
        let blocks = &self.cpu().scratch.blocks_in_hold;
        blocks.set(blocks.get() + 1);
        self.work(work);
        self.touch_metadata(pfn);
    }

    /// Charges the running CPU for the cache lines that the CPU reads after it took a lock: list heads and
    /// counters that the previous holder of the lock changed.
    pub(crate) fn fetch_behind_lock(&self) {
        self.charge(self.prices.zone_lines * self.cpu().scratch.lock_line.get());
    }

    /// Records that the running CPU's allocation got the block `pfn`, or failed. If the allocation got a
    /// block, charges the running CPU for the block's metadata.
    pub(crate) fn note_alloc(&self, pfn: Option<Pfn>, order: Order) {
        let Some(pfn) = pfn else {
            self.tally.borrow_mut().counts.failures += 1;
            return;
        };
        self.note(pfn.0 << 8 | u64::from(order.get()));
        self.touch_metadata(pfn);
    }

    /// Charges the running CPU for the work of a free and for the metadata of the block.
    pub(crate) fn note_free(&self, pfn: Pfn) {
        self.work(self.prices.free);
        self.touch_metadata(pfn);
    }

    fn charge_event(&self, event: Event) {
        let scratch = &self.cpu().scratch;
        let count = |cell: &std::cell::Cell<u32>, by: u32| cell.set(cell.get() + by);
        match event {
            Event::MmPageAlloc { pfn, order, .. } => self.note_alloc(pfn, order),
            Event::MmPageFree { pfn, .. } => self.note_free(pfn),
            Event::MmPageFreeBatched { order, .. } => {
                self.tally.borrow_mut().cache_pages(i64::from(order.frames()));
            }
            Event::MmPageAllocZoneLocked { pfn, .. } => {
                self.move_block(pfn, self.prices.take_block);
            }
            Event::MmPagePcpuDrain { pfn, .. } => {
                self.move_block(pfn, self.prices.give_block);
            }
            Event::ZoneLock { .. } => {
                count(&scratch.zone_visits, 1);
                scratch.blocks_in_hold.set(0);
                scratch.is_drain.set(false);
                self.work(self.prices.zone_visit);
                self.fetch_behind_lock();
            }
            Event::PcpRefill { order, got, .. } => {
                count(&scratch.refilled, got);
                let pages = u64::from(got) << order.get();
                let mut tally = self.tally.borrow_mut();
                tally.counts.refills += 1;
                tally.counts.refilled_pages += pages;
                tally.cache_pages(pages as i64);
            }
            Event::PcpDrain { reason, pages, .. } => {
                count(&scratch.drains, 1);
                scratch.is_drain.set(true);
                let mut tally = self.tally.borrow_mut();
                tally.counts.drains[drain_index(reason)] += 1;
                tally.counts.drained_pages += u64::from(pages);
                tally.cache_pages(-i64::from(pages));
            }
            Event::MmPageAllocExtfrag { .. } => self.tally.borrow_mut().counts.shared.fallbacks += 1,
            Event::WakeKswapd { .. } => self.tally.borrow_mut().counts.kswapd_wakes += 1,
            Event::DirectReclaim { .. } => self.tally.borrow_mut().counts.direct_reclaims += 1,
            Event::BadPage { .. } => self.tally.borrow_mut().counts.bad_pages += 1,
            Event::BuddyLook { pfn } => {
                if self.prices.frame_layout == FrameLayout::LinePerFrame {
                    self.touch_metadata(pfn);
                }
            }
            Event::DrainPick { pfn, buddy } => {
                self.touch_metadata(pfn);
                if let Some(buddy) = buddy
                    && self.prices.frame_layout == FrameLayout::LinePerFrame
                {
                    // The CPU prefetches the buddy's line, and the line arrives before the CPU has the lock.
                    // So the CPU does not wait for the line.
                    self.touch(buddy, Touched::Metadata);
                }
            }
            Event::PcpDecay { .. } => {}
        }
    }
}

/// Largest cost of a line in picoseconds: one second. This limit on a line's cost prevents sums from
/// overflowing, even if a machine file has larger costs.
const LINE_PS_MAX: u64 = 1_000_000_000_000;

/// Scales `price` by `from` / `near`, where `from` and `near` are the costs of one line at two distances.
/// Returns `price` if `near` is 0.
fn in_proportion(price: u64, from: u64, near: u64) -> u64 {
    let farther = (u128::from(price) * u128::from(from)).checked_div(u128::from(near));
    farther.map_or(price, |farther| farther.min(LINE_PS_MAX.into()) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn farther_lines_cost_in_proportion_and_never_overflow() {
        assert_eq!(in_proportion(400, 140, 70), 800);
        assert_eq!(in_proportion(400, 140, 0), 400, "a machine file may give near lines the cost 0");
        let largest = 1_000_000_000_000;
        assert_eq!(in_proportion(largest, largest, 1), LINE_PS_MAX);
    }
}
