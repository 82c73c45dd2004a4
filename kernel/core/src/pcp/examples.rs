//! Tests worked examples of the specification: refills, and the limit of a free.

use super::tuning::clamp_upper_first;
use super::{Limits, Pcp, Pressure};
use crate::Order;
use crate::event::DrainReason;
use crate::policy::{LINUX_6_1, LINUX_6_12, Policy};

const E1: Limits = Limits { batch: 63, high_min: 6862, high_max: 90_112 };

fn sizes(policy: &Policy, limits: Limits, allocations: u32) -> (std::vec::Vec<u32>, std::vec::Vec<i32>) {
    let mut pcp = Pcp { high: limits.high_min, ..Pcp::with_scheme(policy.lists) };
    let (mut sizes, mut highs) = (std::vec![], std::vec![]);
    for _ in 0..allocations {
        if pcp.count == 0 {
            let size = pcp.refill_size(policy, limits, Pressure::default(), Order::ZERO);
            pcp.count += size as i32;
            sizes.push(size);
            highs.push(pcp.high);
        }
        pcp.count -= 1;
    }
    (sizes, highs)
}

/// Tests worked example E2: the sizes of the refills during 5000 allocations.
#[test]
fn example_e2_refills_of_5000_allocations() {
    let (sizes_6_1, _) = sizes(&LINUX_6_1, E1, 5000);
    assert_eq!(sizes_6_1, [63; 80]);
    let (sizes_6_12, highs) = sizes(&LINUX_6_12, E1, 5000);
    assert_eq!(sizes_6_12, [63, 126, 252, 504, 1008, 2016, 2016]);
    assert_eq!(highs, [6925, 7051, 7303, 7807, 8815, 10_831, 12_847]);
    let (_, highs) = sizes(&LINUX_6_12, E1, 82_594);
    assert_eq!((highs.len(), highs[44] < 90_112, highs[45]), (46, true, 90_112));
}

/// Tests worked example E8: in the DMA zone, which has batch 1, refills double too.
#[test]
fn example_e8_batch_one_doubles_too() {
    let dma = Limits { batch: 1, high_min: 18, high_max: 240 };
    let (sizes, highs) = sizes(&LINUX_6_12, dma, 6);
    assert_eq!(sizes, [1, 2, 4]);
    assert_eq!(highs, [19, 21, 25]);
}

/// Tests worked example E10 and the table of spec §2.7.2.
#[test]
fn example_e10_high_orders_fetch_two_at_least() {
    for (batch, blocks) in
        [(1, [1, 1, 1, 1, 1]), (3, [3, 2, 2, 2, 2]), (15, [15, 7, 3, 2, 2]), (63, [63, 31, 15, 7, 2])]
    {
        for (order, blocks) in [0, 1, 2, 3, 9].into_iter().zip(blocks) {
            let mut pcp = Pcp { high: 6862, ..Pcp::with_scheme(LINUX_6_12.lists) };
            let order = Order::new(order).unwrap();
            let limits = Limits { batch, ..E1 };
            let size = pcp.refill_size(&LINUX_6_12, limits, Pressure::default(), order);
            assert_eq!(size, blocks, "batch {batch}, order {order}");
            assert_eq!(pcp.high, 6862 + batch);
        }
    }
}

#[test]
fn the_upper_bound_wins_when_bounds_cross() {
    assert_eq!(clamp_upper_first(30_000, 39_833, 16_384), 16_384);
    assert_eq!(clamp_upper_first(10, 39_833, 16_384), 39_833);
}

fn at(count: i32, high: i32) -> Pcp {
    Pcp { count, high, ..Pcp::with_scheme(LINUX_6_12.lists) }
}

/// Tests worked examples E6 and E7: while memory is short, `high` falls by `batch` at each free.
#[test]
fn examples_e6_e7_pressure_lowers_high() {
    for (pressure, limit) in [
        (Pressure { below_high: true, reclaim_active: false }, 10_000),
        (Pressure { below_high: false, reclaim_active: true }, 252),
    ] {
        let mut pcp = at(10_000, 20_000);
        for high in [19_937, 19_874, 19_811] {
            assert_eq!(pcp.limit(&LINUX_6_12, E1, pressure, DrainReason::High), limit);
            assert_eq!(pcp.high, high);
        }
    }
}

/// Tests worked example E9: a page set with limit 0, as Linux has at boot, drains one page at every free.
#[test]
fn example_e9_a_disabled_set_keeps_nothing() {
    let boot = Limits { batch: 1, high_min: 0, high_max: 0 };
    let mut pcp = at(1, 0);
    let limit = pcp.limit(&LINUX_6_12, boot, Pressure::default(), DrainReason::High);
    assert_eq!((limit, pcp.drain_size(&LINUX_6_12, boot.batch, limit, DrainReason::High)), (0, 1));
}
