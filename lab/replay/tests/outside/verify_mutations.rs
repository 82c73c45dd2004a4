//! Changes rules and constants of policies, one at a time. After each change, `agreeing`
//! must be lower than without the change, summed over the test's recordings.
//!
//! Some rules have no effect in recordings without memory pressure: `raise`, `below_high`, `reclaim` and the
//! step of `high` under pressure. The core's vectors `nr_pcp_alloc.csv` and `nr_pcp_high_and_free.csv` test
//! the rules that have no effect here. The core's own tests cover `demand_drain`, `DrainOrder::ClassFirst`,
//! `SliceRule::caches` and the rules of the free lists.
//!
//! In the bundled recordings of Linux 6.1, no decision depends on the rule `previous`, because frees of high
//! order seldom come between other frees. In the bundled recording of Linux 6.18, no free causes a free_high
//! drain. The traces of the core's vectors test both rules. A drain under one hold of the lock differs from a
//! drain in slices only in the number of blocks that overshoot.

use std::path::Path;

use pageset_core::policy::{
    BatchRule, Counting, Decay, DrainOrder, FactorCap, FactorGrows, FirstList, FreeDrain, FreeHighDrains,
    FreeHighThreshold, FreeHistory, HighRule, LINUX_6_1, LINUX_6_12, LINUX_6_18, NextSlice, PreviousFree,
    RefillRule,
};
use pageset_core::{ListScheme, Policy};
use pageset_replay::{VerifyOptions, verify};

/// Returns the number of decisions, pages and sampled values in a recording that agree with the policy, minus
/// the number of mismatches.
fn agreeing(name: &str, policy: Policy) -> u64 {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../data/traces").join(name);
    let mut reader = pageset_trace::open(&path.with_extension("pgtrace")).expect("a bundled recording");
    let options = VerifyOptions { policy: Some(policy), ..VerifyOptions::default() };
    let v = verify(reader.as_mut(), &options, |_| ()).expect("a verification");
    let exact = v.refills.exact
        + v.drains.exact
        + v.drains.identity_exact
        + v.decay.exact
        + v.samples.count_exact
        + v.samples.high_exact;
    // A predicted decision that the kernel did not make is a mismatch too.
    exact.saturating_sub(v.mismatches.total())
}

/// A name, and a change of a policy.
type Mutation = (&'static str, fn(&mut Policy));

#[track_caller]
fn caught(names: &[&str], policy: Policy, mutations: &[Mutation]) {
    let agreeing = |policy| names.iter().map(|name| agreeing(name, policy)).sum::<u64>();
    let right = agreeing(policy);
    let mut unnoticed = Vec::new();
    for (what, mutate) in mutations {
        let mut mutant = policy;
        mutate(&mut mutant);
        assert_ne!(mutant, policy, "{what} changes nothing");
        let wrong = agreeing(mutant);
        if wrong >= right {
            unnoticed.push(format!("{what}: {wrong} of {right}"));
        }
    }
    assert!(unnoticed.is_empty(), "{names:?}: {unnoticed:#?}");
}

fn with_free_high(policy: &mut Policy, change: impl FnOnce(&mut pageset_core::policy::FreeHighRule)) {
    change(policy.free_high.as_mut().expect("the policy has the rule"));
}

#[test]
fn every_change_to_linux_6_12_is_caught() {
    caught(
        &["k612_2c_tcp", "k612_2c_unix_stream", "k612_4c_2node_numa_tcp"],
        LINUX_6_12,
        &[
            ("half the cap of batch", |p| p.batch = BatchRule::ZoneShare { cap_bytes: 512 << 10 }),
            ("a batch less by one", |p| p.batch = BatchRule::Fixed(62)),
            ("refills that do not double", |p| p.refill = RefillRule::Batch),
            ("refills of as many blocks", |p| p.refill = RefillRule::BatchOfBlocks),
            ("a scale of 4", |p| p.scale_max = 4),
            ("a scale of 6", |p| p.scale_max = 6),
            ("no tuning", |p| p.tuning = None),
            ("decay by a fifth", |p| p.tuning.as_mut().unwrap().decay = Decay::FIFTH),
            ("decay of what is unused", |p| p.tuning.as_mut().unwrap().decay = Decay::UNUSED_UP_TO_FIFTH),
            ("one limit", |p| p.high = HighRule::Share),
            ("no free history", |p| p.free_history = FreeHistory::None),
            ("a free factor", |p| {
                p.free_history = FreeHistory::Factor { cap: FactorCap::ScaleMax, grows: FactorGrows::Below };
            }),
            ("no free_high", |p| p.free_high = None),
            ("free_high after any free", |p| with_free_high(p, |rule| rule.previous = PreviousFree::Any)),
            ("free_high of everything", |p| with_free_high(p, |rule| rule.drains = FreeHighDrains::ALL)),
            ("the threshold of 6.16", |p| {
                with_free_high(p, |rule| rule.threshold = FreeHighThreshold::BATCH_AND_HALF_HIGH_MIN);
            }),
            ("drains in turn", |p| p.drain_order = DrainOrder::RoundRobin(FirstList::Zero)),
            ("drains of the fullest", |p| p.drain_order = DrainOrder::ExcessFirst),
            ("blocks are counted", |p| p.counting = Counting::Blocks),
            ("each class has a limit", |p| p.counting = Counting::PagesOfClass),
            ("drains in slices", |p| p.free_drain = FreeDrain::Slices(NextSlice::WhileDue)),
            ("lists of order 0 only", |p| p.lists = ListScheme::OrderZero),
            ("one list for each high order", |p| p.lists = ListScheme::HighOrderV5),
            ("the same up to order 5", |p| p.lists = ListScheme::HighOrderToFive),
        ],
    );
}

#[test]
fn every_change_to_linux_6_1_is_caught() {
    caught(
        &["k61_2c_unix_stream", "k61_2c_tcp"],
        LINUX_6_1,
        &[
            ("half the cap of batch", |p| p.batch = BatchRule::ZoneShare { cap_bytes: 512 << 10 }),
            ("refills that double", |p| p.refill = RefillRule::Doubling),
            ("refills of as many blocks", |p| p.refill = RefillRule::BatchOfBlocks),
            ("a fixed limit", |p| p.high = HighRule::Fixed(6000)),
            ("no free history", |p| p.free_history = FreeHistory::None),
            ("no free_high", |p| p.free_high = None),
            ("free_high that is capped", |p| with_free_high(p, |rule| rule.drains = FreeHighDrains::CAPPED)),
        ],
    );
}

#[test]
fn every_change_to_linux_6_18_is_caught() {
    caught(
        &["k618_2c_hackbench_sock"],
        LINUX_6_18,
        &[
            ("the threshold of 6.12", |p| {
                with_free_high(p, |rule| rule.threshold = FreeHighThreshold::BATCH)
            }),
            ("drains in slices", |p| p.free_drain = FreeDrain::Slices(NextSlice::WhileDue)),
            ("a scale of 4", |p| p.scale_max = 4),
            ("decay by a fifth", |p| p.tuning.as_mut().unwrap().decay = Decay::FIFTH),
            ("refills that do not double", |p| p.refill = RefillRule::Batch),
        ],
    );
}
