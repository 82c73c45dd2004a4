//! Measures the nanoseconds of each operation on one thread: `cargo run --release -p pageset-blocks --example
//! speed`.

use std::hint::black_box;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use pageset_blocks::{BlockAllocator, CpuArrays, Tables};
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
    arrays(&allocator);
    for live in [1_000, 10_000, 100_000] {
        mix("", &allocator, live);
        mix("with arrays", CpuArrays::new(&allocator, cpu), live);
        allocator.drain_all();
    }
}

/// Measures the same pairs through a CPU's arrays.
fn arrays(allocator: &BlockAllocator<'_>) {
    let mut arrays = CpuArrays::new(allocator, CpuId(0));
    for order in [0, 3, 9] {
        let order = Order::new(order).expect("small");
        let request = Request::new(order).movable();
        let pair = best(20, || {
            for _ in 0..100_000 {
                let pfn = arrays.alloc(&request).expect("there is memory");
                arrays.free(black_box(pfn), order).expect("in use");
            }
            100_000
        });
        println!("pair-{order}      {pair:6.2} with arrays");
    }
}

/// A source of pages: the allocator, or a CPU's arrays.
trait Source {
    fn alloc(&mut self) -> Pfn;
    fn free(&mut self, pfn: Pfn);
}

const PAGE: Request = Request::new(Order::ZERO).movable();

impl Source for &BlockAllocator<'_> {
    fn alloc(&mut self) -> Pfn {
        BlockAllocator::alloc(self, CpuId(0), &PAGE).expect("there is memory")
    }

    fn free(&mut self, pfn: Pfn) {
        BlockAllocator::free(self, CpuId(0), pfn, Order::ZERO).expect("in use");
    }
}

impl Source for CpuArrays<'_> {
    fn alloc(&mut self) -> Pfn {
        CpuArrays::alloc(self, &PAGE).expect("there is memory")
    }

    fn free(&mut self, pfn: Pfn) {
        CpuArrays::free(self, pfn, Order::ZERO).expect("in use");
    }
}

/// Frees random pages out of `live` pages, and allocates others in their place.
fn mix(name: &str, mut source: impl Source, live: usize) {
    let mut pages: Vec<Pfn> = (0..live).map(|_| source.alloc()).collect();
    let mut seed = 1_u64;
    let mut random = move || {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((seed >> 32) as usize * live) >> 32
    };
    const ROUNDS: usize = 10;
    const PAIRS: usize = 400_000;
    let cost = best(ROUNDS, || {
        for _ in 0..PAIRS {
            let which = random();
            source.free(pages[which]);
            pages[which] = source.alloc();
        }
        PAIRS
    });
    println!("mix {live:<7} {cost:6.2} {name}");
    let bulk = best(1, || {
        pages.iter().for_each(|pfn| source.free(*pfn));
        live
    });
    println!("  free all  {bulk:6.2} {name}");
}
