//! Builds a pool on one NUMA node, and prints which nodes its memory is really on: `cargo run --release -p
//! pageset --example numa [NODE]`

use pageset::{Numa, Order, Pool};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let node = std::env::args().nth(1).map_or(Ok(0), |node| node.parse())?;
    let pool = match Pool::builder().size(64 << 20).numa(Numa::Bind(node)).build() {
        Ok(pool) => pool,
        Err(error) => {
            let source = std::error::Error::source(&error).map(ToString::to_string);
            println!("{error}: {}", source.unwrap_or_default());
            return Ok(());
        }
    };
    let mut blocks: Vec<_> = (0..16).map(|_| pool.alloc(Order::THP)).collect::<Result<_, _>>()?;
    blocks.iter_mut().for_each(|block| block.fill(1));
    let report = pool.backing()?;
    for (node, bytes) in &report.nodes {
        println!("node {node}: {} MiB", bytes >> 20);
    }
    println!("in huge pages: {} of {} MiB", report.huge_bytes >> 20, report.resident_bytes >> 20);
    Ok(())
}
