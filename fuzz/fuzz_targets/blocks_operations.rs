//! Any machine, both rules for frees to other CPUs' pageblocks, with each part and without, any operations, misuse included: every answer of a
//! `BlockAllocator` is the family's model's (`crates/core/tests/family`), and every frame is accounted for. Many frees, of blocks and
//! of ranges, lie beside or across what is in use, and are wrong; under the rule that is the default each is told, under the other
//! one each but a block that two CPUs free. A find becomes a named test in `crates/blocks/tests/outside/model/regressions.rs`.
#![no_main]

#[path = "../../crates/blocks/tests/outside/model/block_allocator.rs"]
mod block_allocator;
#[path = "../../crates/core/tests/family/bytes.rs"]
mod bytes;
#[expect(dead_code, reason = "some operations are the core's only")]
#[path = "../../crates/core/tests/family/mod.rs"]
mod family;

use arbitrary::{Result, Unstructured};
use block_allocator::{BlockSubject, WITHOUT};
use libfuzzer_sys::fuzz_target;
use pageset_blocks::RemoteFrees;

fuzz_target!(|program: &[u8]| {
    let _ = run(&mut Unstructured::new(program));
});

fn run(bytes: &mut Unstructured<'_>) -> Result<()> {
    let rule = *bytes.choose(&[RemoteFrees::Kept, RemoteFrees::AtOnce])?;
    let without = *bytes.choose(&WITHOUT)?;
    let (machine, operations, stride) = bytes::program(bytes)?;
    family::play::play(BlockSubject::new(&machine, rule, without), &machine, &operations, stride);
    Ok(())
}
