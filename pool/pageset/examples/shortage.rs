//! Measures a pool that is full: `cargo run --profile dist -p pageset --example shortage`. A cache allocates
//! all memory, and then frees some of its blocks to make room for new blocks. Prints the median and the best
//! round, in nanoseconds for each allocation.

use std::time::Instant;

use pageset::{Order, Pages, Pool, ReturnPolicy, Worker};

const ROUNDS: usize = 41;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    for order in [0, 3, 5] {
        println!("order {order}: {}", of_one_order(&new_pool()?, order));
    }
    for most in [3, 8] {
        println!("orders 0 to {most}: {}", of_several_orders(&new_pool()?, most));
    }
    Ok(())
}

fn new_pool() -> Result<Pool, pageset::BuildError> {
    Pool::builder().size(4608 << 20).returns(ReturnPolicy::default().with_worker(Worker::None)).build()
}

/// Measures allocations of one order. Each round frees 1/400 of the blocks, and fills the pool again.
fn of_one_order(pool: &Pool, order: u8) -> String {
    let order = order_of(order);
    let mut random = Random(1);
    let mut held: Vec<_> = std::iter::from_fn(|| pool.alloc(order).ok()).collect();
    let given_up = held.len() / 400;
    shown(|| {
        (0..given_up).for_each(|_| drop(held.swap_remove(random.below(held.len()))));
        let begun = Instant::now();
        held.extend((0..given_up).map(|_| pool.alloc(order).expect("there was as much")));
        begun.elapsed().as_nanos() as f64 / given_up as f64
    })
}

/// Measures allocations of several orders. Each failed allocation frees 16 blocks and is tried again.
fn of_several_orders(pool: &Pool, most: u8) -> String {
    const ALLOCATIONS: usize = 2000;
    let mut random = Random(1);
    let mut held: Vec<Pages<'_>> = Vec::new();
    while let Ok(pages) = pool.alloc(order_of(random.below(most as usize + 1) as u8)) {
        held.push(pages);
    }
    shown(|| {
        let begun = Instant::now();
        for _ in 0..ALLOCATIONS {
            let order = order_of(random.below(most as usize + 1) as u8);
            while let Err(_short) = pool.alloc(order).map(|pages| held.push(pages)) {
                (0..16).for_each(|_| drop(held.swap_remove(random.below(held.len()))));
            }
        }
        begun.elapsed().as_nanos() as f64 / ALLOCATIONS as f64
    })
}

fn shown(round: impl FnMut() -> f64) -> String {
    let mut rounds: Vec<_> = std::iter::repeat_with(round).take(ROUNDS).collect();
    rounds.sort_by(f64::total_cmp);
    format!("{:.1} (best {:.1})", rounds[ROUNDS / 2], rounds[0])
}

fn order_of(order: u8) -> Order {
    Order::new(order).expect("an order of the pool's")
}

/// A generator of pseudo-random numbers with Knuth's multiplier, as in the other examples.
struct Random(u64);

impl Random {
    fn below(&mut self, below: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.0 >> 33) as usize % below
    }
}
