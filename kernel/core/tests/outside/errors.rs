//! Tests that each kind of misuse has its own error, in release builds too.

use std::ops::Range;
use std::slice::from_ref;
use std::sync::Barrier;

use crate::host::{self, Allocator, build, order};
use pageset_core::{
    AllocError, BelowHighMark, Config, ConfigError, CpuId, FreeError, MigrateType, NodeChoice, NodeId, Order,
    PageAllocator, Pfn, Policy, Reclaim, RegionFault, Request, RequestTraits, Storage, Tables, Violation,
    ZoneConfig, ZoneId, ZoneKind,
};

const CPU: CpuId = CpuId(0);
const NOBODY: CpuId = CpuId(u32::MAX);

/// Makes a machine of 8 MiB and two CPUs. The memory begins at frame 1024 and has a hole.
fn machine() -> Allocator {
    let regions = [1024..2000, 2048..3072];
    let zones = [ZoneConfig { kind: ZoneKind::Normal, node: NodeId(0), span: 1024..3072, regions: &regions }];
    build(&Config::new(&zones, &[NodeId(0); 2]))
}

#[test]
fn frees_of_the_wrong_thing_are_told_apart() {
    let allocator = machine();
    let three = order(3);
    for size in [0, 3, 5, 9] {
        let size = order(size);
        let pfn = allocator.alloc(CPU, &Request::new(size)).expect("memory enough");
        let other = if size == three { Order::ZERO } else { three };
        let wrong = FreeError::WrongOrder { pfn, given: other, allocated: size };
        assert_eq!(allocator.free(CPU, pfn, other), Err(wrong));
        assert_eq!(allocator.free(NOBODY, pfn, size), Err(FreeError::BadCpu(NOBODY)));
        if size > Order::ZERO {
            let inside = Pfn(pfn.0 + u64::from(size.frames()) - 1);
            assert_eq!(allocator.free(CPU, inside, Order::ZERO), Err(FreeError::NotABlock(inside)));
        }
        assert_eq!(allocator.free(CPU, pfn, size), Ok(()));
        assert_eq!(allocator.free(CPU, pfn, size), Err(FreeError::DoubleFree(pfn)));
        // After the drain, the block may have merged into a larger block. The error must still be a double
        // free.
        allocator.drain_all(CPU).expect("a CPU");
        assert_eq!(allocator.free(CpuId(1), pfn, size), Err(FreeError::DoubleFree(pfn)));
    }
    for foreign in [0, 1023, 2000, 2047, 3072, u64::MAX] {
        assert_eq!(allocator.free(CPU, Pfn(foreign), Order::ZERO), Err(FreeError::Foreign(Pfn(foreign))));
    }
    assert_eq!(allocator.validate().expect("unchanged").allocated, 0);
}

#[test]
fn a_batch_frees_what_it_can_and_names_the_first_failure() {
    let allocator = machine();
    let pages: Vec<_> =
        (0..3).map(|_| allocator.alloc(CPU, &Request::new(Order::ZERO)).expect("memory enough")).collect();
    let zero = Order::ZERO;
    let batch = [(pages[0], zero), (pages[0], zero), (Pfn(0), zero), (pages[1], zero), (pages[2], zero)];
    assert_eq!(allocator.free_batch(CPU, &batch), Err((1, FreeError::DoubleFree(pages[0]))));
    assert_eq!(allocator.validate().expect("all freed").allocated, 0);
}

#[test]
fn a_range_that_is_not_all_allocated_is_not_freed() {
    let allocator = machine();
    let start = allocator.alloc_exact(CPU, 10, &Request::new(Order::ZERO)).expect("memory enough").0;
    let double = Err(FreeError::DoubleFree(Pfn(start + 10)));
    assert_eq!(allocator.free_range(CPU, start..start + 11), double);
    assert_eq!(allocator.free_range(CPU, 0..5), Err(FreeError::Foreign(Pfn(0))));
    assert_eq!(allocator.free_range(CPU, u64::MAX - 1..u64::MAX), Err(FreeError::Foreign(Pfn(u64::MAX - 1))));
    assert_eq!(allocator.free_range(NOBODY, start..start + 1), Err(FreeError::BadCpu(NOBODY)));
    assert_eq!(allocator.validate().expect("unchanged").allocated, 10);
    assert_eq!(allocator.free_range(CPU, start + 3..start + 4), Ok(()));
    let double = Err(FreeError::DoubleFree(Pfn(start + 3)));
    assert_eq!(allocator.free_range(CPU, start..start + 10), double);
    assert_eq!(allocator.validate().expect("one page less").allocated, 9);
}

