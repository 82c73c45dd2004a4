//! Golden vectors of page sets, for every patch of the 2023 series. Some vectors have the decisions for
//! single states, and others have complete traces of events.

use std::format;
use std::string::String;
use std::vec::Vec;

use super::tuning::clamp_upper_first;
use super::{Limits, Pcp, Pressure};
use crate::event::DrainReason;
use crate::policy::*;
use crate::{MigrateType, Order, vectors};

/// The policy that the vectors call `name`.
fn level(name: &str) -> Policy {
    let name = match name {
        "base" => "linux-6.6",
        "merged_6_7" => "linux-6.7",
        patch => patch,
    };
    *Policy::named(name).unwrap()
}

/// Makes the state of a page set from the first thirteen numbers of a row.
fn state(policy: &Policy, row: &[i64]) -> (Pcp, Limits, Pressure) {
    let number = |column: usize| row[column] as i32;
    let limits = Limits { batch: number(0), high_min: number(1), high_max: number(2) };
    let pcp = Pcp {
        count: number(3),
        high: number(4),
        free_factor: row[5] as u8,
        free_count: number(6),
        alloc_factor: row[7] as u8,
        count_min: number(10),
        previous_was_high_order: row[11] != 0,
        has_large_slice: row[12] != 0,
        ..Pcp::with_scheme(policy.lists)
    };
    (pcp, limits, Pressure { reclaim_active: row[8] != 0, below_high: row[9] != 0 })
}

#[test]
fn refill_sizes_equal_the_vectors() {
    let rows = vectors::named_rows(include_str!("../../tests/vectors/nr_pcp_alloc.csv"));
    assert_eq!(rows.len(), 2640);
    for (name, row) in rows {
        let policy = level(name);
        let (mut pcp, limits, pressure) = state(&policy, &row);
        let order = Order::new(row[13] as u8).unwrap();
        let size = pcp.refill_size(&policy, limits, pressure, order);
        let ours = (i64::from(size), i64::from(pcp.alloc_factor));
        assert_eq!(ours, (row[14], row[16]), "{name}: {row:?}");
        if policy.tuning.is_some() {
            assert_eq!(i64::from(pcp.high), row[15], "high of {name}: {row:?}");
        }
    }
}

#[test]
fn limits_and_drain_sizes_equal_the_vectors() {
    let rows = vectors::named_rows(include_str!("../../tests/vectors/nr_pcp_high_and_free.csv"));
    assert_eq!(rows.len(), 1320);
    for (name, row) in rows {
        let policy = level(name);
        let (mut pcp, limits, pressure) = state(&policy, &row);
        let reason = if row[13] != 0 { DrainReason::FreeHigh } else { DrainReason::High };
        let limit = pcp.limit(&policy, limits, pressure, reason);
        assert_eq!(i64::from(limit), row[14], "limit of {name}: {row:?}");
        if policy.tuning.is_some() {
            assert_eq!(i64::from(pcp.high), row[15], "high of {name}: {row:?}");
        }
        assert_eq!(pcp.count >= limit, row[16] != 0, "{name} drains: {row:?}");
        if row[16] != 0 {
            let size = pcp.drain_size(&policy, limits.batch, limit, reason);
            assert_eq!(i64::from(size), row[17], "drain of {name}: {row:?}");
            if let FreeHistory::Factor { .. } = policy.free_history {
                assert_eq!(i64::from(pcp.free_factor), row[18], "factor of {name}: {row:?}");
            }
        }
    }
}

#[test]
fn decay_equals_the_vectors() {
    let rows = vectors::named_rows(include_str!("../../tests/vectors/decay_pcp_high.csv"));
    assert_eq!(rows.len(), 300);
    for (name, row) in rows {
        let policy = level(name);
        let (mut pcp, limits, _) = state(&policy, &row);
        let decayed = pcp.decay(&policy, limits).unwrap();
        let ours = (i64::from(pcp.high), i64::from(decayed.excess), i64::from(pcp.high > limits.high_min));
        assert_eq!(ours, (row[13], row[14], row[15]), "{name}: {row:?}");
    }
}

