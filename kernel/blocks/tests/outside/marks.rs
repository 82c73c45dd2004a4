//! Tests the minimum watermark of a zone: ordinary requests leave as much memory to requests that cannot
//! wait.

use pageset_blocks::{BlockAllocator, Tables};
use pageset_core::{
    AllocError, Config, CpuId, MigrateType, NodeId, Order, Pfn, Request, Watermarks, ZoneConfig, ZoneId,
    ZoneKind,
};

use crate::machine::{order, plain};

const CPU: CpuId = CpuId(0);

/// One zone with the watermarks of Linux.
fn machine(frames: u64, cpus: usize) -> (BlockAllocator<'static>, u64) {
    let regions = [0..frames];
    let zones = [ZoneConfig { kind: ZoneKind::Normal, node: NodeId(0), span: 0..frames, regions: &regions }];
    let nodes = vec![NodeId(0); cpus];
    let config = Config::new(&zones, &nodes);
    let tables = Tables::on_heap(&config).expect("the zone is possible");
    let allocator = BlockAllocator::new(&config, tables).expect("the zone is possible");
    (allocator, config.watermarks(0).min)
}

fn taken(allocator: &BlockAllocator<'_>, cpu: CpuId, request: &Request) -> Vec<Pfn> {
    std::iter::from_fn(|| allocator.alloc(cpu, request).ok()).collect()
}

#[test]
fn ordinary_requests_leave_the_minimum_to_those_that_cannot_wait() {
    {
        for (frames, min) in [(1024, 64), (4096, 128), (32_768, 362)] {
            let (allocator, configured) = machine(frames, 1);
            assert_eq!(configured, min);
            let ordinary = Request::new(Order::ZERO);
            let pages = taken(&allocator, CPU, &ordinary);
            assert_eq!(frames - pages.len() as u64, min, "{frames} frames");
            assert_eq!(allocator.alloc(CPU, &ordinary), Err(AllocError::OutOfMemory { order: Order::ZERO }));
            let atomic = taken(&allocator, CPU, &ordinary.atomic());
            assert!(!atomic.is_empty() && (atomic.len() as u64) < min, "{} of {min}", atomic.len());
            // Freed frames first fill up the memory below the minimum. The memory below the watermark is kept
            // for requests that cannot wait.
            let (pages, rest) = pages.split_at(2 * min as usize);
            pages.iter().for_each(|pfn| assert_eq!(allocator.free(CPU, *pfn, Order::ZERO), Ok(())));
            let again = taken(&allocator, CPU, &ordinary);
            assert_eq!(again.len(), 2 * min as usize - atomic.len(), "{frames} frames");
            let held = rest.len() + again.len() + atomic.len();
            assert_eq!(allocator.validate().map(|census| census.allocated), Ok(held as u64));
        }
    }
}

#[test]
fn the_minimum_is_left_whatever_orders_types_and_cpus_take_the_rest() {
    {
        let (allocator, min) = machine(8192, 4);
        let mut held = 0;
        for round in 0.. {
            let mut took = 0;
            for cpu in (0..4).map(CpuId) {
                let of = order([3, 0, 2, 9, 1, 5, 0, 10][(round + cpu.0 as usize) % 8]);
                let request = Request::new(of).of_type(MigrateType::ALL[round % 3]);
                if allocator.alloc(cpu, &request).is_ok() {
                    took += u64::from(of.frames());
                }
            }
            held += took;
            assert!(8192 - held >= min, "{} frames are left", 8192 - held);
            // After 5000 rounds, each CPU has tried each order of the list.
            if took == 0 && round > 5000 {
                break;
            }
        }
        assert_eq!(8192 - held, min, "and no more than that");
        assert!(allocator.alloc(CpuId(3), &Request::new(Order::ZERO).atomic()).is_ok());
        assert_eq!(allocator.validate().map(|census| census.allocated), Ok(held + 1));
    }
}

/// Minimum reserves, in frames.
const MINIMA: [u64; 4] = [1024, 4096, 16_384, 32_768];

