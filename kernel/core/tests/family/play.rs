//! Plays operations on an allocator, and compares each answer with the model's.

use std::ops::Range;

use pageset_core::{
    AllocError, ConfigError, CpuId, FrameAllocator, FreeError, FreeTraits, MigrateType, NodeChoice, NodeId,
    Order, Pfn, Request, RequestTraits, Watermarks, ZoneId,
};

use super::machine::{Machine, order};
use super::model::{Model, around, cut, frames};
use super::operation::{How, Operation, Wish};
use super::subject::{Administered, Subject};

/// Plays operations on a new allocator for `machine`. Checks the allocator's whole visible state after every
/// `stride` operations, and at the end.
pub(crate) fn play(subject: impl Subject, machine: &Machine, operations: &[Operation], stride: usize) {
    let mut run = Run { subject, model: Model::new(machine) };
    for operations in operations.chunks(stride) {
        operations.iter().for_each(|operation| run.step(operation));
        run.check(operations);
    }
    run.finish();
}

struct Run<S> {
    subject: S,
    model: Model,
}

/// Returns a frame from 8 frames before `pfn` to 15 frames after `pfn`.
fn near(pfn: u64, offset: u64) -> u64 {
    (pfn + offset % 24).saturating_sub(8)
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
    request.zones_below = wish.below.map(Pfn);
    request.traits = wish.traits;
    request
}

/// Whether a request may use every frame of its zones. Only a request that may wait can use frames in the
/// page sets of other CPUs.
fn may_use_all(request: &Request) -> bool {
    let desperate = RequestTraits::NO_WATERMARKS | RequestTraits::MAY_WAIT;
    request.traits.contains(desperate) && !request.traits.contains(RequestTraits::NO_RESERVES)
}

impl<S: Subject> Run<S> {
    fn allocator(&self) -> &S::Allocator {
        self.subject.allocator()
    }

    fn step(&mut self, operation: &Operation) {
        use Operation::*;
        match *operation {
            Alloc(cpu, wish) => self.alloc(cpu, &wish),
            AllocMany(cpu, wish, count) => (0..count).for_each(|_| self.alloc(cpu, &wish)),
            Fill(cpu, wish) => loop {
                let before = self.model.blocks.len();
                self.alloc(cpu, &wish);
                if self.model.blocks.len() == before {
                    break;
                }
            },
            Free { cpu, block, how, traits } => {
                let Some((pfn, held)) = self.model.nth(block) else { return };
                match how {
                    How::Right => self.free(cpu, pfn, held, traits),
                    How::Order(given) => self.free(cpu, pfn, order(given), traits),
                    How::Inside(offset) => self.free(cpu, pfn + offset, held, traits),
                    How::Twice => (0..2).for_each(|_| self.free(cpu, pfn, held, traits)),
                }
            }
            FreeMany { cpu, block, count } => {
                for at in 0..usize::from(count) {
                    let Some((pfn, held)) = self.model.nth(block.wrapping_add(at)) else { return };
                    self.free(cpu, pfn, held, FreeTraits::empty());
                }
            }
            FreeFrame { cpu, pfn, order: given } => self.free(cpu, pfn, order(given), FreeTraits::empty()),
            FreeNear { cpu, block, offset, order: given } => {
                let Some((pfn, _)) = self.model.nth(block) else { return };
                self.free(cpu, near(pfn, offset), order(given), FreeTraits::empty());
            }
            FreeBatch { cpu, block, count, twice } => self.free_batch(cpu, block, count, twice),
            Bulk { cpu, wish, slots, filled } => self.bulk(cpu, &wish, slots, filled),
            Exact { cpu, wish, frames } => self.exact(cpu, &wish, frames),
            FreeRange { cpu, block, offset, frames } => {
                let Some((pfn, _)) = self.model.nth(block) else { return };
                let start = near(pfn, offset);
                self.free_range(cpu, start..start.saturating_add(frames));
            }
            SplitRange { cpu, block, offset, frames } => {
                let Some((pfn, _)) = self.model.nth(block) else { return };
                let start = near(pfn, offset);
                self.split_range(cpu, start..start.saturating_add(frames));
            }
            AllocAt { cpu, zone, offset, wish } => {
                let pfn = self.model.machine.frame(zone, offset);
                let aligned = pfn & !((1 << wish.order) - 1);
                self.alloc_at(cpu, if offset % 9 == 0 { pfn } else { aligned }, &wish);
            }
            MarkBad { cpu, zone, offset, drained } => {
                self.mark_bad(cpu, self.model.machine.frame(zone, offset), drained);
            }
            Look { cpu, zone, offset } => {
                self.subject.look(&self.model, cpu, zone, self.model.machine.frame(zone, offset));
            }
            _ => self.administer(operation),
        }
    }

