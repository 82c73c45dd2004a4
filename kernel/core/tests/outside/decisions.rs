//! Tests decisions at their boundaries, where one page more or less changes the decision.

use std::ops::Range;
use std::slice::from_ref;

use crate::host::{Allocator, build};
use crate::log::{CPU, Drained, Log, Machine, OTHER, ZONE};
use pageset_core::policy::{LINUX_6_1, LINUX_6_7, LINUX_6_12};
use pageset_core::{
    CacheSlice, Config, CpuId, DrainReason, Event, FreeTraits, MigrateType, NodeId, Order, POLICIES, Pfn,
    Policy, Request, RequestTraits, Watermarks, ZoneConfig, ZoneId, ZoneKind,
};

use MigrateType::{Movable, Unmovable};

/// Number of frames of a zone that is large enough for batch 63.
const LARGE: u64 = 180_224;

/// A request that bypasses the page set, takes its page from the free lists, and ignores watermarks.
fn direct(migratetype: MigrateType) -> Request {
    let traits = RequestTraits::BYPASS_PCP | RequestTraits::NO_WATERMARKS | RequestTraits::WAKE_KSWAPD;
    Request::new(Order::ZERO).of_type(migratetype).with(traits)
}

fn give(allocator: &Allocator<Log>, frames: Range<u64>) {
    for frame in frames {
        allocator.free_with(CPU, Pfn(frame), Order::ZERO, FreeTraits::BYPASS_PCP).expect("allocated");
    }
}

fn wakes(events: &[Event]) -> usize {
    events.iter().filter(|event| matches!(event, Event::WakeKswapd { .. })).count()
}

/// Makes a machine with zones of 4096 frames each, one after another from frame 0, and with `min_free_kbytes`
/// 0. Each of two nodes has one CPU.
fn zones(policy: Policy, of: &[(ZoneKind, u16)]) -> Machine {
    let spans: Vec<_> = (0..of.len() as u64).map(|zone| zone * 4096..(zone + 1) * 4096).collect();
    let zones: Vec<_> = of
        .iter()
        .zip(&spans)
        .map(|(&(kind, node), span)| ZoneConfig {
            kind,
            node: NodeId(node),
            span: span.clone(),
            regions: from_ref(span),
        })
        .collect();
    let mut config = Config::new(&zones, &[NodeId(0), NodeId(1)]).with_policy(policy);
    config.min_free_kbytes = Some(0);
    Machine { allocator: build(&config) }
}

#[test]
fn exactly_a_batch_of_history_is_enough_for_free_high() {
    for (singles, drains) in [(60, false), (61, true)] {
        let machine = Machine::new(LINUX_6_12, LARGE);
        let pairs = machine.stock(1, 2);
        machine.stock(0, singles).into_iter().for_each(|block| machine.free(CPU, block));
        pairs.into_iter().for_each(|block| machine.free(CPU, block));
        // When the machine frees the second block of order 1, the history of frees has `singles` + 2 pages.
        assert_eq!(!machine.drains().is_empty(), drains, "{singles}");
    }
}

#[test]
fn a_large_slice_keeps_less_than_a_batch_only() {
    for (singles, drains) in [(58, false), (59, true)] {
        let machine = Machine::new(LINUX_6_12, LARGE);
        machine
            .allocator
            .set_cache_slice(CPU, CacheSlice { all_kib: 0, last_level_kib: 760 })
            .expect("a CPU");
        // The following 300 frees leave a history of frees in the page set, and the drain does not clear this
        // history.
        machine.stock(0, 300).into_iter().for_each(|block| machine.free(CPU, block));
        machine.allocator.drain_cpu(CPU, CPU).expect("it exists");
        let pairs = machine.stock(1, 2);
        machine.stock(0, singles).into_iter().for_each(|block| machine.free(CPU, block));
        pairs.into_iter().for_each(|block| machine.free(CPU, block));
        assert_eq!(!machine.drains().is_empty(), drains, "{singles} and 4 pages held");
    }
}

