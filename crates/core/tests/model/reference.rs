//! The model: which frames are in use, as blocks by their first frame. Everything else follows from it.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use pageset_core::{
    AllocError, BelowHighMark, CacheSlice, ConfigError, Counters, CpuId, FreeError, FreeTraits, MigrateType,
    NodeChoice, NodeId, Order, Pfn, Policy, Reclaim, Request, RequestTraits, ZoneId,
};

use crate::host::{Allocator, order};
use crate::machine::Machine;
use crate::operation::{How, Operation, Wish};
use crate::steady;

/// Plays operations on a new allocator for `machine`, and compares everything with the model.
pub(crate) fn play(machine: &Machine, policy: Policy, operations: &[Operation]) {
    let mut run = Run {
        machine,
        allocator: machine.build(policy),
        blocks: BTreeMap::new(),
        isolated: BTreeSet::new(),
        leaked: BTreeMap::new(),
        lost_by_users: 0,
        counters: Counters::default(),
    };
    for operation in operations {
        run.step(operation);
        steady::check_all(&run.allocator, &mut run.counters, run.lost_by_users);
        let census = run.allocator.validate().expect("checked");
        assert_eq!(census.allocated, frames(&run.blocks), "after {operation:?}");
        assert_eq!(census.leaked, frames(&run.leaked), "after {operation:?}");
    }
    run.finish();
}

struct Run<'m> {
    machine: &'m Machine,
    allocator: Allocator,
    /// Blocks in use, by first frame.
    blocks: BTreeMap<u64, Order>,
    /// Isolated pageblocks, as (zone, number of the pageblock).
    isolated: BTreeSet<(ZoneId, u64)>,
    /// Blocks out of service, by first frame.
    leaked: BTreeMap<u64, Order>,
    /// Frames that were in use when they went out of service.
    lost_by_users: u64,
    counters: Counters,
}

fn frames(blocks: &BTreeMap<u64, Order>) -> u64 {
    blocks.values().map(|order| u64::from(order.frames())).sum()
}

/// The block around a frame.
fn around(blocks: &BTreeMap<u64, Order>, pfn: u64) -> Option<(u64, Order)> {
    let (start, order) = blocks.range(..=pfn).next_back()?;
    (pfn < start + u64::from(order.frames())).then_some((*start, *order))
}

/// The largest aligned blocks that make up a range.
fn cut(range: Range<u64>) -> impl Iterator<Item = (u64, Order)> {
    let mut at = range.start;
    std::iter::from_fn(move || {
        let size =
            (0..=10).rev().find(|size| at.is_multiple_of(1 << size) && at + (1 << size) <= range.end)?;
        let block = (at, order(size));
        at += 1 << size;
        Some(block)
    })
}

