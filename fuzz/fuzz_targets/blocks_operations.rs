//! Any machine, any operations, misuse included: every answer of a `BlockAllocator` is the family's model's
//! (`kernel/core/tests/family`), and every frame is accounted for. Many frees, of blocks and of ranges, lie
//! beside or across what is in use, and are wrong; each is told. A find becomes a named test in
//! `kernel/blocks/tests/outside/model/regressions.rs`.
#![no_main]

#[path = "../../kernel/blocks/tests/outside/model/block_allocator.rs"]
mod block_allocator;
#[path = "../../kernel/core/tests/family/bytes.rs"]
mod bytes;
#[expect(dead_code, reason = "some operations are the core's only")]
#[path = "../../kernel/core/tests/family/mod.rs"]
mod family;

use arbitrary::{Result, Unstructured};
use block_allocator::BlockSubject;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|program: &[u8]| {
    let _ = run(&mut Unstructured::new(program));
});

fn run(bytes: &mut Unstructured<'_>) -> Result<()> {
    let (machine, operations, stride) = bytes::program(bytes)?;
    family::play::play(BlockSubject::new(&machine), &machine, &operations, stride);
    Ok(())
}
