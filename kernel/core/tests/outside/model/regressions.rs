//! Tests of defects that random machines, random operations or code reviews found. The name of a test is the
//! right behaviour.

use pageset_core::policy::{LINUX_6_1, LINUX_6_12};
use pageset_core::{
    AllocError, ConfigError, CpuId, FreeTraits, MigrateType, Order, POLICIES, Pfn, Policy, Request,
    RequestTraits, ZoneKind,
};

use crate::family::machine::{Machine, ZoneShape};
use crate::host::{Allocator, build, order};

const CPU: CpuId = CpuId(0);

/// A machine with one zone and one CPU.
fn machine(span: std::ops::Range<u64>, regions: &[std::ops::Range<u64>]) -> Machine {
    Machine {
        zones: vec![ZoneShape { kind: ZoneKind::Normal, node: 0, span, regions: regions.to_vec() }],
        cpus: vec![0],
        page_bytes: 4096,
        min_free_kbytes: Some(0),
        scale_factor: 10,
        boost_factor: 15_000,
        lowmem_ratio: 256,
        high_fraction: 0,
        distances: None,
    }
}

impl Machine {
    fn build(&self, policy: Policy) -> Allocator {
        self.with_config(|config| build(&config.with_policy(policy)))
    }
}

#[track_caller]
fn sound(allocator: &Allocator) {
    if let Err(violation) = allocator.validate() {
        panic!("{}: {violation}", allocator.policy().name);
    }
}

#[test]
fn a_hole_is_foreign_to_an_allocation_at_a_place() {
    let allocator = machine(1024..3000, &[1024..1500, 2000..3000]).build(LINUX_6_12);
    let at = |pfn| allocator.alloc_at(CPU, Pfn(pfn), &Request::new(Order::ZERO));
    assert_eq!(at(1600), Err(AllocError::Foreign(Pfn(1600))));
}

#[test]
fn isolated_pageblocks_that_merged_come_back_one_by_one() {
    for policy in POLICIES {
        let allocator = machine(0..4096, &[0..4096]).build(*policy);
        let block = allocator.alloc(CPU, &Request::new(Order::MAX)).expect("memory enough");
        for half in [block.0, block.0 + 512] {
            assert_eq!(allocator.isolate_pageblock(CPU, Pfn(half)), Ok(()));
        }
        // The block is freed as a whole. The block's two isolated halves may merge.
        allocator.free(CPU, block, Order::MAX).expect("allocated");
        sound(&allocator);
        assert_eq!(allocator.unisolate_pageblock(CPU, Pfn(block.0 + 512), MigrateType::Movable), Ok(()));
        sound(&allocator);
        let zone = allocator.zones().next().expect("one zone");
        assert_eq!((zone.free, zone.free_isolated), (4096 - 512, 512), "{}", policy.name);
        let isolated = allocator.unisolate_pageblock(CPU, block, MigrateType::Isolate);
        assert_eq!(isolated, Err(ConfigError::BadType(MigrateType::Isolate)), "that would change nothing");
    }
}

#[test]
fn half_an_isolated_block_is_freed_apart_from_the_other_half() {
    for policy in POLICIES {
        let allocator = machine(0..4096, &[0..4096]).build(*policy);
        let block = allocator.alloc(CPU, &Request::new(Order::MAX)).expect("memory enough");
        assert_eq!(allocator.isolate_pageblock(CPU, Pfn(block.0 + 512)), Ok(()));
        allocator.free(CPU, block, Order::MAX).expect("allocated");
        sound(&allocator);
        assert_eq!(allocator.zones().next().map(|zone| zone.free_isolated), Some(512), "{}", policy.name);
    }
}

#[test]
fn a_request_that_may_use_all_reserves_finds_the_atomic_one() {
    let allocator = machine(0..45, &[0..45]).build(LINUX_6_1);
    let pair = Request::new(order(1)).atomic();
    while allocator.alloc(CPU, &pair).is_ok() {}
    let desperate = RequestTraits::MAY_WAIT | RequestTraits::NO_WATERMARKS;
    let one = Request::new(Order::ZERO).with(desperate);
    while allocator.alloc(CPU, &one).is_ok() {}
    assert_eq!(allocator.zones().next().map(|zone| zone.free), Some(0));
}

/// Tests that a request finds a block that a page set gave back to the lists of the atomic reserve after the
/// reserve had ended.
#[test]
fn a_request_that_may_use_all_finds_what_is_left_of_a_reserve() {
    for policy in POLICIES {
        let allocator = machine(0..2048, &[0..2048]).build(*policy);
        let any = |order| Request::new(order).with(RequestTraits::MAY_WAIT | RequestTraits::NO_WATERMARKS);
        while allocator.alloc(CPU, &any(order(3))).is_ok() {}
        let directly = |pfn, order| allocator.free_with(CPU, Pfn(pfn), order, FreeTraits::BYPASS_PCP);
        // The zone adds the pageblock of each of these two requests to its atomic reserve.
        for pfn in [0, 512] {
            directly(pfn, order(3)).expect("allocated");
            assert_eq!(
                allocator.alloc(CPU, &Request::new(order(3)).atomic()),
                Ok(Pfn(pfn)),
                "{}",
                policy.name
            );
        }
        for pfn in [512 + 8, 8] {
            allocator.split_range(CPU, pfn..pfn + 8).expect("allocated");
            directly(pfn, Order::ZERO).expect("allocated");
        }
        allocator.free(CPU, Pfn(0), order(3)).expect("allocated");
        while allocator.alloc(CPU, &any(Order::ZERO)).is_ok() {}
        assert_eq!(allocator.zones().next().map(|zone| zone.free), Some(0), "{}", policy.name);
    }
}