/// A page set whose zone never runs out of memory. The page set only counts the blocks of each list.
struct Endless {
    policy: Policy,
    limits: Limits,
    pcp: Pcp,
    held: Vec<i32>,
    step: u32,
    log: Vec<String>,
}

impl Endless {
    fn new(name: &str, large_slice: bool, limits: (i32, i32)) -> Self {
        let policy = level(name);
        let limits = Limits { batch: 63, high_min: limits.0, high_max: limits.1 };
        let mut pcp = Pcp::with_scheme(policy.lists);
        pcp.has_large_slice = large_slice;
        pcp.high = limits.high_min;
        Self { policy, limits, pcp, held: std::vec![0; policy.lists.lists()], step: 0, log: Vec::new() }
    }

    fn list(&self, order: u8) -> (usize, Order) {
        let order = Order::new(order).unwrap();
        (self.policy.lists.list_of_held(order, MigrateType::Movable), order)
    }

    fn alloc(&mut self, order: u8) {
        self.step += 1;
        let (list, order) = self.list(order);
        self.pcp.note_alloc(&self.policy);
        let mut fetched = None;
        if self.held[list] == 0 {
            let blocks = self.pcp.refill_size(&self.policy, self.limits, Pressure::default(), order) as i32;
            self.held[list] = blocks;
            self.pcp.count += blocks << order.get();
            fetched = Some(blocks);
        }
        self.held[list] -= 1;
        self.pcp.count -= order.frames() as i32;
        self.pcp.count_min = self.pcp.count_min.min(self.pcp.count);
        if let Some(blocks) = fetched {
            self.note("refill", order, &format!("{blocks}"), blocks << order.get(), false);
        }
    }

    fn free(&mut self, order: u8) {
        self.step += 1;
        let (list, order) = self.list(order);
        self.held[list] += 1;
        self.pcp.count += order.frames() as i32;
        if let Some(due) = self.pcp.note_free(&self.policy, self.limits, Pressure::default(), order) {
            let pages = self.drain(due.pages, list);
            self.note("drain", order, "", pages, due.reason == DrainReason::FreeHigh);
        }
    }

    fn tick(&mut self) {
        self.step += 1;
        let excess = self.pcp.decay(&self.policy, self.limits).map_or(0, |decayed| decayed.excess);
        let pages = self.drain(excess, 0);
        self.pcp.end_tick();
        let p = &self.pcp;
        self.log.push(format!("{},tick,,,,{pages},{},{}", self.step, p.count, p.high));
    }

    fn end(&mut self) {
        let p = &self.pcp;
        self.log.push(format!("{},end,,,,0,{},{}", self.step, p.count, p.high));
    }

    fn drain(&mut self, pages: i32, start: usize) -> i32 {
        let lists = self.held.len();
        let (mut left, mut drained) = (pages.min(self.pcp.count), 0);
        for list in (0..lists).map(|step| (start + step) % lists) {
            let size = self.policy.lists.order(list).frames() as i32;
            while left > 0 && self.held[list] > 0 {
                self.held[list] -= 1;
                left -= size;
                drained += size;
            }
        }
        self.pcp.count -= drained;
        drained
    }

    fn note(&mut self, what: &str, order: Order, blocks: &str, pages: i32, free_high: bool) {
        let p = &self.pcp;
        self.log.push(format!(
            "{},{what},{order},1,{blocks},{pages},{},{},{},{},{},{}",
            self.step,
            p.count,
            p.high,
            p.alloc_factor,
            p.free_factor,
            p.free_count,
            u8::from(free_high)
        ));
    }
}

/// A policy by its name in the vectors, and whether the CPU has a large share of the caches.
type Candidate<'t> = (&'t str, bool);

