//! Tests that use a frame allocator as a kernel does.

mod fault_engine;
pub(crate) mod interrupts;
mod mass_exit;
mod out_of_memory;
mod page_fault;
mod producer_consumer;

/// A test: steps of CPU 0 before and after, and work that all CPUs do at the same time.
pub(crate) struct Test {
    pub(crate) name: &'static str,
    /// The unit of the number that `run` returns.
    pub(crate) counts: &'static str,
    pub(crate) prepare: fn(),
    /// Takes the CPU's number. Returns the amount of work done.
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