/// Tests that a movable request may claim a pageblock for a block of order 4 or more, but not for a smaller
/// block (spec §1.6).
#[test]
fn a_movable_request_claims_from_order_4_on() {
    for (size, may) in [(3, false), (4, true)] {
        let machine = Machine::new(LINUX_6_12, 4096);
        machine.allocator.set_min_free_kbytes(0);
        (0..4096).for_each(|_| {
            machine.allocator.alloc(CPU, &direct(Unmovable)).expect("all of it");
        });
        give(&machine.allocator, 1024..1024 + (1 << size));
        machine.allocator.alloc(CPU, &direct(Movable)).expect("another type's block");
        let boost = machine.allocator.zones().next().map(|zone| zone.boost);
        assert_eq!(boost, Some(if may { 512 } else { 0 }), "an attempt at order {size} boosts the watermark");
    }
}

#[test]
fn drains_on_demand_begin_at_list_0_and_go_in_chunks() {
    let machine = Machine::new(LINUX_6_12, LARGE);
    let movable = machine.alloc(OTHER, 0);
    let unmovable = machine.allocator.alloc(OTHER, &Request::new(Order::ZERO)).expect("memory enough");
    machine.free(CPU, movable);
    machine.free(CPU, (unmovable, Order::ZERO));
    machine.events();
    machine.allocator.drain_cpu(CPU, CPU).expect("it exists");
    let drained: Vec<_> = machine
        .events()
        .iter()
        .filter_map(|event| match event {
            Event::MmPagePcpuDrain { pfn, .. } => Some(*pfn),
            _ => None,
        })
        .collect();
    assert_eq!(drained, [unmovable, movable.0]);
    // With the watermarks `most`, the limit of the page set is larger than a chunk of batch << 5 pages.
    let most = Watermarks { min: 5000, low: 9000, high: 10_000 };
    machine.allocator.set_watermarks(ZONE, most).expect("it exists");
    machine.stock(0, 2020).into_iter().for_each(|block| machine.free(CPU, block));
    machine.events();
    machine.allocator.drain_cpu(CPU, CPU).expect("it exists");
    let demand = |pages| Drained { reason: DrainReason::Demand, pages };
    assert_eq!(machine.drains(), [demand(2016), demand(4)]);
}

#[test]
fn idle_pages_of_a_remote_node_go_a_batch_every_third_tick() {
    let machine = zones(LINUX_6_1, &[(ZoneKind::Normal, 0)]);
    let remote = CpuId(1);
    machine.allocator.set_percpu_pagelist_high_fraction(8).expect("eight is allowed");
    let batch = machine.info(remote).batch as u32;
    let blocks: Vec<_> = (0..20).map(|_| machine.alloc(remote, 0)).collect();
    blocks.into_iter().for_each(|block| machine.free(remote, block));
    machine.events();
    let ticks: Vec<_> = (0..9)
        .map(|_| {
            machine.allocator.tick(remote).expect("it exists");
            machine.drains().iter().map(|drain| drain.pages).sum::<u32>()
        })
        .collect();
    assert_eq!(ticks, [0, 0, batch, 0, 0, batch, 0, 0, batch]);
    // A page set of the CPU's own node does not expire.
    let block = machine.alloc(CPU, 0);
    machine.free(CPU, block);
    machine.events();
    (0..9).for_each(|_| {
        machine.allocator.tick(CPU).expect("it exists");
    });
    assert_eq!(machine.drains(), []);
}

#[test]
fn a_tick_drains_in_slices_of_a_batch_since_6_12() {
    for policy in [LINUX_6_7, LINUX_6_12] {
        let machine = Machine::new(policy, LARGE);
        let blocks: Vec<_> = (0..9000).map(|_| machine.alloc(CPU, 0)).collect();
        blocks.into_iter().for_each(|block| machine.free(CPU, block));
        machine.events();
        let drains = loop {
            machine.allocator.tick(CPU).expect("it exists");
            let drains = machine.drains();
            if drains.iter().map(|drain| drain.pages).sum::<u32>() > 126 {
                break drains;
            }
        };
        let sliced = drains.iter().all(|drain| drain.pages <= 63);
        assert_eq!(sliced, policy == LINUX_6_12, "{}: {drains:?}", policy.name);
        assert_eq!(drains.len() == 1, policy == LINUX_6_7);
    }
}

