//! More frames than a block has, any alignment, and any range at an address.

use std::ops::Range;

use pageset_blocks::BlockAllocator;
use pageset_core::{AllocError, CpuId, FreeError, MigrateType, Order, Pfn};

use crate::machine::{allocator, order, plain, ragged, request};

const CPU: CpuId = CpuId(0);

fn any() -> pageset_core::Request {
    request(0, MigrateType::Movable)
}

fn random(seed: &mut u64, below: u64) -> u64 {
    *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
    (*seed >> 33) % below
}

#[test]
fn all_of_a_zone_is_one_run() {
    for frames in [1, 511, 513, 1024, 1025, 5000, 8192] {
        let allocator = plain(frames, 2);
        assert_eq!(allocator.alloc_contiguous(CPU, frames, 1, &any()), Ok(Pfn(0)), "{frames}");
        assert_eq!(allocator.validate().map(|census| census.allocated), Ok(frames));
        assert_eq!(allocator.free_range(CPU, 0..frames), Ok(()));
        assert_eq!(allocator.alloc_range(CPU, 0..frames, &any()), Ok(()));
        assert_eq!(allocator.free_range(CPU, 0..frames), Ok(()));
        allocator.drain_all();
        assert_eq!(allocator.validate().map(|census| census.free), Ok(frames));
    }
}

/// Requests runs of random counts and alignments, or at random places. A map of the frames tells for each
/// such request whether a fitting run is free. The request succeeds exactly then.
#[test]
fn a_run_is_found_exactly_if_there_is_one() {
    let holes = [(pageset_core::ZoneKind::Normal, 512..9000, vec![512..3000, 3001..6000, 6500..9000])];
    for (allocator, span) in
        [(plain(8192, 1), 0..8192), (allocator(&holes, 1), 512..9000), (ragged(1), 0..7301)]
    {
        let mut map = Map::of(&allocator, span);
        let mut seed = 11;
        for _ in 0..if cfg!(miri) { 30 } else { 3000 } {
            map.step(&allocator, &mut seed);
            let free = map.free.iter().filter(|free| **free).count() as u64;
            assert_eq!(allocator.free_frames(), free);
            assert_eq!(allocator.zones().map(|zone| zone.free).sum::<u64>(), free);
        }
        while !map.ranges.is_empty() {
            map.free(&allocator, &mut seed);
        }
        allocator.drain_all();
        assert_eq!(allocator.validate().expect("everything in its place").allocated, 0);
    }
}

/// The test's own record of free frames, and of the ranges that it has allocated.
struct Map {
    free: Vec<bool>,
    ranges: Vec<Range<u64>>,
}

impl Map {
    fn of(allocator: &BlockAllocator<'_>, span: Range<u64>) -> Self {
        let free = (0..span.end).map(|pfn| allocator.is_free(Pfn(pfn))).collect();
        Self { free, ranges: Vec::new() }
    }

    fn is_free(&self, pfns: Range<u64>) -> bool {
        self.free.get(pfns.start as usize..pfns.end as usize).is_some_and(|all| all.iter().all(|free| *free))
    }

    fn set(&mut self, pfns: &Range<u64>, free: bool) {
        self.free[pfns.start as usize..pfns.end as usize].fill(free);
    }

    fn taken(&mut self, pfns: Range<u64>) {
        assert!(self.is_free(pfns.clone()), "{pfns:?} was in use");
        self.set(&pfns, false);
        self.ranges.push(pfns);
    }

    fn step(&mut self, allocator: &BlockAllocator<'_>, seed: &mut u64) {
        let most = [8, 100, 600, 2500][random(seed, 4) as usize];
        let count = 1 + random(seed, most);
        // Some runs are whole pageblocks.
        let count = if random(seed, 4) == 0 { count.next_multiple_of(512) } else { count };
        match random(seed, 5) {
            0 => {
                let align = 1 << random(seed, 13);
                match allocator.alloc_contiguous(CPU, count, align, &any()) {
                    Ok(Pfn(start)) => {
                        assert!(start.is_multiple_of(align), "{start} of {align}");
                        self.taken(start..start + count);
                    }
                    Err(error) => {
                        assert!(matches!(error, AllocError::OutOfMemory { .. }), "{error}");
                        let mut starts = (0..self.free.len() as u64).step_by(align as usize);
                        let missed = starts.find(|start| self.is_free(*start..start + count));
                        assert_eq!(missed, None, "{count} frames aligned to {align}");
                    }
                }
            }
            1 => {
                let start = random(seed, self.free.len() as u64);
                let pfns = start..start + count;
                let outcome = allocator.alloc_range(CPU, pfns.clone(), &any());
                // A range over two zones has frames without memory, because no test machine has
                // adjacent zones. So the map says that such a range is not free.
                assert_eq!(outcome.is_ok(), self.is_free(pfns.clone()), "{pfns:?}: {outcome:?}");
                if outcome.is_ok() {
                    self.taken(pfns);
                }
            }
            2 => {
                let of = order(random(seed, 11) as u8);
                if let Ok(Pfn(start)) = allocator.alloc(CPU, &request(of.get(), MigrateType::Movable)) {
                    self.taken(start..start + u64::from(of.frames()));
                }
            }
            _ => self.free(allocator, seed),
        }
    }

