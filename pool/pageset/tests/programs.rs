//! Runs random programs on a pool (see `program`). The fuzz target `pool_operations` runs more programs.
#![cfg(not(miri))]

mod program;

use program::Program;
use proptest::collection::vec;
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn a_pool_does_what_the_model_says(
        program in vec(any::<u8>(), 0..600).prop_map(|bytes| Program::decode(&bytes)),
    ) {
        program.run();
    }
}
