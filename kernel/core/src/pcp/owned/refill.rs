//! Refills of a CPU that owns pageblocks. A refill has four phases. Phase 0 takes fragments of pageblocks
//! that the CPU owns. Phase 1 takes whole pageblocks, and phase 2 smaller blocks. Phase 3 may take memory of
//! other types.

use crate::event::{Event, EventSink, FoundAt};
use crate::frame::State;
use crate::pcp::pageset::PagesetState;
use crate::pcp::{CpuZone, Limits, ListIndex, Pcp};
use crate::platform::Platform;
use crate::policy::{ClaimLimit, PageblockOwnership};
use crate::request::{AllocFlags, Wanted};
use crate::zone::LockedZone;
use crate::{CpuId, Order, PAGEBLOCK_FRAMES};

/// The inputs of one refill: the wanted pages, and the page set's limits.
#[derive(Clone, Copy)]
struct Fetch {
    cpu: CpuId,
    wanted: Wanted,
    /// Number of pages that the refill should fetch.
    pages: u32,
    limits: Limits,
    rule: PageblockOwnership,
}

/// The pages that a refill has fetched so far.
#[derive(Default)]
struct Fetched {
    pages: u32,
    /// Number of pages taken from the free lists, including bad pages.
    taken: u32,
    blocks: u32,
    /// Whether one of the fetched blocks is large enough for the request.
    suffices: bool,
}

impl Fetched {
    fn add(&mut self, order: Order, wanted: Wanted) {
        self.pages += order.frames();
        self.blocks += 1;
        self.suffices |= order >= wanted.order;
    }
}

impl<P: Platform> CpuZone<'_, '_, P> {
    /// Fills an empty list: takes in the blocks that other CPUs freed, or else splits a larger block of the
    /// page set, or else fetches blocks from the zone.
    pub(in crate::pcp) fn split_or_refill(
        self,
        state: &mut PagesetState,
        list: ListIndex,
        wanted: Wanted,
        flags: AllocFlags,
        rule: PageblockOwnership,
    ) {
        self.take_in(state);
        if !state.pcp.is_list_empty(list) || self.split_larger(state, wanted) {
            return;
        }
        let (limits, pressure) = (self.pageset.limits(), self.zone.body.pressure());
        let blocks = state.pcp.refill_size(self.policy, limits, pressure, wanted.order);
        self.pageset.touch();
        let pages = blocks << wanted.order.get();
        let fetch = Fetch { cpu: self.owner, wanted, pages, limits, rule };
        self.zone.with_lock(self.platform, self.cpu, |locked| {
            let fetched = state.pcp.fetch(locked, fetch);
            if fetched.pages > 0 {
                state.counters.refills += 1;
                state.counters.refilled_blocks += u64::from(fetched.blocks);
                state.counters.refilled_pages += u64::from(fetched.pages);
            }
            if !fetched.suffices {
                // Phase 3 is an ordinary refill, which may use memory of other types.
                state.pcp.refill(locked, list, wanted, blocks, flags, &mut state.counters);
            }
        });
        if state.pcp.is_list_empty(list) {
            self.split_larger(state, wanted);
        }
    }
}

impl Pcp {
    /// Runs phase 0 of a refill. If phase 0 fetches too little, runs phase 1. If no fetched block is large
    /// enough for the request after phase 1, runs phase 2.
    fn fetch<E: EventSink>(&mut self, zone: &mut LockedZone<'_, E>, fetch: Fetch) -> Fetched {
        let passage = zone.begin_passage(self.count);
        let mut fetched = Fetched::default();
        self.recover(zone, fetch, &mut fetched);
        if !fetched.suffices || fetched.pages < fetch.pages {
            self.claim_pageblocks(zone, fetch, &mut fetched);
        }
        if !fetched.suffices {
            self.take_chunks(zone, fetch, &mut fetched);
        }
        let Fetched { pages, taken, .. } = fetched;
        zone.end_passage(passage, -i64::from(taken), pages as i32, self.count);
        if pages > 0 {
            let migratetype = fetch.wanted.migratetype;
            zone.emit(|| Event::PcpRefill {
                zone: zone.body.id,
                order: Order::ZERO,
                migratetype,
                asked: fetch.pages,
                got: pages,
            });
        }
        fetched
    }