/// Tests that a request prefers memory of its own node in a pageblock of another type to memory of another
/// node (spec §1.13, step 1).
#[test]
fn fragmenting_is_better_than_another_node() {
    for policy in [LINUX_6_1, LINUX_6_12] {
        let of = [(ZoneKind::Dma32, 0), (ZoneKind::Normal, 0), (ZoneKind::Normal, 1)];
        let machine = zones(policy, &of);
        machine.allocator.set_watermark_boost_factor(0);
        let in_dma32 = direct(Unmovable).in_zone(ZoneKind::Dma32);
        while machine.allocator.zones().next().is_some_and(|zone| zone.free > 0) {
            machine.allocator.alloc(CPU, &in_dma32).expect("free > 0");
        }
        // Allocate one movable page in each pageblock of the preferred zone.
        for frame in (4096..8192).step_by(512) {
            machine.allocator.alloc_at(CPU, Pfn(frame), &direct(Movable)).expect("free");
        }
        machine.events();
        let busy = Request::new(Order::ZERO);
        let busy = busy.with(busy.traits | RequestTraits::BYPASS_PCP);
        let pfn = machine.allocator.alloc(CPU, &busy).expect("memory enough");
        assert_eq!(machine.allocator.zone_of(pfn), Some(ZoneId(1)), "{}", policy.name);
        assert_eq!(wakes(&machine.events()), 0, "{}: the first attempt found it", policy.name);
    }
}

#[test]
fn fragmenting_is_better_than_failing() {
    let machine = zones(LINUX_6_12, &[(ZoneKind::Dma32, 0), (ZoneKind::Normal, 0)]);
    let in_dma32 = direct(Unmovable).in_zone(ZoneKind::Dma32);
    while machine.allocator.zones().next().is_some_and(|zone| zone.free > 0) {
        machine.allocator.alloc(CPU, &in_dma32).expect("free > 0");
    }
    for frame in (4096..8192).step_by(512) {
        machine.allocator.alloc_at(CPU, Pfn(frame), &direct(Movable)).expect("free");
    }
    machine.allocator.set_watermark_boost_factor(0);
    machine.events();
    let busy = Request::new(Order::ZERO);
    let busy = busy.with(busy.traits | RequestTraits::BYPASS_PCP);
    assert!(machine.allocator.alloc(CPU, &busy).is_ok());
    assert_eq!(
        wakes(&machine.events()),
        0,
        "the first attempt may mix types, so it finds a page and wakes no kswapd"
    );
}

/// Tests that free pages of a contiguous area do not count for unmovable requests (spec §1.11).
#[test]
fn contiguous_areas_do_not_count_for_unmovable_requests() {
    let machine = Machine::new(LINUX_6_12, 4096);
    for frame in (512..4096).step_by(512) {
        assert_eq!(machine.allocator.isolate_pageblock(CPU, Pfn(frame)), Ok(()));
        assert_eq!(machine.allocator.unisolate_pageblock(CPU, Pfn(frame), MigrateType::Cma), Ok(()));
    }
    let marks = Watermarks { min: 100, low: 600, high: 1100 };
    machine.allocator.set_watermarks(ZONE, marks).expect("it exists");
    machine.events();
    let one = Request::new(Order::ZERO);
    assert!(machine.allocator.alloc(CPU, &one.movable()).is_ok());
    assert_eq!(wakes(&machine.events()), 0, "4096 are free for a movable request");
    assert!(machine.allocator.alloc(CPU, &one).is_ok());
    assert_eq!(wakes(&machine.events()), 1, "512 for an unmovable one: below the low watermark");
}

/// Tests that a drain puts a page on the isolated list if the page's pageblock was isolated after the page
/// was freed.
#[test]
fn drains_look_again_while_pageblocks_are_isolated() {
    for policy in POLICIES {
        let machine = Machine::new(*policy, 36_864);
        let block = machine.alloc(CPU, 0);
        machine.allocator.drain_all(CPU).expect("it exists");
        machine.free(CPU, block);
        assert_eq!(machine.allocator.isolate_pageblock(CPU, block.0), Ok(()));
        machine.allocator.drain_all(CPU).expect("it exists");
        machine.allocator.validate().expect("on the isolated list");
        assert_eq!(
            machine.allocator.zones().next().map(|zone| zone.free_isolated),
            Some(512),
            "{}",
            policy.name
        );
    }
}