#[test]
#[cfg_attr(miri, ignore = "it takes a zone to its last frame, which is minutes")]
fn requests_that_cannot_be_served_say_why() {
    let allocator = machine();
    let one = Request::new(Order::ZERO);
    let refused = |request: &Request| allocator.alloc(CPU, request).expect_err("impossible");
    assert_eq!(allocator.alloc(NOBODY, &one), Err(AllocError::BadCpu(NOBODY)));
    assert_eq!(refused(&one.in_zone(ZoneKind::Dma)), AllocError::NoEligibleZone);
    assert_eq!(refused(&one.zones_below(Pfn(3071))), AllocError::NoEligibleZone);
    assert_eq!(refused(&one.on(NodeChoice::Only(NodeId(7)))), AllocError::NoEligibleZone);
    assert_eq!(refused(&one.on(NodeChoice::Prefer(NodeId(u16::MAX)))), AllocError::NoEligibleZone);
    for migratetype in [MigrateType::HighAtomic, MigrateType::Cma, MigrateType::Isolate] {
        assert_eq!(refused(&one.of_type(migratetype)), AllocError::BadType(migratetype));
    }
    assert_eq!(allocator.alloc_exact(CPU, 0, &one), Err(AllocError::BadCount(0)));
    assert_eq!(allocator.alloc_exact(CPU, 1025, &one), Err(AllocError::BadCount(1025)));
    let mut slots = [None; 2];
    let three = Request::new(order(3));
    assert_eq!(allocator.alloc_bulk(CPU, &three, &mut slots), Err(AllocError::BulkOrder(order(3))));
    assert_eq!(allocator.alloc_bulk(NOBODY, &one, &mut slots), Err(AllocError::BadCpu(NOBODY)));
    let desperate = RequestTraits::NO_WATERMARKS | RequestTraits::MAY_WAIT;
    while allocator.alloc(CPU, &one.with(desperate)).is_ok() {}
    assert_eq!(refused(&one.with(desperate)), AllocError::OutOfMemory { order: Order::ZERO });
    assert_eq!(allocator.alloc_bulk(CPU, &one, &mut slots).map_err(|error| error.to_string()).ok(), None);
    assert_eq!(allocator.validate().expect("all of it").allocated, 2000);
}

#[test]
fn a_given_place_must_be_free_aligned_and_ours() {
    let allocator = machine();
    let two = Request::new(order(1));
    assert_eq!(allocator.alloc_at(NOBODY, Pfn(1024), &two), Err(AllocError::BadCpu(NOBODY)));
    assert_eq!(allocator.alloc_at(CPU, Pfn(1025), &two), Err(AllocError::Misaligned(Pfn(1025), order(1))));
    for foreign in [0, 2000, u64::MAX - 1] {
        assert_eq!(allocator.alloc_at(CPU, Pfn(foreign), &two), Err(AllocError::Foreign(Pfn(foreign))));
    }
    assert_eq!(allocator.alloc_at(CPU, Pfn(1100), &two), Ok(()));
    assert_eq!(allocator.alloc_at(CPU, Pfn(1100), &two), Err(AllocError::NotFree(Pfn(1100))));
    let four = Request::new(order(2));
    assert_eq!(allocator.alloc_at(CPU, Pfn(1100), &four), Err(AllocError::NotFree(Pfn(1100))));
    assert_eq!(
        allocator.alloc_at(CPU, Pfn(1998), &four.zones_below(Pfn(0))).err(),
        Some(AllocError::Misaligned(Pfn(1998), order(2)))
    );
    // A page in a page set counts as free for `alloc_at`.
    let pfn = allocator.alloc(CpuId(1), &Request::new(Order::ZERO)).expect("memory enough");
    allocator.free(CpuId(1), pfn, Order::ZERO).expect("allocated");
    assert_eq!(allocator.alloc_at(CPU, pfn, &Request::new(Order::ZERO)), Ok(()));
    // `alloc_at` must leave more free pages than the min watermark.
    allocator.set_min_free_kbytes(8000);
    let out = AllocError::OutOfMemory { order: Order::ZERO };
    assert_eq!(allocator.alloc_at(CPU, Pfn(1500), &Request::new(Order::ZERO)), Err(out));
}

