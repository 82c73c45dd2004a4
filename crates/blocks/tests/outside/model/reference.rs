//! The naive model: a map of who has what.

use std::collections::{BTreeMap, BTreeSet};

use pageset_blocks::RemoteFrees;
use pageset_core::{AllocError, ConfigError, CpuId, FreeError, MigrateType, Order, Pfn};

use super::step::{CPUS, Step};
use crate::machine::{self, RAGGED_FRAMES, is_ragged, order, request};

/// What the model knows: every block in use by its first frame, and how many frames it has; pageblocks and frames out
/// of service.
#[derive(Default)]
struct Model {
    blocks: BTreeMap<u64, u64>,
    isolated: BTreeSet<u64>,
    bad: BTreeSet<u64>,
}

impl Model {
    fn is_used(&self, frames: std::ops::Range<u64>) -> bool {
        let is_bad = self.bad.range(frames.clone()).next().is_some();
        is_bad
            || self
                .blocks
                .range(..frames.end)
                .next_back()
                .is_some_and(|(start, len)| start + len > frames.start)
    }

    fn is_isolated(&self, frames: std::ops::Range<u64>) -> bool {
        self.isolated.range(frames.start / 512..frames.end.div_ceil(512)).next().is_some()
    }

    /// Frames that can be had.
    fn free(&self) -> u64 {
        let in_service = |frame: &u64| {
            is_ragged(Pfn(*frame)) && !self.bad.contains(frame) && !self.is_isolated(*frame..frame + 1)
        };
        let frames = (0..8192).filter(in_service).count() as u64;
        let used = |(start, len): (&u64, &u64)| (*start..start + len).filter(in_service).count() as u64;
        frames - self.blocks.iter().map(used).sum::<u64>()
    }

    fn add(&mut self, pfn: Pfn, frames: u64) {
        assert!(!self.is_isolated(pfn.0..pfn.0 + frames), "{pfn} is out of service");
        assert!(!self.is_used(pfn.0..pfn.0 + frames), "{frames} frames at {pfn} are in use");
        assert!((pfn.0..pfn.0 + frames).all(|frame| is_ragged(Pfn(frame))));
        self.blocks.insert(pfn.0, frames);
    }

    fn nth(&self, which: usize) -> Option<(u64, u64)> {
        let (start, len) = self.blocks.iter().nth(which.checked_rem(self.blocks.len())?)?;
        Some((*start, *len))
    }

    /// A part of a block is free; what is left of it, as the largest blocks that fit.
    fn remove_part(&mut self, block: u64, part: std::ops::Range<u64>) {
        let len = self.blocks.remove(&block).expect("it is in use");
        for rest in [block..part.start, part.end..block + len] {
            let mut start = rest.start;
            while start < rest.end {
                let largest = (rest.end - start).ilog2().min(start.trailing_zeros()).min(10);
                self.blocks.insert(start, 1 << largest);
                start += 1 << largest;
            }
        }
    }
}