    /// Whether the page set may hold one more pageblock.
    fn has_room(&self, fetch: Fetch) -> bool {
        let most = match fetch.rule.claims {
            ClaimLimit::HighMax => fetch.limits.high_max,
            ClaimLimit::High => self.high,
        };
        self.count.saturating_add(PAGEBLOCK_FRAMES as i32) <= most
    }

    /// Phase 0 takes free fragments of pageblocks that this CPU owns.
    fn recover<E: EventSink>(&mut self, zone: &mut LockedZone<'_, E>, fetch: Fetch, fetched: &mut Fetched) {
        let body = zone.body;
        for _ in 0..fetch.rule.recovery_looks_max {
            if fetched.suffices && fetched.pages >= fetch.pages || !self.has_room(fetch) {
                return;
            }
            let is_wanted = |pageblock: &u32| {
                let start = pageblock * PAGEBLOCK_FRAMES;
                body.frames.pageblock_type(start) == fetch.wanted.migratetype
            };
            let looks = fetch.rule.recovery_looks_max as usize;
            let Some(pageblock) = body.owners.listed(fetch.cpu).take(looks).find(is_wanted) else { return };
            body.owners.unlist(pageblock);
            zone.take_free_blocks(pageblock * PAGEBLOCK_FRAMES, |frame, order| {
                body.frames.set_state(frame, State::Owned { order });
                let list = self.scheme.list_of_held(order, fetch.wanted.migratetype);
                self.append(&body.frames, list, frame, order);
                fetched.taken += order.frames();
                fetched.add(order, fetch.wanted);
            });
        }
    }

    /// Phase 1 takes whole pageblocks, until enough pages are fetched or the page set may hold no further
    /// pageblock.
    fn claim_pageblocks<E: EventSink>(
        &mut self,
        zone: &mut LockedZone<'_, E>,
        fetch: Fetch,
        fetched: &mut Fetched,
    ) {
        let (body, order, migratetype) = (zone.body, Order::PAGEBLOCK, fetch.wanted.migratetype);
        if !body.owners.may_own(fetch.cpu) {
            return;
        }
        while self.has_room(fetch) {
            let Some(frame) = zone.take_smallest(order, migratetype) else { return };
            fetched.taken += order.frames();
            if !zone.is_sound(frame, order, FoundAt::Refill) {
                continue;
            }
            body.owners.own(frame, fetch.cpu);
            body.frames.set_state(frame, State::Owned { order });
            self.append(&body.frames, self.scheme.list_of_held(order, migratetype), frame, order);
            fetched.add(order, fetch.wanted);
            if fetched.pages >= fetch.pages {
                break;
            }
        }
        if fetched.suffices && fetch.limits.high_min != fetch.limits.high_max {
            // Raise `high`, so that the next free does not drain the pageblock again.
            let Limits { batch, high_max, .. } = fetch.limits;
            self.high = self.high.max(self.count.saturating_add(batch).min(high_max));
        }
    }

    /// Phase 2 takes blocks smaller than a pageblock, the largest first. Takes no block that has more pages
    /// than the refill wants, rounded up to a power of two.
    fn take_chunks<E: EventSink>(
        &mut self,
        zone: &mut LockedZone<'_, E>,
        fetch: Fetch,
        fetched: &mut Fetched,
    ) {
        let (body, Wanted { order: smallest, migratetype }) = (zone.body, fetch.wanted);
        let asked = Order::holding(fetch.pages.into()).unwrap_or(Order::MAX);
        for order in smallest.and_above().rev() {
            if order >= Order::PAGEBLOCK || order > asked {
                continue;
            }
            while fetched.pages < fetch.pages
                && let Some(frame) = zone.take_exactly(order, migratetype)
            {
                fetched.taken += order.frames();
                if !zone.is_sound(frame, order, FoundAt::Refill) {
                    continue;
                }
                body.frames.set_state(frame, State::Cached { order, migratetype });
                self.append(&body.frames, self.scheme.list_of_held(order, migratetype), frame, order);
                fetched.add(order, fetch.wanted);
            }
        }
    }
}
