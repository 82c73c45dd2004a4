//! Nanoseconds of the operations, one thread: `cargo run --release -p pageset-blocks --example speed`.

use std::hint::black_box;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use pageset_blocks::{BlockAllocator, Tables};
use pageset_core::{Config, CpuId, NodeId, Order, Pfn, Request, ZoneConfig, ZoneKind};

fn best(rounds: usize, mut work: impl FnMut() -> usize) -> f64 {
    (0..rounds)
        .map(|_| {
            let start = Instant::now();
            let count = work();
            start.elapsed().as_nanos() as f64 / count as f64
        })
        .fold(f64::MAX, f64::min)
}

fn main() {
    const FRAMES: u64 = 1 << 20;
    let regions = [0..FRAMES];
    let zones = [ZoneConfig { kind: ZoneKind::Normal, node: NodeId(0), span: 0..FRAMES, regions: &regions }];
    let nodes = [NodeId(0); 2];
    let config = Config::new(&zones, &nodes);
    let tables = Tables::on_heap(&config).expect("the zone is possible");
    let allocator = BlockAllocator::new(&config, tables).expect("the zone is possible");
    let cpu = CpuId(0);
    let word = AtomicUsize::new(0);
    let floor = best(20, || {
        for _ in 0..100_000 {
            let now = word.load(Ordering::Relaxed);
            let _ = black_box(word.compare_exchange(now, now + 1, Ordering::Acquire, Ordering::Relaxed));
        }
        100_000
    });
    println!("exchange    {floor:6.2}");
    for order in [0, 3, 9] {
        let order = Order::new(order).expect("small");
        let request = Request::new(order).movable();
        let pair = best(20, || {
            for _ in 0..100_000 {
                let pfn = allocator.alloc(cpu, &request).expect("there is memory");
                allocator.free(cpu, black_box(pfn), order).expect("in use");
            }
            100_000
        });
        println!("pair-{order}      {pair:6.2}");
    }
    for live in [1_000, 10_000, 100_000] {
        mix(&allocator, live);
    }
}

/// Random blocks of a population are replaced.
fn mix(allocator: &BlockAllocator<'_>, live: usize) {
    let cpu = CpuId(0);
    let request = Request::new(Order::ZERO).movable();
    let alloc = || allocator.alloc(cpu, &request).expect("there is memory");
    let mut pages: Vec<Pfn> = (0..live).map(|_| alloc()).collect();
    let mut seed = 1_u64;
    let mut random = move || {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((seed >> 32) as usize * live) >> 32
    };
    const ROUNDS: usize = 10;
    const PAIRS: usize = 400_000;
    let before = allocator.counters();
    let cost = best(ROUNDS, || {
        for _ in 0..PAIRS {
            let which = random();
            allocator.free(cpu, pages[which], Order::ZERO).expect("in use");
            pages[which] = alloc();
        }
        PAIRS
    });
    let reused = (allocator.counters().reused - before.reused) as f64 / (ROUNDS * PAIRS) as f64;
    println!("mix {live:<7} {cost:6.2}, {reused:.4} pageblocks a pair");
    pages.into_iter().for_each(|pfn| allocator.free(cpu, pfn, Order::ZERO).expect("in use"));
    allocator.drain_all();
}
