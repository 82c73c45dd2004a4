//! A kernel on OSTD that boots on pageset's allocators, tests them on all CPUs, and prints a line of JSON for
//! each test.
//!
//! Files in the order of a run: `frames` (the allocator), `scheduler` and `crew` (one task on each CPU). Then
//! `tests` and `report`, or `contest` (pageset's allocators beside OSTD's own).
#![no_std]
#![deny(unsafe_code)]

extern crate alloc;

// OSTD's log requires a prefix from each crate.
macro_rules! __log_prefix {
    () => {
        "kernel: "
    };
}

mod contest;
mod crew;
mod frames;
mod hardware;
mod report;
mod scheduler;
mod tests;

use ostd::boot::{EarlyCmdline, boot_info, smp::register_ap_entry};
use ostd::log::LevelFilter;
use ostd::power::{ExitCode, poweroff};
use tests::Test;

#[ostd::main]
fn main() {
    crew::start(run);
    register_ap_entry(crew::enter);
    crew::enter();
}

/// Does the work of each CPU. All CPUs do their work at the same time.
fn run(cpu: usize) {
    match option("test=").unwrap_or("all") {
        "contest" => contest::run(cpu),
        wanted => {
            let is_wanted = |test: &&Test| wanted == "all" || wanted == test.name;
            assert!(tests::ALL.iter().any(|test| is_wanted(&test)), "there is no test {wanted}");
            tests::ALL.iter().filter(is_wanted).for_each(|test| report::run(test, cpu));
        }
    }
    if cpu == 0 {
        poweroff(ExitCode::Success);
    }
}

/// The value of option `name` on the kernel's command line.
fn option(name: &str) -> Option<&'static str> {
    boot_info().kernel_cmdline.split_whitespace().find_map(|word| word.strip_prefix(name))
}

#[ostd::early_cmdline_parser]
const fn parse(_: &str) -> EarlyCmdline {
    EarlyCmdline { log_level: LevelFilter::Error, has_early_console: true }
}
