//! Tests calls that allocate or free several blocks of one row.

use pageset_blocks::RowBlocks;
use pageset_core::{AllocError, CpuId, FreeError, MigrateType, Order, Pfn};

use crate::machine::{RAGGED_FRAMES, order, plain, ragged, request};

const CPU: CpuId = CpuId(0);
const OTHER: CpuId = CpuId(1);

#[test]
fn words_of_every_order_hand_out_all_memory_and_take_it_back() {
    for o in 0..=10 {
        let allocator = plain(4096, 2);
        let wanted = request(o, MigrateType::Movable);
        let mut words = Vec::new();
        let mut frames = vec![false; 4096];
        while let Ok(word) = allocator.alloc_row(CPU, &wanted, 5) {
            assert!((1..=5).contains(&word.len()) && word.order() == order(o), "order {o}: {word:?}");
            for frame in word.flat_map(|pfn| pfn.0..pfn.0 + (1 << o)) {
                assert!(
                    !std::mem::replace(&mut frames[frame as usize], true),
                    "order {o}: frame {frame} twice"
                );
            }
            words.push(word);
        }
        assert!(frames.iter().all(|is_used| *is_used), "order {o}");
        let most_in_row = if o < 5 { (32_usize >> o).min(5) } else { 1 };
        assert!(words.iter().any(|word| word.len() == most_in_row), "order {o}");
        for word in words {
            assert_eq!(allocator.free_row(OTHER, word), None, "order {o}");
            assert_eq!(allocator.free_row(OTHER, word), Some(word), "order {o}: twice");
        }
        allocator.drain_all();
        let census = allocator.validate().expect("nothing broke");
        assert_eq!((census.free, census.allocated), (4096, 0), "order {o}: {census:?}");
        assert_eq!(allocator.zones().next().map(|zone| zone.whole_pageblocks), Some(8), "order {o}");
    }
}

#[test]
fn of_a_word_only_what_is_in_use_is_freed() {
    let allocator = plain(4096, 2);
    let word = allocator.alloc_row(CPU, &request(1, MigrateType::Movable), 4).unwrap();
    let blocks: Vec<_> = word.collect();
    allocator.free(CPU, blocks[1], order(1)).unwrap();
    assert_eq!(allocator.free_row(OTHER, word), Some(RowBlocks::of(blocks[1], order(1))));
    assert_eq!(allocator.validate().unwrap().allocated, 0);
    let misaligned = RowBlocks::of(Pfn(blocks[0].0 + 1), order(1));
    assert_eq!(allocator.free_row(CPU, misaligned), Some(misaligned));
    let foreign = RowBlocks::of(Pfn(u64::MAX), Order::ZERO);
    assert_eq!(allocator.free_row(CPU, foreign), Some(foreign));
}

#[test]
fn a_word_of_a_pageblock_that_is_cut_or_has_holes_is_freed_too() {
    let allocator = ragged(1);
    let any = request(0, MigrateType::Movable);
    for frame in [676, 677, 679, 800, 801] {
        allocator.alloc_at(CPU, Pfn(frame), &any).unwrap();
    }
    let word = |frames: &[u64]| {
        let mut word = RowBlocks::of(Pfn(frames[0]), Order::ZERO);
        frames[1..].iter().for_each(|frame| assert!(word.add(Pfn(*frame))));
        word
    };
    assert_eq!(allocator.free_row(CPU, word(&[676, 677, 679])), None);
    let hole = word(&[799]);
    assert_eq!(allocator.free_row(CPU, hole), Some(hole));
    assert_eq!(allocator.free_row(CPU, word(&[800, 801])), None);
    allocator.alloc_at(CPU, Pfn(4096), &request(3, MigrateType::Movable)).unwrap();
    for frame in 4104..4108 {
        allocator.alloc_at(CPU, Pfn(frame), &any).unwrap();
    }
    assert_eq!(allocator.free_row(CPU, word(&[4104, 4105, 4106, 4107])), None);
    assert_eq!(allocator.free_row(CPU, RowBlocks::of(Pfn(4096), order(3))), None);
    allocator.drain_all();
    assert_eq!(allocator.validate().unwrap().free, RAGGED_FRAMES);
}

#[test]
fn a_word_that_another_cpu_frees_is_not_kept() {
    let allocator = plain(4096, 2);
    let word = allocator.alloc_row(CPU, &request(0, MigrateType::Movable), 1).unwrap();
    assert_eq!(allocator.free_row(OTHER, word), None);
    assert_eq!(allocator.free_row(OTHER, word), Some(word), "a double free shows at once");
    let pfn = word.first();
    assert_eq!(allocator.free(CPU, pfn, Order::ZERO), Err(FreeError::DoubleFree(pfn)));
}

#[test]
fn what_cannot_be_had_is_an_error() {
    let allocator = plain(1024, 1);
    let wanted = request(9, MigrateType::Movable);
    assert_eq!(allocator.alloc_row(CpuId(7), &wanted, 1), Err(AllocError::BadCpu(CpuId(7))));
    assert_eq!(allocator.alloc_row(CPU, &wanted, 0).map(RowBlocks::len), Ok(1), "at least one");
    assert!(allocator.alloc_row(CPU, &wanted, usize::MAX).is_ok());
    assert_eq!(
        allocator.alloc_row(CPU, &wanted, 1),
        Err(AllocError::OutOfMemory { order: Order::PAGEBLOCK })
    );
}