    /// Frees a range, or splits it and frees one of its parts.
    fn free(&mut self, allocator: &BlockAllocator<'_>, seed: &mut u64) {
        let Some(at) = (self.ranges.len() as u64).checked_sub(1).map(|last| random(seed, last + 1)) else {
            return;
        };
        let mut pfns = self.ranges.swap_remove(at as usize);
        let length = pfns.end - pfns.start;
        if length > 1 && random(seed, 2) == 0 {
            let border = pfns.start + 1 + random(seed, length - 1);
            assert_eq!(allocator.split_at(CPU, Pfn(border)), Ok(()));
            let (first, _) = allocator.block_in_use(Pfn(border)).expect("in use");
            assert_eq!(first, Pfn(border), "a block begins there");
            let rest = border..pfns.end;
            pfns.end = border;
            self.ranges.push(rest);
        }
        assert_eq!(allocator.free_range(CPU, pfns.clone()), Ok(()), "{pfns:?}");
        self.set(&pfns, true);
    }
}

#[test]
fn what_cannot_be_is_an_error() {
    let allocator = plain(8192, 1);
    assert_eq!(allocator.alloc_contiguous(CPU, 0, 1, &any()), Err(AllocError::BadCount(0)));
    for align in [0, 3, u64::MAX] {
        assert_eq!(allocator.alloc_contiguous(CPU, 1, align, &any()), Err(AllocError::BadAlign(align)));
    }
    let too_many = AllocError::OutOfMemory { order: Order::MAX };
    for frames in [8193, u64::MAX, u64::MAX - 511] {
        assert_eq!(allocator.alloc_contiguous(CPU, frames, 1, &any()), Err(too_many));
        assert_eq!(allocator.alloc_contiguous(CPU, frames, 1 << 63, &any()), Err(too_many));
    }
    assert_eq!(allocator.alloc_contiguous(CpuId(1), 5000, 1, &any()), Err(AllocError::BadCpu(CpuId(1))));
    assert_eq!(allocator.alloc_range(CpuId(1), 0..1, &any()), Err(AllocError::BadCpu(CpuId(1))));
    assert_eq!(allocator.alloc_range(CPU, 5..5, &any()), Err(AllocError::BadCount(0)));
    assert_eq!(allocator.alloc_range(CPU, 9000..9001, &any()), Err(AllocError::Foreign(Pfn(9000))));
    assert_eq!(allocator.alloc_range(CPU, 8000..u64::MAX, &any()), Err(AllocError::NotFree(Pfn(8000))));
    assert_eq!(allocator.split_at(CPU, Pfn(8192)), Err(FreeError::Foreign(Pfn(8192))));
    assert_eq!(allocator.split_at(CPU, Pfn(17)), Err(FreeError::DoubleFree(Pfn(17))));
    assert_eq!(allocator.validate().map(|census| census.free), Ok(8192));
}

/// A run of many frames, at any place or at an address, leaves the minimum to other requests.
#[test]
fn a_run_leaves_the_minimum() {
    let allocator = plain(8192, 1);
    allocator.set_min_free_kbytes(4096);
    let ordinary = pageset_core::Request::new(Order::ZERO);
    assert!(allocator.alloc_contiguous(CPU, 8000, 1, &ordinary).is_err());
    assert!(allocator.alloc_range(CPU, 0..8000, &ordinary).is_err());
    allocator.drain_all();
    assert_eq!(allocator.validate().map(|census| census.free), Ok(8192));
    assert!(allocator.alloc_contiguous(CPU, 4000, 1, &ordinary).is_ok());
}

#[test]
fn threads_take_runs_beside_each_other() {
    const THREADS: u32 = 4;
    let allocator = plain(16 * 512, THREADS as usize);
    let rounds = if cfg!(miri) { 5 } else { 3000 };
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let allocator = &allocator;
            scope.spawn(move || {
                let cpu = CpuId(thread);
                let mut seed = u64::from(thread) + 5;
                for _ in 0..rounds {
                    let count = 1 + random(&mut seed, 2500);
                    let Ok(Pfn(start)) = allocator.alloc_contiguous(cpu, count, 1, &any()) else { continue };
                    let border = start + random(&mut seed, count);
                    assert_eq!(allocator.split_at(cpu, Pfn(border)), Ok(()));
                    for part in [start..border, border..start + count] {
                        if !part.is_empty() {
                            assert_eq!(allocator.free_range(cpu, part), Ok(()));
                        }
                    }
                }
            });
        }
    });
    allocator.drain_all();
    assert_eq!(allocator.validate().map(|census| census.free), Ok(16 * 512));
}

/// The example of the guide.
#[test]
#[cfg_attr(miri, ignore = "takes minutes")]
fn a_kernel_serves_its_drivers_from_a_ragged_memory() {
    crate::kernel::main().expect("there is memory enough");
}
