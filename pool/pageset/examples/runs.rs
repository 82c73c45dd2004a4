//! For each of several lengths, allocates runs until no run fits. Prints the filled share of the pool, and
//! the time for a run. For each length, also frees every second run, allocates runs again until no run fits,
//! and prints both numbers again.
//!
//! `cargo run --release -p pageset --example runs`

use std::time::Instant;

use pageset::{Pages, Pool, ReturnPolicy, Worker};

/// Allocates runs of `pages` pages until no run fits. Returns the mean time to allocate a run, in
/// nanoseconds.
fn fill<'p>(pool: &'p Pool, pages: usize, runs: &mut Vec<Pages<'p>>) -> f64 {
    let (begun, before) = (Instant::now(), runs.len());
    while let Ok(run) = pool.alloc_exact(pages) {
        runs.push(run);
    }
    begun.elapsed().as_nanos() as f64 / (runs.len() - before).max(1) as f64
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("| pages of a run | of the pool, % | ns a run | again, % | ns a run |");
    println!("|---:|---:|---:|---:|---:|");
    for pages in [3, 17, 100, 128, 129, 200, 300, 511, 512, 513, 600, 1100, 2100, 5000] {
        let returns = ReturnPolicy::default().with_worker(Worker::None);
        let pool = Pool::builder().size(1 << 30).returns(returns).build()?;
        let percent = |runs: usize| 100.0 * (runs * pages) as f64 / pool.page_count() as f64;
        let mut runs = Vec::new();
        let first_ns = fill(&pool, pages, &mut runs);
        let first = percent(runs.len());
        let mut index = 0;
        runs.retain(|_| {
            index += 1;
            index % 2 == 0
        });
        let again_ns = fill(&pool, pages, &mut runs);
        println!("| {pages} | {first:.1} | {first_ns:.0} | {:.1} | {again_ns:.0} |", percent(runs.len()));
    }
    Ok(())
}
