//! Tests the core's allocator under every policy with the model in `tests/family`. The test also checks all
//! counters.
//!
//! The fuzz target `allocator_operations` also compiles these files: `page_allocator`, `owners`, the
//! directory `tests/family`, and `host` and `steady` beside this directory.
//!
//! `PROPTEST_CASES` sets the number of machines per policy. For each failure that random programs found,
//! `regressions` has a named test.

mod owners;
mod page_allocator;
mod regressions;
#[path = "../../family/strategies.rs"]
mod strategies;

use pageset_core::Policy;
use proptest::prelude::*;

use crate::family::operation::Operation;
use crate::family::play::play;
use page_allocator::PageSubject;

fn cases() -> ProptestConfig {
    let config = ProptestConfig { failure_persistence: None, ..ProptestConfig::default() };
    match std::env::var("PROPTEST_CASES") {
        Ok(_) => config,
        // A test takes about a hundred times longer under Miri than without Miri.
        Err(_) => ProptestConfig { cases: if cfg!(miri) { 1 } else { 20 }, ..config },
    }
}

fn steps() -> usize {
    if cfg!(miri) { 10 } else { 80 }
}

fn run(policy: Policy, programs: impl Strategy<Value = Vec<Operation>>, cases: ProptestConfig) {
    let strategy = (strategies::machines(), programs);
    let outcome = proptest::test_runner::TestRunner::new(cases).run(&strategy, |(machine, operations)| {
        play(PageSubject::new(&machine, policy), &machine, &operations, 1);
        Ok(())
    });
    if let Err(failure) = outcome {
        panic!("{}: {failure}", policy.name);
    }
}

#[test]
fn every_policy_agrees_with_the_model() {
    // Under Miri, test only every eighth policy, because Miri is slow.
    for policy in pageset_core::POLICIES.iter().step_by(if cfg!(miri) { 8 } else { 1 }) {
        run(*policy, prop::collection::vec(strategies::operations(), 1..steps()), cases());
    }
}

#[test]
#[cfg_attr(miri, ignore = "hours")]
fn every_policy_agrees_with_the_model_when_memory_is_used_up() {
    for policy in pageset_core::POLICIES {
        // Each program allocates all memory many times, so run fewer programs.
        let few = ProptestConfig { cases: cases().cases.div_ceil(10), ..cases() };
        run(*policy, strategies::dry_programs(), few);
    }
}
