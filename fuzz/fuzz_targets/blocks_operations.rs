//! Programs of every operation of a `BlockAllocator`, misuse included, against the model of its tests.
#![no_main]

#[path = "../../crates/blocks/tests/outside/machine.rs"]
mod machine;
#[path = "../../crates/blocks/tests/outside/model/reference.rs"]
mod reference;
#[path = "../../crates/blocks/tests/outside/model/step.rs"]
mod step;

use pageset_blocks::RemoteFrees;

/// Most steps of one program.
const STEPS_MAX: usize = 64;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Some((first, rest)) = bytes.split_first() else { return };
    let rule = if first % 2 == 0 { RemoteFrees::Kept } else { RemoteFrees::AtOnce };
    let mut steps = step::Step::program(rest);
    steps.truncate(STEPS_MAX);
    reference::play(rule, steps, 8);
});
