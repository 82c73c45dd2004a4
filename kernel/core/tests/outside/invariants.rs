//! Tests the specification's invariants (§8.1). A test's name has the invariant's number. `steady` checks the
//! invariants that hold in every state. The test with the model also calls `steady`, after each operation.
//!
//! Two invariants have no test here. Invariant 37 is about bad pages that a refill finds by their contents,
//! but the core cannot read the contents of frames. Invariant 40 is about the clearing of huge pages, but the
//! core does not clear pages.

use crate::host::{self, order};
use crate::log::{CPU, Drained, Machine, OTHER, ZONE};
use crate::steady;
use pageset_core::policy::{
    BatchRule, DrainOrder, FirstList, FreeHistory, HIGH_ORDER_V5, HighRule, LINUX_6_6, LINUX_6_12, PATCH_1,
    PATCH_6, PATCH_7, RefillRule,
};
use pageset_core::{
    BelowHighMark, CacheSlice, Config, ConfigError, Counters, CpuId, DrainReason, Event, EventSink,
    FreeError, FreeTraits, MigrateType, NodeId, Order, POLICIES, Pfn, Policy, Reclaim, Request,
    RequestTraits, TickOutcome, ZoneConfig, ZoneKind,
};

/// Number of frames of the zone. A zone of `LARGE` frames has a batch of 63.
const LARGE: u64 = 180_224;

