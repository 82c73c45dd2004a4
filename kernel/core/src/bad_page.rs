//! Bad pages: a page that cannot be trusted goes out of service, so that no user gets it. All counts of pages
//! stay right.
//!
//! A block is bad if a caller reported the block, or if the block's metadata contradicts the list that holds
//! the block. The allocator notices a bad block when the block moves: in a refill, allocation, free or drain.
//! The block is then leaked on purpose and reported. No loop tries a bad block again, so no loop can hang
//! (the 2016 series, patch 1; spec §4.4, §7).

use crate::allocator::PageAllocator;
use crate::error::FreeError;
use crate::frame::State;
use crate::platform::Platform;
use crate::{CpuId, Order, Pfn};

impl<P: Platform> PageAllocator<'_, P> {
    /// Takes a frame out of service, usually because hardware reported it as failing. A free frame goes out
    /// of service at once, alone. Any other frame goes out of service with its whole block, when the block is
    /// freed, drained or about to be handed out. Race: meanwhile, another CPU takes the block from its page
    /// set. The other CPU may still hand the block out, so call again if the frame must not be used.
    ///
    /// # Errors
    /// [`FreeError::Foreign`] if the frame is not memory of this allocator, [`FreeError::Leaked`] if the
    /// frame is out of service already, [`FreeError::BadCpu`] for an unknown CPU.
    pub fn mark_bad(&self, cpu: CpuId, pfn: Pfn) -> Result<(), FreeError> {
        if cpu.index() >= self.cpus() {
            return Err(FreeError::BadCpu(cpu));
        }
        let (zone, frame) = self.locate(pfn).ok_or(FreeError::Foreign(pfn))?;
        zone.with_lock(self.platform(), cpu, |locked| {
            let frames = &locked.body.frames;
            loop {
                match frames.covering_block(frame) {
                    None => return Err(FreeError::Foreign(pfn)),
                    Some((_, State::Leaked { .. })) => return Err(FreeError::Leaked(pfn)),
                    Some((_, State::Free { .. })) if locked.take_at(frame, Order::ZERO) => {
                        frames.set_state(frame, State::Leaked { order: Order::ZERO });
                        return Ok(());
                    }
                    Some((head, state)) => {
                        // Race: the block's user or page set changes the block meanwhile. The exchange of the
                        // block's state fails in this race, and the loop reads the state again.
                        let Some(order) = state.order() else { return Err(FreeError::Foreign(pfn)) };
                        if frames.exchange_state(head, state, State::Leaked { order }) {
                            return Ok(());
                        }
                    }
                }
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::vec::Vec;

    use super::*;
    use crate::event::{Event, EventSink, FoundAt};
    use crate::policy::BatchRule;
    use crate::{
        Config, MigrateType, NodeId, POLICIES, Policy, Request, RequestTraits, Tables, ZoneConfig, ZoneKind,
    };

    #[derive(Default)]
    struct Host(Bad);

    #[derive(Default)]
    struct Bad(Mutex<Vec<(Pfn, FoundAt)>>);

    impl EventSink for Bad {
        fn emit(&self, _: CpuId, event: Event) {
            if let Event::BadPage { pfn, found, .. } = event {
                self.0.lock().unwrap().push((pfn, found));
            }
        }
    }

    impl Platform for Host {
        type RawLock = parking_lot::RawMutex;
        type Events = Bad;

        fn events(&self) -> &Bad {
            &self.0
        }
    }

    const CPU: CpuId = CpuId(0);

    /// Number of frames of the machine: just enough for a batch of more than one page. Miri checks every
    /// atomic of a table whenever the table is borrowed, so Miri's run time grows with the square of the
    /// number of frames. Under miri the machine is smaller, and the policy has a fixed batch.
    const FRAMES: u64 = if cfg!(miri) { 2048 } else { 12_288 };

    fn policies() -> Vec<Policy> {
        match cfg!(miri) {
            true => std::vec![Policy { batch: BatchRule::Fixed(3), ..crate::policy::LINUX_6_19 }],
            // The tests of this file expect refills of single pages. If CPUs own pageblocks, a refill takes
            // larger blocks, so `pcp/owned/tests.rs` tests the policies with owners.
            false => POLICIES.iter().filter(|policy| policy.ownership.is_none()).copied().collect(),
        }
    }

    fn allocator(policy: &Policy) -> PageAllocator<'static, Host> {
        let frames = [0..FRAMES];
        let zones =
            [ZoneConfig { kind: ZoneKind::Normal, node: NodeId(0), span: 0..FRAMES, regions: &frames }];
        let config = Config::new(&zones, &[NodeId(0)]).with_policy(*policy);
        PageAllocator::new(Host::default(), &config, Tables::on_heap(&config).unwrap()).unwrap()
    }

    /// Corrupts the state of a block on a list, so that the state contradicts the list.
    fn corrupt(allocator: &PageAllocator<'_, Host>, pfn: Pfn) {
        let (zone, frame) = allocator.locate(pfn).unwrap();
        let order = zone.body.frames.state(frame).order().unwrap();
        zone.body.frames.set_state(frame, State::Leaked { order });
    }

    fn found(allocator: &PageAllocator<'_, Host>) -> Vec<(u64, FoundAt)> {
        allocator.platform().0.0.lock().unwrap().iter().map(|(pfn, found)| (pfn.0, *found)).collect()
    }

    #[track_caller]
    fn check(allocator: &PageAllocator<'_, Host>, leaked: u64) {
        allocator.drain_all(CPU).unwrap();
        let census = allocator.validate().unwrap_or_else(|violation| panic!("{violation}"));
        assert_eq!((census.leaked, census.cached), (leaked, 0), "{}", allocator.policy().name);
    }

    #[test]
    fn a_block_found_bad_at_refill_is_not_counted_as_fetched() {
        for policy in policies() {
            let allocator = allocator(&policy);
            // The first refill begins with the block at frame 0.
            corrupt(&allocator, Pfn(0));
            let page = allocator.alloc(CPU, &Request::new(Order::ZERO).movable()).unwrap();
            assert_eq!(page, Pfn(1), "{}", policy.name);
            assert_eq!(found(&allocator), [(0, FoundAt::Refill)], "{}", policy.name);
            let counters = allocator.counters();
            let batch = allocator.pageset_info(crate::ZoneId(0), CPU).unwrap().batch as u64;
            assert_eq!((counters.refilled_pages, counters.bad_pages), (batch - 1, 1), "{}", policy.name);
            allocator.free(CPU, page, Order::ZERO).unwrap();
            check(&allocator, 1);
        }
    }

    #[test]
    fn a_block_found_bad_at_allocation_gives_way_to_the_next() {
        for policy in policies() {
            let allocator = allocator(&policy);
            let request = Request::new(Order::ZERO).movable();
            let first = allocator.alloc(CPU, &request).unwrap();
            corrupt(&allocator, Pfn(1));
            assert_eq!(allocator.alloc(CPU, &request), Ok(Pfn(2)), "{}", policy.name);
            assert_eq!(found(&allocator), [(1, FoundAt::Alloc)]);
            [first, Pfn(2)].into_iter().for_each(|pfn| allocator.free(CPU, pfn, Order::ZERO).unwrap());
            check(&allocator, 1);
        }
    }

    #[test]
    fn a_block_found_bad_at_direct_allocation_gives_way_too() {
        for policy in policies() {
            let allocator = allocator(&policy);
            corrupt(&allocator, Pfn(0));
            let busy = Request::new(Order::ZERO).movable().with(RequestTraits::BYPASS_PCP);
            let page = allocator.alloc(CPU, &busy).unwrap();
            assert_eq!((page, found(&allocator)), (Pfn(1), std::vec![(0, FoundAt::DirectAlloc)]));
            allocator.free(CPU, page, Order::ZERO).unwrap();
            check(&allocator, 1);
        }
    }

    #[test]
    fn a_block_found_bad_at_drain_does_not_return_to_the_free_lists() {
        for policy in policies() {
            let allocator = allocator(&policy);
            let page = allocator.alloc(CPU, &Request::new(Order::ZERO).movable()).unwrap();
            corrupt(&allocator, Pfn(1));
            allocator.free(CPU, page, Order::ZERO).unwrap();
            check(&allocator, 1);
            assert_eq!(found(&allocator), [(1, FoundAt::Drain)], "{}", policy.name);
        }
    }

    #[test]
    fn a_block_found_bad_at_free_stays_out_of_service() {
        for policy in policies() {
            let allocator = allocator(&policy);
            let order = Order::new(2).unwrap();
            let page = allocator.alloc(CPU, &Request::new(order)).unwrap();
            allocator.mark_bad(CPU, Pfn(page.0 + 3)).unwrap();
            assert_eq!(allocator.free(CPU, page, order), Err(FreeError::Leaked(page)));
            assert_eq!(found(&allocator), [(page.0, FoundAt::Free)], "{}", policy.name);
            assert_eq!(allocator.counters().pgfree, 0);
            check(&allocator, 4);
        }
    }

    #[test]
    fn a_free_frame_is_taken_out_at_once() {
        let allocator = allocator(&POLICIES[0]);
        allocator.mark_bad(CPU, Pfn(700)).unwrap();
        assert_eq!(allocator.mark_bad(CPU, Pfn(700)), Err(FreeError::Leaked(Pfn(700))));
        assert_eq!(allocator.mark_bad(CPU, Pfn(70_000)), Err(FreeError::Foreign(Pfn(70_000))));
        check(&allocator, 1);
        assert_eq!(allocator.zones().next().unwrap().free, FRAMES - 1);
    }

    /// Tests that a refill does not count bad blocks. If a refill counted bad blocks, the page set's count
    /// would exceed its pages, and a drain of the page set might never end (spec §4.4).
    #[test]
    fn a_refill_of_bad_blocks_only_ends() {
        for policy in policies() {
            let allocator = allocator(&policy);
            let request = Request::new(Order::ZERO).of_type(MigrateType::Movable);
            let page = allocator.alloc(CPU, &request).unwrap();
            allocator.drain_all(CPU).unwrap();
            // The test makes the first frame of every free block bad, so the next refill meets a bad block.
            let heads: Vec<u64> = allocator
                .zones()
                .next()
                .unwrap()
                .span
                .filter(|pfn| {
                    let (zone, frame) = allocator.locate(Pfn(*pfn)).unwrap();
                    matches!(zone.body.frames.state(frame), State::Free { .. })
                })
                .collect();
            heads.iter().for_each(|pfn| corrupt(&allocator, Pfn(*pfn)));
            let next = allocator.alloc(CPU, &request);
            assert!(next.is_ok(), "{}: {next:?}", policy.name);
            allocator.free(CPU, page, Order::ZERO).unwrap();
            allocator.drain_all(CPU).unwrap();
            assert!(allocator.counters().bad_pages > 0);
        }
    }

    /// Tests a fallback that meets a bad block. Linux 6.1 moves a pageblock's free blocks to the wanted type
    /// and searches again. If a bad block stayed behind, the search would find the bad block again and again,
    /// with the zone's lock held.
    #[test]
    fn a_bad_block_of_another_type_does_not_keep_a_fallback_searching() {
        let order = Order::new(3).unwrap();
        for policy in policies() {
            let allocator = allocator(&policy);
            let desperate = |order| Request::new(order).with(RequestTraits::NO_WATERMARKS);
            while allocator.alloc(CPU, &desperate(Order::MAX).movable()).is_ok() {}
            // Only one small block is left, and the test makes this block bad.
            allocator.free_range(CPU, 8..16).unwrap();
            allocator.drain_all(CPU).unwrap();
            corrupt(&allocator, Pfn(8));
            assert!(allocator.alloc(CPU, &desperate(order)).is_err(), "{}", policy.name);
            check(&allocator, 8);
        }
    }
}
