//! Tests this allocator with the same model and the same programs as `pageset-core`.
//!
//! The fuzz target `blocks_operations` also uses the module `block_allocator` and the directory
//! `kernel/core/tests/family`. `PROPTEST_CASES` sets the number of machines. A failure becomes a named test
//! in `regressions`.

mod block_allocator;
mod regressions;
#[path = "../../../../core/tests/family/strategies.rs"]
mod strategies;

use proptest::prelude::*;

use crate::family::operation::Operation;
use crate::family::play::play;
use block_allocator::BlockSubject;

fn run(programs: impl Strategy<Value = Vec<Operation>>, share: u32) {
    let all = std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(400);
    let cases = u32::div_ceil(all, share);
    let config = ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() };
    let strategy = (strategies::machines(), programs);
    let outcome = proptest::test_runner::TestRunner::new(config).run(&strategy, |(machine, operations)| {
        play(BlockSubject::new(&machine), &machine, &operations, 1);
        Ok(())
    });
    outcome.unwrap_or_else(|failure| panic!("{failure}"));
}

#[test]
fn every_program_agrees_with_the_model() {
    run(prop::collection::vec(strategies::operations(), 1..80), 1);
}

#[test]
fn every_program_agrees_with_the_model_when_memory_is_used_up() {
    // The programs of `dry_programs` allocate all memory before each operation.
    run(strategies::dry_programs(), 10);
}