    fn alloc(&mut self, cpu: u32, wish: &Wish) {
        let request = request(wish);
        let outcome = self.allocator().alloc(CpuId(cpu), &request);
        match (outcome, self.model.refusal(cpu, &request)) {
            (Err(error), Some(expected)) => assert_eq!(error, expected),
            (Ok(pfn), None) => {
                assert!(pfn.is_aligned(request.order), "{pfn} for {request:?}");
                let zone = self.model.machine.zone_of(pfn.0).expect("checked below");
                assert!(self.model.is_eligible(cpu, zone, &request), "{pfn} for {request:?}");
                let range = pfn.0..pfn.0 + u64::from(request.order.frames());
                let may_be_isolated = !self.subject.promises().keeps_isolated;
                assert!(may_be_isolated || !self.model.is_isolated(&range), "{pfn} is out of service");
                self.model.obtain(range);
            }
            (Err(error), None) => {
                assert_eq!(error, AllocError::OutOfMemory { order: request.order });
                if may_use_all(&request) {
                    self.check_exhausted(cpu, &request);
                }
            }
            (Ok(pfn), Some(expected)) => panic!("got {pfn} instead of {expected}"),
        }
    }

    /// Checks that a request that may use every frame failed for lack of memory.
    fn check_exhausted(&self, cpu: u32, request: &Request) {
        for (zone, shape) in self.model.machine.zones.iter().enumerate() {
            if !self.model.is_eligible(cpu, shape, request) {
                continue;
            }
            if self.subject.promises().finds_blocks {
                let is_there = self.model.has_free_block(shape, request.order);
                assert!(!is_there, "{request:?} did not find a block of zone {zone}");
            } else if request.order == Order::ZERO {
                assert_eq!(self.subject.free_in(zone), 0, "{request:?} found nothing in zone {zone}");
            }
        }
    }

    fn free(&mut self, cpu: u32, pfn: u64, order: Order, traits: FreeTraits) {
        let expected = self.model.free_answer(cpu, pfn, order);
        if !self.tells(expected) {
            return;
        }
        assert_eq!(self.subject.free(CpuId(cpu), Pfn(pfn), order, traits), expected);
        if expected.is_ok() {
            self.model.blocks.remove(&pfn);
        }
    }

    /// Whether the allocator promises to give the expected `answer` to a free.
    fn tells(&self, answer: Result<(), FreeError>) -> bool {
        self.subject.promises().tells_double_frees || !matches!(answer, Err(FreeError::DoubleFree(_)))
    }

    fn split_range(&mut self, cpu: u32, range: Range<u64>) {
        let expected = self.model.range_answer(cpu, &range);
        assert_eq!(self.allocator().split_range(CpuId(cpu), range.clone()), expected, "{range:?}");
        let mut at = range.start;
        while expected.is_ok() && at < range.end {
            let (start, order) = self.model.around(at).expect("checked");
            at = start + u64::from(order.frames());
            self.model.blocks.extend((start..at).map(|frame| (frame, Order::ZERO)));
        }
    }

    fn free_range(&mut self, cpu: u32, range: Range<u64>) {
        let expected = self.model.range_answer(cpu, &range);
        assert_eq!(self.allocator().free_range(CpuId(cpu), range.clone()), expected, "{range:?}");
        if expected.is_err() {
            return;
        }
        let mut at = range.start;
        while at < range.end {
            let (start, order) = self.model.around(at).expect("checked");
            let end = start + u64::from(order.frames());
            self.model.blocks.remove(&start);
            self.model.blocks.extend(cut(start..range.start.max(start)));
            self.model.blocks.extend(cut(range.end.min(end)..end));
            at = end;
        }
    }

    fn free_batch(&mut self, cpu: u32, index: usize, count: u8, twice: bool) {
        let mut batch: Vec<_> =
            (0..usize::from(count)).filter_map(|at| self.model.nth(index.wrapping_add(at * 7))).collect();
        if !twice || !self.subject.promises().tells_double_frees {
            batch.sort();
            batch.dedup();
        }
        let mut expected = Ok(());
        for (at, &(pfn, order)) in batch.iter().enumerate() {
            match self.model.free_answer(cpu, pfn, order) {
                Ok(()) => drop(self.model.blocks.remove(&pfn)),
                Err(error) if expected.is_ok() => expected = Err((at, error)),
                Err(_) => {}
            }
        }
        let batch: Vec<_> = batch.into_iter().map(|(pfn, order)| (Pfn(pfn), order)).collect();
        assert_eq!(self.allocator().free_batch(CpuId(cpu), &batch), expected);
    }