/// A zone of `frames` frames with this minimum.
fn with_min(frames: u64, cpus: usize, min: u64) -> BlockAllocator<'static> {
    let allocator = plain(frames, cpus);
    let marks = Watermarks { min, low: min, high: min };
    allocator.set_watermarks(ZoneId(0), marks).expect("it is a zone");
    allocator
}

#[test]
fn the_minimum_is_left_if_each_cpu_wants_the_block_again_that_it_freed_last() {
    for (min, cpus) in MINIMA.into_iter().flat_map(|min| [1, 2, 4].map(|cpus| (min, cpus))) {
        for of in 0..=5 {
            let block = Request::new(order(of)).movable();
            let size = u64::from(block.order.frames());
            // The last pageblock is not whole: it lacks as many frames as the CPUs free at the end.
            let part = 512 - cpus * size;
            let start_of_part = min + (1 + cpus) * 512;
            let allocator = with_min(start_of_part + part, cpus as usize, min);
            let all_cpus = || (0..cpus as u32).map(CpuId);
            // Take all frames of the last pageblock, and as many whole pageblocks as there are CPUs.
            let took: Vec<_> = (0..(part + cpus * 512) / size)
                .map(|_| allocator.alloc(CPU, &block).expect("there is memory"))
                .collect();
            allocator.drain_all();
            let (of_part, of_whole): (Vec<_>, Vec<_>) =
                took.into_iter().partition(|pfn| pfn.0 >= start_of_part);
            assert_eq!((of_part.len() as u64, of_whole.len() as u64), (part / size, cpus * 512 / size));
            of_part.iter().for_each(|pfn| assert_eq!(allocator.free(CPU, *pfn, block.order), Ok(())));
            // Each CPU frees one block of its pageblock. The other blocks of the pageblock stay in use.
            for (cpu, pfns) in all_cpus().zip(of_whole.chunks((512 / size) as usize)) {
                assert_eq!(allocator.free(cpu, pfns[0], block.order), Ok(()));
            }
            let mut held = cpus * (512 - size);
            // Another CPU takes the whole pageblocks.
            let whole = taken(&allocator, CpuId(cpus as u32 - 1), &Request::new(Order::PAGEBLOCK).movable());
            held += whole.len() as u64 * 512;
            let rest: usize = all_cpus().map(|cpu| usize::from(allocator.alloc(cpu, &block).is_ok())).sum();
            held += rest as u64 * size;
            let left = start_of_part + part - held;
            assert_eq!(left, min, "{cpus} CPUs, order {of}, {} pageblocks", whole.len());
            assert_eq!(allocator.validate().map(|census| census.allocated), Ok(held));
        }
    }
}

#[test]
fn the_minimum_is_left_whatever_cpus_take_and_free() {
    for min in MINIMA {
        let frames = min + 4096;
        let allocator = with_min(frames, 4, min);
        let mut seed = min;
        let mut random = |below: usize| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            ((seed >> 32) as usize * below) >> 32
        };
        let (mut blocks, mut held, mut refused) = (Vec::new(), 0, 0);
        for step in 0..if cfg!(miri) { 300 } else { 60_000 } {
            let (cpu, of) = (CpuId(random(4) as u32), order(random(7) as u8));
            if random(5) < 3 {
                let request = Request::new(of).of_type(MigrateType::ALL[random(3)]);
                if let Ok(pfn) = allocator.alloc(cpu, &request) {
                    blocks.push((pfn, of));
                    held += u64::from(of.frames());
                    assert!(frames - held >= min, "step {step}: {} of {min} frames", frames - held);
                } else {
                    refused += 1;
                }
            } else if !blocks.is_empty() {
                let (pfn, of) = blocks.swap_remove(random(blocks.len()));
                assert_eq!(allocator.free(cpu, pfn, of), Ok(()));
                held -= u64::from(of.frames());
                // Another CPU frees the block a second time, by mistake.
                let other = CpuId(random(4) as u32);
                assert!(allocator.free(other, pfn, of).is_err());
            }
        }
        assert!(cfg!(miri) || refused > 1000, "{refused} found the zone at its minimum");
        assert_eq!(allocator.validate().map(|census| census.allocated), Ok(held));
    }
}
