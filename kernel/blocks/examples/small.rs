//! Measures cost and refused requests in small memories: `cargo run --release -p pageset-blocks --example
//! small`.
//!
//! A client keeps 50, 75 or 90 % of memory in use, in blocks of orders 0 to 7 (4 to 512 KiB). A step frees
//! random blocks until there is room, and then requests one. Prints nanoseconds for each step, the percentage
//! of refused requests, and the percentage of the free memory that whole pageblocks have at the end. The
//! example measures this allocator and `pageset-core`.

mod host;

use std::time::Instant;

use pageset_core::{
    Config, CpuId, FrameAllocator, NodeId, Order, PageAllocator, Pfn, Request, ZoneConfig, ZoneKind,
};

use host::Host;

const CPU: CpuId = CpuId(0);
const STEPS: usize = 200_000;
/// The number of orders in use, from 0 on.
const ORDERS: usize = 8;

struct Client<'a, A> {
    allocator: &'a A,
    live: Vec<(Pfn, Order)>,
    held: u64,
    most: u64,
    seed: u64,
}

impl<A: FrameAllocator> Client<'_, A> {
    fn random(&mut self, below: usize) -> usize {
        self.seed = self.seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.seed >> 32) as usize * below) >> 32
    }

    /// Returns whether it got a block.
    fn step(&mut self) -> bool {
        let order = Order::new(self.random(ORDERS) as u8).expect("small");
        while self.held + u64::from(order.frames()) > self.most && !self.live.is_empty() {
            let which = self.random(self.live.len());
            let (pfn, order) = self.live.swap_remove(which);
            self.allocator.free(CPU, pfn, order).expect("it is in use");
            self.held -= u64::from(order.frames());
        }
        let Ok(pfn) = self.allocator.alloc(CPU, &Request::new(order).movable()) else { return false };
        self.live.push((pfn, order));
        self.held += u64::from(order.frames());
        true
    }
}

fn play(name: &str, allocator: &impl FrameAllocator, mib: u64, percent: u64) {
    let most = mib * 256 * percent / 100;
    let mut client = Client { allocator, live: Vec::new(), held: 0, most, seed: 5 };
    // Age the memory until the first blocks are gone.
    (0..STEPS / 4).for_each(|_| {
        client.step();
    });
    let (mut refused, mut rounds) = (0, Vec::new());
    for _ in 0..5 {
        let start = Instant::now();
        refused += (0..STEPS / 5).filter(|_| !client.step()).count();
        rounds.push(start.elapsed().as_nanos() as f64 / (STEPS / 5) as f64);
    }
    rounds.sort_by(f64::total_cmp);
    let percent_refused = refused as f64 * 100.0 / STEPS as f64;
    let free = mib * 256 - client.held;
    let whole = std::iter::from_fn(|| allocator.alloc(CPU, &Request::new(Order::PAGEBLOCK).movable()).ok());
    let percent_whole = whole.count() as f64 * 512.0 * 100.0 / free as f64;
    println!(
        "| {mib} MiB | {percent} % | {name} | {:.0} | {percent_refused:.2} | {percent_whole:.0} |",
        rounds[2]
    );
}

fn main() {
    println!("| memory | in use | allocator | step, ns | refused, % | whole, % of free |");
    println!("|---:|---:|---|---:|---:|---:|");
    for mib in [10, 64, 1024] {
        for percent in [50, 75, 90] {
            let frames = mib * 256;
            let regions = [0..frames];
            let zone =
                ZoneConfig { kind: ZoneKind::Normal, node: NodeId(0), span: 0..frames, regions: &regions };
            let zones = [zone];
            let nodes = [NodeId(0); 2];
            let config = Config::new(&zones, &nodes);
            let tables = pageset_blocks::Tables::on_heap(&config).expect("heap enough");
            let rows = pageset_blocks::BlockAllocator::new(&config, tables).expect("a plain zone");
            play("blocks", &rows, mib, percent);
            let tables = pageset_core::Tables::on_heap(&config).expect("heap enough");
            let core = PageAllocator::new(Host, &config, tables).expect("a plain zone");
            play("core", &core, mib, percent);
        }
    }
}
