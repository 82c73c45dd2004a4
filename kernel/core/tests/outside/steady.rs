//! Checks the invariants that hold after every operation. A function's name has the invariant's number in the
//! specification (§8.1).

use pageset_core::policy::{DivertedFrees, HighRule};
use pageset_core::{Counters, CpuId, EventSink, FrameCensus, Policy, ZoneInfo};

use crate::host::Allocator;

/// Checks all invariants of this file. `before` holds the counters at the last check. `lost` is the number of
/// frames that went out of service while in use. Returns how many frames are free, cached, allocated and
/// leaked.
#[track_caller]
pub(crate) fn check_all<E: EventSink>(
    allocator: &Allocator<E>,
    before: &mut Counters,
    lost: u64,
) -> FrameCensus {
    let census = conservation_1_to_8(allocator);
    for zone in allocator.zones() {
        free_blocks_add_up_2(&zone);
        watermarks_are_equally_spaced_39(&zone);
        protection_does_not_fall_39(&zone);
    }
    batch_is_one_less_than_a_power_of_two_10(allocator);
    limits_are_four_batches_11(allocator);
    counters_never_fall_31(allocator, before);
    allocations_less_frees_is_what_is_allocated_31(allocator, census.allocated + lost);
    numa_counters_agree_32(allocator);
    census
}

/// Checks invariants 1 to 8 by `validate`, which inspects every frame and every list.
#[track_caller]
pub(crate) fn conservation_1_to_8<E: EventSink>(allocator: &Allocator<E>) -> FrameCensus {
    let census = match allocator.validate() {
        Ok(census) => census,
        Err(violation) => panic!("{violation}"),
    };
    let managed: u64 = allocator.zones().map(|zone| zone.managed).sum();
    assert_eq!(census.free + census.cached + census.allocated + census.leaked, managed, "1: conservation");
    assert_eq!(census.cached, allocator.cached_pages(), "7: count is what the lists hold");
    census
}

/// Checks invariant 2: the free blocks of all orders together have as many pages as the zone counts as free
/// or isolated.
#[track_caller]
pub(crate) fn free_blocks_add_up_2(zone: &ZoneInfo) {
    let in_blocks: u64 =
        zone.nr_free.iter().zip(0..).map(|(blocks, order)| u64::from(*blocks) << order).sum();
    assert_eq!(in_blocks, zone.free + zone.free_isolated, "2: blocks add up in {zone:?}");
}

fn each_pageset<E: EventSink>(
    allocator: &Allocator<E>,
) -> impl Iterator<Item = (ZoneInfo, CpuId, pageset_core::PagesetInfo)> {
    allocator.zones().flat_map(move |zone| {
        (0..allocator.cpus() as u32).map(CpuId).map(move |cpu| {
            let info = allocator.pageset_info(zone.id, cpu).expect("every zone has a page set on every CPU");
            (zone.clone(), cpu, info)
        })
    })
}

/// Checks invariant 10: `batch` is 1 or of the form 2^n − 1.
#[track_caller]
pub(crate) fn batch_is_one_less_than_a_power_of_two_10<E: EventSink>(allocator: &Allocator<E>) {
    for (zone, cpu, info) in each_pageset(allocator) {
        assert!(info.batch >= 1 && (info.batch + 1).count_ones() == 1, "10: {info:?} of {zone:?}, {cpu:?}");
        assert!(info.count >= 0, "7: {info:?}");
    }
}

/// Checks invariant 11: if the limits of page sets are a share of the zone, both limits are at least four
/// batches.
#[track_caller]
pub(crate) fn limits_are_four_batches_11<E: EventSink>(allocator: &Allocator<E>) {
    if !matches!(allocator.policy().high, HighRule::Share | HighRule::ShareToEighth) {
        return;
    }
    for (_, _, info) in each_pageset(allocator) {
        assert!(info.high_min >= 4 * info.batch && info.high_max >= 4 * info.batch, "11: {info:?}");
    }
}

/// Checks invariant 31: no counter ever falls.
#[track_caller]
pub(crate) fn counters_never_fall_31<E: EventSink>(allocator: &Allocator<E>, before: &mut Counters) {
    let now = allocator.counters();
    for ((name, was), (_, is)) in before.named().zip(now.named()) {
        assert!(is >= was, "31: {name} fell from {was} to {is}");
    }
    *before = now;
}

/// Checks invariant 31: pages allocated minus pages freed equal `used`, the pages that users have or have
/// lost. If `pgfree` does not count frees that bypass a page set, allocations minus frees may be larger than
/// `used`.
#[track_caller]
pub(crate) fn allocations_less_frees_is_what_is_allocated_31<E: EventSink>(
    allocator: &Allocator<E>,
    used: u64,
) {
    let counters = allocator.counters();
    let difference = counters.pgalloc - counters.pgfree;
    if counts_diverted_frees(allocator.policy()) {
        assert_eq!(difference, used, "31: {counters:?}");
    } else {
        assert!(difference >= used, "31: {counters:?}");
    }
}

fn counts_diverted_frees(policy: &Policy) -> bool {
    policy.buddy.diverted_frees == DivertedFrees::Counted
}

/// Checks invariant 32: hits plus misses equal local plus other allocations, and the misses equal the foreign
/// allocations. The two equations hold for the sums over all zones.
#[track_caller]
pub(crate) fn numa_counters_agree_32<E: EventSink>(allocator: &Allocator<E>) {
    let counters = allocator.counters();
    assert_eq!(counters.numa_hit + counters.numa_miss, counters.numa_local + counters.numa_other, "32");
    assert_eq!(counters.numa_miss, counters.numa_foreign, "32");
}

/// Checks invariant 39: watermarks are equally spaced, unless a number would overflow.
#[track_caller]
pub(crate) fn watermarks_are_equally_spaced_39(zone: &ZoneInfo) {
    let marks = zone.watermarks;
    assert!(marks.min <= marks.low && marks.low <= marks.high, "39: {marks:?}");
    let step = marks.low - marks.min;
    assert_eq!(marks.high, marks.low.saturating_add(step), "39: {marks:?}");
}

/// Checks invariant 39: the `lowmem_reserve` does not fall as the request's highest zone rises.
#[track_caller]
pub(crate) fn protection_does_not_fall_39(zone: &ZoneInfo) {
    assert!(zone.protection.is_sorted(), "39: {:?}", zone.protection);
}