#[test]
fn cpus_that_do_not_exist_are_refused_everywhere() {
    let allocator = machine();
    let before = allocator.validate();
    assert_eq!(allocator.cpu_online(NOBODY), Err(ConfigError::BadCpu(u32::MAX)));
    assert_eq!(allocator.cpu_offline(CpuId(2)), Err(ConfigError::BadCpu(2)));
    assert_eq!(allocator.set_cache_slice(NOBODY, Default::default()), Err(ConfigError::BadCpu(u32::MAX)));
    assert_eq!(allocator.pageset_info(ZoneId(0), NOBODY), None);
    assert_eq!(allocator.pageset_info(ZoneId(u16::MAX), CPU), None);
    assert_eq!(allocator.pageset_counters(ZoneId(0), NOBODY), None);
    assert_eq!(allocator.zone_counters(ZoneId(1)), None);
    let nobody = ConfigError::BadCpu(u32::MAX);
    assert_eq!(allocator.drain_cpu(CPU, NOBODY), Err(nobody));
    assert_eq!(allocator.drain_cpu(NOBODY, CPU), Err(nobody));
    assert_eq!(allocator.drain_zone(NOBODY, ZoneId(0)), Err(nobody));
    assert_eq!(allocator.drain_all(NOBODY), Err(nobody));
    assert_eq!(allocator.tick(NOBODY), Err(nobody));
    assert_eq!(allocator.end_boost(NOBODY, ZoneId(0), 1), Err(nobody));
    assert_eq!(allocator.isolate_pageblock(NOBODY, Pfn(1100)), Err(nobody));
    assert_eq!(allocator.isolate_pageblock(CPU, Pfn(1100)), Ok(()));
    assert_eq!(allocator.unisolate_pageblock(NOBODY, Pfn(1100), MigrateType::Movable), Err(nobody));
    assert_eq!(allocator.unisolate_pageblock(CPU, Pfn(1100), MigrateType::Movable), Ok(()));
    assert_eq!(allocator.validate(), before);
}

#[test]
fn zones_that_do_not_exist_are_refused_everywhere() {
    let allocator = machine();
    let before = allocator.validate();
    let nothing = ZoneId(1);
    let refused = ConfigError::BadZone(nothing);
    assert_eq!(allocator.set_watermarks(nothing, Default::default()), Err(refused));
    assert_eq!(allocator.set_reclaim_active(nothing, Reclaim::Active), Err(refused));
    assert_eq!(allocator.set_below_high(nothing, BelowHighMark::Below), Err(refused));
    assert_eq!(allocator.end_boost(CPU, nothing, 1), Err(refused));
    assert_eq!(allocator.drain_zone(CPU, nothing), Err(refused));
    for foreign in [0, 1023, 3072, u64::MAX] {
        let refused = ConfigError::Foreign(Pfn(foreign));
        assert_eq!(allocator.isolate_pageblock(CPU, Pfn(foreign)), Err(refused));
        assert_eq!(allocator.unisolate_pageblock(CPU, Pfn(foreign), MigrateType::Movable), Err(refused));
    }
    assert_eq!(allocator.validate(), before);
}

/// The parts of a zone's configuration: kind, node, span and regions.
type ZoneParts<'r> = (ZoneKind, u16, Range<u64>, &'r [Range<u64>]);

