//! A database's buffer pool of 16 KiB frames. At capacity it evicts the oldest frame, and idle memory goes
//! back. `cargo run --release -p pageset --example buffer_pool`

use std::collections::{HashMap, VecDeque};

use pageset::{AllocError, Order, Pages, Pool};

/// Pages of a file in memory, oldest first.
struct BufferPool<'p> {
    pool: &'p Pool,
    order: Order,
    frames: HashMap<u64, Pages<'p>>,
    ages: VecDeque<u64>,
    evicted: usize,
}

impl<'p> BufferPool<'p> {
    /// The frame of a page of the file. Reads the page if it is not in memory.
    fn get(&mut self, page: u64) -> Result<&mut Pages<'p>, AllocError> {
        if !self.frames.contains_key(&page) {
            let mut frame = self.allocate()?;
            // Here a database would read the page from its file.
            frame[..8].copy_from_slice(&page.to_le_bytes());
            self.frames.insert(page, frame);
            self.ages.push_back(page);
        }
        Ok(self.frames.get_mut(&page).expect("just inserted"))
    }

    /// A free frame. Evicts frames until there is one.
    fn allocate(&mut self) -> Result<Pages<'p>, AllocError> {
        loop {
            match self.pool.alloc(self.order) {
                Err(error @ (AllocError::OverCapacity | AllocError::OutOfMemory { .. })) => {
                    let oldest = self.ages.pop_front().ok_or(error)?;
                    self.frames.remove(&oldest);
                    self.evicted += 1;
                }
                outcome => return outcome,
            }
        }
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let pool = Pool::builder().size(256 << 20).capacity(64 << 20).build()?;
    let order = Order::new(2).ok_or("an order")?;
    let mut buffers =
        BufferPool { pool: &pool, order, frames: HashMap::new(), ages: VecDeque::new(), evicted: 0 };
    for page in 0..10_000 {
        let frame = buffers.get(page)?;
        assert_eq!(frame[..8], page.to_le_bytes());
    }
    println!("{} frames in memory, {} evicted", buffers.frames.len(), buffers.evicted);
    drop(buffers);
    println!("trimmed {} MiB", pool.trim().returned_bytes >> 20);
    println!("resident: {:?} bytes", pool.backing().map(|report| report.resident_bytes));
    Ok(())
}
