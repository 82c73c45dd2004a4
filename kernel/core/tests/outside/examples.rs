//! Tests the specification's worked examples (§8.2) through the public interface. A test's name has the
//! example's number. Examples of single decisions are unit tests in the source files that make these
//! decisions.

use crate::host::{Allocator, build};
use crate::log::{CPU, Drained, Machine, OTHER, ZONE};
use pageset_core::policy::{HIGH_ORDER_V5, LINUX_6_1, LINUX_6_12, PATCH_10};
use pageset_core::{
    BelowHighMark, Config, DrainReason, Event, FreeTraits, MigrateType, NodeId, Order, Pfn, Policy, Reclaim,
    Request, RequestTraits, Watermarks, ZoneConfig, ZoneKind,
};

/// Makes a machine of one zone with two CPUs. Under Linux 6.12, the page sets have the limits in the first
/// row of worked example E1: 6862 and 90 112 pages.
fn e1_machine(policy: Policy) -> Machine {
    let machine = Machine::new(policy, 1_441_792);
    let marks = Watermarks { min: 10_980, low: 13_725, high: 16_470 };
    machine.allocator.set_watermarks(ZONE, marks).expect("it exists");
    machine
}

/// The refills since the last call. Each pair has the number of blocks that the refill wanted, and the number
/// of blocks that the refill got.
fn refills(machine: &Machine) -> Vec<(u32, u32)> {
    let refill = |event: &Event| match *event {
        Event::PcpRefill { asked, got, .. } => Some((asked, got)),
        _ => None,
    };
    machine.events().iter().filter_map(refill).collect()
}

#[test]
#[cfg_attr(miri, ignore = "millions of frames")]
fn e01_limits_and_watermarks_of_the_observed_machine() {
    let spans = [
        (ZoneKind::Dma, 1_u64, 3840_u64),
        (ZoneKind::Dma32, 4096, 772_915),
        (ZoneKind::Normal, 1 << 20, 1_441_792),
    ];
    let regions = spans.map(|(_, start, frames)| [start..start + frames]);
    let zones: Vec<_> = spans
        .iter()
        .zip(&regions)
        .map(|((kind, ..), regions)| ZoneConfig {
            kind: *kind,
            node: NodeId(0),
            span: regions[0].clone(),
            regions,
        })
        .collect();
    let mut config = Config::new(&zones, &[NodeId(0); 2]);
    config.min_free_kbytes = Some(67_584);
    let allocator: Allocator = build(&config);
    let limits: Vec<_> = allocator
        .zones()
        .map(|zone| {
            let info = allocator.pageset_info(zone.id, CPU).expect("a CPU");
            (zone.watermarks.min, zone.watermarks.low, zone.watermarks.high, info.high_min, info.high_max)
        })
        .collect();
    let expected =
        [(29, 36, 43, 18, 240), (5886, 7357, 8828, 3678, 48_307), (10_980, 13_725, 16_470, 6862, 90_112)];
    assert_eq!(limits, expected);
    // The expected values of `lowmem_reserve` come from the machine of worked example E1 (spec §1.10).
    let protection: Vec<_> = allocator.zones().map(|zone| zone.protection).collect();
    assert_eq!(protection, [[0, 3019, 8651, 8651, 8651], [0, 0, 5632, 5632, 5632], [0; 5]]);
}

#[test]
#[cfg_attr(miri, ignore = "millions of frames")]
fn e02_refills_of_5000_allocations() {
    let run = |policy| {
        let machine = e1_machine(policy);
        (0..5000).for_each(|_| {
            machine.alloc(CPU, 0);
        });
        let info = machine.info(CPU);
        (refills(&machine), info.high)
    };
    let (blocks, _) = run(LINUX_6_1);
    assert_eq!(blocks, [(63, 63); 80]);
    let (blocks, high) = run(LINUX_6_12);
    assert_eq!(blocks, [63, 126, 252, 504, 1008, 2016, 2016].map(|blocks| (blocks, blocks)));
    assert_eq!(high, 12_847);
}

