//! Drains: blocks go back from a page set to the zone.

use super::pageset::PagesetState;
use super::{CpuZone, DrainFrom, Pcp};
use crate::Order;
use crate::buddy::Placement;
use crate::event::{DrainReason, Event, EventSink, FoundAt, emit};
use crate::frame::{FrameIndex, FrameTables, List, State};
use crate::platform::Platform;
use crate::policy::{DrainOrder, DrainPicks, DrainType};
use crate::zone::LockedZone;

/// Blocks that have left a page set and are not yet on the zone's free lists.
pub(super) struct Leaving {
    pub(super) blocks: List,
    pub(super) pages: u32,
}

impl<P: Platform> CpuZone<'_, '_, P> {
    /// Drains part of the page set to the zone. Returns the number of pages that left the page set.
    pub(crate) fn drain(self, state: &mut PagesetState, from: DrainFrom, reason: DrainReason) -> u32 {
        self.pageset.touch();
        let (frames, order) = (&self.zone.body.frames, self.policy.drain_order);
        let pages = if self.policy.ownership().is_some() {
            let merged = state.pcp.remove_merged(frames, order, from);
            self.give(&state.pcp, merged, reason)
        } else if let DrainPicks::BeforeLock { prefetches_buddies } = self.policy.drain_picks {
            let picked = state.pcp.pick(frames, order, from, |frame, order| {
                self.report_pick(frame, order, prefetches_buddies);
            });
            self.give(&state.pcp, picked, reason)
        } else {
            self.pick_and_give(&mut state.pcp, from, reason)
        };
        state.counters.drains += 1;
        state.counters.drained_pages += u64::from(pages);
        state.counters.free_high_drains += u64::from(reason == DrainReason::FreeHigh);
        pages
    }

    /// Takes blocks off the page set and gives them to the zone one by one, under the zone's lock.
    fn pick_and_give(self, pcp: &mut Pcp, from: DrainFrom, reason: DrainReason) -> u32 {
        self.zone.with_lock(self.platform, self.cpu, |locked| {
            let passage = locked.begin_passage(pcp.count);
            let mut given = 0;
            let frames = &self.zone.body.frames;
            let pages = pcp.remove(frames, self.policy.drain_order, from, |frame, order| {
                given += locked.take_back(frame, order);
            });
            locked.end_passage(passage, given, -(pages as i32), pcp.count);
            locked.emit(|| Event::PcpDrain { zone: locked.body.id, cpu: self.owner, reason, pages });
            pages
        })
    }

    /// Gives the zone the blocks that have left the page set.
    fn give(self, pcp: &Pcp, mut leaving: Leaving, reason: DrainReason) -> u32 {
        let (frames, pages) = (&self.zone.body.frames, leaving.pages);
        self.zone.with_lock(self.platform, self.cpu, |locked| {
            let passage = locked.begin_passage(pcp.count);
            let mut given = 0;
            while let Some(frame) = leaving.blocks.pop_head(frames) {
                // A corrupted block has no order, so treat only its first frame as bad.
                let order = frames.state(frame).order().unwrap_or(Order::ZERO);
                given += locked.take_back(frame, order);
                if self.policy.ownership().is_some() {
                    locked.update_owner(frame);
                }
            }
            locked.end_passage(passage, given, 0, pcp.count);
            locked.emit(|| Event::PcpDrain { zone: locked.body.id, cpu: self.owner, reason, pages });
        });
        pages
    }

    fn report_pick(self, frame: FrameIndex, order: Order, prefetches_buddies: bool) {
        let (events, span) = (self.platform.events(), self.zone.body.span);
        let buddy = prefetches_buddies.then(|| span.pfn(frame ^ order.frames()));
        emit(events, self.cpu, || Event::DrainPick { pfn: span.pfn(frame), buddy });
    }
}

impl Pcp {
    /// Takes blocks off the lists as [`remove`](Self::remove) does, and calls `report` for each block.
    fn pick(
        &mut self,
        frames: &FrameTables<'_>,
        order: DrainOrder,
        from: DrainFrom,
        mut report: impl FnMut(FrameIndex, Order),
    ) -> Leaving {
        let mut blocks = List::EMPTY;
        let pages = self.remove(frames, order, from, |frame, order| {
            report(frame, order);
            blocks.push_tail(frames, frame);
        });
        Leaving { blocks, pages }
    }
}

