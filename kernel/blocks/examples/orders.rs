//! Measures random requests of several orders, to choose the constants of `allocator/refill.rs`: `cargo run
//! --release -p pageset-blocks --example orders -- MIB PERCENT ORDERS PAIRS`.
//!
//! Keeps PERCENT of MIB in use, in blocks of the orders below ORDERS. Frees and requests random blocks, PAIRS
//! times. Prints the time of a pair, and counts. `valgrind --tool=callgrind` before the program counts
//! instructions.

mod load;

use std::process::ExitCode;
use std::time::Instant;

use pageset_blocks::{BlockAllocator, Tables};
use pageset_core::{CpuId, Order, Pfn, Request};

use load::{Random, with_zone};

const CPU: CpuId = CpuId(0);
const PAGEBLOCK: u64 = 512;

struct Client<'a> {
    allocator: &'a BlockAllocator<'a>,
    live: Vec<(Pfn, Order)>,
    held: u64,
    random: Random,
}

impl Client<'_> {
    fn get(&mut self, orders: usize) {
        let order = Order::new(self.random.below(orders) as u8).expect("small");
        if let Ok(pfn) = self.allocator.alloc(CPU, &Request::new(order).movable()) {
            self.live.push((pfn, order));
            self.held += u64::from(order.frames());
        }
    }

    fn put(&mut self) {
        let at = self.random.below(self.live.len());
        let (pfn, order) = self.live.swap_remove(at);
        self.allocator.free(CPU, pfn, order).expect("it is in use");
        self.held -= u64::from(order.frames());
    }
}

fn main() -> ExitCode {
    let numbers: Vec<u64> = std::env::args().skip(1).filter_map(|number| number.parse().ok()).collect();
    let [mib, percent @ 1..=99, orders @ 1..=9, pairs] = numbers[..] else {
        eprintln!("orders MIB PERCENT ORDERS PAIRS: numbers, with 1 to 99 percent and 1 to 9 orders");
        return ExitCode::FAILURE;
    };
    let frames = mib.max(4) * 256;
    with_zone(frames, |config| {
        let tables = Tables::on_heap(config).expect("heap enough");
        let allocator = BlockAllocator::new(config, tables).expect("a plain zone");
        let mut client = Client { allocator: &allocator, live: Vec::new(), held: 0, random: Random(1) };
        let most = frames * percent / 100;
        while client.held < most {
            client.get(orders as usize);
        }
        let (before, begun) = (allocator.counters(), Instant::now());
        for _ in 0..pairs {
            while client.held >= most {
                client.put();
            }
            client.get(orders as usize);
        }
        let (after, passed_ns) = (allocator.counters(), begun.elapsed().as_nanos());
        let mut is_used = vec![false; (frames / PAGEBLOCK) as usize];
        client.live.iter().for_each(|(pfn, _)| is_used[(pfn.0 / PAGEBLOCK) as usize] = true);
        println!("a pair: {:.0} ns", passed_ns as f64 / pairs as f64);
        println!("pageblocks in part use that were reserved: {}", after.adopted - before.adopted);
        println!("whole pageblocks that were claimed: {}", after.claimed - before.claimed);
        println!("whole pageblocks: {} of {}", is_used.iter().filter(|used| !**used).count(), is_used.len());
    });
    ExitCode::SUCCESS
}
