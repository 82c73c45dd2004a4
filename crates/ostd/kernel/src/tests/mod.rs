//! What a kernel does to its frame allocator.

mod fault_engine;
pub(crate) mod interrupts;
mod mass_exit;
mod out_of_memory;
mod page_fault;
mod producer_consumer;

/// A test: what CPU 0 does before and after, and what all do at the same time.
pub(crate) struct Test {
    pub(crate) name: &'static str,
    /// What `run` counts.
    pub(crate) counts: &'static str,
    pub(crate) prepare: fn(),
    /// Takes the CPU's number. Returns how much it did.
    pub(crate) run: fn(usize) -> u64,
    pub(crate) finish: fn(),
}

pub(crate) const ALL: &[Test] = &[
    page_fault::TEST,
    fault_engine::LOCKS,
    fault_engine::EXCHANGES,
    producer_consumer::TEST,
    mass_exit::TEST,
    out_of_memory::TEST,
    interrupts::TEST,
];

fn nothing() {}