#[test]
#[cfg_attr(miri, ignore = "millions of frames")]
fn e03_frees_into_an_empty_page_set() {
    let drains = |policy| {
        let machine = e1_machine(policy);
        let mut drains = vec![];
        for (freed, block) in (1_u32..).zip(machine.stock(0, 20_000)) {
            machine.free(CPU, block);
            drains.extend(machine.drains().iter().map(|drain| (freed, drain.pages)));
        }
        for size in [1, 0, 1, 1] {
            let block = machine.alloc(OTHER, size);
            machine.events();
            machine.free(CPU, block);
            drains.extend(machine.drains().iter().map(|drain| (u32::MAX, drain.pages)));
        }
        drains
    };
    let merged = drains(LINUX_6_12);
    assert_eq!(merged[..3], [(6862, 2016), (6862 + 2016, 2016), (6862 + 4032, 2016)]);
    assert_eq!(merged.last(), Some(&(u32::MAX, 2016)), "only the second order-1 free in a row drains");
    assert_eq!(merged.iter().filter(|(freed, _)| *freed == u32::MAX).count(), 1);
}

#[test]
#[cfg_attr(miri, ignore = "a zone too large for miri")]
fn e04_frees_of_order_2() {
    let machine = Machine::new(LINUX_6_12, 180_224);
    let drains: Vec<_> = (1..)
        .zip(machine.stock(2, 40))
        .flat_map(|(freed, block)| {
            machine.free(CPU, block);
            machine.drains().into_iter().map(move |drain| (freed, drain))
        })
        .collect();
    let free_high = |pages| Drained { reason: DrainReason::FreeHigh, pages };
    assert_eq!(drains[0], (17, free_high(68)));
    assert_eq!(drains[1], (18, free_high(4)));
}

#[test]
#[cfg_attr(miri, ignore = "millions of frames")]
fn e05_idle_page_sets_decay() {
    let machine = e1_machine(LINUX_6_12);
    // Seven refills bring 5985 pages and raise `high` to 12 847.
    let blocks: Vec<_> = (0..5000).map(|_| machine.alloc(CPU, 0)).collect();
    blocks.into_iter().for_each(|block| machine.free(CPU, block));
    assert_eq!((machine.info(CPU).high, machine.info(CPU).count), (12_847, 5985));
    let highs: Vec<_> = (0..5)
        .map(|_| {
            machine.allocator.tick(CPU).expect("it exists");
            machine.info(CPU).high
        })
        .collect();
    assert_eq!(highs, [11_242, 9837, 8608, 7532, 6862]);
    assert_eq!(machine.info(CPU).count, 5985, "nothing was drained");
}

/// Tests worked examples E6 and E7: while memory is short, each free lowers `high` by a batch and drains a
/// batch.
#[test]
#[cfg_attr(miri, ignore = "millions of frames")]
fn e06_e07_pressure_lowers_high() {
    for reclaim in [false, true] {
        let machine = e1_machine(LINUX_6_12);
        let held: Vec<_> = (0..16_000).map(|_| machine.alloc(CPU, 0)).collect();
        let high = machine.info(CPU).high;
        assert!(high > 15_000);
        held.iter().take(9000).for_each(|block| machine.free(CPU, *block));
        // Each allocation halves the history of frees, until the history is empty.
        (0..20).for_each(|_| {
            machine.alloc(CPU, 0);
        });
        machine.events();
        if reclaim {
            machine.allocator.set_reclaim_active(ZONE, Reclaim::Active).expect("it exists");
        } else {
            machine.allocator.set_below_high(ZONE, BelowHighMark::Below).expect("it exists");
            let most = Watermarks { min: 10_980, low: 13_725, high: 1_441_000 };
            machine.allocator.set_watermarks(ZONE, most).expect("it exists");
        }
        for (times, block) in (1..).zip(&held[15_000..15_003]) {
            machine.free(CPU, *block);
            assert_eq!(machine.info(CPU).high, high - 63 * times, "reclaim: {reclaim}");
            let [Drained { pages, .. }] = machine.drains()[..] else { panic!("one drain") };
            assert_eq!(pages, 63);
        }
    }
}

#[test]
#[cfg_attr(miri, ignore = "a zone too large for miri")]
fn e10_a_refill_of_huge_pages() {
    let machine = Machine::new(LINUX_6_12, 180_224);
    let before = machine.info(CPU).high_min;
    machine.alloc(CPU, 9);
    assert_eq!(refills(&machine), [(2, 2)]);
    assert_eq!((machine.info(CPU).count, machine.info(CPU).high), (512, before + 63));
}

