//! Measures how long a request for 1 GiB takes, by the size and the state of memory: `cargo run --release -p
//! pageset-blocks --example gib`.
//!
//! The memory does not exist, only the allocator's tables do. Prints the microseconds of the first request,
//! of later requests (median of 21), and of taking the same GiB at its address, which searches nothing.

use std::time::Instant;

use pageset_blocks::{BlockAllocator, Tables};
use pageset_core::{Config, CpuId, NodeId, Order, Pfn, Request, ZoneConfig, ZoneKind};

const CPU: CpuId = CpuId(0);
const ROUNDS: usize = 21;
/// Frames of 1 GiB.
const GIB: u64 = 1 << 18;
const PAGEBLOCK: u64 = 512;

/// The memory that is in use before the request for 1 GiB.
#[derive(Clone, Copy, Debug)]
enum Use {
    /// No page is in use.
    Nothing,
    /// In each GiB but the last, all pages are in use.
    Everything,
    /// In each GiB but the last, one page of the first pageblock is in use.
    FirstPageblock,
    /// In each GiB but the last, one page of the last pageblock is in use.
    LastPageblock,
    /// In each GiB but the last, one page of every second pageblock is in use.
    EverySecondPageblock,
    /// One page of every second pageblock is in use, also in the last GiB, so that the request fails.
    EverySecondOfAll,
}

fn prepare(allocator: &BlockAllocator<'_>, gibs: u64, of: Use) {
    let request = Request::new(Order::ZERO).movable();
    let page = |pfn| allocator.alloc_at(CPU, Pfn(pfn), &request).expect("it is free");
    let rest = 0..gibs - 1;
    match of {
        Use::Nothing => {}
        Use::Everything => {
            allocator.alloc_range(CPU, 0..rest.end * GIB, &request).expect("it is free");
        }
        Use::FirstPageblock => rest.for_each(|gib| page(gib * GIB)),
        Use::LastPageblock => rest.for_each(|gib| page((gib + 1) * GIB - 1)),
        Use::EverySecondPageblock | Use::EverySecondOfAll => {
            let gibs = if matches!(of, Use::EverySecondOfAll) { gibs } else { rest.end };
            (0..gibs * GIB / PAGEBLOCK).step_by(2).for_each(|block| page(block * PAGEBLOCK));
        }
    }
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times.get(times.len() / 2).copied().unwrap_or(f64::NAN)
}

/// Returns the microseconds of the first request, of later requests, and of taking the same GiB at its
/// address.
fn measure(allocator: &BlockAllocator<'_>) -> [f64; 3] {
    let request = Request::new(Order::ZERO).movable();
    let since = |start: Instant| start.elapsed().as_nanos() as f64 / 1e3;
    let (mut requests, mut at_address) = (Vec::new(), Vec::new());
    for _ in 0..=ROUNDS {
        let start = Instant::now();
        let found = allocator.alloc_contiguous(CPU, GIB, GIB, &request);
        requests.push(since(start));
        let Ok(Pfn(first)) = found else { continue };
        let gib = first..first + GIB;
        allocator.free_range(CPU, gib.clone()).expect("it is in use");
        let start = Instant::now();
        allocator.alloc_range(CPU, gib.clone(), &request).expect("it is free");
        at_address.push(since(start));
        allocator.free_range(CPU, gib).expect("it is in use");
    }
    [requests[0], median(requests.split_off(1)), median(at_address)]
}

fn main() {
    println!("| memory | in use | first request, µs | later ones, µs | the same GiB at its address, µs |");
    println!("|---:|---|---:|---:|---:|");
    for gibs in [64, 512, 4096] {
        use Use::*;
        let uses =
            [Nothing, Everything, FirstPageblock, LastPageblock, EverySecondPageblock, EverySecondOfAll];
        for of in uses {
            let (frames, nodes) = (gibs * GIB, [NodeId(0)]);
            let regions = [0..frames];
            let zone =
                ZoneConfig { kind: ZoneKind::Normal, node: NodeId(0), span: 0..frames, regions: &regions };
            let zones = [zone];
            let mut config = Config::new(&zones, &nodes);
            config.min_free_kbytes = Some(0);
            let tables = Tables::on_heap(&config).expect("heap enough");
            let allocator = BlockAllocator::new(&config, tables).expect("a plain zone");
            prepare(&allocator, gibs, of);
            let [first, later, at] = measure(&allocator);
            println!("| {gibs} GiB | {of:?} | {first:.1} | {later:.1} | {at:.1} |");
        }
    }
}
