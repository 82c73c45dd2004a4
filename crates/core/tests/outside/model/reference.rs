//! The model: which frames are in use, as blocks by their first frame. Everything else follows from it.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use pageset_core::{
    AllocError, BelowHighMark, BlockInfo, BlockUse, CacheSlice, ConfigError, Counters, CpuId, FreeError,
    FreeTraits, MigrateType, NodeChoice, NodeId, Order, Pfn, Policy, Reclaim, Request, RequestTraits,
    Watermarks, ZoneId,
};

use super::machine::Machine;
use super::operation::{How, Operation, Wish};
use super::owners::Owners;
use crate::host::{Allocator, order};
use crate::steady;

/// Plays operations on a new allocator for `machine`, and compares each answer with the model's; after each `stride`
/// operations, and at the end, also all that can be seen of the allocator.
pub(crate) fn play(machine: &Machine, policy: Policy, operations: &[Operation], stride: usize) {
    let mut run = Run {
        machine,
        allocator: machine.build(policy),
        blocks: BTreeMap::new(),
        isolated: BTreeSet::new(),
        leaked: BTreeMap::new(),
        lost_by_users: 0,
        counters: Counters::default(),
        owners: Owners::default(),
    };
    for operations in operations.chunks(stride) {
        operations.iter().for_each(|operation| run.step(operation));
        let census = steady::check_all(&run.allocator, &mut run.counters, run.lost_by_users);
        assert_eq!(census.allocated, frames(&run.blocks), "after {operations:?}");
        assert_eq!(census.leaked, frames(&run.leaked), "after {operations:?}");
        run.owners.check(&run.allocator, &run.isolated);
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
    owners: Owners,
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
        let mut request = Request::new(order(wish.order));
        request.migratetype = wish.migratetype;
        request.highest_zone = wish.highest;
        request.nodes = match wish.node {
            None => NodeChoice::Local,
            Some((node, false)) => NodeChoice::Prefer(NodeId(node)),
            Some((node, true)) => NodeChoice::Only(NodeId(node)),
        };
        request.below = wish.below.map(Pfn);
        request.traits = wish.traits;
        request
    }

    fn local_node(&self, cpu: u32, request: &Request) -> u16 {
        match request.nodes {
            NodeChoice::Local => self.machine.cpus[cpu as usize],
            NodeChoice::Prefer(node) | NodeChoice::Only(node) => node.0,
        }
    }

    /// Whether a zone may serve a request.
    fn is_eligible(&self, cpu: u32, zone: &super::machine::ZoneShape, request: &Request) -> bool {
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
        assert!(self.machine.are_memory(&range), "{range:?} is not all memory");
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
        let receiver = self.owners.receiver(&self.allocator, cpu, pfn, order, traits);
        assert_eq!(self.allocator.free_with(CpuId(cpu), Pfn(pfn), order, traits), expected);
        if expected.is_ok() {
            self.blocks.remove(&pfn);
            receiver.check(&self.allocator);
        }
    }

    /// What frees and splits of a range answer.
    fn range_answer(&self, cpu: u32, range: &Range<u64>) -> Result<(), FreeError> {
        let first_not_ours = range.clone().find(|pfn| self.around(*pfn).is_none());
        if !self.knows(cpu) {
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
        }
    }

    fn split_range(&mut self, cpu: u32, range: Range<u64>) {
        let expected = self.range_answer(cpu, &range);
        assert_eq!(self.allocator.split_range(CpuId(cpu), range.clone()), expected, "{range:?}");
        let mut at = range.start;
        while expected.is_ok() && at < range.end {
            let (start, order) = self.around(at).expect("checked");
            at = start + u64::from(order.frames());
            self.blocks.extend((start..at).map(|frame| (frame, Order::ZERO)));
        }
    }

    fn free_range(&mut self, cpu: u32, range: Range<u64>) {
        let expected = self.range_answer(cpu, &range);
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
                let mut block = request;
                block.order = order;
                let expected = self.refusal(cpu, &block);
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

    fn mark_bad(&mut self, cpu: u32, pfn: u64, drained: bool) {
        let drain = || self.allocator.drain_all(CpuId(0)).expect("every machine has it");
        if drained {
            drain();
        }
        // What goes with the frame, if nobody uses it: the block that a page set holds, or nothing else.
        let cached = self.allocator.block_of(Pfn(pfn)).filter(|block| block.held_by == BlockUse::Pageset);
        let outcome = self.allocator.mark_bad(CpuId(cpu), Pfn(pfn));
        // A page set finds out when it gives the block away.
        drain();
        if !self.knows(cpu) {
            assert_eq!(outcome, Err(FreeError::BadCpu(CpuId(cpu))));
        } else if !self.machine.is_memory(pfn) {
            assert_eq!(outcome, Err(FreeError::Foreign(Pfn(pfn))));
        } else if around(&self.leaked, pfn).is_some() {
            assert_eq!(outcome, Err(FreeError::Leaked(Pfn(pfn))));
        } else {
            assert_eq!(outcome, Ok(()));
            if let Some((start, order)) = self.around(pfn) {
                self.blocks.remove(&start);
                self.leaked.insert(start, order);
                self.lost_by_users += u64::from(order.frames());
            } else if let Some(block) = cached {
                self.leaked.insert(block.first.0, block.order);
            } else {
                self.leaked.insert(pfn, Order::ZERO);
            }
        }
    }

    /// What can be asked about a frame, a zone and a CPU, whether they exist or not.
    fn look(&self, cpu: u32, zone: usize, pfn: u64) {
        let (allocator, frame) = (&self.allocator, Pfn(pfn));
        let zone_of = self.machine.zones.iter().position(|zone| zone.span.contains(&pfn));
        assert_eq!(allocator.zone_of(frame), zone_of.map(|zone| ZoneId(zone as u16)));
        assert_eq!(allocator.pageblock_type(frame).is_some(), zone_of.is_some());
        if let Some(zone) = zone_of {
            let is_isolated = self.isolated.contains(&(ZoneId(zone as u16), pfn >> 9));
            assert_eq!(allocator.pageblock_type(frame) == Some(MigrateType::Isolate), is_isolated);
        }
        let held = |(start, order), held_by| Some(BlockInfo { first: Pfn(start), order, held_by });
        let block = allocator.block_of(frame);
        if let Some(owned) = self.around(pfn) {
            assert_eq!(block, held(owned, BlockUse::Owner));
            assert!(allocator.is_allocated(Pfn(owned.0), owned.1));
        } else if let Some(leaked) = around(&self.leaked, pfn) {
            assert_eq!(block, held(leaked, BlockUse::Leaked));
        } else {
            assert_eq!(block.is_some(), self.machine.is_memory(pfn));
            assert!(
                block.is_none_or(|block| matches!(block.held_by, BlockUse::FreeList | BlockUse::Pageset))
            );
            assert!(Order::ZERO.and_above().all(|order| !allocator.is_allocated(frame, order)));
        }
        let id = ZoneId((zone % 5) as u16);
        let has_zone = self.zone_answer(id.0).is_ok();
        assert_eq!(allocator.zone_counters(id).is_some(), has_zone);
        assert_eq!(allocator.pageset_info(id, CpuId(cpu)).is_some(), has_zone && self.knows(cpu));
        assert_eq!(allocator.pageset_counters(id, CpuId(cpu)).is_some(), has_zone && self.knows(cpu));
    }

    /// What an operation must answer that names a CPU.
    fn cpu_answer(&self, cpu: u32) -> Result<(), ConfigError> {
        if self.knows(cpu) { Ok(()) } else { Err(ConfigError::BadCpu(cpu)) }
    }

    /// What an operation must answer that names a zone.
    fn zone_answer(&self, zone: u16) -> Result<(), ConfigError> {
        if usize::from(zone) < self.machine.zones.len() {
            Ok(())
        } else {
            Err(ConfigError::BadZone(ZoneId(zone)))
        }
    }

    /// The pageblock around a frame, for an operation of a CPU.
    fn pageblock(&self, cpu: u32, pfn: u64) -> Result<(ZoneId, u64), ConfigError> {
        self.cpu_answer(cpu)?;
        let zone = self.allocator.zone_of(Pfn(pfn)).ok_or(ConfigError::Foreign(Pfn(pfn)))?;
        Ok((zone, pfn >> 9))
    }

    fn isolate(&mut self, cpu: u32, pfn: u64) {
        let expected = self.pageblock(cpu, pfn).and_then(|pageblock| {
            let is_new = self.isolated.insert(pageblock);
            if is_new { Ok(()) } else { Err(ConfigError::AlreadyIsolated(Pfn(pfn))) }
        });
        assert_eq!(self.allocator.isolate_pageblock(CpuId(cpu), Pfn(pfn)), expected, "{pfn:#x}");
    }

    fn unisolate(&mut self, cpu: u32, pfn: u64, to: MigrateType) {
        let expected = self.pageblock(cpu, pfn).and_then(|pageblock| match to {
            MigrateType::Isolate => Err(ConfigError::BadType(to)),
            _ if self.isolated.remove(&pageblock) => Ok(()),
            _ => Err(ConfigError::NotIsolated(Pfn(pfn))),
        });
        assert_eq!(self.allocator.unisolate_pageblock(CpuId(cpu), Pfn(pfn), to), expected, "{pfn:#x}");
    }

    fn drain_cpu(&self, cpu: u32, owner: u32) {
        let expected = self.cpu_answer(cpu).and(self.cpu_answer(owner));
        assert_eq!(self.allocator.drain_cpu(CpuId(cpu), CpuId(owner)).map(drop), expected);
        for zone in self.allocator.zones().filter(|_| expected.is_ok()) {
            let info = self.allocator.pageset_info(zone.id, CpuId(owner));
            assert_eq!(info.map(|info| info.count), Some(0));
        }
    }

    fn drain_zone(&self, cpu: u32, zone: u16) {
        let expected = self.cpu_answer(cpu).and(self.zone_answer(zone));
        assert_eq!(self.allocator.drain_zone(CpuId(cpu), ZoneId(zone)).map(drop), expected);
        for cpu in (0..self.machine.cpus.len() as u32).filter(|_| expected.is_ok()) {
            let info = self.allocator.pageset_info(ZoneId(zone), CpuId(cpu));
            assert_eq!(info.map(|info| info.count), Some(0));
        }
    }

    fn drain_all(&self, cpu: u32) {
        let held = self.allocator.cached_pages();
        let expected = self.cpu_answer(cpu).map(|()| held);
        assert_eq!(self.allocator.drain_all(CpuId(cpu)), expected);
        assert_eq!(self.allocator.cached_pages(), if expected.is_ok() { 0 } else { held });
    }

    fn step(&mut self, operation: &Operation) {
        use Operation::*;
        match *operation {
            Alloc(cpu, wish) => self.alloc(cpu, &wish),
            AllocMany(cpu, wish, count) => (0..count).for_each(|_| self.alloc(cpu, &wish)),
            Free { cpu, block, how, traits } => {
                let Some((pfn, held)) = self.nth(block) else { return };
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
            SplitRange { cpu, block, offset, frames } => {
                let Some((pfn, _)) = self.nth(block) else { return };
                let start = pfn + offset % 16;
                self.split_range(cpu, start..start.saturating_add(frames));
            }
            AllocAt { cpu, zone, offset, wish } => {
                let pfn = self.machine.frame(zone, offset);
                let aligned = pfn & !((1 << wish.order) - 1);
                self.alloc_at(cpu, if offset % 9 == 0 { pfn } else { aligned }, &wish);
            }
            MarkBad { cpu, zone, offset, drained } => {
                self.mark_bad(cpu, self.machine.frame(zone, offset), drained);
            }
            Look { cpu, zone, offset } => self.look(cpu, zone, self.machine.frame(zone, offset)),
            _ => self.administer(operation),
        }
    }

    /// What a kernel does beside allocating and freeing.
    fn administer(&mut self, operation: &Operation) {
        use Operation::*;
        let allocator = &self.allocator;
        match *operation {
            Tick(cpu, times) => (0..times).for_each(|_| {
                assert_eq!(allocator.tick(CpuId(cpu)).map(drop), self.cpu_answer(cpu));
            }),
            DrainCpu(cpu, owner) => self.drain_cpu(cpu, owner),
            DrainZone(cpu, zone) => self.drain_zone(cpu, zone),
            DrainAll(cpu) => self.drain_all(cpu),
            Offline(cpu) => {
                assert_eq!(allocator.cpu_offline(CpuId(cpu)), self.cpu_answer(cpu));
                self.owners.leave(CpuId(cpu));
            }
            Online(cpu) => {
                assert_eq!(allocator.cpu_online(CpuId(cpu)), self.cpu_answer(cpu));
                self.owners.come(CpuId(cpu));
            }
            Isolate { cpu, zone, offset } => self.isolate(cpu, self.machine.frame(zone, offset)),
            Unisolate { cpu, zone, offset, to } => {
                let mut pfn = self.machine.frame(zone, offset);
                if offset % 4 > 0
                    && let Some(&(_, pageblock)) = self.isolated.iter().next()
                {
                    pfn = pageblock << 9;
                }
                self.unisolate(cpu, pfn, to);
            }
            Fraction(fraction) => {
                let expected =
                    if (1..8).contains(&fraction) { Err(ConfigError::BadFraction(fraction)) } else { Ok(()) };
                assert_eq!(allocator.set_percpu_pagelist_high_fraction(fraction), expected);
            }
            MinFree(kbytes) => allocator.set_min_free_kbytes(kbytes),
            ScaleFactor(factor) => allocator.set_watermark_scale_factor(factor),
            BoostFactor(factor) => allocator.set_watermark_boost_factor(factor),
            EndBoost(cpu, zone, frames) => {
                let expected = self.cpu_answer(cpu).and(self.zone_answer(zone));
                assert_eq!(allocator.end_boost(CpuId(cpu), ZoneId(zone), frames), expected);
            }
            SetReclaim(zone, active) => {
                let state = if active { Reclaim::Active } else { Reclaim::Idle };
                assert_eq!(allocator.set_reclaim_active(ZoneId(zone), state), self.zone_answer(zone));
            }
            SetBelowHigh(zone, below) => {
                let mark = if below { BelowHighMark::Below } else { BelowHighMark::Cleared };
                assert_eq!(allocator.set_below_high(ZoneId(zone), mark), self.zone_answer(zone));
            }
            SetCacheSlice(cpu, kib) => {
                let slice = CacheSlice { all_kib: kib, last_level_kib: kib };
                assert_eq!(allocator.set_cache_slice(CpuId(cpu), slice), self.cpu_answer(cpu));
            }
            SetWatermarks { zone, min, step } => {
                let step = step.min((u64::MAX - min) / 3);
                let [low, high] = [1, 2].map(|steps| min + steps * step);
                let watermarks = Watermarks { min, low, high };
                assert_eq!(allocator.set_watermarks(ZoneId(zone), watermarks), self.zone_answer(zone));
            }
            _ => unreachable!("{operation:?} is for `step`"),
        }
    }

    /// Gives everything back: then all memory is free again.
    fn finish(&mut self) {
        while let Some((pfn, order)) = self.nth(0) {
            self.free(0, pfn, order, FreeTraits::empty());
        }
        self.allocator.drain_all(CpuId(0)).expect("every machine has it");
        let census = self.allocator.validate().expect("no operation broke anything");
        assert_eq!((census.allocated, census.cached, census.leaked), (0, 0, frames(&self.leaked)));
    }
}
