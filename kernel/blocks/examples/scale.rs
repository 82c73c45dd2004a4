//! Measures how the cost of a request depends on the size of memory: `cargo run --release -p pageset-blocks
//! --example scale`.
//!
//! Random requests for 1 to 64 frames keep a part of the memory in use. Prints nanoseconds for each
//! allocation and free, medians of five rounds, for this allocator and for `pageset-core`.

mod host;

use std::time::Instant;

use pageset_core::{
    Config, CpuId, FrameAllocator, NodeId, Order, PageAllocator, Pfn, Request, ZoneConfig, ZoneKind,
};

use host::Host;

const CPU: CpuId = CpuId(0);
const ROUNDS: usize = 5;
const STEPS: u64 = 100_000;

/// Nanoseconds of an allocation and of a free, and refused requests.
struct Cost {
    alloc_ns: f64,
    free_ns: f64,
    refused: u64,
}

fn play(allocator: &impl FrameAllocator, frames: u64, full_percent: u64) -> Cost {
    let mut seed = 88_172_645_463_325_252_u64;
    let mut random = move || {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        (seed >> 16) as usize
    };
    let mut live: Vec<(Pfn, u64)> = Vec::new();
    let (mut held, wanted) = (0, frames * full_percent / 100);
    let mut step = |live: &mut Vec<(Pfn, u64)>, held: &mut u64, cost: &mut [(u128, u64); 2]| {
        let word = random();
        let grows = (word % 8 != 0) == (*held < wanted);
        let start = Instant::now();
        if grows || live.is_empty() {
            let count = 1 + (word >> 8) as u64 % 64;
            let request = Request::new(Order::holding(count).expect("64 at most"));
            let got = match count.is_power_of_two() {
                true => allocator.alloc(CPU, &request),
                false => allocator.alloc_exact(CPU, count, &request),
            };
            cost[0] = (cost[0].0 + start.elapsed().as_nanos(), cost[0].1 + 1);
            let Ok(pfn) = got else { return false };
            live.push((pfn, count));
            *held += count;
        } else {
            let (pfn, count) = live.swap_remove((word >> 8) % live.len());
            allocator.free_range(CPU, pfn.0..pfn.0 + count).expect("it is in use");
            cost[1] = (cost[1].0 + start.elapsed().as_nanos(), cost[1].1 + 1);
            *held -= count;
        }
        true
    };
    let mut unused = [(0, 0); 2];
    while held < wanted && step(&mut live, &mut held, &mut unused) {}
    // Age the memory: take as many steps as there are blocks.
    for _ in 0..STEPS.max(live.len() as u64) {
        step(&mut live, &mut held, &mut unused);
    }
    let (mut rounds, mut refused) = (Vec::new(), 0);
    for _ in 0..ROUNDS {
        let mut cost = [(0, 0); 2];
        for _ in 0..STEPS {
            refused += u64::from(!step(&mut live, &mut held, &mut cost));
        }
        rounds.push(cost.map(|(ns, count)| ns as f64 / count.max(1) as f64));
    }
    let median = |of: usize| {
        let mut all: Vec<f64> = rounds.iter().map(|round| round[of]).collect();
        all.sort_by(f64::total_cmp);
        all[ROUNDS / 2]
    };
    Cost { alloc_ns: median(0), free_ns: median(1), refused }
}

fn main() {
    println!("| memory | in use | allocator | allocation, ns | free, ns | refused |");
    println!("|---:|---:|---|---:|---:|---:|");
    for (mib, full_percent) in [(256, 50), (1024, 20), (1024, 50), (1024, 75), (4096, 50), (16_384, 50)] {
        let frames = mib * 256;
        let regions = [0..frames];
        let zone = ZoneConfig { kind: ZoneKind::Normal, node: NodeId(0), span: 0..frames, regions: &regions };
        let zones = [zone];
        let nodes = [NodeId(0)];
        let mut config = Config::new(&zones, &nodes);
        config.min_free_kbytes = Some(0);
        let tell = |name: &str, cost: Cost| {
            let Cost { alloc_ns, free_ns, refused } = cost;
            println!("| {mib} MiB | {full_percent} % | {name} | {alloc_ns:.0} | {free_ns:.0} | {refused} |");
        };
        let tables = pageset_blocks::Tables::on_heap(&config).expect("heap enough");
        let blocks = pageset_blocks::BlockAllocator::new(&config, tables).expect("a plain zone");
        tell("blocks", play(&blocks, frames, full_percent));
        let tables = pageset_core::Tables::on_heap(&config).expect("heap enough");
        let core = PageAllocator::new(Host, &config, tables).expect("a plain zone");
        tell("core", play(&core, frames, full_percent));
    }
}
