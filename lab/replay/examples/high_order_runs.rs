//! Counts how many blocks of orders 1 to 3 a CPU frees in a row. Long runs of such frees cause `free_high`
//! drains.
//!
//! `cargo run --release -p pageset-replay --example high_order_runs -- FILE...`

use std::{collections::HashMap, error::Error, path::Path};

use pageset_trace::{EventKind, open};

/// Orders of the blocks whose frees cause `free_high` drains.
const ORDERS: std::ops::RangeInclusive<usize> = 1..=3;
/// The number of frees in the longest run of each class.
const CLASSES: [u64; 7] = [1, 2, 4, 8, 16, 64, u64::MAX];

#[derive(Default)]
struct Runs {
    /// Number of runs and number of blocks in each class.
    classes: [(u64, u64); CLASSES.len()],
    /// Number of freed blocks of each order.
    orders: [u64; 4],
    pages: u64,
}

impl Runs {
    fn end(&mut self, length: u64) {
        if length > 0 {
            let class = CLASSES.iter().position(|longest| length <= *longest).unwrap_or(CLASSES.len() - 1);
            self.classes[class].0 += 1;
            self.classes[class].1 += length;
        }
    }
}

fn runs(path: &Path) -> Result<Runs, Box<dyn Error>> {
    let mut reader = open(path)?;
    let (mut runs, mut open_runs, mut events) = (Runs::default(), HashMap::<u16, u64>::new(), Vec::new());
    while reader.read_block(&mut events)? > 0 {
        for event in &events {
            if event.kind == EventKind::MmPageAlloc && !event.is_failed_allocation() {
                runs.pages += event.block_order().map_or(0, |order| u64::from(order.frames()));
            }
            if !event.is_free() {
                continue;
            }
            let length = open_runs.entry(event.cpu).or_default();
            match event.block_order().map(|order| order.index()) {
                Some(order) if ORDERS.contains(&order) => {
                    runs.orders[order] += 1;
                    *length += 1;
                }
                _ => runs.end(std::mem::take(length)),
            }
        }
    }
    open_runs.into_values().for_each(|length| runs.end(length));
    Ok(runs)
}

fn main() -> Result<(), Box<dyn Error>> {
    println!(
        "| recording | blocks per 1000 pages | of orders 1, 2, 3 | in runs of 1 | 2 | to 4 | to 8 | to 16 | to 64 | more |"
    );
    println!("|---|---:|---|---:|---:|---:|---:|---:|---:|---:|");
    for name in std::env::args().skip(1) {
        let runs = runs(Path::new(&name))?;
        let blocks: u64 = runs.classes.iter().map(|(_, blocks)| blocks).sum();
        let percent = |blocks_of: u64| format!("{:.1} %", 100.0 * blocks_of as f64 / blocks.max(1) as f64);
        let classes = runs.classes.map(|(count, blocks)| format!("{} ({count})", percent(blocks)));
        let each = 1000.0 * blocks as f64 / runs.pages.max(1) as f64;
        let orders = &runs.orders[1..];
        println!("| {name} | {each:.1} | {orders:?} | {} |", classes.join(" | "));
    }
    Ok(())
}
