//! Measures how many allocator calls this computer simulates in one second of its own time: `cargo run
//! --profile dist -p pageset-sim --example speed`.
#![expect(clippy::print_stdout, reason = "this example prints a table")]

use std::time::Instant;

use pageset_core::{Order, Request};
use pageset_sim::{Machine, Simulation, SimulationError, Span, VirtualCpu};

/// Largest number of blocks that a CPU holds at one time. `DEPTH` is larger than the number of blocks in a
/// page set, so page sets refill and drain.
const DEPTH: usize = 2000;

/// Allocates many single pages, then frees all of them, again and again. The CPU computes for a short time
/// between two calls.
fn sawtooth(cpu: &VirtualCpu) {
    let request = Request::new(Order::ZERO).movable();
    let mut held = Vec::with_capacity(DEPTH);
    while cpu.running() {
        while held.len() < DEPTH && cpu.running() {
            held.extend(cpu.alloc(&request));
            cpu.advance(Span::from_ns(500));
        }
        for pfn in held.drain(..) {
            cpu.free(pfn, Order::ZERO).expect("the block is this CPU's");
        }
    }
}

fn main() -> Result<(), SimulationError> {
    println!(
        "{:>12} {:>6} {:>8} {:>12} {:>8} {:>10} {:>8}",
        "machine", "CPUs", "build s", "calls", "run s", "M calls/s", "zone %"
    );
    for (machine, cpus, ms) in [
        ("altix-512", 1, 2000),
        ("altix-512", 64, 60),
        ("altix-512", 512, 10),
        ("epyc-768", 64, 60),
        ("epyc-768", 512, 10),
        ("epyc-768", 512, 100),
    ] {
        let machine = Machine::named(machine).expect("it is bundled");
        let began = Instant::now();
        let mut simulation = Simulation::builder(&machine).cpus(cpus).duration(Span::from_ms(ms)).build()?;
        for cpu in 0..cpus {
            simulation.spawn(pageset_core::CpuId(cpu), sawtooth)?;
        }
        let built = began.elapsed().as_secs_f64();
        let outcome = simulation.run()?;
        let wall = began.elapsed().as_secs_f64() - built;
        let calls = outcome.counts.allocs + outcome.counts.frees;
        println!(
            "{:>12} {cpus:>6} {built:>8.3} {calls:>12} {wall:>8.3} {:>10.2} {:>8.1}",
            machine.name,
            calls as f64 / wall / 1e6,
            outcome.zone_lock_pct(),
        );
    }
    Ok(())
}