/// Runs `script` for each candidate of a trace and compares every event.
#[track_caller]
fn check_trace(table: &str, limits: (i32, i32), script: impl Fn(&mut Endless)) {
    let mut expected: Vec<(Candidate, Vec<Vec<&str>>)> = Vec::new();
    for line in table.lines().skip(1) {
        let cells: Vec<&str> = line.split(',').collect();
        let key = (cells[0], cells[1] == "1");
        match expected.last_mut().filter(|(last, _)| *last == key) {
            Some((_, rows)) => rows.push(cells[2..].to_vec()),
            None => expected.push((key, std::vec![cells[2..].to_vec()])),
        }
    }
    assert!(expected.len() >= 20, "eleven levels, with and without a large slice");
    for ((name, large_slice), rows) in expected {
        let mut run = Endless::new(name, large_slice, limits);
        script(&mut run);
        run.end();
        let history = run.policy.free_history;
        for (row, ours) in rows.iter().zip(&run.log) {
            let ours: Vec<&str> = ours.split(',').collect();
            for (column, (expected, ours)) in row.iter().zip(&ours).enumerate() {
                // A policy keeps only one of the two histories of frees, so compare only the history that the
                // policy keeps.
                let kept = match column {
                    // Patch 6 computes the upper limit of `high` but does not use the upper limit, so do not
                    // compare `high`.
                    7 => run.policy.high == HighRule::Share || run.policy.tuning.is_some(),
                    9 => matches!(history, FreeHistory::Factor { .. }),
                    10 => matches!(history, FreeHistory::Count { .. }),
                    _ => true,
                };
                assert!(
                    !kept || expected == ours,
                    "{name}, slice {large_slice}: {row:?} but {ours:?} ({column})"
                );
            }
        }
        assert_eq!(rows.len(), run.log.len(), "{name}, slice {large_slice}: number of events");
    }
}

const WIDE: (i32, i32) = (6862, 90_112);
const NARROW: (i32, i32) = (361, 4000);

#[test]
fn trace_of_5000_allocations_and_frees() {
    check_trace(include_str!("../../tests/vectors/trace_order0_alloc5000_free5000.csv"), WIDE, |run| {
        (0..5000).for_each(|_| run.alloc(0));
        (0..5000).for_each(|_| run.free(0));
    });
}

/// Tests a trace that begins with worked example E3.
#[test]
fn example_e3_trace_of_20000_frees_then_order_1() {
    check_trace(include_str!("../../tests/vectors/trace_free20000_then_order1.csv"), WIDE, |run| {
        (0..20_000).for_each(|_| run.free(0));
        [1, 0, 1, 1].into_iter().for_each(|order| run.free(order));
        (0..12).for_each(|_| run.tick());
    });
}

/// Tests a trace that begins with worked example E4.
#[test]
fn example_e4_trace_of_consecutive_order_2_frees() {
    check_trace(
        include_str!("../../tests/vectors/trace_consecutive_order2_free_high361.csv"),
        NARROW,
        |run| {
            (0..400).for_each(|_| run.free(2));
            (0..64).for_each(|_| run.alloc(2));
            (0..100).for_each(|_| run.free(2));
        },
    );
}

#[test]
fn trace_of_allocations_ticks_frees_ticks() {
    check_trace(
        include_str!("../../tests/vectors/trace_alloc30000_ticks_free30000_ticks.csv"),
        WIDE,
        |run| {
            (0..30_000).for_each(|_| run.alloc(0));
            (0..20).for_each(|_| run.tick());
            (0..30_000).for_each(|_| run.free(0));
            (0..30).for_each(|_| run.tick());
        },
    );
}

#[test]
fn trace_of_mixed_orders() {
    check_trace(include_str!("../../tests/vectors/trace_mixed_high361.csv"), NARROW, |run| {
        for i in 0..3000 {
            run.alloc(0);
            if i % 3 == 2 {
                run.free(0);
            }
            if i % 50 == 0 {
                run.alloc(3);
            }
            if i % 70 == 0 {
                run.free(3);
            }
        }
        run.tick();
        run.tick();
    });
}

/// Tests a clamp to bounds that cross, because a huge scale factor made the lower bound exceed the upper
/// bound. The clamp must compare the value with the upper bound first.
#[test]
fn crossing_bounds_end_at_the_upper_one() {
    let limits = Limits { batch: 63, high_min: 39_833, high_max: 16_384 };
    let mut pcp = Pcp { high: 50_000, ..Pcp::with_scheme(LINUX_6_12.lists) };
    assert_eq!(pcp.limit(&LINUX_6_12, limits, Pressure::default(), DrainReason::High), 16_384);
    assert_eq!(clamp_upper_first(0, limits.high_min, limits.high_max), 39_833);
}
