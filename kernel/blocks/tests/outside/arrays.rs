//! Tests of the arrays of one CPU.

use std::collections::HashSet;

use pageset_blocks::{BlockAllocator, CpuArrays};
use pageset_core::{AllocError, ConfigError, CpuId, FreeError, MigrateType, Order, Pfn, ZoneKind};
use proptest::prelude::*;

use crate::machine::{order, plain, ragged, request};

const CPU: CpuId = CpuId(0);
const OTHER: CpuId = CpuId(1);

fn double_frees(allocator: &BlockAllocator<'_>) -> usize {
    allocator.counters().double_frees
}

/// The number of frames in use, by the allocator's tables.
fn used(allocator: &BlockAllocator<'_>) -> u64 {
    allocator.validate().expect("nothing broke").allocated
}

#[test]
fn arrays_hand_out_all_memory_of_their_zone_and_give_it_back() {
    for o in 0..=10 {
        let allocator = plain(4096, 2);
        let wanted = request(o, MigrateType::Movable);
        let mut arrays = CpuArrays::new(&allocator, CPU);
        let mut others = CpuArrays::new(&allocator, OTHER);
        let mut blocks = HashSet::new();
        while let Ok(pfn) = arrays.alloc(&wanted) {
            assert!(blocks.insert(pfn), "order {o}: {pfn} twice");
        }
        assert_eq!((blocks.len(), arrays.frames()), (4096 >> o, 0), "order {o}");
        for pfn in &blocks {
            assert_eq!(others.free(*pfn, order(o)), Ok(()), "order {o}");
        }
        let most = match o {
            // A row has as many frames as half a word has bits.
            0..=3 => usize::BITS,
            9 => 1024,
            _ => 0,
        };
        assert!(others.frames() <= most && (most == 0) == (others.frames() == 0), "order {o}: {others:?}");
        assert_eq!(used(&allocator), u64::from(others.frames()), "order {o}: those in arrays are in use");
        drop(others);
        assert_eq!(used(&allocator), 0, "order {o}: arrays that go give everything back");
        assert_eq!(double_frees(&allocator), 0);
    }
}

#[test]
fn what_was_freed_last_is_used_first() {
    let allocator = plain(4096, 2);
    let mut arrays = CpuArrays::new(&allocator, CPU);
    let page = request(0, MigrateType::Movable);
    let pages: Vec<Pfn> = (0..100).map(|_| arrays.alloc(&page).unwrap()).collect();
    assert!(pages.is_sorted(), "those of a new pageblock come in order: {pages:?}");
    for pfn in [pages[7], pages[70], pages[30]] {
        arrays.free(pfn, Order::ZERO).unwrap();
    }
    let again = [0; 3].map(|_| arrays.alloc(&page).unwrap());
    assert_eq!(again, [pages[30], pages[70], pages[7]]);
    let unmovable = arrays.alloc(&request(0, MigrateType::Unmovable)).unwrap();
    assert_ne!(unmovable.0 / 512, pages[0].0 / 512, "types stay apart");
}

#[test]
fn mistakes_are_errors_or_counted() {
    let allocator = plain(4096, 2);
    let mut arrays = CpuArrays::new(&allocator, CPU);
    let block = arrays.alloc(&request(1, MigrateType::Movable)).unwrap();
    let wrong = FreeError::WrongOrder { pfn: block, given: Order::ZERO, allocated: order(1) };
    assert_eq!(arrays.free(block, Order::ZERO), Err(wrong));
    assert_eq!(arrays.free(Pfn(block.0 + 1), order(1)), Err(FreeError::NotABlock(Pfn(block.0 + 1))));
    assert_eq!(arrays.free(Pfn(4096), Order::ZERO), Err(FreeError::Foreign(Pfn(4096))));
    arrays.free(block, order(1)).unwrap();
    arrays.drain();
    assert_eq!(arrays.free(block, order(1)), Err(FreeError::DoubleFree(block)));
    let block = arrays.alloc(&request(1, MigrateType::Movable)).unwrap();
    let mut others = CpuArrays::new(&allocator, OTHER);
    arrays.free(block, order(1)).unwrap();
    others.free(block, order(1)).unwrap();
    assert_eq!(double_frees(&allocator), 0);
    drop((arrays, others));
    assert_eq!((double_frees(&allocator), used(&allocator)), (1, 0), "it lay in the arrays of two CPUs");
}

