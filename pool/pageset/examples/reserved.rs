//! Prints the cost of a pool with one touched page, for several sizes of the pool. The cost is the mapped and
//! resident memory of the pool's tables, and the time of each call.
//!
//! `cargo run --release -p pageset --example reserved`

use std::time::{Duration, Instant};

use pageset::{Fork, Order, Pool, ReturnPolicy, Worker};

/// Resident bytes of this process, without the bytes of files, such as the program's code.
fn resident_bytes() -> Result<u64, Box<dyn std::error::Error>> {
    let statm = std::fs::read_to_string("/proc/self/statm")?;
    let pages: Vec<u64> = statm.split_whitespace().map(str::parse).collect::<Result<_, _>>()?;
    Ok((pages[1] - pages[2]) * 4096)
}

fn timed<T>(call: impl FnOnce() -> T) -> (T, Duration) {
    let begun = Instant::now();
    let outcome = call();
    (outcome, begun.elapsed())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("| pool | mapped KiB | resident KiB | create | page | tick | trim | destroy |");
    println!("|---|---:|---:|---:|---:|---:|---:|---:|");
    for gib in [1, 8, 64, 1024, 4096] {
        let before = resident_bytes()?;
        let returns = ReturnPolicy::default().with_worker(Worker::None);
        let builder = Pool::builder().size(gib << 30).returns(returns).fork(Fork::Hide);
        let (pool, create) = timed(|| builder.build());
        let pool = pool?;
        let (page, alloc) = timed(|| pool.alloc(Order::ZERO).map(|mut page| page[0] = 1));
        page?;
        let (_, tick) = timed(|| pool.tick());
        let (_, trim) = timed(|| pool.trim());
        let resident_kib = resident_bytes()?.saturating_sub(before) / 1024;
        let mapped_kib = pool.stats().metadata_bytes / 1024;
        let ((), destroy) = timed(|| drop(pool));
        println!(
            "| {gib} GiB | {mapped_kib} | {resident_kib} | {create:.1?} | {alloc:.1?} | {tick:.1?} | {trim:.1?} | {destroy:.1?} |"
        );
    }
    Ok(())
}
