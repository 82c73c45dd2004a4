//! A file of a simulated machine: topology, memory, costs.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pageset_sim::Machine;

fuzz_target!(|text: &str| drop(Machine::parse(text, "fuzzed.toml")));