/// With debug assertions, the first double free is an error. Release builds do not look for the double free,
/// so that a free stays one write.
#[test]
fn a_second_free_on_one_cpu_is_an_error_where_debug_assertions_are_on() {
    let is_checked = cfg!(debug_assertions);
    for o in 0..=3 {
        let allocator = plain(4096, 2);
        let mut arrays = CpuArrays::new(&allocator, CPU);
        let blocks = [0; 8].map(|_| arrays.alloc(&request(o, MigrateType::Movable)).unwrap());
        blocks.iter().for_each(|pfn| arrays.free(*pfn, order(o)).unwrap());
        for pfn in [blocks[0], blocks[7]] {
            let again = arrays.free(pfn, order(o));
            assert_eq!(again, if is_checked { Err(FreeError::DoubleFree(pfn)) } else { Ok(()) }, "order {o}");
        }
        let mut handed: Vec<Pfn> = Vec::new();
        handed.extend(
            (0..arrays.frames() >> o).map(|_| arrays.alloc(&request(o, MigrateType::Movable)).unwrap()),
        );
        let different: HashSet<Pfn> = handed.iter().copied().collect();
        assert_eq!(handed.len() - different.len(), if is_checked { 0 } else { 2 }, "order {o}");
        different.iter().for_each(|pfn| arrays.free(*pfn, order(o)).unwrap());
        drop(arrays);
        assert_eq!(used(&allocator), 0, "order {o}");
    }
}

/// The other CPU returned the block to the allocator itself, so the second free is an error in release
/// builds, too.
#[test]
fn a_free_of_what_another_cpu_freed_past_its_arrays_is_an_error() {
    let allocator = plain(4096, 2);
    let mut arrays = CpuArrays::new(&allocator, OTHER);
    let page = request(0, MigrateType::Movable);
    let pages = [0; 3].map(|_| allocator.alloc(CPU, &page).unwrap());
    arrays.free(pages[0], Order::ZERO).unwrap();
    allocator.free(CPU, pages[1], Order::ZERO).unwrap();
    assert_eq!(arrays.free(pages[1], Order::ZERO), Err(FreeError::DoubleFree(pages[1])));
    assert_eq!(arrays.free(pages[2], Order::ZERO), Ok(()));
    drop(arrays);
    assert_eq!((double_frees(&allocator), used(&allocator)), (0, 0));
}

#[test]
fn pageblocks_have_an_array_too() {
    let allocator = plain(4096, 2);
    let mut arrays = CpuArrays::new(&allocator, CPU);
    let huge = request(9, MigrateType::Movable);
    let held: Vec<Pfn> = (0..4).map(|_| arrays.alloc(&huge).unwrap()).collect();
    for pfn in &held {
        assert!(arrays.free(*pfn, Order::ZERO).is_err(), "it is no single page");
        arrays.free(*pfn, order(9)).unwrap();
        assert_eq!(arrays.free(*pfn, order(9)), Err(FreeError::DoubleFree(*pfn)));
    }
    assert_eq!((arrays.frames(), used(&allocator)), (1024, 1024), "two stay");
    assert_eq!([0; 2].map(|_| arrays.alloc(&huge).unwrap()), [held[1], held[0]]);
    let other = arrays.alloc(&request(9, MigrateType::Unmovable)).unwrap();
    arrays.free(other, order(9)).unwrap();
    assert_ne!(arrays.alloc(&huge), Ok(other), "types stay apart");
    drop(arrays);
    assert_eq!((double_frees(&allocator), used(&allocator)), (0, 3 * 512));
}

#[test]
fn a_frame_that_breaks_in_an_array_stays_out_of_service() {
    let allocator = plain(4096, 2);
    let mut arrays = CpuArrays::new(&allocator, CPU);
    let pfn = arrays.alloc(&request(0, MigrateType::Movable)).unwrap();
    arrays.free(pfn, Order::ZERO).unwrap();
    allocator.mark_bad(CPU, pfn).unwrap();
    drop(arrays);
    let census = allocator.validate().unwrap();
    assert_eq!((census.allocated, census.leaked, double_frees(&allocator)), (0, 1, 0));
}

#[test]
fn arrays_of_an_idle_cpu_are_empty_after_two_ticks() {
    let allocator = plain(4096, 2);
    let mut arrays = CpuArrays::new(&allocator, CPU);
    let page = request(0, MigrateType::Movable);
    let pages: Vec<Pfn> = (0..40).map(|_| arrays.alloc(&page).unwrap()).collect();
    let held = arrays.frames();
    assert!(held > 0);
    arrays.tick().unwrap();
    assert_eq!(arrays.frames(), held, "it was busy until now");
    arrays.tick().unwrap();
    assert_eq!((arrays.frames(), used(&allocator)), (0, 40));
    pages.into_iter().for_each(|pfn| arrays.free(pfn, Order::ZERO).unwrap());
    assert_eq!(arrays.frames(), 40);
}