#[test]
fn a_pageblock_comes_back_from_isolation_as_no_reserve() {
    for policy in POLICIES {
        let allocator = machine(0..2048, &[0..2048]).build(*policy);
        allocator.isolate_pageblock(CPU, Pfn(0)).expect("it is in service");
        let refused = allocator.unisolate_pageblock(CPU, Pfn(0), MigrateType::HighAtomic);
        assert_eq!(refused, Err(ConfigError::BadType(MigrateType::HighAtomic)), "{}", policy.name);
        allocator.unisolate_pageblock(CPU, Pfn(0), MigrateType::Movable).expect("it is out of service");
        let any = Request::new(Order::ZERO).with(RequestTraits::MAY_WAIT | RequestTraits::NO_WATERMARKS);
        while allocator.alloc(CPU, &any).is_ok() {}
        assert_eq!(allocator.zones().next().map(|zone| zone.free), Some(0), "{}", policy.name);
    }
}

#[test]
fn an_atomic_request_served_by_a_page_set_reserves_its_pageblock_too() {
    let allocator = machine(0..20_000, &[0..20_000]).build(LINUX_6_1);
    let pair = Request::new(order(1));
    allocator.alloc(CPU, &pair).expect("memory enough");
    // Only later attempts of an atomic request have the flag `HIGH_ATOMIC`. The high watermarks make the
    // first attempt fail.
    allocator.set_min_free_kbytes(72_000);
    allocator.alloc(CPU, &pair.atomic()).expect("a quarter of the watermark is enough for it");
    assert_eq!(allocator.zones().next().map(|zone| zone.reserved_highatomic), Some(512));
    sound(&allocator);
}

#[test]
fn watermarks_that_no_number_holds_end_at_the_largest() {
    let allocator = machine(0..4096, &[0..4096]).build(LINUX_6_12);
    for kbytes in [u64::MAX, u64::MAX / 5 * 4, 1 << 62] {
        allocator.set_min_free_kbytes(kbytes);
        allocator.set_watermark_scale_factor(u32::MAX);
        let zone = allocator.zones().next().expect("there is one");
        crate::steady::watermarks_are_equally_spaced_39(&zone);
        assert!(allocator.alloc(CPU, &Request::new(Order::ZERO)).is_err(), "{:?}", zone.watermarks);
    }
}

#[test]
fn types_agree_with_lists_where_mobility_is_not_grouped() {
    for policy in POLICIES {
        // A machine of 2048 frames is too small for a pageblock of each type.
        let allocator = machine(0..2048, &[0..2048]).build(*policy);
        assert_eq!(allocator.isolate_pageblock(CPU, Pfn(600)), Ok(()));
        assert_eq!(allocator.unisolate_pageblock(CPU, Pfn(600), MigrateType::Reclaimable), Ok(()));
        assert_eq!(allocator.pageblock_type(Pfn(600)), Some(MigrateType::Unmovable));
        sound(&allocator);
    }
}

#[test]
fn a_frame_of_an_isolated_pageblock_can_be_marked_bad() {
    for policy in POLICIES {
        let allocator = machine(0..4096, &[0..4096]).build(*policy);
        assert_eq!(allocator.isolate_pageblock(CPU, Pfn(600)), Ok(()));
        assert_eq!(allocator.mark_bad(CPU, Pfn(700)), Ok(()));
        sound(&allocator);
        assert_eq!(allocator.unisolate_pageblock(CPU, Pfn(600), MigrateType::Movable), Ok(()));
        sound(&allocator);
        let zone = allocator.zones().next().expect("one zone");
        assert_eq!((zone.free, zone.free_isolated), (4095, 0), "{}", policy.name);
    }
}

#[test]
fn a_block_marked_bad_in_a_page_set_is_no_violation() {
    for policy in POLICIES {
        let allocator = machine(0..40_000, &[0..40_000]).build(*policy);
        let one = Request::new(Order::ZERO).movable();
        let pfn = allocator.alloc(CPU, &one).expect("memory enough");
        allocator.free(CPU, pfn, Order::ZERO).expect("allocated");
        assert_eq!(allocator.mark_bad(CPU, pfn), Ok(()));
        sound(&allocator);
        assert_ne!(allocator.alloc(CPU, &one), Ok(pfn), "{}", policy.name);
        sound(&allocator);
        assert_eq!(allocator.validate().map(|census| census.leaked), Ok(1), "{}", policy.name);
    }
}

/// Tests that the limits of a zone on a node without CPUs depend on all CPUs.
#[test]
fn a_cpu_that_leaves_is_noticed_by_zones_of_nodes_without_cpus() {
    let mut machine = machine(0..40_000, &[0..40_000]);
    machine.zones[0].node = 1;
    machine.cpus = vec![0; 4];
    let allocator = machine.build(LINUX_6_12);
    let high_max = || allocator.pageset_info(pageset_core::ZoneId(0), CPU).map(|info| info.high_max);
    assert_eq!(high_max(), Some(5000 / 4));
    allocator.cpu_offline(CpuId(3)).expect("a CPU");
    assert_eq!(high_max(), Some(5000 / 3));
    allocator.cpu_online(CpuId(3)).expect("a CPU");
    assert_eq!(high_max(), Some(5000 / 4));
}