/// Plays a program. Everything is looked at after every `look_every` steps.
pub(crate) fn play(rule: RemoteFrees, steps: Vec<Step>, look_every: usize) {
    let allocator = &machine::ragged(CPUS as usize).with_remote_frees(rule);
    let mut model = Model::default();
    let types = [MigrateType::Movable, MigrateType::Unmovable, MigrateType::Reclaimable];
    for (at, step) in steps.into_iter().enumerate() {
        match step {
            Step::Alloc { cpu, order: of, migratetype } => {
                match allocator.alloc(CpuId(cpu), &request(of, types[migratetype])) {
                    Ok(pfn) => {
                        assert!(pfn.is_aligned(order(of)));
                        model.add(pfn, 1 << of);
                    }
                    Err(error) => {
                        assert_eq!(error, AllocError::OutOfMemory { order: order(of) });
                        assert!(!is_anywhere_free(&model, of), "order {of} is free");
                    }
                }
            }
            Step::Bulk { cpu, count } => {
                // Every seventh slot is filled already.
                let full = Pfn(u64::MAX);
                let mut pages: Vec<_> = (0..count).map(|at| (at % 7 == 3).then_some(full)).collect();
                let already = pages.iter().flatten().count();
                let filled = allocator.alloc_bulk(CpuId(cpu), &request(0, MigrateType::Movable), &mut pages);
                let filled = filled.unwrap_or(already);
                assert_eq!(filled, pages.iter().flatten().count());
                pages.iter().flatten().filter(|pfn| **pfn != full).for_each(|pfn| model.add(*pfn, 1));
                assert!(filled == count || model.free() == 0, "{filled} of {count}, {} free", model.free());
            }
            Step::Exact { cpu, frames } => {
                if let Ok(pfn) = allocator.alloc_exact(CpuId(cpu), frames, &request(0, MigrateType::Movable))
                {
                    model.add(pfn, frames);
                    // They lie there as the largest blocks that fit.
                    let end = pfn.0 + frames;
                    model.remove_part(pfn.0, end..end);
                }
            }
            Step::At { cpu, pfn, order: of } => {
                let is_ours = (pfn..pfn + (1 << of)).all(|frame| is_ragged(Pfn(frame)));
                let frames = pfn..pfn + (1 << of);
                let is_free = !model.is_used(frames.clone()) && !model.is_isolated(frames);
                match allocator.alloc_at(CpuId(cpu), Pfn(pfn), &request(of, MigrateType::Movable)) {
                    Ok(()) => model.add(Pfn(pfn), 1 << of),
                    Err(error) => assert!(!is_ours || !is_free || has_holes(pfn, of), "{error}"),
                }
            }
            Step::Free { cpu, which } => {
                let Some((pfn, frames)) = model.nth(which) else { continue };
                let of = Order::holding(frames).expect("blocks are powers of two");
                allocator.free(CpuId(cpu), Pfn(pfn), of).expect("it is in use");
                model.blocks.remove(&pfn);
                if rule == RemoteFrees::AtOnce {
                    let again = allocator.free(CpuId(cpu), Pfn(pfn), of);
                    assert_eq!(again, Err(FreeError::DoubleFree(Pfn(pfn))));
                }
            }
            Step::FreeBatch { cpu, which, count } => {
                let Some((first, _)) = model.nth(which) else { continue };
                let batch: Vec<_> =
                    model.blocks.range(first..).take(count).map(|(pfn, len)| (*pfn, *len)).collect();
                let blocks: Vec<_> =
                    batch.iter().map(|(pfn, len)| (Pfn(*pfn), Order::holding(*len).unwrap())).collect();
                allocator.free_batch(CpuId(cpu), &blocks).expect("all of them are in use");
                model.blocks.retain(|pfn, _| batch.iter().all(|(freed, _)| freed != pfn));
            }
            Step::FreePart { cpu, which, start, len } => {
                let Some((pfn, frames)) = model.nth(which) else { continue };
                let start = pfn + start % frames;
                let part = start..(start + len).min(pfn + frames);
                allocator.free_range(CpuId(cpu), part.clone()).expect("all of it is in use");
                model.remove_part(pfn, part);
            }
            Step::Split { cpu, which, start, len } => {
                let Some((pfn, frames)) = model.nth(which) else { continue };
                let start = pfn + start % frames;
                let mut part = start..(start + len).min(pfn + frames);
                allocator.split_range(CpuId(cpu), part.clone()).expect("all of it is in use");
                if frames >= 512 {
                    part = part.start & !511..part.end.next_multiple_of(512);
                }
                model.remove_part(pfn, part.clone());
                model.blocks.extend(part.map(|frame| (frame, 1)));
            }
            Step::Misuse { cpu, pfn, order: of } => {
                let before = allocator.validate().expect("all is well");
                if rule == RemoteFrees::AtOnce && model.blocks.get(&pfn) != Some(&(1 << of)) {
                    allocator.free(CpuId(cpu), Pfn(pfn), order(of)).expect_err("it is no such block");
                    assert_eq!(allocator.validate(), Ok(before));
                }
            }
            Step::Isolate { cpu, pfn } => {
                let result = allocator.isolate_pageblock(CpuId(cpu), Pfn(pfn));
                let expected = match allocator.zone_of(Pfn(pfn)) {
                    None => Err(ConfigError::Foreign(Pfn(pfn))),
                    Some(_) if model.isolated.insert(pfn / 512) => Ok(()),
                    Some(_) => Err(ConfigError::AlreadyIsolated(Pfn(pfn))),
                };
                assert_eq!(result, expected);
            }
            Step::Unisolate { cpu, pfn, migratetype } => {
                let result = allocator.unisolate_pageblock(CpuId(cpu), Pfn(pfn), types[migratetype]);
                let expected = match allocator.zone_of(Pfn(pfn)) {
                    None => Err(ConfigError::Foreign(Pfn(pfn))),
                    Some(_) if model.isolated.remove(&(pfn / 512)) => Ok(()),
                    Some(_) => Err(ConfigError::NotIsolated(Pfn(pfn))),
                };
                assert_eq!(result, expected);
            }
            Step::Bad { cpu, pfn } => {
                let around = model.blocks.range(..=pfn).next_back().map(|(start, len)| *start..start + len);
                let expected = if !is_ragged(Pfn(pfn)) {
                    Err(FreeError::Foreign(Pfn(pfn)))
                } else if let Some(block) = around.filter(|block| block.contains(&pfn)) {
                    model.blocks.remove(&block.start);
                    model.bad.extend(block);
                    Ok(())
                } else if model.bad.insert(pfn) {
                    Ok(())
                } else {
                    Err(FreeError::Leaked(Pfn(pfn)))
                };
                assert_eq!(allocator.mark_bad(CpuId(cpu), Pfn(pfn)), expected);
            }
            Step::Offline { cpu } => allocator.cpu_offline(CpuId(cpu)).unwrap(),
            Step::Online { cpu } => allocator.cpu_online(CpuId(cpu)).unwrap(),
            Step::Tick { cpu } => drop(allocator.tick(CpuId(cpu)).unwrap()),
            Step::Drain { cpu } => allocator.drain_cpu(CpuId(cpu)).unwrap(),
            Step::DrainAll => allocator.drain_all(),
            Step::MinFree { kbytes } => allocator.set_min_free_kbytes(kbytes),
        }
        if !at.is_multiple_of(look_every) {
            continue;
        }
        let used: u64 = model.blocks.values().sum();
        let census = allocator.validate().unwrap_or_else(|violation| panic!("{violation}"));
        assert_eq!((census.allocated, census.leaked), (used, model.bad.len() as u64));
        assert_eq!(allocator.zones().map(|zone| zone.free).sum::<u64>(), model.free());
    }
    for (pfn, frames) in std::mem::take(&mut model.blocks) {
        allocator.free(CpuId(0), Pfn(pfn), Order::holding(frames).unwrap()).expect("it is in use");
    }
    for block in std::mem::take(&mut model.isolated) {
        allocator.unisolate_pageblock(CpuId(0), Pfn(block * 512), types[0]).expect("it is isolated");
    }
    allocator.drain_all();
    let census = allocator.validate().unwrap_or_else(|violation| panic!("{violation}"));
    let bad = model.bad.len() as u64;
    assert_eq!((census.free, census.cached, census.allocated), (RAGGED_FRAMES - bad, 0, 0));
    let whole: u64 = allocator.zones().map(|zone| zone.whole_pageblocks).sum();
    // All but those with holes (the second of the first zone, the last of the second) or bad frames.
    let is_whole = |block: &u64| {
        let frames = block * 512..(block + 1) * 512;
        frames.clone().all(|frame| is_ragged(Pfn(frame))) && model.bad.range(frames).next().is_none()
    };
    assert_eq!(whole, (0..16).filter(is_whole).count() as u64);
}

/// Whether a block lies in a pageblock with holes, which gives single frames only.
fn has_holes(pfn: u64, order: u8) -> bool {
    order > 0 && [512..1024, 7168..7680].iter().any(|holed: &std::ops::Range<u64>| holed.contains(&pfn))
}

/// Whether the model knows a free block of this order that the allocator could give.
fn is_anywhere_free(model: &Model, of: u8) -> bool {
    (0..8192_u64).step_by(1 << of).any(|pfn| {
        let frames = pfn..pfn + (1 << of);
        !has_holes(pfn, of)
            && frames.clone().all(|frame| is_ragged(Pfn(frame)))
            && !model.is_used(frames.clone())
            && !model.is_isolated(frames)
    })
}