/// Policies to run a test under.
fn policies(wanted: impl Fn(&Policy) -> bool) -> Vec<Policy> {
    let mut policies: Vec<_> = POLICIES.iter().copied().filter(|policy| wanted(policy)).collect();
    if cfg!(miri) {
        policies.truncate(1);
    }
    assert!(!policies.is_empty());
    policies
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

/// Allocates and frees blocks in many ways on both CPUs, with ticks. Calls `look` after each step.
fn churn(machine: &Machine, steps: u64, mut look: impl FnMut(&Machine)) {
    let mut held = Vec::new();
    let mut dice = 0x9e37_79b9_7f4a_7c15_u64;
    for step in 0..steps {
        dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(step | 1);
        let cpu = if dice >> 40 & 1 == 0 { CPU } else { OTHER };
        let size = [0, 0, 0, 1, 2, 3, 3, 9][(dice >> 33) as usize & 7];
        match (dice >> 50) % 10 {
            0..5 => {
                let types = [MigrateType::Movable, MigrateType::Unmovable, MigrateType::Reclaimable];
                let request = Request::new(order(size)).of_type(types[(dice >> 45) as usize % 3]);
                held.extend(machine.allocator.alloc(cpu, &request).ok().map(|pfn| (pfn, order(size))));
            }
            5..9 if !held.is_empty() => {
                let block = held.swap_remove((dice >> 20) as usize % held.len());
                machine.free(cpu, block);
            }
            _ => drop(machine.allocator.tick(cpu)),
        }
        look(machine);
    }
}

fn steps(many: u64) -> u64 {
    if cfg!(miri) { 20 } else { many }
}

/// Tests invariants 1 to 8, 10, 11, 31, 32 and 39 after each of many operations.
#[test]
fn i01_to_08_10_11_31_32_39_every_state_is_sound() {
    for policy in policies(|_| true) {
        let machine = Machine::new(policy, 7000);
        let mut before = Counters::default();
        churn(&machine, steps(150), |machine| {
            steady::check_all(&machine.allocator, &mut before, 0);
        });
    }
}

/// Tests that `validate`, which has separate rules for invariants 2 to 8, finds nothing wrong in a sound
/// state.
#[test]
fn i02_free_blocks_add_up() {
    let machine = Machine::new(LINUX_6_12, 7000);
    machine.allocator.isolate_pageblock(CPU, Pfn(600)).expect("it exists");
    let zone = machine.allocator.zones().next().expect("one zone");
    assert_eq!((zone.free, zone.free_isolated), (7000 - 512, 512));
    steady::free_blocks_add_up_2(&zone);
    steady::conservation_1_to_8(&machine.allocator);
}

#[test]
fn i09_pages_of_isolated_pageblocks_enter_no_page_set() {
    for policy in policies(|policy| policy.lists.holds(Order::ZERO)) {
        let machine = Machine::new(policy, 7168);
        let block = machine.alloc(CPU, 0);
        machine.allocator.drain_all(CPU).expect("it exists");
        assert_eq!(machine.allocator.isolate_pageblock(CPU, block.0), Ok(()));
        machine.free(CPU, block);
        assert_eq!(machine.info(CPU).count, 0, "{}", policy.name);
        let zone = machine.allocator.zones().next().expect("one zone");
        assert_eq!(zone.free_isolated, 512, "{}", policy.name);
    }
}

#[test]
#[cfg_attr(miri, ignore = "a zone too large for miri")]
fn i10_batch_has_its_form() {
    for frames in [1, 5000, 20_000, 60_000, LARGE] {
        steady::batch_is_one_less_than_a_power_of_two_10(&Machine::new(LINUX_6_12, frames).allocator);
    }
}

#[test]
#[cfg_attr(miri, ignore = "a zone too large for miri")]
fn i11_limits_are_four_batches() {
    let machine = Machine::new(LINUX_6_12, LARGE);
    machine.allocator.set_percpu_pagelist_high_fraction(u32::MAX).expect("any large fraction");
    steady::limits_are_four_batches_11(&machine.allocator);
    assert_eq!(machine.info(CPU).high_min, 252);
}

#[test]
#[cfg_attr(miri, ignore = "a zone too large for miri")]
fn i12_a_fraction_fixes_high() {
    let machine = Machine::new(LINUX_6_12, LARGE);
    machine.allocator.set_percpu_pagelist_high_fraction(200).expect("at least 8");
    let limits = machine.info(CPU);
    assert_eq!(limits.high_min, limits.high_max);
    assert_eq!(limits.high_min, 450);
    let stock = machine.stock(0, 5000);
    machine.allocator.set_below_high(ZONE, BelowHighMark::Below).expect("it exists");
    for (freed, block) in stock.into_iter().enumerate() {
        machine.free(CPU, block);
        assert_eq!(machine.info(CPU).high, 450, "after {freed} frees");
        assert!(machine.info(CPU).count < 450);
        if freed % 500 == 0 {
            machine.allocator.tick(CPU).expect("it exists");
            machine.alloc(CPU, 3);
            assert_eq!(machine.info(CPU).high, 450);
        }
    }
    // While the reclaimer runs, a free that reaches four batches (252 pages) causes a drain, even in a zone
    // that is marked as below its high watermark.
    let stock = machine.stock(0, 300);
    machine.allocator.set_reclaim_active(ZONE, Reclaim::Active).expect("it exists");
    stock.into_iter().for_each(|block| machine.free(CPU, block));
    assert!(machine.info(CPU).count < 252, "{:?}", machine.info(CPU));
}

#[test]
#[cfg_attr(miri, ignore = "a zone too large for miri")]
fn i13_high_stays_between_its_limits() {
    // If CPUs own pageblocks, a page set may hold far more pages than `high`. A tick may then raise `high`
    // above its upper limit for a while.
    for policy in policies(|policy| policy.tuning.is_some() && policy.ownership.is_none()) {
        let machine = Machine::new(policy, 30_000);
        let info = machine.info(CPU);
        assert!(info.high_min < info.high_max);
        churn(&machine, steps(2000), |machine| {
            for cpu in [CPU, OTHER] {
                let info = machine.info(cpu);
                let untouched = info.high == 0 && info.count == 0;
                assert!(untouched || (info.high_min..=info.high_max).contains(&info.high), "{info:?}");
            }
        });
    }
}

#[test]
#[cfg_attr(miri, ignore = "a zone too large for miri")]
fn i14_a_free_drains_exactly_at_the_limit() {
    let untuned = |policy: &Policy| policy.tuning.is_none();
    for policy in policies(untuned) {
        let machine = Machine::new(policy, LARGE);
        let high = machine.info(CPU).high_min;
        for (freed, block) in (1..).zip(machine.stock(0, high as usize)) {
            assert_eq!(machine.drains(), [], "{}: before free {freed}", policy.name);
            machine.free(CPU, block);
        }
        let drains = machine.drains();
        assert_eq!(drains.len(), 1, "{}: one drain, at the limit of {high}", policy.name);
        assert!(drains[0].pages >= 1 && drains[0].reason == DrainReason::High);
        assert_eq!(machine.info(CPU).count, high - drains[0].pages as i32);
    }
}

#[test]
#[cfg_attr(miri, ignore = "a zone too large for miri")]
fn i15_histories_and_factors_are_bounded() {
    let capped = |policy: &Policy| match policy.free_history {
        // If CPUs own pageblocks, refills and drains move whole pageblocks, so the bounds on their sizes do
        // not hold.
        _ if policy.ownership.is_some() => false,
        FreeHistory::Count { .. } => true,
        FreeHistory::Factor { cap, .. } => cap == pageset_core::policy::FactorCap::ScaleMax,
        FreeHistory::None => true,
    };
    for policy in policies(capped) {
        let machine = Machine::new(policy, LARGE);
        let batch = machine.info(CPU).batch as u32;
        let most = batch << policy.scale_max;
        let stock: Vec<_> = (0..30_000).map(|_| machine.alloc(OTHER, 0)).collect();
        for (asked, got) in refills(&machine) {
            assert!(got <= asked && asked <= most, "{}: refill of {asked}", policy.name);
        }
        stock.into_iter().for_each(|block| machine.free(CPU, block));
        for drain in machine.drains() {
            assert!(drain.pages < most + 512, "{}: {drain:?}", policy.name);
        }
    }
}

/// Frees pages until the page set drains. Returns the number of pages drained.
fn pages_of_next_drain(machine: &Machine, stock: &mut Vec<(Pfn, Order)>) -> u32 {
    machine.events();
    loop {
        machine.free(CPU, stock.pop().expect("stock enough"));
        if let [Drained { pages, reason: DrainReason::High }] = machine.drains()[..] {
            return pages;
        }
    }
}

/// Makes a page set with a fixed limit of 901 pages and a history of `freed` pages. The size of its next
/// drain shows how much history is left.
fn with_history(freed: usize) -> (Machine, Vec<(Pfn, Order)>) {
    let machine = Machine::new(LINUX_6_12, LARGE);
    machine.allocator.set_percpu_pagelist_high_fraction(100).expect("at least 8");
    assert_eq!(machine.info(CPU).high_max, 901);
    let mut stock = machine.stock(0, 4000);
    (0..freed).for_each(|_| machine.free(CPU, stock.pop().expect("stock enough")));
    (machine, stock)
}

#[test]
#[cfg_attr(miri, ignore = "a zone too large for miri")]
fn i16_an_allocation_halves_the_free_history_once() {
    let (machine, mut stock) = with_history(800);
    assert_eq!(pages_of_next_drain(&machine, &mut stock), 901 - 63, "901 pages freed, less is kept back");
    // The allocation halves the history of 300 pages. After the allocation, 602 pages are freed until the
    // drain.
    let (machine, mut stock) = with_history(300);
    machine.alloc(CPU, 0);
    assert_eq!(pages_of_next_drain(&machine, &mut stock), 300 / 2 + 602);
    let (machine, mut stock) = with_history(300);
    let mut slots = [None; 20];
    machine
        .allocator
        .alloc_bulk(CPU, &Request::new(Order::ZERO).movable(), &mut slots)
        .expect("memory enough");
    // If the bulk allocation does not halve the history, the history has 300 + 621 pages. If the bulk
    // allocation halved the history, the history would have 150 + 621 pages. A drain takes at most the limit
    // minus a batch.
    assert_eq!(pages_of_next_drain(&machine, &mut stock), 901 - 63, "the bulk interface does not halve");
}

#[test]
#[cfg_attr(miri, ignore = "a zone too large for miri")]
fn i16_a_failed_allocation_halves_it_too() {
    let (machine, mut stock) = with_history(300);
    let desperate = Request::new(Order::ZERO).movable();
    let desperate = desperate.with(RequestTraits::NO_WATERMARKS | RequestTraits::BYPASS_PCP);
    while machine.allocator.alloc(OTHER, &desperate).is_ok() {}
    let three = Request::new(order(3)).movable().with(RequestTraits::NO_WATERMARKS);
    assert!(machine.allocator.alloc(CPU, &three).is_err());
    assert_eq!(pages_of_next_drain(&machine, &mut stock), 300 / 2 + 601);
}

#[test]
#[cfg_attr(miri, ignore = "a zone too large for miri")]
fn i17_a_free_halves_the_alloc_factor_once() {
    let doubling = |policy: &Policy| policy.refill == RefillRule::Doubling && policy.ownership.is_none();
    for policy in policies(doubling) {
        let machine = Machine::new(policy, 1 << 20);
        let next_refill = || {
            machine.events();
            loop {
                let block = machine.alloc(CPU, 0);
                if let [(asked, _)] = refills(&machine)[..] {
                    return (asked, block);
                }
            }
        };
        let first: Vec<_> = (0..4).map(|_| next_refill().0).collect();
        assert_eq!(first, [63, 126, 252, 504], "{}", policy.name);
        // `alloc_factor` is 4 now, so the next refill would ask for 63 << 4 pages. A direct free does not
        // change `alloc_factor`. A free into the page set halves `alloc_factor` to 2.
        let block = machine.alloc(CPU, 0);
        machine.allocator.free_with(CPU, block.0, block.1, FreeTraits::BYPASS_PCP).expect("allocated");
        let block = machine.alloc(CPU, 5);
        machine.free(CPU, block);
        let block = machine.alloc(CPU, 0);
        machine.free(CPU, block);
        assert_eq!(next_refill().0, 63 << 2, "{}", policy.name);
    }
}

#[test]
#[cfg_attr(miri, ignore = "a zone too large for miri")]
fn i18_one_refill_and_one_drain_take_the_zone_lock_once() {
    for policy in policies(|_| true) {
        let machine = Machine::new(policy, LARGE);
        let locks = || machine.allocator.counters().zone_lock_acquisitions;
        let before = locks();
        machine.alloc(CPU, 0);
        assert_eq!(locks(), before + 1, "{}", policy.name);
        let [(asked, got)] = refills(&machine)[..] else { panic!("one refill") };
        // If CPUs own pageblocks, a refill may fetch a whole pageblock.
        let most = if policy.ownership.is_some() { asked.next_multiple_of(512) } else { asked };
        assert!((1..=most).contains(&got));
        // An allocation from the page set takes no lock.
        machine.alloc(CPU, 0);
        assert_eq!(locks(), before + 1);
        let mut stock = machine.stock(0, 20_000);
        let before = locks();
        let mut drains = 0;
        while drains == 0 {
            machine.free(CPU, stock.pop().expect("stock enough"));
            drains = machine.drains().len() as u64;
        }
        assert_eq!(locks(), before + drains, "{}", policy.name);
    }
}

/// A policy whose page sets drain 20 pages at a time when they hold 200 pages.
const TWENTY: Policy = with_limits(LINUX_6_6, BatchRule::Fixed(20), HighRule::Fixed(200));

const fn with_limits(mut policy: Policy, batch: BatchRule, high: HighRule) -> Policy {
    policy.batch = batch;
    policy.high = high;
    policy
}

#[test]
#[cfg_attr(miri, ignore = "a zone too large for miri")]
fn i19_a_drain_overshoots_by_less_than_its_last_block() {
    for size in 0..=3 {
        let mut rule = TWENTY;
        rule.free_high = None;
        let machine = Machine::new(rule, 20_000);
        for block in machine.stock(size, 400 >> size) {
            machine.free(CPU, block);
            for drain in machine.drains() {
                let asked =
                    [20, 40, 80, 160, 180].into_iter().rfind(|asked| *asked <= drain.pages).expect("20");
                assert!(drain.pages < asked + (1 << size), "{drain:?} of order {size}");
            }
        }
        assert!(machine.info(CPU).count < 200);
    }
}

/// Frames drained since the last call.
fn drained_frames(machine: &Machine) -> Vec<u64> {
    let frame = |event: &Event| match event {
        Event::MmPagePcpuDrain { pfn, .. } => Some(pfn.0),
        _ => None,
    };
    machine.events().iter().filter_map(frame).collect()
}

#[test]
#[cfg_attr(miri, ignore = "a zone too large for miri")]
fn i20_a_list_is_drained_from_its_cold_end_before_any_other() {
    let machine = Machine::new(TWENTY, 20_000);
    let singles = machine.stock(0, 150);
    let eights = machine.stock(3, 7);
    singles.iter().for_each(|block| machine.free(CPU, *block));
    let before = machine.info(CPU).count;
    assert_eq!(machine.drains(), []);
    eights.iter().for_each(|block| machine.free(CPU, *block));
    assert_eq!(before, 150);
    // The free of the seventh block of order 3 reaches the limit. The drain takes the three oldest blocks of
    // order 3, and no single page.
    let oldest: Vec<_> = eights[..3].iter().map(|block| block.0.0).collect();
    assert_eq!(drained_frames(&machine), oldest);
    // A drain on demand takes the single pages first, and then the blocks of order 3. Of each list, the drain
    // takes the oldest block first.
    machine.allocator.drain_cpu(CPU, CPU).expect("it exists");
    let rest = singles.iter().chain(&eights[3..]).map(|block| block.0.0);
    assert_eq!(drained_frames(&machine), rest.collect::<Vec<_>>());
}

#[test]
#[cfg_attr(miri, ignore = "a zone too large for miri")]
fn i21_the_page_freed_last_is_allocated_first() {
    for policy in policies(|_| true) {
        let machine = Machine::new(policy, LARGE);
        // Leave out huge pages, because two huge pages would exceed the limit of most policies in this zone.
        for size in (0..=3).filter(|size| policy.lists.holds(order(*size))) {
            let (first, second) = (machine.alloc(CPU, size), machine.alloc(CPU, size));
            machine.free(CPU, first);
            machine.free(CPU, second);
            assert_eq!(machine.alloc(CPU, size), second, "{}", policy.name);
            assert_eq!(machine.alloc(CPU, size), first, "{}", policy.name);
        }
    }
}

#[test]
#[cfg_attr(miri, ignore = "a zone too large for miri")]
fn i22_a_refill_is_handed_out_in_the_order_of_its_extraction() {
    for policy in policies(|_| true) {
        let machine = Machine::new(policy, LARGE);
        machine.events();
        let first = machine.alloc(CPU, 0);
        let extracted: Vec<_> = machine
            .events()
            .iter()
            .filter_map(|event| match event {
                Event::MmPageAllocZoneLocked { pfn, .. } => Some(*pfn),
                _ => None,
            })
            .collect();
        assert_eq!(extracted[0], first.0);
        for expected in &extracted[1..] {
            assert_eq!(machine.alloc(CPU, 0).0, *expected, "{}", policy.name);
        }
    }
}

#[test]
fn i23_a_disabled_page_set_holds_nothing() {
    let disabled = with_limits(LINUX_6_12, BatchRule::Fixed(1), HighRule::Batches(0));
    let machine = Machine::new(disabled, 7000);
    for size in [0, 1, 3, 9] {
        let block = machine.alloc(CPU, size);
        assert_eq!(refills(&machine), [(1, 1)]);
        assert_eq!(machine.info(CPU).count, 0);
        machine.free(CPU, block);
        assert_eq!(machine.info(CPU).count, 0, "order {size}");
    }
}

#[test]
#[cfg_attr(miri, ignore = "a zone too large for miri")]
fn i24_free_high_needs_a_run_of_high_orders_and_history() {
    for policy in policies(|policy| *policy == PATCH_1 || policy.tuning.is_some()) {
        let machine = Machine::new(policy, LARGE);
        let mut history = 0_u64;
        let mut run = 0;
        let blocks: Vec<_> = [0, 9, 1, 0, 2, 9, 3, 0, 1, 1, 2, 0, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3]
            .map(|size| machine.alloc(OTHER, size))
            .into();
        for block in blocks {
            machine.events();
            machine.free(CPU, block);
            let is_high = (1..=3).contains(&block.1.get());
            let allowed = is_high && run > 0 && (history >= 63 || policy == PATCH_1);
            for drain in machine.drains() {
                assert!(allowed || drain.reason != DrainReason::FreeHigh, "{}: {block:?}", policy.name);
            }
            run = if is_high { run + 1 } else { 0 };
            history += u64::from(block.1.frames());
        }
    }
}

#[test]
#[cfg_attr(miri, ignore = "a zone too large for miri")]
fn i25_a_large_cache_slice_keeps_a_batch() {
    for large in [false, true] {
        let machine = Machine::new(LINUX_6_12, LARGE);
        let kib = if large { 2048 } else { 256 };
        machine
            .allocator
            .set_cache_slice(CPU, CacheSlice { all_kib: kib, last_level_kib: kib })
            .expect("a CPU");
        let mut smallest = u32::MAX;
        for block in machine.stock(2, 200) {
            let before = machine.info(CPU).count;
            machine.free(CPU, block);
            for drain in machine.drains().iter().filter(|drain| drain.reason == DrainReason::FreeHigh) {
                assert!(!large || before + 4 >= 63, "drained at {}", before + 4);
                smallest = smallest.min(drain.pages);
            }
        }
        // By the spec's example E4, a drain takes 64 pages if the CPU has a large share of the caches, and
        // otherwise 4 pages.
        assert_eq!(smallest, if large { 64 } else { 4 });
    }
}

#[test]
#[cfg_attr(miri, ignore = "a zone too large for miri")]
fn i26_free_high_drains_are_capped_from_patch_7_on() {
    let drained = |policy: Policy| {
        let machine = Machine::new(policy, LARGE);
        let singles = machine.stock(0, 5000);
        let pair = machine.stock(1, 40);
        machine.allocator.set_percpu_pagelist_high_fraction(18).expect("at least 8");
        singles.into_iter().for_each(|block| machine.free(CPU, block));
        let held = machine.info(CPU).count as u32;
        assert!(held > 3000);
        machine.events();
        pair.into_iter().for_each(|block| machine.free(CPU, block));
        let drains = machine.drains();
        let first = drains.iter().find(|drain| drain.reason == DrainReason::FreeHigh);
        (held, first.map(|drain| drain.pages))
    };
    for policy in [PATCH_7, LINUX_6_12] {
        let (_, pages) = drained(policy);
        assert_eq!(pages.map(|pages| pages - pages % 2), Some(2016), "{}", policy.name);
    }
    let machine = Machine::new(PATCH_6, LARGE);
    let stock = machine.stock(0, 5000);
    let pair = machine.stock(1, 2);
    for block in stock {
        machine.free(CPU, block);
    }
    machine.events();
    pair.into_iter().for_each(|block| machine.free(CPU, block));
    if let Some(drain) = machine.drains().iter().find(|drain| drain.reason == DrainReason::FreeHigh) {
        assert_eq!(machine.info(CPU).count, 0, "all of it: {drain:?}");
    }
}

#[test]
#[cfg_attr(miri, ignore = "a zone too large for miri")]
fn i27_i28_idle_page_sets_sink_to_their_lower_limit() {
    for policy in policies(|policy| policy.tuning.is_some()) {
        let machine = Machine::new(policy, LARGE);
        let blocks: Vec<_> = (0..9000).map(|_| machine.alloc(CPU, 0)).collect();
        blocks.into_iter().for_each(|block| machine.free(CPU, block));
        let mut before = machine.info(CPU);
        assert!(before.high > before.high_min, "{}: {before:?}", policy.name);
        machine.events();
        let mut ticks = 0;
        while machine.allocator.tick(CPU) == Ok(TickOutcome::Again) {
            let now = machine.info(CPU);
            assert!(now.high >= now.high_min && now.high <= before.high, "28, {}: {now:?}", policy.name);
            let drained: u32 = machine.drains().iter().map(|drain| drain.pages).sum();
            assert!(drained <= 2016, "27, {}: {drained} pages in one tick", policy.name);
            before = now;
            ticks += 1;
            assert!(ticks < 100, "27, {}: {now:?}", policy.name);
        }
        let end = machine.info(CPU);
        assert_eq!(end.high, end.high_min, "27, {}", policy.name);
        assert!(end.count <= end.high_min, "27, {}", policy.name);
    }
}

#[test]
#[cfg_attr(miri, ignore = "a zone too large for miri")]
fn i29_a_busy_page_set_is_left_alone() {
    for policy in policies(|_| true) {
        let machine = Machine::new(policy, LARGE);
        let block = machine.alloc(CPU, 0);
        let state = || (machine.info(CPU), machine.allocator.pageset_counters(ZONE, CPU));
        let before = state();
        let busy = Request::new(Order::ZERO).movable();
        let busy = busy.with(busy.traits | RequestTraits::BYPASS_PCP);
        let direct = machine.allocator.alloc(CPU, &busy).expect("memory enough");
        machine.allocator.free_with(CPU, block.0, block.1, FreeTraits::BYPASS_PCP).expect("allocated");
        machine.allocator.free_with(CPU, direct, Order::ZERO, FreeTraits::BYPASS_PCP).expect("allocated");
        assert_eq!(state(), before, "{}", policy.name);
        assert_eq!(machine.allocator.counters().trylock_failures, 3, "{}", policy.name);
    }
}

#[test]
#[cfg_attr(miri, ignore = "a zone too large for miri")]
fn i30_orders_without_a_list_leave_page_sets_alone() {
    for policy in policies(|_| true) {
        let machine = Machine::new(policy, LARGE);
        machine.alloc(CPU, 0);
        let state = || (machine.info(CPU), machine.allocator.pageset_counters(ZONE, CPU));
        let before = state();
        for size in (0..=10).filter(|size| !policy.lists.holds(order(*size))) {
            let block = machine.alloc(CPU, size);
            machine.free(CPU, block);
            assert_eq!(state(), before, "{}, order {size}", policy.name);
        }
    }
}

#[test]
#[cfg_attr(miri, ignore = "a zone too large for miri")]
fn i31_i32_counters_tell_what_happened() {
    let machine = Machine::new(LINUX_6_12, LARGE);
    let mut before = Counters::default();
    let block = machine.alloc(CPU, 3);
    steady::counters_never_fall_31(&machine.allocator, &mut before);
    let used = || machine.allocator.validate().expect("1 to 8").allocated;
    steady::allocations_less_frees_is_what_is_allocated_31(&machine.allocator, used());
    machine.free(OTHER, block);
    steady::counters_never_fall_31(&machine.allocator, &mut before);
    steady::allocations_less_frees_is_what_is_allocated_31(&machine.allocator, used());
    steady::numa_counters_agree_32(&machine.allocator);
    assert_eq!((before.pgalloc, before.pgfree, before.numa_hit, before.numa_local), (8, 8, 1, 1));
}

#[test]
#[cfg_attr(miri, ignore = "a zone too large for miri")]
fn i33_below_high_a_refill_does_not_raise_high() {
    let machine = Machine::new(LINUX_6_12, LARGE);
    machine.allocator.set_below_high(ZONE, BelowHighMark::Below).expect("it exists");
    for _ in 0..5000 {
        machine.alloc(CPU, 0);
        let info = machine.info(CPU);
        assert_eq!(info.high, info.high_min);
    }
}

#[test]
#[cfg_attr(miri, ignore = "a zone too large for miri")]
fn i34_while_the_reclaimer_works_page_sets_shrink_to_four_batches() {
    for policy in policies(|policy| matches!(policy.high, HighRule::Share | HighRule::ShareToEighth)) {
        let machine = Machine::new(policy, LARGE);
        let more = machine.stock(0, 200);
        let blocks: Vec<_> = (0..600).map(|_| machine.alloc(CPU, 0)).collect();
        blocks.into_iter().for_each(|block| machine.free(CPU, block));
        machine.allocator.set_reclaim_active(ZONE, Reclaim::Active).expect("it exists");
        machine.events();
        for block in more {
            machine.free(CPU, block);
            let drained: u32 = machine.drains().iter().map(|drain| drain.pages).sum();
            // If CPUs own pageblocks, a drain takes a block together with its buddies in the page set.
            let merged = if policy.ownership.is_some() { 512 } else { 0 };
            assert!(drained <= 3 * 63 + merged, "{}: {drained} pages at one free", policy.name);
        }
        assert!(machine.info(CPU).count < 252, "{}: {:?}", policy.name, machine.info(CPU));
    }
}

#[test]
fn i35_freeing_all_parts_restores_the_block() {
    for policy in policies(|_| true) {
        let machine = Machine::new(policy, 4096);
        let before = machine.allocator.zones().next();
        for size in 0..=10 {
            let start = machine.alloc(CPU, size).0.0;
            let end = start + (1 << size);
            machine.allocator.free_range(CPU, start..start + 1).expect("allocated");
            if size == 0 {
                let rest = machine.allocator.free_range(CPU, start + 1..end);
                assert_eq!(rest, Err(FreeError::BadRange(Pfn(end), Pfn(end))), "a range without frames");
                continue;
            }
            machine.allocator.free_range(CPU, start + 1..end).expect("allocated");
            machine.allocator.drain_all(CPU).expect("it exists");
            let nr_free = machine.allocator.zones().next().map(|zone| zone.nr_free);
            assert_eq!(nr_free, before.as_ref().map(|zone| zone.nr_free), "{}, order {size}", policy.name);
        }
    }
}

#[test]
#[cfg_attr(miri, ignore = "a zone too large for miri")]
fn i36_a_fraction_below_eight_changes_nothing() {
    let machine = Machine::new(LINUX_6_12, LARGE);
    let before = machine.info(CPU);
    for fraction in 1..8 {
        let refused = machine.allocator.set_percpu_pagelist_high_fraction(fraction);
        assert_eq!(refused, Err(ConfigError::BadFraction(fraction)));
        assert_eq!(machine.info(CPU), before);
    }
}

#[test]
#[cfg_attr(miri, ignore = "a zone too large for miri")]
fn i38_every_v5_drain_starts_at_list_0() {
    assert_eq!(HIGH_ORDER_V5.drain_order, DrainOrder::RoundRobin(FirstList::Zero));
    let machine = Machine::new(HIGH_ORDER_V5, LARGE);
    let unmovable: Vec<_> = (0..400)
        .map(|_| machine.allocator.alloc(OTHER, &Request::new(Order::ZERO)).expect("memory enough"))
        .collect();
    machine.events();
    let mut drains = 0;
    for pfn in unmovable {
        machine.free(CPU, (pfn, Order::ZERO));
        let drained = drained_frames(&machine);
        if let Some(first) = drained.first() {
            let migratetype = machine.allocator.pageblock_type(Pfn(*first));
            assert_eq!(migratetype, Some(MigrateType::Unmovable), "list 0 holds the unmovable pages");
            drains += 1;
        }
    }
    assert!(drains > 1);
}

#[test]
#[cfg_attr(miri, ignore = "a zone too large for miri")]
fn i39_watermarks_and_protection_are_ordered() {
    for frames in [1, 3000, 70_000, LARGE] {
        for factor in [1, 10, 3000] {
            let machine = Machine::new(LINUX_6_12, frames);
            machine.allocator.set_watermark_scale_factor(factor);
            for zone in machine.allocator.zones() {
                steady::watermarks_are_equally_spaced_39(&zone);
                steady::protection_does_not_fall_39(&zone);
            }
        }
    }
}

/// An event sink that records the CPUs that took a zone's lock.
#[derive(Debug, Default)]
struct Takers(std::sync::Mutex<Vec<CpuId>>);

impl EventSink for Takers {
    fn emit(&self, cpu: CpuId, event: Event) {
        if matches!(event, Event::ZoneLock { .. }) {
            self.0.lock().expect("no panic in a sink").push(cpu);
        }
    }
}

#[test]
fn the_cpu_that_ends_a_boost_takes_the_lock() {
    let span = 0..1024;
    let regions = [span.clone()];
    let zones = [ZoneConfig { kind: ZoneKind::Normal, node: NodeId(0), span, regions: &regions }];
    let allocator: host::Allocator<Takers> = host::build(&Config::new(&zones, &[NodeId(0); 2]));
    allocator.platform().0.0.lock().expect("no panic in a sink").clear();
    allocator.end_boost(OTHER, ZONE, 512).expect("both exist");
    assert_eq!(*allocator.platform().0.0.lock().expect("no panic in a sink"), [OTHER]);
}
