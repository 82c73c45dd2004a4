//! Measures the free memory after a long load, and the cost of requests that find no memory: `cargo run
//! --release -p pageset-blocks --example limits`.
//!
//! For the first table, random requests for 1 to 64 frames keep half of the memory in use. The table has the
//! longest free run, and the free pageblocks in percent of the pageblocks that the free memory would fill.
//! Each number is the median of five seeds. The second table has nanoseconds, each the median of nine rounds.
//! The first column is for a request that fails because all memory is in use. The second column is for a
//! request that fails because only every second frame is free. The third column is for the free of a
//! pageblock.

mod host;
mod load;

use std::hint::black_box;
use std::time::Instant;

use pageset_blocks::{BlockAllocator, EveryCpu, WholeUse};
use pageset_core::{CpuId, FrameAllocator, Order, PageAllocator, Pfn, Request};

use host::Host;
use load::{Random, with_zone};

const CPU: CpuId = CpuId(0);
const SEEDS: u64 = 5;
const ROUNDS: usize = 9;
const PAGEBLOCK: usize = 512;

/// Calls `visit` with each allocator and its name. Each allocator has `frames` frames.
fn each(frames: u64, mut visit: impl FnMut(&str, &dyn Frames)) {
    with_zone(frames, |config| {
        let blocks = || {
            let tables = pageset_blocks::Tables::on_heap(config).expect("heap enough");
            BlockAllocator::new(config, tables).expect("a plain zone")
        };
        visit("blocks", &blocks());
        visit("blocks, lowest", &blocks().with_whole_use(WholeUse::LowestFirst));
        let below = blocks();
        visit("blocks with arrays", &EveryCpu::new(&below).expect("one CPU"));
        let tables = pageset_core::Tables::on_heap(config).expect("heap enough");
        visit("core", &PageAllocator::new(Host, config, tables).expect("a plain zone"));
    });
}

/// The calls that this program needs.
trait Frames {
    fn get(&self, order: Order) -> Option<Pfn>;
    fn get_exact(&self, count: u64) -> Option<Pfn>;
    fn put(&self, pfn: Pfn, order: Order);
    fn put_range(&self, pfn: Pfn, count: u64);
}

impl<F: FrameAllocator> Frames for F {
    fn get(&self, order: Order) -> Option<Pfn> {
        self.alloc(CPU, &Request::new(order)).ok()
    }

    fn get_exact(&self, count: u64) -> Option<Pfn> {
        match count.is_power_of_two() {
            true => self.get(Order::holding(count)?),
            false => self.alloc_exact(CPU, count, &Request::new(Order::ZERO)).ok(),
        }
    }

    fn put(&self, pfn: Pfn, order: Order) {
        self.free(CPU, pfn, order).expect("it is in use");
    }

    fn put_range(&self, pfn: Pfn, count: u64) {
        self.free_range(CPU, pfn.0..pfn.0 + count).expect("it is in use");
    }
}

/// Ages half-full memory. Returns the longest free run in frames, and the free pageblocks in percent of those
/// that the free memory would fill.
fn age(allocator: &dyn Frames, frames: usize, seed: u64) -> [f64; 2] {
    let mut random = Random(seed + 1);
    let (mut live, mut held): (Vec<(Pfn, u64)>, u64) = (Vec::new(), 0);
    for _ in 0..frames {
        if (random.below(8) != 0) == (held < frames as u64 / 2) {
            let count = 1 + random.below(64) as u64;
            let Some(pfn) = allocator.get_exact(count) else { continue };
            live.push((pfn, count));
            held += count;
        } else if !live.is_empty() {
            let (pfn, count) = live.swap_remove(random.below(live.len()));
            allocator.put_range(pfn, count);
            held -= count;
        }
    }
    let mut is_free = vec![true; frames];
    for (pfn, count) in &live {
        is_free[pfn.0 as usize..(pfn.0 + count) as usize].fill(false);
    }
    let runs = is_free.chunk_by(|one, next| one == next).filter(|run| run[0]).map(<[bool]>::len);
    let whole = is_free.chunks(PAGEBLOCK).filter(|block| block.iter().all(|free| *free)).count();
    [runs.max().unwrap_or(0) as f64, 100.0 * whole as f64 / ((frames - held as usize) / PAGEBLOCK) as f64]
}

fn median(mut of: Vec<f64>) -> f64 {
    of.sort_by(f64::total_cmp);
    of[of.len() / 2]
}

/// The mean nanoseconds of one of `count` calls, in the median round.
fn time_ns(count: usize, mut call: impl FnMut(usize)) -> f64 {
    let rounds = (0..ROUNDS).map(|_| {
        let start = Instant::now();
        (0..count).for_each(&mut call);
        start.elapsed().as_nanos() as f64 / count as f64
    });
    median(rounds.collect())
}

fn limits(allocator: &dyn Frames) -> [f64; 3] {
    const CALLS: usize = 1000;
    let huge = Order::PAGEBLOCK;
    let blocks: Vec<Pfn> = std::iter::from_fn(|| allocator.get(huge)).collect();
    let none = time_ns(CALLS, |_| assert!(black_box(allocator.get(Order::ZERO)).is_none()));
    let rounds = (0..ROUNDS).map(|_| {
        let start = Instant::now();
        blocks.iter().for_each(|pfn| allocator.put(*pfn, huge));
        let passed_ns = start.elapsed().as_nanos() as f64 / blocks.len() as f64;
        assert!(blocks.iter().all(|_| allocator.get(huge).is_some()));
        passed_ns
    });
    let freed = median(rounds.collect());
    blocks.iter().for_each(|pfn| allocator.put(*pfn, huge));
    let mut singles: Vec<Pfn> = std::iter::from_fn(|| allocator.get(Order::ZERO)).collect();
    singles.retain(|pfn| pfn.0 % 2 == 0);
    singles.iter().for_each(|pfn| allocator.put(*pfn, Order::ZERO));
    let fragmented = time_ns(CALLS, |_| assert!(black_box(allocator.get(huge)).is_none()));
    [none, fragmented, freed]
}

fn main() {
    println!("| memory | allocator | longest free run, frames | free pageblocks, % |");
    println!("|---:|---|---:|---:|");
    for mib in [256, 1024] {
        let frames = mib * 256;
        let mut rows: Vec<(String, Vec<[f64; 2]>)> = Vec::new();
        for seed in 0..SEEDS {
            each(frames, |name, allocator| {
                let aged = age(allocator, frames as usize, seed);
                match rows.iter_mut().find(|(known, _)| known == name) {
                    Some((_, all)) => all.push(aged),
                    None => rows.push((name.to_owned(), vec![aged])),
                }
            });
        }
        for (name, all) in rows {
            let [run, whole] = [0, 1].map(|of| median(all.iter().map(|aged| aged[of]).collect()));
            println!("| {mib} MiB | {name} | {run:.0} | {whole:.0} |");
        }
    }
    println!("\n| memory | allocator | no memory, ns | order 9 in fragments, ns | order 9 freed, ns |");
    println!("|---:|---|---:|---:|---:|");
    for mib in [256, 1024, 8192, 32_768] {
        each(mib * 256, |name, allocator| {
            let [none, fragmented, freed] = limits(allocator);
            println!("| {mib} MiB | {name} | {none:.0} | {fragmented:.0} | {freed:.1} |");
        });
    }
}