    fn bulk(&mut self, cpu: u32, wish: &Wish, slots: u8, filled: u8) {
        let request = request(wish);
        let filled = filled.min(slots);
        let mut pages: Vec<_> =
            (0..slots).map(|slot| (slot % 3 == 0 && slot < filled).then_some(Pfn(u64::MAX))).collect();
        let before = pages.iter().flatten().count();
        let outcome = self.allocator().alloc_bulk(CpuId(cpu), &request, &mut pages);
        let got: Vec<_> = pages.iter().flatten().filter(|pfn| pfn.0 != u64::MAX).map(|pfn| pfn.0).collect();
        for pfn in &got {
            self.model.obtain(*pfn..pfn + 1);
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
                } else if let Some(expected) = self.model.refusal(cpu, &request) {
                    assert_eq!(error, expected);
                } else {
                    assert_eq!(error, AllocError::OutOfMemory { order: Order::ZERO });
                }
            }
        }
    }

    fn exact(&mut self, cpu: u32, wish: &Wish, frames: u64) {
        let request = request(wish);
        match self.allocator().alloc_exact(CpuId(cpu), frames, &request) {
            Ok(pfn) => self.model.obtain(pfn.0..pfn.0 + frames),
            Err(error) => {
                let Some(order) = Order::holding(frames) else {
                    assert_eq!(error, AllocError::BadCount(frames));
                    return;
                };
                let mut block = request;
                block.order = order;
                let expected = self.model.refusal(cpu, &block);
                assert_eq!(error, expected.unwrap_or(AllocError::OutOfMemory { order }));
            }
        }
    }

    fn alloc_at(&mut self, cpu: u32, pfn: u64, wish: &Wish) {
        let request = request(wish);
        let order = request.order;
        let range = pfn..pfn + u64::from(order.frames());
        let outcome = self.allocator().alloc_at(CpuId(cpu), Pfn(pfn), &request);
        if !self.model.knows(cpu) {
            assert_eq!(outcome, Err(AllocError::BadCpu(CpuId(cpu))));
        } else if request.migratetype.index() >= MigrateType::PCP_COUNT {
            assert_eq!(outcome, Err(AllocError::BadType(request.migratetype)));
        } else if !pfn.is_multiple_of(u64::from(order.frames())) {
            assert_eq!(outcome, Err(AllocError::Misaligned(Pfn(pfn), order)));
        } else if !self.model.machine.is_memory(pfn) {
            assert_eq!(outcome, Err(AllocError::Foreign(Pfn(pfn))));
        } else if self.model.around(pfn).is_some() || around(&self.model.leaked, pfn).is_some() {
            assert_eq!(outcome, Err(AllocError::NotFree(Pfn(pfn))));
        } else {
            match outcome {
                Ok(()) => self.model.obtain(range),
                Err(error) => {
                    let promises = self.subject.promises().finds_blocks && may_use_all(&request);
                    assert!(!promises || !self.model.is_block_free(pfn, order), "{pfn:#x} is free: {error}");
                    match error {
                        AllocError::NotFree(at) => assert_eq!(at, Pfn(pfn)),
                        error => assert_eq!(error, AllocError::OutOfMemory { order }),
                    }
                }
            }
        }
    }

    fn mark_bad(&mut self, cpu: u32, pfn: u64, drained: bool) {
        let drain = |run: &Self| run.allocator().drain_all(CpuId(0)).expect("every machine has it");
        if drained {
            drain(self);
        }
        // If no caller uses a frame, the frame goes out of service alone, or together with the whole block
        // that a CPU keeps.
        let goes_with = self.subject.goes_with(Pfn(pfn));
        let outcome = self.allocator().mark_bad(CpuId(cpu), Pfn(pfn));
        // A page set notices a bad block when the block leaves the page set, so drain all page sets.
        drain(self);
        let model = &mut self.model;
        if !model.knows(cpu) {
            assert_eq!(outcome, Err(FreeError::BadCpu(CpuId(cpu))));
        } else if !model.machine.is_memory(pfn) {
            assert_eq!(outcome, Err(FreeError::Foreign(Pfn(pfn))));
        } else if around(&model.leaked, pfn).is_some() {
            assert_eq!(outcome, Err(FreeError::Leaked(Pfn(pfn))));
        } else if outcome == Err(FreeError::NoRoom(Pfn(pfn))) {
            // The table of pageblocks with bad frames is full, so the frame stays in service.
        } else {
            assert_eq!(outcome, Ok(()));
            if let Some((start, order)) = model.around(pfn) {
                model.blocks.remove(&start);
                model.leaked.insert(start, order);
                model.lost_by_users += u64::from(order.frames());
            } else {
                let (start, order) = goes_with.unwrap_or((Pfn(pfn), Order::ZERO));
                model.leaked.insert(start.0, order);
            }
        }
    }

    /// Runs an operation that neither allocates nor frees.
    fn administer(&mut self, operation: &Operation) {
        use Operation::*;
        let (allocator, model) = (self.subject.allocator(), &mut self.model);
        match *operation {
            Tick(cpu, times) => (0..times).for_each(|_| {
                assert_eq!(allocator.tick(CpuId(cpu)).map(drop), model.cpu_answer(cpu));
            }),
            DrainCpu(cpu, of) => {
                let expected = model.cpu_answer(cpu).and(model.cpu_answer(of));
                assert_eq!(allocator.drain_cpu(CpuId(cpu), CpuId(of)), expected);
                if expected.is_ok() {
                    self.subject.check_drained(CpuId(of));
                }
            }
            DrainAll(cpu) => {
                let held = allocator.usage().held;
                let expected = model.cpu_answer(cpu);
                assert_eq!(allocator.drain_all(CpuId(cpu)), expected);
                assert_eq!(allocator.usage().held, if expected.is_ok() { 0 } else { held });
            }
            Offline(cpu) => {
                assert_eq!(allocator.cpu_offline(CpuId(cpu)), model.cpu_answer(cpu));
                model.offline.insert(CpuId(cpu));
            }
            Online(cpu) => {
                assert_eq!(allocator.cpu_online(CpuId(cpu)), model.cpu_answer(cpu));
                model.offline.remove(&CpuId(cpu));
            }
            Isolate { cpu, zone, offset } => {
                let pfn = model.machine.frame(zone, offset);
                let expected = model.pageblock_answer(cpu, pfn).and_then(|pageblock| {
                    let is_new = model.isolated.insert(pageblock);
                    if is_new { Ok(()) } else { Err(ConfigError::AlreadyIsolated(Pfn(pfn))) }
                });
                assert_eq!(allocator.isolate_pageblock(CpuId(cpu), Pfn(pfn)), expected, "{pfn:#x}");
            }
            Unisolate { cpu, zone, offset, to } => self.unisolate(cpu, zone, offset, to),
            AddMemory { cpu, zone, offset, frames } => {
                let pfn = model.machine.frame(zone, offset);
                let range = pfn..pfn.saturating_add(frames);
                let expected = model.add_memory(cpu, &range);
                assert_eq!(allocator.add_memory(CpuId(cpu), range.clone()), expected, "{range:?}");
            }
            MinFree(kbytes) => allocator.set_min_free_kbytes(kbytes),
            SetWatermarks { zone, min, step } => {
                let step = step.min((u64::MAX - min) / 3);
                let [low, high] = [1, 2].map(|steps| min + steps * step);
                let watermarks = Watermarks { min, low, high };
                assert_eq!(allocator.set_watermarks(ZoneId(zone), watermarks), model.zone_answer(zone));
            }
            _ => self.subject.own(model, operation),
        }
    }

    fn unisolate(&mut self, cpu: u32, zone: usize, offset: u64, to: MigrateType) {
        let model = &mut self.model;
        let mut pfn = model.machine.frame(zone, offset);
        if !offset.is_multiple_of(4)
            && let Some(&(_, pageblock)) = model.isolated.iter().next()
        {
            pfn = pageblock << 9;
        }
        let has_type = self.subject.has_type(to);
        let expected = model.pageblock_answer(cpu, pfn).and_then(|pageblock| match to {
            _ if !has_type => Err(ConfigError::BadType(to)),
            _ if model.isolated.remove(&pageblock) => Ok(()),
            _ => Err(ConfigError::NotIsolated(Pfn(pfn))),
        });
        assert_eq!(self.allocator().unisolate_pageblock(CpuId(cpu), Pfn(pfn), to), expected, "{pfn:#x}");
    }

    /// Checks that the allocator and the model have equal numbers of allocated and leaked frames, and runs
    /// the subject's own checks.
    fn check(&mut self, operations: &[Operation]) {
        let census = self.allocator().validate();
        let census = census.unwrap_or_else(|violation| panic!("{violation} after {operations:?}"));
        assert_eq!(census.allocated, frames(&self.model.blocks), "after {operations:?}");
        assert_eq!(census.leaked, frames(&self.model.leaked), "after {operations:?}");
        self.subject.check(&self.model);
    }

    /// Frees all blocks in use, and checks that all memory is free.
    fn finish(&mut self) {
        while let Some((pfn, order)) = self.model.nth(0) {
            self.free(0, pfn, order, FreeTraits::empty());
        }
        self.allocator().drain_all(CpuId(0)).expect("every machine has it");
        let census = self.allocator().validate().expect("no operation broke anything");
        let leaked = frames(&self.model.leaked);
        assert_eq!((census.allocated, census.cached, census.leaked), (0, 0, leaked));
        self.subject.check(&self.model);
        self.subject.finish(&self.model);
    }
}