/// Tests the drain of unused pages that a refill took from a pageblock of another type. Linux 6.1 drains the
/// unused pages to the list where the refill found the pages. Linux 6.12 drains the unused pages to the list
/// of their pageblock's type.
#[test]
fn unused_pages_go_back_to_where_the_policy_says() {
    for (policy, to) in [(LINUX_6_1, Unmovable), (LINUX_6_12, Movable)] {
        // The zone's batch is 3.
        let machine = Machine::new(policy, 12_288);
        machine.allocator.set_min_free_kbytes(0);
        (0..12_288).for_each(|_| {
            machine.allocator.alloc(CPU, &direct(Movable)).expect("all of it");
        });
        (512..608).step_by(16).for_each(|start| give(&machine.allocator, start..start + 8));
        let cached = direct(Unmovable).with(RequestTraits::NO_WATERMARKS);
        let pfn = machine.allocator.alloc(CPU, &cached).expect("48 are free");
        assert_eq!(machine.allocator.pageblock_type(pfn), Some(Movable), "{}: mostly movable", policy.name);
        assert_eq!(machine.info(CPU).count, 2);
        machine.events();
        machine.allocator.drain_cpu(CPU, CPU).expect("it exists");
        for event in machine.events() {
            if let Event::MmPagePcpuDrain { migratetype, .. } = event {
                assert_eq!(migratetype, to, "{}", policy.name);
            }
        }
    }
}

#[test]
fn bulk_wants_the_low_watermark_and_all_slots_on_top() {
    for (low, slots_filled) in [(LARGE - 101, 100), (LARGE - 100, 1)] {
        let machine = Machine::new(LINUX_6_12, LARGE);
        machine
            .allocator
            .set_watermarks(ZONE, Watermarks { min: 0, low, high: low + low })
            .expect("it exists");
        let mut slots = [None; 100];
        let got = machine.allocator.alloc_bulk(CPU, &Request::new(Order::ZERO).movable(), &mut slots);
        assert_eq!(got, Ok(slots_filled), "low {low}");
    }
}

#[test]
fn bulk_for_one_slot_is_an_ordinary_allocation() {
    let machine = Machine::new(LINUX_6_12, LARGE);
    for (slots, events) in [(1, 1), (2, 0), (0, 0)] {
        machine.events();
        let mut pages = vec![None; slots];
        let got = machine.allocator.alloc_bulk(CPU, &Request::new(Order::ZERO), &mut pages);
        assert_eq!(got, Ok(slots));
        let seen = machine.events().iter().filter(|event| matches!(event, Event::MmPageAlloc { .. })).count();
        assert_eq!(seen, events, "{slots} slots");
    }
}

/// Tests that a request gets pages from another CPU's page set only if the request may wait.
#[test]
fn all_page_sets_are_drained_before_a_waiting_request_fails() {
    for policy in POLICIES {
        let machine = Machine::new(*policy, 36_864);
        let one = Request::new(Order::ZERO).movable();
        let block = machine.alloc(OTHER, 0);
        machine.free(OTHER, block);
        while machine.allocator.alloc(CPU, &direct(Movable)).is_ok() {}
        assert!(machine.info(OTHER).count > 0, "{}", policy.name);
        let hasty = one.with(RequestTraits::NO_WATERMARKS);
        assert!(machine.allocator.alloc(CPU, &hasty).is_err(), "{}", policy.name);
        let patient = one.with(RequestTraits::NO_WATERMARKS | RequestTraits::MAY_WAIT);
        assert!(machine.allocator.alloc(CPU, &patient).is_ok(), "{}", policy.name);
        assert_eq!(machine.allocator.counters().allocstall, 1, "{}", policy.name);
    }
}