fn configure(zones: &[ZoneParts<'_>], cpus: &[u16]) -> Result<(), ConfigError> {
    let zones: Vec<_> = zones
        .iter()
        .map(|(kind, node, span, regions)| ZoneConfig {
            kind: *kind,
            node: NodeId(*node),
            span: span.clone(),
            regions,
        })
        .collect();
    let cpus: Vec<_> = cpus.iter().map(|node| NodeId(*node)).collect();
    let config = Config::new(&zones, &cpus);
    PageAllocator::new(host::Host(()), &config, Tables::on_heap(&config)?).map(drop)
}

#[test]
fn contradictory_configurations_are_refused() {
    use ZoneKind::{Dma, Normal};
    let bad = |zones: &[_], cpus: &[u16]| configure(zones, cpus).expect_err("a contradiction");
    assert_eq!(bad(&[], &[0]), ConfigError::NoZones);
    assert_eq!(bad(&[(Normal, 0, 0..8, &[])], &[]), ConfigError::NoCpus);
    assert_eq!(bad(&[(Normal, 0, 8..8, &[])], &[0]), ConfigError::BadZoneSpan(0));
    assert_eq!(bad(&[(Normal, 0, u64::MAX - 8..u64::MAX, &[])], &[0]), ConfigError::BadZoneSpan(0));
    assert_eq!(bad(&[(Dma, 0, 0..9, &[]), (Normal, 0, 8..16, &[])], &[0]), ConfigError::ZonesOverlap(0, 1));
    assert_eq!(bad(&[(Normal, 0, 0..8, &[]), (Dma, 0, 8..16, &[])], &[0]), ConfigError::ZonesOverlap(0, 1));
    assert_eq!(
        bad(&[(Normal, 0, 8..16, &[]), (Normal, 0, 0..8, &[])], &[0]),
        ConfigError::ZonesOverlap(0, 1),
        "of two zones of a kind, the lower comes first"
    );
    let bad_region = |region, why| ConfigError::BadRegion { zone: 0, region, why };
    assert_eq!(bad(&[(Normal, 0, 0..8, &[0..4, 4..9])], &[0]), bad_region(1, RegionFault::OutsideZone));
    for node in [256, 300, u16::MAX] {
        assert_eq!(bad(&[(Normal, node, 0..8, &[])], &[0]), ConfigError::BadNode(node));
        assert_eq!(bad(&[(Normal, 0, 0..8, &[])], &[node]), ConfigError::BadNode(node));
    }
    // Miri is too slow to compute the zonelists of 256 nodes.
    let most = if cfg!(miri) { 7 } else { 255 };
    assert_eq!(configure(&[(Normal, 0, 0..8, from_ref(&(0..8)))], &[most]), Ok(()));
}

/// Tests that `check` refuses impossible regions before the caller makes tables.
#[test]
fn impossible_regions_are_refused_before_there_are_tables() {
    let of_second_zone = |regions: &[Range<u64>]| {
        let low = ZoneConfig { kind: ZoneKind::Dma, node: NodeId(0), span: 0..100, regions: &[] };
        let zone = ZoneConfig { kind: ZoneKind::Normal, node: NodeId(0), span: 100..5000, regions };
        Config::new(&[low, zone], &[NodeId(0)]).check()
    };
    #[expect(clippy::reversed_empty_ranges, reason = "that is the mistake")]
    let reversed = 200..110;
    use RegionFault::{NoFrames, OutsideZone, OverlapsPrevious};
    for (regions, region, why) in [
        (&[107..107][..], 0, NoFrames),
        (&[100..105, reversed], 1, NoFrames),
        (&[99..200], 0, OutsideZone),
        (&[100..200, 300..5001], 1, OutsideZone),
        (&[100..200, 300..400, 399..500], 2, OverlapsPrevious),
        (&[300..400, 100..200], 1, OverlapsPrevious),
    ] {
        assert_eq!(
            of_second_zone(regions),
            Err(ConfigError::BadRegion { zone: 1, region, why }),
            "{regions:?}"
        );
    }
    assert_eq!(of_second_zone(&[100..200, 200..300, 4999..5000]), Ok(()));
    assert_eq!(of_second_zone(&[]), Ok(()), "a zone may get all of its memory later");
    let empty = [ZoneConfig { kind: ZoneKind::Normal, node: NodeId(0), span: 8..8, regions: &[] }];
    assert_eq!(Config::new(&empty, &[NodeId(0)]).check(), Err(ConfigError::BadZoneSpan(0)));
}

#[test]
fn tables_of_the_wrong_length_are_refused() {
    let span = 0..8;
    let zones = [ZoneConfig {
        kind: ZoneKind::Normal,
        node: NodeId(0),
        span: span.clone(),
        regions: from_ref(&span),
    }];
    let config = Config::new(&zones, &[NodeId(0)]);
    let tables = || Tables::<host::Host>::on_heap(&config).expect("a small span");
    let refused = |tables| PageAllocator::new(host::Host(()), &config, tables).map(drop);
    let none = || Storage::owned(0, || unreachable!()).expect("no bytes");
    assert_eq!(refused(Tables { zones: none(), ..tables() }), Err(ConfigError::TableLength("zones", 1)));
    let pagesets = Storage::owned(0, || unreachable!()).expect("no bytes");
    assert_eq!(refused(Tables { pagesets, ..tables() }), Err(ConfigError::TableLength("pagesets", 1)));
    let cpus = Storage::owned(2, Default::default).expect("a few bytes");
    assert_eq!(refused(Tables { cpus, ..tables() }), Err(ConfigError::TableLength("cpus", 1)));
    let zonelists = Storage::owned(0, Default::default).expect("no bytes");
    assert_eq!(refused(Tables { zonelists, ..tables() }), Err(ConfigError::TableLength("zonelists", 1)));
}

#[test]
fn a_bad_fraction_is_refused_and_the_old_one_stays() {
    let allocator = machine();
    allocator.set_percpu_pagelist_high_fraction(8).expect("eight is allowed");
    let before = allocator.pageset_info(ZoneId(0), CPU);
    for fraction in 1..8 {
        let refused = allocator.set_percpu_pagelist_high_fraction(fraction);
        assert_eq!(refused, Err(ConfigError::BadFraction(fraction)));
    }
    assert_eq!(allocator.pageset_info(ZoneId(0), CPU), before);
}

/// Tests a race of two threads that free the same block: one thread succeeds, the other thread gets an error,
/// and no frame is freed twice.
#[test]
fn of_two_threads_that_free_a_block_one_wins() {
    let allocator = machine();
    let rounds = if cfg!(miri) { 10 } else { 2000 };
    for round in 0..rounds {
        let size = order([0, 3, 5][round % 3]);
        let pfn = allocator.alloc(CPU, &Request::new(size)).expect("memory enough");
        let start = Barrier::new(2);
        let free = |cpu| {
            start.wait();
            allocator.free(CpuId(cpu), pfn, size)
        };
        let outcomes = std::thread::scope(|scope| {
            let other = scope.spawn(|| free(1));
            [free(0), other.join().expect("no panic")]
        });
        assert!(outcomes.contains(&Ok(())), "{outcomes:?}");
        assert!(outcomes.iter().any(|outcome| matches!(outcome, Err(FreeError::DoubleFree(p) | FreeError::NotABlock(p)) if *p == pfn)), "{outcomes:?}");
    }
    assert_eq!(allocator.validate().expect("no frame is free twice").allocated, 0);
}

/// Tests that numbers that no machine has cause no overflow.
#[test]
fn hostile_numbers_do_not_overflow() {
    let span = 0..3000;
    let zones = [ZoneConfig {
        kind: ZoneKind::Normal,
        node: NodeId(0),
        span: span.clone(),
        regions: from_ref(&span),
    }];
    for page_bytes in [0, 1, u32::MAX] {
        let mut config = Config::new(&zones, &[NodeId(0)]);
        config.page_bytes = page_bytes;
        config.min_free_kbytes = Some(u64::MAX);
        config.watermark_scale_factor = u32::MAX;
        config.watermark_boost_factor = u32::MAX;
        config.lowmem_reserve_ratio = [1; ZoneKind::COUNT];
        config.percpu_pagelist_high_fraction = u32::MAX;
        let allocator: Allocator = build(&config);
        let desperate = Request::new(Order::ZERO).with(RequestTraits::all());
        assert!(allocator.alloc(CPU, &Request::new(Order::ZERO)).is_err());
        assert!(allocator.alloc(CPU, &desperate).is_err(), "NO_RESERVES comes first");
        let desperate = desperate.with(RequestTraits::all() - RequestTraits::NO_RESERVES).movable();
        let pfn = allocator.alloc(CPU, &desperate).expect("the watermark is ignored");
        let most = pageset_core::Watermarks { min: u64::MAX, low: u64::MAX, high: u64::MAX };
        assert_eq!(allocator.set_watermarks(ZoneId(0), most), Ok(()));
        assert!(allocator.alloc_at(CPU, Pfn(2048), &Request::new(order(4))).is_err());
        // A request with all traits also has NO_RESERVES, so the request must fail. A request with
        // NO_WATERMARKS alone must succeed.
        assert!(
            allocator.alloc_at(CPU, Pfn(2048), &Request::new(order(4)).with(RequestTraits::all())).is_err()
        );
        let desperate_at = Request::new(order(4)).with(RequestTraits::NO_WATERMARKS);
        allocator.alloc_at(CPU, Pfn(2048), &desperate_at).expect("the watermark is ignored");
        allocator.free(CPU, Pfn(2048), order(4)).expect("allocated");
        allocator.free(CPU, pfn, Order::ZERO).expect("allocated");
        assert!(allocator.tick(CPU).is_ok());
        assert_eq!(allocator.end_boost(CPU, ZoneId(0), u64::MAX), Ok(()));
        allocator.validate().expect("nothing broke");
    }
}

/// Tests that extreme batches and limits of a policy cause no overflow.
#[test]
#[cfg_attr(miri, ignore = "page sets that hold every frame: minutes")]
fn hostile_policies_do_not_overflow() {
    use pageset_core::policy::{BatchRule, HighRule, LINUX_6_1, LINUX_6_12, LINUX_6_18, fixed};
    let frames = if cfg!(miri) { 300 } else { 3000 };
    let span = 0..frames;
    let zones = [ZoneConfig {
        kind: ZoneKind::Normal,
        node: NodeId(0),
        span: span.clone(),
        regions: from_ref(&span),
    }];
    let extreme = |mut policy: Policy, batch, high, scale_max| {
        policy.batch = BatchRule::Fixed(batch);
        policy.high = high;
        policy.scale_max = scale_max;
        policy
    };
    let policies = [LINUX_6_1, LINUX_6_12, LINUX_6_18].into_iter().flat_map(|policy| {
        [
            extreme(policy, i32::MAX, HighRule::Share, 255),
            extreme(policy, i32::MAX, HighRule::ShareToEighth, 31),
            extreme(policy, i32::MIN, HighRule::Fixed(i32::MIN), 255),
            extreme(policy, 63, HighRule::Batches(i32::MAX), 6),
            extreme(policy, 63, HighRule::Batches(i32::MIN), 6),
            extreme(policy, 1, HighRule::ShareToEighth, 0),
        ]
    });
    let policies = policies.chain([fixed(i32::MAX, i32::MAX), fixed(0, 0), fixed(-1, -1)]);
    for policy in policies.step_by(if cfg!(miri) { 9 } else { 1 }) {
        let mut config = Config::new(&zones, &[NodeId(0)]).with_policy(policy);
        config.min_free_kbytes = Some(0);
        let allocator: Allocator = build(&config);
        for size in [0, 0, 0, 1, 3, 9, 0, 2] {
            if let Ok(pfn) = allocator.alloc(CPU, &Request::new(order(size)).movable()) {
                allocator.free(CPU, pfn, order(size)).expect("allocated");
            }
            assert!(allocator.tick(CPU).is_ok());
            allocator.validate().expect("nothing broke");
        }
        allocator.drain_all(CPU).expect("a CPU");
        assert_eq!(allocator.validate().expect("nothing broke").free, frames);
    }
}

#[test]
fn a_violation_names_its_place() {
    let violation = Violation { zone: ZoneId(1), pfn: Some(Pfn(16)), rule: "blocks do not overlap (4)" };
    assert_eq!(violation.to_string(), "zone 1: frame 0x10: blocks do not overlap (4)");
}

#[test]
#[expect(clippy::reversed_empty_ranges, reason = "that is the mistake")]
fn ranges_without_frames_are_errors() {
    let allocator = machine();
    let before = allocator.validate();
    for range in [5..5, 10..5, u64::MAX..0] {
        let (start, end) = (Pfn(range.start), Pfn(range.end));
        assert_eq!(allocator.free_range(CPU, range.clone()), Err(FreeError::BadRange(start, end)));
        assert_eq!(allocator.split_range(CPU, range.clone()), Err(FreeError::BadRange(start, end)));
        assert_eq!(allocator.add_memory(CPU, range), Err(ConfigError::BadRange(start, end)));
    }
    assert_eq!(allocator.validate(), before);
}
