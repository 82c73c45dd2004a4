//! Measures the pool: `cargo run --profile dist -p pageset --example speed`. Prints medians of 15 runs. A row
//! has the nanoseconds of an allocation and its free together, unless the row's name says that only one of
//! the two was measured.

use std::hint::black_box;
use std::sync::Barrier;
use std::time::{Duration, Instant};

use pageset::{Backing, Order, PAGE_BYTES, Pages, Pool, ReturnPolicy, Worker};

const RUNS: usize = 15;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let pool = Pool::builder().size(4608 << 20).returns(no_thread()).build()?;
    println!("restartable sequences: {}", pool.uses_rseq());
    row("order-1 pair, 1 thread", || pairs::<1>(&pool, 1_000_000));
    row("order-0 pair, 1 thread", || pairs::<0>(&pool, 1_000_000));
    row("order-3 pair, 1 thread", || pairs::<3>(&pool, 1_000_000));
    row("order-9 pair, 1 thread", || pairs::<9>(&pool, 1_000_000));
    row("order-4 pair, 1 thread", || pairs::<4>(&pool, 100_000));
    row("order-6 pair, 1 thread", || pairs::<6>(&pool, 100_000));
    row("order-8 pair, 1 thread", || pairs::<8>(&pool, 100_000));
    row("order-10 pair, 1 thread", || pairs::<10>(&pool, 100_000));
    row("order-0 pair, 2 threads", || pairs_on_threads::<0>(&pool, 2, 4_000_000));
    row("order-4 pair, 2 threads", || pairs_on_threads::<4>(&pool, 2, 100_000));
    row("order-8 pair, 2 threads", || pairs_on_threads::<8>(&pool, 2, 100_000));
    for live_percent in [50, 75, 90] {
        full(live_percent)?;
    }
    // The list of pages is touched in advance, so that its page faults are not measured.
    let mut held = Vec::with_capacity(MILLION);
    random_million(&pool, &mut held);
    row("1 M pages, alloc", || random_million(&pool, &mut held).0);
    row("1 M pages, random free", || random_million(&pool, &mut held).1);
    row("mix of 100 000 live", || mix(&pool, 100_000, 2_000_000));
    touch_cycles()?;
    burst()?;
    let stats = pool.stats();
    let gib = (pool.page_count() * PAGE_BYTES) as f64 / f64::from(1 << 30);
    println!("metadata: {:.2} MiB per GiB", stats.metadata_bytes as f64 / gib / f64::from(1 << 20));
    println!("refills {}, flushes {}", stats.array_refills, stats.array_flushes);
    Ok(())
}

fn no_thread() -> ReturnPolicy {
    ReturnPolicy::default().with_worker(Worker::None)
}

fn median(mut run: impl FnMut() -> f64) -> f64 {
    middle((0..RUNS).map(|_| run()))
}

/// Prints the median and the best of several runs. On a machine with other load, read the best run.
fn row(name: &str, run: impl FnMut() -> f64) {
    let mut values: Vec<_> = std::iter::repeat_with(run).take(RUNS).collect();
    values.sort_by(f64::total_cmp);
    println!("{name:26} {:7.2} ns (best {:.2})", values[RUNS / 2], values[0]);
}

fn middle(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<_> = values.collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn per(time: Duration, operations: usize) -> f64 {
    time.as_secs_f64() * 1e9 / operations as f64
}

fn pairs<const ORDER: u8>(pool: &Pool, count: usize) -> f64 {
    let order = const { Order::new(ORDER).expect("an order") };
    let begun = Instant::now();
    for _ in 0..count {
        black_box(pool.alloc(order).expect("memory").as_ptr());
    }
    per(begun.elapsed(), count)
}

fn pairs_on_threads<const ORDER: u8>(pool: &Pool, threads: usize, count: usize) -> f64 {
    let start = Barrier::new(threads);
    let times: Vec<f64> = std::thread::scope(|scope| {
        let run = || {
            start.wait();
            pairs::<ORDER>(pool, count)
        };
        let handles: Vec<_> = (0..threads).map(|_| scope.spawn(run)).collect();
        handles.into_iter().map(|handle| handle.join().expect("no panic")).collect()
    });
    middle(times.into_iter())
}

struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        ((u128::from(self.0) * limit as u128) >> 64) as usize
    }
}

const MILLION: usize = 1_000_000;

/// Allocates a million pages, and frees them in random order.
fn random_million<'p>(pool: &'p Pool, pages: &mut Vec<Pages<'p>>) -> (f64, f64) {
    let begun = Instant::now();
    for _ in 0..MILLION {
        pages.push(pool.alloc(Order::ZERO).expect("memory"));
    }
    let alloc = per(begun.elapsed(), MILLION);
    let mut random = Random(42);
    for index in (1..MILLION).rev() {
        pages.swap(index, random.below(index + 1));
    }
    let begun = Instant::now();
    for page in pages.drain(..) {
        drop(page);
    }
    (alloc, per(begun.elapsed(), MILLION))
}