impl<E: EventSink> LockedZone<'_, E> {
    /// Puts a block of a page set on the free lists. Returns the number of the block's pages, or 0 if the
    /// block is bad and goes out of service.
    #[inline]
    fn take_back(&mut self, frame: FrameIndex, order: Order) -> i64 {
        let frames = &self.body.frames;
        let state = frames.state(frame);
        if !state.is_cached() {
            self.leak(frame, order, FoundAt::Drain);
            return 0;
        }
        let migratetype = match (self.body.rules.drain_type, state) {
            (DrainType::Remembered, State::Cached { migratetype, .. })
                if self.body.gauges.isolated_pageblocks() == 0 =>
            {
                migratetype
            }
            _ => frames.pageblock_type(frame),
        };
        self.free_block(frame, order, migratetype, Placement::Likely);
        self.emit(|| Event::MmPagePcpuDrain { pfn: self.pfn(frame), order, migratetype });
        i64::from(order.frames())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::vec::Vec;

    use super::*;
    use crate::policy::{BatchRule, HighRule, LINUX_4_9, LINUX_4_15_PICKS, LINUX_4_18};
    use crate::{Config, CpuId, NodeId, PageAllocator, Pfn, Policy, Request, Tables, ZoneConfig, ZoneKind};

    #[derive(Default)]
    struct Host(Log);

    #[derive(Default)]
    struct Log(Mutex<Vec<Event>>);

    impl EventSink for Log {
        fn emit(&self, _: CpuId, event: Event) {
            self.0.lock().unwrap().push(event);
        }
    }

    impl Platform for Host {
        type RawLock = parking_lot::RawMutex;
        type Events = Log;

        fn events(&self) -> &Log {
            &self.0
        }
    }

    const BATCH: usize = 4;

    /// Runs one drain. Returns the free's events before the drain has the zone's lock, and the free's later
    /// events. Also returns the pages that the allocator hands out after all page sets were drained.
    fn one_drain(policy: Policy) -> (Vec<Event>, Vec<Event>, Vec<Pfn>) {
        let frames = [0..1024];
        let zones = [ZoneConfig { kind: ZoneKind::Normal, node: NodeId(0), span: 0..1024, regions: &frames }];
        let policy = Policy {
            batch: BatchRule::Fixed(BATCH as i32),
            high: HighRule::Fixed(2 * BATCH as i32),
            ..policy
        };
        let config = Config::new(&zones, &[NodeId(0)]).with_policy(policy);
        let allocator =
            PageAllocator::new(Host::default(), &config, Tables::on_heap(&config).unwrap()).unwrap();
        let page = || allocator.alloc(CpuId(0), &Request::new(Order::ZERO).movable()).unwrap();
        let held: Vec<_> = (0..3 * BATCH).map(|_| page()).collect();
        let log = || std::mem::take(&mut *allocator.platform().0.0.lock().unwrap());
        let mut of_drain = Vec::new();
        for page in &held {
            log();
            allocator.free(CpuId(0), *page, Order::ZERO).unwrap();
            of_drain = log();
            if of_drain.len() > 1 {
                break;
            }
        }
        let lock = of_drain.iter().position(|event| matches!(event, Event::ZoneLock { .. }));
        let inside = of_drain.split_off(lock.expect("a drain"));
        allocator.drain_all(CpuId(0)).unwrap();
        allocator.validate().unwrap_or_else(|violation| panic!("{violation}"));
        (of_drain, inside, (0..2 * BATCH).map(|_| page()).collect())
    }

    /// The first frames of the blocks that left the page set, in the order of their events.
    fn drained(events: &[Event]) -> Vec<Pfn> {
        let pfn = |event: &Event| match event {
            Event::MmPagePcpuDrain { pfn, .. } => Some(*pfn),
            _ => None,
        };
        events.iter().filter_map(pfn).collect()
    }

    #[test]
    fn picked_blocks_are_reported_before_the_lock_and_go_the_same_way() {
        let (before, inside, after) = one_drain(LINUX_4_9);
        assert_eq!(before.len(), 1, "only the free: {before:?}");
        let expected = drained(&inside);
        assert_eq!(expected.len(), BATCH);
        for (policy, prefetches) in [(LINUX_4_15_PICKS, false), (LINUX_4_18, true)] {
            let (picks, now_inside, now_after) = one_drain(policy);
            let pick =
                |pfn: &Pfn| Event::DrainPick { pfn: *pfn, buddy: prefetches.then_some(Pfn(pfn.0 ^ 1)) };
            assert_eq!(picks[1..], expected.iter().map(pick).collect::<Vec<_>>(), "{}", policy.name);
            assert_eq!((now_inside, now_after), (inside.clone(), after.clone()), "{}", policy.name);
        }
    }
}