/// A request that bypasses the page set, takes its page from the free lists, and ignores watermarks.
fn direct(migratetype: MigrateType) -> Request {
    let traits = RequestTraits::BYPASS_PCP | RequestTraits::NO_WATERMARKS | RequestTraits::WAKE_KSWAPD;
    Request::new(Order::ZERO).of_type(migratetype).with(traits)
}

fn take(machine: &Machine, migratetype: MigrateType) -> Pfn {
    machine.allocator.alloc(CPU, &direct(migratetype)).expect("something is free")
}

fn give(machine: &Machine, frame: u64) {
    machine.allocator.free_with(CPU, Pfn(frame), Order::ZERO, FreeTraits::BYPASS_PCP).expect("allocated");
}

/// The fallbacks since the last call: (frame, order found, type found, change of ownership).
fn fallbacks(machine: &Machine) -> Vec<(u64, u8, MigrateType, bool)> {
    let fallback = |event: &Event| match *event {
        Event::MmPageAllocExtfrag { pfn, fallback_order, fallback_migratetype, change_ownership, .. } => {
            Some((pfn.0, fallback_order.get(), fallback_migratetype, change_ownership))
        }
        _ => None,
    };
    machine.events().iter().filter_map(fallback).collect()
}

/// Makes a machine with one zone of 4096 frames and with `min_free_kbytes` 0. All frames are allocated as
/// `migratetype`.
fn full(policy: Policy, migratetype: MigrateType) -> Machine {
    let machine = Machine::new(policy, 4096);
    machine.allocator.set_min_free_kbytes(0);
    (0..4096).for_each(|_| {
        take(&machine, migratetype);
    });
    machine.events();
    machine
}

#[test]
fn e13_splitting_claiming_and_merging() {
    use MigrateType::{Movable, Unmovable};
    for policy in [LINUX_6_1, LINUX_6_12] {
        let machine = Machine::new(policy, 4096);
        let frames: Vec<_> = (0..4).map(|_| take(&machine, Movable).0).collect();
        assert_eq!(frames, [0, 1, 2, 3]);
        let nr_free = || machine.allocator.zones().next().expect("one zone").nr_free;
        assert_eq!(nr_free(), [0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 3]);
        machine.events();
        assert_eq!(take(&machine, Unmovable), Pfn(1024));
        assert_eq!(fallbacks(&machine), [(1024, 10, Movable, true)]);
        assert_eq!(machine.allocator.pageblock_type(Pfn(1024 + 512)), Some(Unmovable));
        assert_eq!(nr_free(), [1, 1, 2, 2, 2, 2, 2, 2, 2, 2, 2]);
        [0, 2, 1].into_iter().for_each(|frame| give(&machine, frame));
        assert_eq!(nr_free()[..3], [2, 2, 2]);
        give(&machine, 3);
        assert_eq!(nr_free(), [1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 3]);
        // The merged block is at the head of its list, so the next request for a block of its order gets this
        // block.
        let largest = Request::new(Order::MAX).movable();
        assert_eq!(machine.allocator.alloc(CPU, &largest), Ok(Pfn(0)));
    }
}

/// Tests worked example E14: a movable request that finds only small unmovable blocks takes one of these
/// blocks.
#[test]
fn e14_a_movable_request_takes_a_small_block() {
    use MigrateType::{Movable, Unmovable};
    for policy in [LINUX_6_1, LINUX_6_12] {
        let machine = full(policy, Unmovable);
        // Free ten blocks of four pages, so that the pageblock has 40 free pages.
        for start in (512..592).step_by(8) {
            (start..start + 4).for_each(|frame| give(&machine, frame));
        }
        machine.events();
        let got = take(&machine, Movable).0;
        assert_eq!(fallbacks(&machine), [(got, 2, Unmovable, false)], "{}", policy.name);
        assert_eq!(machine.allocator.pageblock_type(Pfn(got)), Some(Unmovable));
        // The rest of the block is movable under Linux 6.1, and stays unmovable under Linux 6.12.
        let next = take(&machine, Movable).0;
        let falls_back = !fallbacks(&machine).is_empty();
        assert_eq!((next, falls_back), (got + 1, policy == LINUX_6_12), "{}", policy.name);
        machine.allocator.validate().expect("lists and types agree");
    }
}