fn mix(pool: &Pool, live: usize, operations: usize) -> f64 {
    let mut random = Random(7);
    let mut pages: Vec<_> = (0..live).map(|_| Some(pool.alloc(Order::ZERO).expect("memory"))).collect();
    let begun = Instant::now();
    for _ in 0..operations {
        let slot = &mut pages[random.below(live)];
        *slot = match slot.take() {
            Some(_) => None,
            None => Some(pool.alloc(Order::ZERO).expect("memory")),
        };
    }
    per(begun.elapsed(), operations)
}

/// Measures a pool of 64 MiB with `live_percent` % in use, in blocks of 4 to 512 KiB. Prints the share of
/// refused requests, and the time of a request.
fn full(live_percent: usize) -> Result<(), Box<dyn std::error::Error>> {
    const BYTES: usize = 64 << 20;
    const CALLS: usize = 200_000;
    let pool = Pool::builder().size(BYTES).returns(no_thread()).build()?;
    let mut random = Random(11);
    let (mut live, mut held, mut refused) = (0, Vec::new(), 0);
    let begun = Instant::now();
    for _ in 0..CALLS {
        let order = Order::new(random.below(8) as u8).expect("an order");
        match pool.alloc(order) {
            Ok(block) => {
                live += block.len();
                held.push(block);
            }
            Err(_) => refused += 1,
        }
        while live * 100 > BYTES * live_percent {
            live -= held.swap_remove(random.below(held.len())).len();
        }
    }
    let nanos = per(begun.elapsed(), CALLS);
    let refused = refused as f64 * 100.0 / CALLS as f64;
    println!("orders 0 to 7, {live_percent} % live: {refused:.1} % refused, {nanos:.0} ns for each");
    Ok(())
}

/// Measures how long it takes to allocate 128 MiB, touch each page and free the pages. Compares the pool's
/// time with the time to map, touch and unmap 128 MiB.
fn touch_cycles() -> Result<(), Box<dyn std::error::Error>> {
    const BYTES: usize = 128 << 20;
    let pool = Pool::builder().size(BYTES).returns(no_thread()).build()?;
    let touch = |bytes: &mut [u8]| bytes.iter_mut().step_by(PAGE_BYTES).for_each(|byte| *byte = 1);
    let cycle = |zeroed: bool| {
        let begun = Instant::now();
        let mut blocks = Vec::new();
        for _ in 0..BYTES >> 21 {
            let mut block =
                if zeroed { pool.alloc_zeroed(Order::THP) } else { pool.alloc(Order::THP) }.expect("memory");
            touch(&mut block);
            blocks.push(block);
        }
        drop(blocks);
        begun.elapsed().as_secs_f64() * 1e6
    };
    cycle(false);
    let plain = median(|| cycle(false));
    let zeroed = median(|| cycle(true));
    let fresh = median(|| {
        let begun = Instant::now();
        let mapping = Pool::builder().size(BYTES).backing(Backing::Plain).returns(no_thread());
        let mapping = mapping.build().expect("memory");
        for _ in 0..BYTES >> 21 {
            let mut block = mapping.alloc(Order::THP).expect("memory");
            touch(&mut block);
            std::mem::forget(block);
        }
        drop(mapping);
        begun.elapsed().as_secs_f64() * 1e6
    });
    println!("128 MiB touched, us: pool {plain:.0}, zeroed {zeroed:.0}, mapped anew {fresh:.0}");
    println!("  faster: {:.1} times, zeroed {:.1} times", fresh / plain, fresh / zeroed);
    Ok(())
}

/// Prints the resident memory after a program has used and freed 1 GiB, and after one idle second.
fn burst() -> Result<(), Box<dyn std::error::Error>> {
    let pool = Pool::builder().size(1 << 30).build()?;
    let mut blocks: Vec<_> = std::iter::from_fn(|| pool.alloc(Order::ZERO).ok()).collect();
    blocks.iter_mut().for_each(|block| block[0] = 1);
    let full = pool.backing().map_or(0, |report| report.resident_bytes);
    drop(blocks);
    std::thread::sleep(Duration::from_secs(1));
    let idle = pool.backing().map_or(0, |report| report.resident_bytes);
    println!("burst: {} MiB resident, {} MiB after 1 s idle", full >> 20, idle >> 20);
    println!("  {:?} spent, {} MiB returned", pool.stats().return_time, pool.stats().returned_bytes >> 20);
    Ok(())
}
