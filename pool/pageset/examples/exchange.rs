//! Measures how fast blocks move between the arrays and the base: `cargo run --profile dist -p pageset
//! --example exchange`. Prints the median and the best round, in nanoseconds for each block. The time of a
//! round is the time of its slowest thread.

use std::hint::black_box;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Barrier, Mutex, mpsc};
use std::time::Instant;

use pageset::{Order, Pages, Pool, ReturnPolicy, Worker};

const ROUNDS: usize = 41;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let pool = Pool::builder()
        .size(4608 << 20)
        .returns(ReturnPolicy::default().with_worker(Worker::None))
        .build()?;
    for (order, count) in [(0, 10_000), (0, 250_000), (3, 10_000), (9, 200)] {
        let order = Order::new(order).ok_or("no such order")?;
        for threads in [1, 2] {
            for shuffled in [false, true] {
                let [alloc, free] = bulk(&pool, order, count, threads, shuffled);
                let how = if shuffled { "random" } else { "lifo" };
                println!(
                    "bulk-{count}-{how} order {} threads {threads}: alloc {alloc} free {free}",
                    order.get()
                );
            }
        }
    }
    for order in [0, 3] {
        let order = Order::new(order).ok_or("no such order")?;
        println!("handoff order {}: {}", order.get(), handoff(&pool, order));
    }
    let stats = pool.stats();
    println!("metadata {} KiB per GiB", (stats.metadata_bytes * 2 / 9) >> 10);
    Ok(())
}

fn shown(mut rounds: Vec<f64>) -> String {
    rounds.sort_by(f64::total_cmp);
    format!("{:.2} (best {:.2})", rounds[rounds.len() / 2], rounds[0])
}

/// Waits until all threads have arrived. After the meeting, the threads go on at the same time if there are
/// enough CPUs.
fn meet(barrier: &Barrier, met: &AtomicUsize, threads: usize) {
    barrier.wait();
    let all = (met.fetch_add(1, SeqCst) / threads + 1) * threads;
    while met.load(SeqCst) < all {
        std::hint::spin_loop();
    }
}

/// Measures the time per block if each of some threads allocates `count` blocks and frees these blocks.
fn bulk(pool: &Pool, order: Order, count: usize, threads: usize, shuffled: bool) -> [String; 2] {
    let barrier = Barrier::new(threads);
    let met = AtomicUsize::new(0);
    let all = [Mutex::new(vec![0_f64; ROUNDS]), Mutex::new(vec![0_f64; ROUNDS])];
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let (barrier, all, met) = (&barrier, &all, &met);
            scope.spawn(move || {
                let mut seed = thread as u64 + 1;
                let mut pages: Vec<Pages<'_>> = Vec::with_capacity(count);
                for round in 0..ROUNDS {
                    let note = |which: usize, begun: Instant| {
                        let ns = begun.elapsed().as_secs_f64() * 1e9 / count as f64;
                        let mut all = all[which].lock().expect("nobody panicked");
                        all[round] = all[round].max(ns);
                    };
                    meet(barrier, met, threads);
                    let begun = Instant::now();
                    pages.extend((0..count).map(|_| pool.alloc(order).expect("memory enough")));
                    note(0, begun);
                    if shuffled {
                        for at in (1..count).rev() {
                            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                            pages.swap(at, (seed >> 33) as usize % (at + 1));
                        }
                    }
                    meet(barrier, met, threads);
                    let begun = Instant::now();
                    while let Some(page) = pages.pop() {
                        drop(black_box(page));
                    }
                    note(1, begun);
                }
            });
        }
    });
    all.map(|rounds| shown(rounds.into_inner().expect("nobody panicked")))
}

/// Measures the time per block if one thread allocates the blocks and another thread frees the blocks. The
/// threads pass 256 blocks at once.
fn handoff(pool: &Pool, order: Order) -> String {
    const BLOCKS: usize = 256;
    const BATCHES: usize = 500;
    let rounds = (0..ROUNDS).map(|_| {
        let (send, receive) = mpsc::sync_channel::<Vec<Pages<'_>>>(8);
        let (back, empty) = mpsc::sync_channel::<Vec<Pages<'_>>>(16);
        (0..10).for_each(|_| back.send(Vec::with_capacity(BLOCKS)).expect("room"));
        std::thread::scope(|scope| {
            let begun = Instant::now();
            scope.spawn(move || {
                for mut pages in receive {
                    pages.clear();
                    let _ = back.send(pages);
                }
            });
            for _ in 0..BATCHES {
                let mut pages = empty.recv().expect("the other thread lives");
                pages.extend((0..BLOCKS).map(|_| pool.alloc(order).expect("memory enough")));
                send.send(pages).expect("the other thread lives");
            }
            drop(send);
            begun.elapsed().as_secs_f64() * 1e9 / (BLOCKS * BATCHES) as f64
        })
    });
    shown(rounds.collect())
}
