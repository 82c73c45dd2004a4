//! Uses a pool as the frames of a network ring. AF_XDP needs frames in one contiguous area, and names each
//! frame by its offset in the area. One thread receives into frames that it allocates, and another thread
//! sends the frames and frees them. `cargo run --release -p pageset --example umem`

use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::sync::mpsc::sync_channel;
use std::time::Instant;

use pageset::{PAGE_BYTES, Pages, Pool};

const FRAMES: usize = 16_384;
const PACKETS: usize = 2_000_000;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // The kernel pins the frames of a UMEM, so every address of the pool has to keep its page.
    let pool = Pool::builder().size(FRAMES * PAGE_BYTES).pinned().build()?;
    // Page faults while packets arrive would lose some packets.
    let threads = NonZeroUsize::new(2).ok_or("threads")?;
    let outcome = pool.populate(FRAMES * PAGE_BYTES, threads, |progress| {
        println!("populated {} of {} MiB", progress.done_bytes >> 20, progress.total_bytes >> 20);
        ControlFlow::Continue(())
    })?;
    println!("UMEM at {:?}, {} bytes: {outcome:?}", pool.start(), FRAMES * PAGE_BYTES);

    let (filled, to_send) = sync_channel::<Vec<Pages<'_>>>(16);
    let begun = Instant::now();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let mut bytes = 0_u64;
            for batch in to_send {
                // In a real ring, a descriptor would have `offset()` and a length. The end of this loop frees
                // the frames.
                bytes += batch.iter().map(|frame| u64::from(frame[0])).sum::<u64>();
            }
            println!("sent, checksum {bytes}");
        });
        for first in (0..PACKETS).step_by(64) {
            let mut batch = Vec::with_capacity(64);
            pool.alloc_bulk(64, &mut batch).expect("fewer frames are in flight than there are");
            batch.iter_mut().for_each(|frame| frame[0] = first as u8);
            filled.send(batch).expect("the sender runs");
        }
        drop(filled);
    });
    let nanos = begun.elapsed().as_secs_f64() * 1e9 / PACKETS as f64;
    let stats = pool.stats();
    println!("{nanos:.1} ns per packet, {} refills", stats.array_refills);
    assert_eq!(stats.returned_bytes, 0, "nothing went back");
    Ok(())
}
