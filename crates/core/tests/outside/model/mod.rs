//! Random operations on random machines against a naive model, for every policy. After each operation: every frame is
//! somewhere, nobody's frame is handed out twice, every refusal is the right one, the counters are true.
//!
//! `machine`, `operation`, `owners` and `reference`, with `host` and `steady` beside this directory, are the fuzz target
//! `allocator_operations` too, which decodes machines and operations from bytes; `strategies` makes them for proptest.
//!
//! `PROPTEST_CASES` sets the number of machines per policy. A failure becomes a test of its own in `regressions`.

mod machine;
mod operation;
mod owners;
mod reference;
mod regressions;
mod strategies;

use pageset_core::Policy;
use proptest::prelude::*;

fn cases() -> ProptestConfig {
    let config = ProptestConfig { failure_persistence: None, ..ProptestConfig::default() };
    match std::env::var("PROPTEST_CASES") {
        Ok(_) => config,
        // Miri is some hundred times slower.
        Err(_) => ProptestConfig { cases: if cfg!(miri) { 1 } else { 20 }, ..config },
    }
}

fn steps() -> usize {
    if cfg!(miri) { 10 } else { 80 }
}

fn run(policy: Policy) {
    let strategy = (strategies::machines(), prop::collection::vec(strategies::operations(), 1..steps()));
    let outcome = proptest::test_runner::TestRunner::new(cases()).run(&strategy, |(machine, operations)| {
        reference::play(&machine, policy, &operations, 1);
        Ok(())
    });
    if let Err(failure) = outcome {
        panic!("{}: {failure}", policy.name);
    }
}

#[test]
fn every_policy_agrees_with_the_model() {
    // A few kernels that differ much are what miri has time for.
    for policy in pageset_core::POLICIES.iter().step_by(if cfg!(miri) { 8 } else { 1 }) {
        run(*policy);
    }
}