/// Tests worked example E15: an unmovable request that finds blocks only in a mostly movable pageblock does
/// not claim the pageblock.
#[test]
fn e15_an_unmovable_request_meets_a_movable_pageblock() {
    use MigrateType::{Movable, Unmovable};
    for policy in [LINUX_6_1, LINUX_6_12] {
        let machine = full(policy, Movable);
        // In the pageblock at frame 512, 62 pages become unmovable, 100 pages become free, and 350 pages stay
        // movable.
        (962..1024).for_each(|frame| give(&machine, frame));
        for start in (512..512 + 12 * 16).step_by(16) {
            (start..start + 8).for_each(|frame| give(&machine, frame));
        }
        (704..708).for_each(|frame| give(&machine, frame));
        for frame in 962..1024 {
            machine.allocator.alloc_at(CPU, Pfn(frame), &Request::new(Order::ZERO)).expect("just freed");
        }
        assert_eq!(machine.allocator.zones().next().map(|zone| (zone.free, zone.boost)), Some((100, 0)));
        machine.events();
        let got = take(&machine, Unmovable).0;
        let found: Vec<_> =
            fallbacks(&machine).iter().map(|(_, order, of, owned)| (*order, *of, *owned)).collect();
        // Linux 6.1 steals the largest block, and Linux 6.12 takes the smallest block that is large enough.
        let size = if policy == LINUX_6_1 { 3 } else { 2 };
        assert_eq!(found, [(size, Movable, false)], "{}: nothing is claimed", policy.name);
        assert_eq!(machine.allocator.pageblock_type(Pfn(got)), Some(Movable), "{}", policy.name);
        let boost = machine.allocator.zones().next().map(|zone| zone.boost);
        assert_eq!(boost, Some(512), "{}: refused or not, the watermark is boosted", policy.name);
        if policy == LINUX_6_1 {
            // Under Linux 6.1, all free pages of the pageblock moved to the unmovable lists.
            (0..99).for_each(|_| {
                take(&machine, Unmovable);
            });
            assert_eq!(fallbacks(&machine), []);
        } else {
            // Under Linux 6.12, only the page that the request got left the movable lists.
            (0..99).for_each(|_| {
                take(&machine, Movable);
            });
            assert_eq!(fallbacks(&machine), []);
        }
        machine.allocator.validate().expect("lists and types agree");
    }
}

#[test]
#[cfg_attr(miri, ignore = "a zone too large for miri")]
fn e19_v5_page_sets_hold_eleven_batches() {
    let machine = Machine::new(HIGH_ORDER_V5, 180_224);
    let info = machine.info(CPU);
    assert_eq!((info.batch, info.high_min), (31, 341));
    for block in machine.stock(0, 340) {
        machine.free(CPU, block);
    }
    assert_eq!(machine.drains(), []);
    let block = machine.alloc(OTHER, 0);
    machine.events();
    machine.free(CPU, block);
    assert_eq!(machine.drains(), [Drained { reason: DrainReason::High, pages: 31 }]);
}

/// Tests how much a free lowers `high` while memory is short, under patch 10 as posted: by the number of
/// pages freed. Under the merged series, a free lowers `high` by at least `batch`.
#[test]
#[cfg_attr(miri, ignore = "millions of frames")]
fn e06_as_posted_high_falls_by_the_pages_freed() {
    let machine = e1_machine(PATCH_10);
    let held: Vec<_> = (0..16_000).map(|_| machine.alloc(CPU, 0)).collect();
    held.iter().take(9000).for_each(|block| machine.free(CPU, *block));
    (0..20).for_each(|_| {
        machine.alloc(CPU, 0);
    });
    let before = machine.info(CPU).high;
    machine.allocator.set_below_high(ZONE, BelowHighMark::Below).expect("it exists");
    let most = Watermarks { min: 10_980, low: 13_725, high: 1_441_000 };
    machine.allocator.set_watermarks(ZONE, most).expect("it exists");
    let highs: Vec<_> = held[15_000..15_004]
        .iter()
        .map(|block| {
            machine.free(CPU, *block);
            before - machine.info(CPU).high
        })
        .collect();
    assert_eq!(highs, [1, 1 + 2, 1 + 2 + 3, 1 + 2 + 3 + 4]);
}
