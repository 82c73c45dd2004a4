//! The family's model judges this allocator too: with the same programs as the core's.
//!
//! `block_allocator` and the family's own directory are the fuzz target `blocks_operations` too. `PROPTEST_CASES` sets the
//! number of machines per rule. A failure becomes a test of its own in `regressions`.

mod block_allocator;
mod regressions;
#[path = "../../../../core/tests/family/strategies.rs"]
mod strategies;

use pageset_blocks::RemoteFrees;
use proptest::prelude::*;

use crate::family::play::play;
use block_allocator::BlockSubject;

proptest! {
    #![proptest_config(ProptestConfig {
        cases: std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(400),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn every_program_agrees_with_the_model(
        machine in strategies::machines(),
        operations in prop::collection::vec(strategies::operations(), 1..80),
        keeps: bool,
    ) {
        let rule = if keeps { RemoteFrees::Kept } else { RemoteFrees::AtOnce };
        play(BlockSubject::new(&machine, rule), &machine, &operations, 1);
    }
}
