//! Measures how long a page fault takes on one thread. Compares the fault's time with the time to clear the
//! page alone, and with the time of the operating system's own fault. Also compares the faults per second of
//! two threads and of one thread.
//!
//! ```sh
//! cargo run --profile dist -p pageset-fault --example speed            # 15 rounds, magazines of 16 frames
//! cargo run --profile dist -p pageset-fault --example speed -- 31 0    # 31 rounds, without magazines
//! ```
//!
//! Each figure is the median of the rounds, followed by the lower and upper quartile. The strategies take
//! turns in each round, so a long disturbance hits all strategies. In a round, each thread touches its pages,
//! unmaps and maps the pages, and touches the pages again. The program measures only the time of the second
//! touch.

mod arena;
mod kernel;
mod lock;
mod measure;

use measure::{Contestant, Series, arena, pair_of};

/// The strategies that `one_thread` prints: three from 2005, then today's Linux, then two strategies whose
/// faults write no shared cache line.
const ONE_THREAD: [&str; 6] = ["P0,V1,R0", "P1,V1,R1", "P2,V1,R1", "P1,V2,R4", "P2,V7,R3", "P3,V0,R3"];
/// The strategies that `two_threads` prints.
const TWO_THREADS: [&str; 8] =
    ["P0,V1,R0", "P0n,V1,R0", "P1,V1,R1", "P2,V1,R1", "P0,V7,R3", "P1,V7,R3", "P2,V7,R3", "P3,V0,R3"];

fn main() {
    let number =
        |index, default| std::env::args().nth(index).and_then(|text| text.parse().ok()).unwrap_or(default);
    let (rounds, magazine) = (number(1, 15), number(2, 16));
    println!("{rounds} rounds; median [lower quartile, upper quartile]; magazines of {magazine} frames");
    one_thread(rounds, magazine);
    two_threads(rounds, magazine);
}

/// Prints the nanoseconds per fault on one thread, the time to clear the same pages without faults, and the
/// time of the operating system's own fault.
fn one_thread(rounds: u32, magazine: u32) {
    let bare: Vec<_> = ONE_THREAD.map(|name| Contestant::bare(name, 1, magazine)).into();
    let memory = arena(1);
    let clearing: Vec<_> = ONE_THREAD.map(|name| Contestant::clearing(name, 1, magazine, &memory)).into();
    let mut alone = vec![Series::default(); bare.len()];
    let mut kernel = Series::default();
    let mut without = vec![Series::default(); bare.len()];
    let mut with = vec![Series::default(); bare.len()];
    for _ in 0..rounds {
        kernel.add(kernel::fault_ns());
        for index in 0..bare.len() {
            without[index].add(bare[index].round(1).fault_ns);
            let round = clearing[index].round(1);
            with[index].add(round.fault_ns);
            alone[index].add(round.clear_ns);
        }
    }
    println!("\none thread, ns per 4 KiB write fault; most faults find their leaf table");
    println!("  the kernel's own fault {kernel}");
    println!(
        "  strategy   without clearing     with clearing        clearing alone       / alone  kernel / ours"
    );
    for (index, name) in ONE_THREAD.iter().enumerate() {
        println!(
            "  {name:9}  {}   {}   {}  {:>8.2}  {:>8.1}",
            without[index],
            with[index],
            alone[index],
            with[index].median() / alone[index].median(),
            kernel.median() / with[index].median()
        );
    }
}

/// Prints the faults per second of two threads, divided by the faults per second of one thread. Each thread
/// faults in its own half of the pages.
fn two_threads(rounds: u32, magazine: u32) {
    println!("\ntwo threads, disjoint slices: faults per second of two threads, divided by those of one");
    println!("  strategy   without clearing     with clearing");
    let memory = arena(2);
    let engines = TWO_THREADS
        .map(|name| (Contestant::bare(name, 2, magazine), Contestant::clearing(name, 2, magazine, &memory)));
    let mut ratios = vec![(Series::default(), Series::default()); engines.len()];
    for _ in 0..rounds {
        for ((bare, clearing), (without, with)) in engines.iter().zip(&mut ratios) {
            without.add(pair_of(bare));
            with.add(pair_of(clearing));
        }
    }
    for (name, (without, with)) in TWO_THREADS.iter().zip(&ratios) {
        println!("  {name:9}  {without}   {with}");
    }
}
