//! Runs random programs on the engine and on a simple model, with random strategies, geometries and options.
//! The engine must give an answer that the model allows. At each operation `Check` and at the end of a
//! program, the invariants must hold. After all tasks and address spaces have ended, no frame may be in use.
//!
//! `PROPTEST_CASES` sets the number of programs. The fuzz target `fault_operations` makes programs from
//! bytes. If a program of the fuzzer fails, add the program to this file as a named test.

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
