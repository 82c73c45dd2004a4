//! A kernel on OSTD that boots on pageset's allocators, tries them on all CPUs, and prints a line of JSON for each test.
//!
//! Files in the order of a run: `frames` (which allocator it boots on), `scheduler` and `crew` (one task on each CPU, which do
//! the same at the same time), `tests`, `report`.
#![no_std]
#![deny(unsafe_code)]

extern crate alloc;

// OSTD's log asks each crate for a prefix.
macro_rules! __log_prefix {
    () => {
        "kernel: "
    };
}

mod crew;
mod frames;
mod report;
mod scheduler;
mod tests;

use ostd::boot::{EarlyCmdline, boot_info, smp::register_ap_entry};
use ostd::log::LevelFilter;
use ostd::power::{ExitCode, poweroff};

#[ostd::main]
fn main() {
    crew::start(run);
    register_ap_entry(crew::enter);
    crew::enter();
}

/// What each CPU does, at the same time as all others.
fn run(cpu: usize) {
    let wanted = boot_info().kernel_cmdline.split_whitespace().find_map(|word| word.strip_prefix("test="));
    for test in tests::ALL.iter().filter(|test| wanted.unwrap_or("all") == "all" || wanted == Some(test.name)) {
        report::run(test, cpu);
    }
    if cpu == 0 {
        poweroff(ExitCode::Success);
    }
}

#[ostd::early_cmdline_parser]
const fn parse(_: &str) -> EarlyCmdline {
    EarlyCmdline { log_level: LevelFilter::Error, has_early_console: true }
}