impl Run<'_> {
    fn knows(&self, cpu: u32) -> bool {
        (cpu as usize) < self.machine.cpus.len()
    }

    fn around(&self, pfn: u64) -> Option<(u64, Order)> {
        around(&self.blocks, pfn)
    }

    fn overlaps(&self, range: Range<u64>) -> bool {
        [&self.blocks, &self.leaked].iter().any(|blocks| {
            around(blocks, range.start).is_some() || blocks.range(range.clone()).next().is_some()
        })
    }

    fn nth(&self, index: usize) -> Option<(u64, Order)> {
        let nth = index.checked_rem(self.blocks.len())?;
        self.blocks.iter().nth(nth).map(|(start, order)| (*start, *order))
    }

    fn request(wish: &Wish) -> Request {
        let nodes = match wish.node {
            None => NodeChoice::Local,
            Some((node, false)) => NodeChoice::Prefer(NodeId(node)),
            Some((node, true)) => NodeChoice::Only(NodeId(node)),
        };
        Request {
            order: order(wish.order),
            migratetype: wish.migratetype,
            highest_zone: wish.highest,
            nodes,
            below: wish.below.map(Pfn),
            traits: wish.traits,
        }
    }

    fn local_node(&self, cpu: u32, request: &Request) -> u16 {
        match request.nodes {
            NodeChoice::Local => self.machine.cpus[cpu as usize],
            NodeChoice::Prefer(node) | NodeChoice::Only(node) => node.0,
        }
    }

    /// Whether a zone may serve a request.
    fn is_eligible(&self, cpu: u32, zone: &crate::machine::ZoneShape, request: &Request) -> bool {
        zone.kind <= request.highest_zone
            && request.below.is_none_or(|limit| zone.span.end <= limit.0)
            && (!matches!(request.nodes, NodeChoice::Only(_)) || zone.node == self.local_node(cpu, request))
    }

    /// The error that an allocation must give whatever the memory looks like.
    fn refusal(&self, cpu: u32, request: &Request) -> Option<AllocError> {
        if !self.knows(cpu) {
            return Some(AllocError::BadCpu(CpuId(cpu)));
        }
        if request.migratetype.index() >= MigrateType::PCP_COUNT {
            return Some(AllocError::BadType(request.migratetype));
        }
        let bad_node = self.local_node(cpu, request) >= self.machine.nodes();
        let none = !self.machine.zones.iter().any(|zone| self.is_eligible(cpu, zone, request));
        (bad_node || none).then_some(AllocError::NoEligibleZone)
    }

    /// Takes note of frames that the allocator handed out.
    #[track_caller]
    fn obtain(&mut self, range: Range<u64>) {
        assert!(!self.overlaps(range.clone()), "{range:?} was handed out twice");
        for pfn in range.clone() {
            assert!(self.machine.is_memory(pfn), "{pfn:#x} is no memory");
        }
        self.blocks.extend(cut(range));
    }

    fn alloc(&mut self, cpu: u32, wish: &Wish) {
        let request = Self::request(wish);
        let outcome = self.allocator.alloc(CpuId(cpu), &request);
        match (outcome, self.refusal(cpu, &request)) {
            (Err(error), Some(expected)) => assert_eq!(error, expected),
            (Ok(pfn), None) => {
                assert!(pfn.is_aligned(request.order), "{pfn} for {request:?}");
                let zone = self.machine.zone_of(pfn.0).expect("checked below");
                assert!(self.is_eligible(cpu, zone, &request), "{pfn} for {request:?}");
                self.obtain(pfn.0..pfn.0 + u64::from(request.order.frames()));
            }
            (Err(error), None) => {
                assert_eq!(error, AllocError::OutOfMemory { order: request.order });
                self.check_exhausted(cpu, &request);
            }
            (Ok(pfn), Some(expected)) => panic!("got {pfn} instead of {expected}"),
        }
    }

    /// A request for one page that ignores watermarks and may wait fails only if there is no page, but for those of
    /// contiguous areas, which are for movable requests.
    fn check_exhausted(&self, cpu: u32, request: &Request) {
        let desperate = RequestTraits::NO_WATERMARKS | RequestTraits::MAY_WAIT;
        let may_all =
            request.traits.contains(desperate) && !request.traits.contains(RequestTraits::NO_RESERVES);
        if request.order != Order::ZERO || !may_all {
            return;
        }
        for (shape, zone) in self.machine.zones.iter().zip(self.allocator.zones()) {
            if self.is_eligible(cpu, shape, request) {
                assert!(zone.free == 0 || self.has_cma(), "{request:?} found nothing in {zone:?}");
            }
        }
    }

    fn has_cma(&self) -> bool {
        let pageblocks = self.machine.zones.iter().flat_map(|zone| zone.span.clone().step_by(512));
        let ends = self.machine.zones.iter().map(|zone| zone.span.end - 1);
        pageblocks.chain(ends).any(|pfn| self.allocator.pageblock_type(Pfn(pfn)) == Some(MigrateType::Cma))
    }

    /// What a free must answer.
    fn free_answer(&self, cpu: u32, pfn: u64, given: Order) -> Result<(), FreeError> {
        let frame = Pfn(pfn);
        if !self.knows(cpu) {
            return Err(FreeError::BadCpu(CpuId(cpu)));
        }
        if !self.machine.is_memory(pfn) {
            return Err(FreeError::Foreign(frame));
        }
        match self.around(pfn) {
            None => Err(match around(&self.leaked, pfn) {
                Some((start, _)) if start == pfn => FreeError::Leaked(frame),
                Some(_) => FreeError::NotABlock(frame),
                None => FreeError::DoubleFree(frame),
            }),
            Some((start, _)) if start != pfn => Err(FreeError::NotABlock(frame)),
            Some((_, allocated)) if allocated != given => {
                Err(FreeError::WrongOrder { pfn: frame, given, allocated })
            }
            Some(_) => Ok(()),
        }
    }

    fn free(&mut self, cpu: u32, pfn: u64, order: Order, traits: FreeTraits) {
        let expected = self.free_answer(cpu, pfn, order);
        assert_eq!(self.allocator.free_with(CpuId(cpu), Pfn(pfn), order, traits), expected);
        if expected.is_ok() {
            self.blocks.remove(&pfn);
        }
    }

    fn free_range(&mut self, cpu: u32, range: Range<u64>) {
        let first_not_ours = range.clone().find(|pfn| self.around(*pfn).is_none());
        let expected = if !self.knows(cpu) {
            Err(FreeError::BadCpu(CpuId(cpu)))
        } else if let Some(pfn) = first_not_ours {
            Err(if !self.machine.is_memory(pfn) {
                FreeError::Foreign(Pfn(pfn))
            } else if around(&self.leaked, pfn).is_some() {
                FreeError::Leaked(Pfn(pfn))
            } else {
                FreeError::DoubleFree(Pfn(pfn))
            })
        } else {
            Ok(())
        };
        assert_eq!(self.allocator.free_range(CpuId(cpu), range.clone()), expected, "{range:?}");
        if expected.is_err() {
            return;
        }
        let mut at = range.start;
        while at < range.end {
            let (start, order) = self.around(at).expect("checked");
            let end = start + u64::from(order.frames());
            self.blocks.remove(&start);
            self.blocks.extend(cut(start..range.start.max(start)));
            self.blocks.extend(cut(range.end.min(end)..end));
            at = end;
        }
    }

    fn free_batch(&mut self, cpu: u32, index: usize, count: u8, twice: bool) {
        let mut batch: Vec<_> =
            (0..usize::from(count)).filter_map(|at| self.nth(index.wrapping_add(at * 7))).collect();
        if !twice {
            batch.sort();
            batch.dedup();
        }
        let mut expected = Ok(());
        for (at, &(pfn, order)) in batch.iter().enumerate() {
            match self.free_answer(cpu, pfn, order) {
                Ok(()) => drop(self.blocks.remove(&pfn)),
                Err(error) if expected.is_ok() => expected = Err((at, error)),
                Err(_) => {}
            }
        }
        let batch: Vec<_> = batch.into_iter().map(|(pfn, order)| (Pfn(pfn), order)).collect();
        assert_eq!(self.allocator.free_batch(CpuId(cpu), &batch), expected);
    }

    fn bulk(&mut self, cpu: u32, wish: &Wish, slots: u8, filled: u8) {
        let request = Self::request(wish);
        let filled = filled.min(slots);
        let mut pages: Vec<_> =
            (0..slots).map(|slot| (slot % 3 == 0 && slot < filled).then_some(Pfn(u64::MAX))).collect();
        let before = pages.iter().flatten().count();
        let outcome = self.allocator.alloc_bulk(CpuId(cpu), &request, &mut pages);
        let got: Vec<_> = pages.iter().flatten().filter(|pfn| pfn.0 != u64::MAX).map(|pfn| pfn.0).collect();
        for pfn in &got {
            self.obtain(*pfn..pfn + 1);
        }
        match outcome {
            Ok(present) => {
                assert_eq!(present, before + got.len());
                assert!(pages.iter().flatten().count() == present);
            }
            Err(error) => {
                assert!(got.is_empty());
                if request.order != Order::ZERO {
                    assert_eq!(error, AllocError::BulkOrder(request.order));
                } else if let Some(expected) = self.refusal(cpu, &request) {
                    assert_eq!(error, expected);
                } else {
                    assert_eq!(error, AllocError::OutOfMemory { order: Order::ZERO });
                }
            }
        }
    }

    fn exact(&mut self, cpu: u32, wish: &Wish, frames: u64) {
        let request = Self::request(wish);
        match self.allocator.alloc_exact(CpuId(cpu), frames, &request) {
            Ok(pfn) => self.obtain(pfn.0..pfn.0 + frames),
            Err(error) => {
                let Some(order) = Order::holding(frames) else {
                    assert_eq!(error, AllocError::BadCount(frames));
                    return;
                };
                let expected = self.refusal(cpu, &Request { order, ..request });
                assert_eq!(error, expected.unwrap_or(AllocError::OutOfMemory { order }));
            }
        }
    }

    fn alloc_at(&mut self, cpu: u32, pfn: u64, wish: &Wish) {
        let request = Self::request(wish);
        let order = request.order;
        let range = pfn..pfn + u64::from(order.frames());
        let outcome = self.allocator.alloc_at(CpuId(cpu), Pfn(pfn), &request);
        if !self.knows(cpu) {
            assert_eq!(outcome, Err(AllocError::BadCpu(CpuId(cpu))));
        } else if request.migratetype.index() >= MigrateType::PCP_COUNT {
            assert_eq!(outcome, Err(AllocError::BadType(request.migratetype)));
        } else if !pfn.is_multiple_of(u64::from(order.frames())) {
            assert_eq!(outcome, Err(AllocError::Misaligned(Pfn(pfn), order)));
        } else if !self.machine.is_memory(pfn) {
            assert_eq!(outcome, Err(AllocError::Foreign(Pfn(pfn))));
        } else if self.around(pfn).is_some() || around(&self.leaked, pfn).is_some() {
            assert_eq!(outcome, Err(AllocError::NotFree(Pfn(pfn))));
        } else {
            match outcome {
                Ok(()) => self.obtain(range),
                Err(AllocError::NotFree(at)) => assert_eq!(at, Pfn(pfn)),
                Err(error) => assert_eq!(error, AllocError::OutOfMemory { order }),
            }
        }
    }

    fn mark_bad(&mut self, cpu: u32, pfn: u64) {
        // What a page set holds of a block is not known here; without, one frame goes.
        self.allocator.drain_all(CpuId(0));
        let outcome = self.allocator.mark_bad(CpuId(cpu), Pfn(pfn));
        if !self.knows(cpu) {
            assert_eq!(outcome, Err(FreeError::BadCpu(CpuId(cpu))));
        } else if !self.machine.is_memory(pfn) {
            assert_eq!(outcome, Err(FreeError::Foreign(Pfn(pfn))));
        } else if around(&self.leaked, pfn).is_some() {
            assert_eq!(outcome, Err(FreeError::Leaked(Pfn(pfn))));
        } else {
            assert_eq!(outcome, Ok(()));
            match self.around(pfn) {
                Some((start, order)) => {
                    self.blocks.remove(&start);
                    self.leaked.insert(start, order);
                    self.lost_by_users += u64::from(order.frames());
                }
                None => drop(self.leaked.insert(pfn, Order::ZERO)),
            }
        }
    }

    fn pageblock(&self, pfn: u64) -> Option<(ZoneId, u64)> {
        Some((self.allocator.zone_of(Pfn(pfn))?, pfn >> 9))
    }

    fn step(&mut self, operation: &Operation) {
        use Operation::*;
        let allocator = &self.allocator;
        match *operation {
            Alloc(cpu, wish) => self.alloc(cpu, &wish),
            AllocMany(cpu, wish, count) => (0..count).for_each(|_| self.alloc(cpu, &wish)),
            Free { cpu, block, how, busy } => {
                let Some((pfn, held)) = self.nth(block) else { return };
                let traits = if busy { FreeTraits::PCP_BUSY } else { FreeTraits::empty() };
                match how {
                    How::Right => self.free(cpu, pfn, held, traits),
                    How::Order(given) => self.free(cpu, pfn, order(given), traits),
                    How::Inside(offset) => self.free(cpu, pfn + offset, held, traits),
                    How::Twice => (0..2).for_each(|_| self.free(cpu, pfn, held, traits)),
                }
            }
            FreeMany { cpu, block, count } => {
                for at in 0..usize::from(count) {
                    let Some((pfn, held)) = self.nth(block.wrapping_add(at)) else { return };
                    self.free(cpu, pfn, held, FreeTraits::empty());
                }
            }
            FreeFrame { cpu, pfn, order: given } => self.free(cpu, pfn, order(given), FreeTraits::empty()),
            FreeBatch { cpu, block, count, twice } => self.free_batch(cpu, block, count, twice),
            Bulk { cpu, wish, slots, filled } => self.bulk(cpu, &wish, slots, filled),
            Exact { cpu, wish, frames } => self.exact(cpu, &wish, frames),
            FreeRange { cpu, block, offset, frames } => {
                let Some((pfn, _)) = self.nth(block) else { return };
                let start = pfn + offset % 16;
                self.free_range(cpu, start..start.saturating_add(frames));
            }
            AllocAt { cpu, zone, offset, wish } => {
                let pfn = self.machine.frame(zone, offset);
                let aligned = pfn & !((1 << wish.order) - 1);
                self.alloc_at(cpu, if offset % 9 == 0 { pfn } else { aligned }, &wish);
            }
            Tick(cpu, times) => (0..times).for_each(|_| {
                self.allocator.tick(CpuId(cpu));
            }),
            DrainCpu(cpu, owner) => {
                allocator.drain_cpu(CpuId(cpu), CpuId(owner));
                for zone in allocator.zones().filter(|_| self.knows(owner)) {
                    let info = allocator.pageset_info(zone.id, CpuId(owner));
                    assert_eq!(info.map(|info| info.count), Some(0));
                }
            }
            DrainZone(cpu, zone) => drop(allocator.drain_zone(CpuId(cpu), ZoneId(zone))),
            DrainAll(cpu) => {
                let held = allocator.cached_pages();
                assert_eq!(allocator.drain_all(CpuId(cpu)), held);
                assert_eq!(allocator.cached_pages(), 0);
            }
            Offline(cpu) => assert_eq!(allocator.cpu_offline(CpuId(cpu)).is_ok(), self.knows(cpu)),
            Online(cpu) => {
                let expected = if self.knows(cpu) { Ok(()) } else { Err(ConfigError::BadCpu(cpu)) };
                assert_eq!(allocator.cpu_online(CpuId(cpu)), expected);
            }
            Isolate { zone, offset } => {
                let pfn = self.machine.frame(zone, offset);
                let fresh = self.pageblock(pfn).is_some_and(|pageblock| self.isolated.insert(pageblock));
                assert_eq!(self.allocator.isolate_pageblock(CpuId(0), Pfn(pfn)), fresh, "{pfn:#x}");
            }
            Unisolate { zone, offset, to } => {
                let mut pfn = self.machine.frame(zone, offset);
                if offset % 4 > 0
                    && let Some(&(_, pageblock)) = self.isolated.iter().next()
                {
                    pfn = pageblock << 9;
                }
                let pageblock = self.pageblock(pfn).filter(|_| to != MigrateType::Isolate);
                let known = pageblock.is_some_and(|pageblock| self.isolated.remove(&pageblock));
                assert_eq!(self.allocator.unisolate_pageblock(CpuId(0), Pfn(pfn), to), known, "{pfn:#x}");
            }
            Fraction(fraction) => {
                let expected =
                    if (1..8).contains(&fraction) { Err(ConfigError::BadFraction(fraction)) } else { Ok(()) };
                assert_eq!(allocator.set_percpu_pagelist_high_fraction(fraction), expected);
            }
            MinFree(kbytes) => allocator.set_min_free_kbytes(kbytes),
            ScaleFactor(factor) => allocator.set_watermark_scale_factor(factor),
            BoostFactor(factor) => allocator.set_watermark_boost_factor(factor),
            EndBoost(zone, frames) => allocator.end_boost(CpuId(0), ZoneId(zone), frames),
            SetReclaim(zone, active) => {
                let state = if active { Reclaim::Active } else { Reclaim::Idle };
                allocator.set_reclaim_active(ZoneId(zone), state);
            }
            SetBelowHigh(zone, below) => {
                let mark = if below { BelowHighMark::Below } else { BelowHighMark::Cleared };
                allocator.set_below_high(ZoneId(zone), mark);
            }
            MarkBad { cpu, zone, offset } => {
                let pfn = self.machine.frame(zone, offset);
                self.mark_bad(cpu, pfn);
            }
            SetCacheSlice(cpu, kib) => {
                let slice = CacheSlice { all_kib: kib, last_level_kib: kib };
                assert_eq!(allocator.set_cache_slice(CpuId(cpu), slice).is_ok(), self.knows(cpu));
            }
        }
    }

    /// Gives everything back: then all memory is free again.
    fn finish(&mut self) {
        while let Some((pfn, order)) = self.nth(0) {
            self.free(0, pfn, order, FreeTraits::empty());
        }
        self.allocator.drain_all(CpuId(0));
        let census = self.allocator.validate().expect("no operation broke anything");
        assert_eq!((census.allocated, census.cached, census.leaked), (0, 0, frames(&self.leaked)));
    }
}
