//! Random programs against a naive model, for every strategy, shape and option. After each operation the answer is the
//! model's; at each `Check` and at the end the invariants hold, and nothing is left when everything has ended.
//!
//! `PROPTEST_CASES` sets the number of programs. The fuzz target `fault_operations` plays programs from bytes of its own;
//! what it finds becomes a test here, by name.

mod operation;
mod reference;

use proptest::prelude::*;

use self::operation::Program;

fn cases() -> ProptestConfig {
    let config = ProptestConfig { failure_persistence: None, ..ProptestConfig::default() };
    if std::env::var("PROPTEST_CASES").is_ok() { config } else { ProptestConfig { cases: 2000, ..config } }
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn every_answer_is_the_models(bytes in prop::collection::vec(any::<u8>(), 10..600)) {
        reference::play(&Program::from_bytes(&bytes));
    }
}
