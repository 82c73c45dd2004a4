//! Any machine, any policy, any operations, misuse included: every answer of a `PageAllocator` is the
//! family's model's, and every frame is accounted for. The core's tests have the same model
//! (`kernel/core/tests/family`). A find becomes a named test in
//! `kernel/core/tests/outside/model/regressions.rs`.
//!
//! The core has no unsafe code, so that a sanitizer finds nothing that its assertions do not. Built with `-s
//! none` and `--no-trace-compares` it runs about twice as fast.
#![no_main]

#[path = "../../kernel/core/tests/family/bytes.rs"]
mod bytes;
#[path = "../../kernel/core/tests/family/mod.rs"]
mod family;
#[expect(dead_code, reason = "some tests of the core need more of it")]
#[path = "../../kernel/core/tests/outside/host.rs"]
mod host;
#[path = "../../kernel/core/tests/outside/model/owners.rs"]
mod owners;
#[path = "../../kernel/core/tests/outside/model/page_allocator.rs"]
mod page_allocator;
#[path = "../../kernel/core/tests/outside/steady.rs"]
mod steady;

use arbitrary::{Result, Unstructured};
use libfuzzer_sys::fuzz_target;
use page_allocator::PageSubject;
use pageset_core::POLICIES;

fuzz_target!(|program: &[u8]| {
    let _ = run(&mut Unstructured::new(program));
});

fn run(bytes: &mut Unstructured<'_>) -> Result<()> {
    let policy = *bytes.choose(POLICIES)?;
    let (machine, operations, stride) = bytes::program(bytes)?;
    family::play::play(PageSubject::new(&machine, policy), &machine, &operations, stride);
    Ok(())
}