#[test]
fn who_finds_no_memory_uses_what_its_arrays_have() {
    let allocator = plain(1024, 1);
    let mut arrays = CpuArrays::new(&allocator, CPU);
    let page = request(0, MigrateType::Movable);
    let pages: Vec<Pfn> = std::iter::from_fn(|| arrays.alloc(&page).ok()).collect();
    let (spared, freed) = pages.split_at(1000);
    freed.iter().for_each(|pfn| arrays.free(*pfn, Order::ZERO).unwrap());
    assert_eq!((used(&allocator), arrays.frames()), (1024, 24));
    let four = arrays.alloc(&request(2, MigrateType::Movable));
    assert!(four.is_ok(), "the last 24 pages of a pageblock have six such blocks: {four:?}");
    assert_eq!(arrays.frames(), 0);
    let pageblock = arrays.alloc(&request(9, MigrateType::Movable));
    assert_eq!(pageblock, Err(AllocError::OutOfMemory { order: order(9) }));
    spared.iter().for_each(|pfn| arrays.free(*pfn, Order::ZERO).unwrap());
    arrays.free(four.unwrap(), order(2)).unwrap();
}

#[test]
fn requests_that_go_elsewhere_pass_by_the_arrays() {
    let allocator = ragged(1);
    let mut arrays = CpuArrays::new(&allocator, CPU);
    let low = request(0, MigrateType::Movable).in_zone(ZoneKind::Dma32);
    let pfn = arrays.alloc(&low).unwrap();
    assert!(pfn.0 < 2048);
    arrays.free(pfn, Order::ZERO).unwrap();
    assert_eq!((arrays.frames(), used(&allocator)), (0, 0));
    let mut unknown = CpuArrays::new(&allocator, OTHER);
    assert_eq!(unknown.alloc(&low), Err(AllocError::BadCpu(OTHER)));
    assert_eq!(unknown.tick(), Err(ConfigError::BadCpu(1)));
    assert!(unknown.free(pfn, Order::ZERO).is_err());
}

/// One step of one of the two CPUs.
#[derive(Clone, Debug)]
enum Step {
    Alloc { cpu: usize, order: u8, migratetype: usize, is_direct: bool },
    Free { cpu: usize, which: usize, is_direct: bool },
    Drain { cpu: usize },
    Tick { cpu: usize },
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (0..2_usize, prop_oneof![4 => Just(0), 2 => 0..=4_u8, 1 => 0..=9_u8], 0..3_usize, prop::bool::weighted(0.2))
            .prop_map(|(cpu, order, migratetype, is_direct)| Step::Alloc { cpu, order, migratetype, is_direct }),
        5 => (0..2_usize, any::<usize>(), prop::bool::weighted(0.2))
            .prop_map(|(cpu, which, is_direct)| Step::Free { cpu, which, is_direct }),
        1 => (0..2_usize).prop_map(|cpu| Step::Drain { cpu }),
        1 => (0..2_usize).prop_map(|cpu| Step::Tick { cpu }),
    ]
}

proptest! {
    /// In random steps of two CPUs, no frame is handed out twice, and at the end all frames are free.
    #[test]
    fn no_frame_is_lost_or_handed_out_twice(
        steps in prop::collection::vec(step(), 0..400),
    ) {
        let allocator = ragged(2);
        let mut arrays = [CPU, OTHER].map(|cpu| CpuArrays::new(&allocator, cpu));
        let mut live: Vec<(Pfn, Order)> = Vec::new();
        let mut handed = HashSet::new();
        for step in steps {
            match step {
                Step::Alloc { cpu, order: o, migratetype, is_direct } => {
                    let wanted = request(o, MigrateType::ALL[migratetype]);
                    let got = if is_direct {
                        allocator.alloc(CpuId(cpu as u32), &wanted)
                    } else {
                        arrays[cpu].alloc(&wanted)
                    };
                    for frame in got.iter().flat_map(|pfn| pfn.0..pfn.0 + (1 << o)) {
                        prop_assert!(handed.insert(frame), "frame {} twice", frame);
                    }
                    live.extend(got.ok().map(|pfn| (pfn, order(o))));
                }
                Step::Free { cpu, which, is_direct } if !live.is_empty() => {
                    let (pfn, o) = live.swap_remove(which % live.len());
                    (pfn.0..pfn.0 + u64::from(o.frames())).for_each(|frame| {
                        handed.remove(&frame);
                    });
                    let freed = if is_direct {
                        allocator.free(CpuId(cpu as u32), pfn, o)
                    } else {
                        arrays[cpu].free(pfn, o)
                    };
                    prop_assert_eq!(freed, Ok(()));
                }
                Step::Free { .. } => {}
                Step::Drain { cpu } => arrays[cpu].drain(),
                Step::Tick { cpu } => prop_assert!(arrays[cpu].tick().is_ok()),
            }
            let held: u32 = arrays.iter().map(CpuArrays::frames).sum();
            let census = allocator.validate().expect("nothing broke");
            prop_assert_eq!(census.allocated, handed.len() as u64 + u64::from(held));
        }
        for (pfn, o) in live {
            prop_assert_eq!(arrays[0].free(pfn, o), Ok(()));
        }
        drop(arrays);
        prop_assert_eq!(used(&allocator), 0);
        prop_assert_eq!(double_frees(&allocator), 0);
    }
}