#[test]
fn requests_that_may_wake_the_reclaimer_do_so_below_low() {
    let machine = Machine::new(LINUX_6_12, 4096);
    let marks = Watermarks { min: 100, low: 4096, high: 8092 };
    machine.allocator.set_watermarks(ZONE, marks).expect("it exists");
    machine.events();
    let one = Request::new(Order::ZERO).movable();
    assert!(machine.allocator.alloc(CPU, &one).is_ok());
    assert_eq!(wakes(&machine.events()), 1);
    assert!(machine.allocator.alloc(CPU, &one.with(RequestTraits::MAY_WAIT)).is_ok());
    assert_eq!(wakes(&machine.events()), 0);
}

/// Tests which request clears the mark of a zone with boosted watermarks: under Linux 6.1 any request, under
/// Linux 6.12 only a request that may wake the reclaimer.
#[test]
fn a_boosted_zone_wakes_the_reclaimer_once() {
    for policy in [LINUX_6_1, LINUX_6_12] {
        let machine = Machine::new(policy, 4096);
        machine.allocator.set_min_free_kbytes(0);
        (0..4096).for_each(|_| {
            machine.allocator.alloc(CPU, &direct(Movable)).expect("all of it");
        });
        give(&machine.allocator, 512..544);
        machine.events();
        let quiet = direct(Unmovable).with(RequestTraits::BYPASS_PCP | RequestTraits::NO_WATERMARKS);
        machine.allocator.alloc(CPU, &quiet).expect("32 are free");
        assert_eq!(wakes(&machine.events()), 0, "{}: it may not", policy.name);
        assert_eq!(machine.allocator.zones().next().map(|zone| zone.boost), Some(512));
        // The next request wakes the reclaimer twice: because the zone is below its low watermark, and
        // because the request mixes types in a pageblock and so boosts the watermark.
        while machine.allocator.alloc(CPU, &direct(Unmovable)).is_ok() {}
        give(&machine.allocator, 1024..1056);
        machine.events();
        machine.allocator.alloc(CPU, &direct(Unmovable)).expect("32 are free");
        assert_eq!(wakes(&machine.events()), 2, "{}", policy.name);
    }
}

/// Tests that grouping by mobility needs a pageblock of each type above the high watermark.
#[test]
fn exactly_a_pageblock_of_each_type_is_enough_for_grouping() {
    for (frames, groups) in [(3071, false), (3072, true)] {
        let machine = Machine::new(LINUX_6_12, frames);
        machine.allocator.set_watermark_scale_factor(0);
        machine.allocator.set_min_free_kbytes(0);
        let pfn = machine.alloc(CPU, 0).0;
        let expected = if groups { Movable } else { Unmovable };
        assert_eq!(machine.allocator.pageblock_type(pfn), Some(expected), "{frames} frames");
    }
}

/// Tests that a drain clears the zone's below-high mark if enough memory is free after the drain.
#[test]
fn a_drain_clears_the_mark_of_a_zone_that_is_above_high() {
    let machine = Machine::new(LINUX_6_12, LARGE);
    let high_min = machine.info(CPU).high_min;
    let stock = machine.stock(0, high_min as usize + 200);
    machine.allocator.set_below_high(ZONE, pageset_core::BelowHighMark::Below).expect("it exists");
    machine.alloc(CPU, 3);
    assert_eq!(machine.info(CPU).high, high_min, "refills do not raise it");
    stock.into_iter().for_each(|block| machine.free(CPU, block));
    let before = machine.info(CPU).high;
    machine.alloc(CPU, 2);
    assert_eq!(machine.info(CPU).high, before + 63, "now they do");
}

#[test]
fn a_cpu_that_leaves_leaves_nothing_behind() {
    let machine = Machine::new(LINUX_6_12, LARGE);
    let block = machine.alloc(OTHER, 0);
    machine.free(OTHER, block);
    let shared = machine.info(CPU).high_max;
    assert!(machine.info(OTHER).count > 0);
    machine.allocator.cpu_offline(OTHER).expect("a CPU");
    assert_eq!(machine.info(OTHER).count, 0);
    assert_eq!(machine.info(CPU).high_max / 2, shared);
}
