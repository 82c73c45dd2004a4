//! Reads a file by io_uring into blocks of a pool. The whole pool is registered as one buffer: the ring pins
//! the buffer once, so no read pins or copies pages. If the system does not allow io_uring, the program
//! prints the reason and ends with success.
//!
//! `cargo run -p pageset --example ring_reader`

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

use io_uring::{IoUring, opcode, types};
use pageset::{Fork, Order, PAGE_BYTES, Pages, Pool};

// ANCHOR: reader
/// Each read has 64 KiB. `DEPTH` reads are under way at a time.
const ORDER: Order = Order::new(4).unwrap();
const BLOCK_BYTES: usize = PAGE_BYTES << ORDER.get();
const DEPTH: usize = 8;

/// A read that the ring has not answered.
struct Read<'p> {
    block: Pages<'p>,
    /// The place in the file of the block's first byte. `wanted` and `done` count bytes of the block.
    offset: usize,
    wanted: usize,
    done: usize,
}

struct Reader<'p> {
    pool: &'p Pool,
    ring: IoUring,
    /// The reads under way. The request to the ring carries the index of the read.
    reads: [Option<Read<'p>>; DEPTH],
}

impl<'p> Reader<'p> {
    /// Makes a ring, and registers the whole pool as its buffer number 0.
    fn new(pool: &'p Pool) -> io::Result<Self> {
        let ring = IoUring::new(DEPTH as u32)?;
        let memory = pool.memory();
        let buffer = libc::iovec { iov_base: memory.as_ptr().cast(), iov_len: memory.len() };
        // SAFETY: the pool outlives the ring. The ring writes only to the bytes that a read names.
        unsafe { ring.submitter().register_buffers(&[buffer]) }?;
        Ok(Self { pool, ring, reads: [const { None }; DEPTH] })
    }

    /// Reads the first `bytes` of a file. Calls `take` for each part, in any order, with the part's place in
    /// the file, its block and its length. `take` owns the block, and may keep it.
    fn read(
        &mut self,
        file: &File,
        bytes: usize,
        mut take: impl FnMut(usize, Pages<'p>, usize),
    ) -> io::Result<()> {
        let mut offsets = (0..bytes).step_by(BLOCK_BYTES);
        for (slot, offset) in (0..DEPTH).zip(&mut offsets) {
            self.begin(slot, file, offset, bytes)?;
        }
        while self.reads.iter().any(Option::is_some) {
            let (slot, count) = self.wait()?;
            let mut read = self.reads[slot].take().expect("the ring answers what is under way");
            // A number below 0 is an error of the system.
            let count = usize::try_from(count).map_err(|_| io::Error::from_raw_os_error(-count))?;
            read.done += count;
            if count > 0 && read.done < read.wanted {
                self.submit(slot, file, read)?; // the rest
                continue;
            }
            take(read.offset, read.block, read.done);
            if let Some(offset) = offsets.next() {
                self.begin(slot, file, offset, bytes)?;
            }
        }
        Ok(())
    }

    fn begin(&mut self, slot: usize, file: &File, offset: usize, end: usize) -> io::Result<()> {
        let block = self.pool.alloc(ORDER).map_err(io::Error::other)?;
        let wanted = BLOCK_BYTES.min(end - offset);
        self.submit(slot, file, Read { block, offset, wanted, done: 0 })
    }

    /// Asks the ring for the bytes that a read lacks.
    fn submit(&mut self, slot: usize, file: &File, mut read: Read<'p>) -> io::Result<()> {
        let place = read.block[read.done..read.wanted].as_mut_ptr();
        let length = (read.wanted - read.done) as u32;
        let request = opcode::ReadFixed::new(types::Fd(file.as_raw_fd()), place, length, 0)
            .offset((read.offset + read.done) as u64)
            .build()
            .user_data(slot as u64);
        self.reads[slot] = Some(read);
        // SAFETY: the block stays in `reads`, untouched, until the ring has answered.
        unsafe { self.ring.submission().push(&request) }.expect("there is an entry for each read");
        self.ring.submit().map(drop)
    }

    /// Waits for an answer. Returns the index of the read, and its number of bytes or a negative error
    /// number.
    fn wait(&mut self) -> io::Result<(usize, i32)> {
        loop {
            if let Some(answer) = self.ring.completion().next() {
                return Ok((answer.user_data() as usize, answer.result()));
            }
            match self.ring.submit_and_wait(1) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                outcome => drop(outcome?),
            }
        }
    }
}

impl Drop for Reader<'_> {
    /// Waits for all answers before the blocks are freed, because the kernel may write to a block until its
    /// answer.
    fn drop(&mut self) {
        while self.reads.iter().any(Option::is_some) {
            match self.wait() {
                Ok((slot, _)) => self.reads[slot] = None,
                Err(_) => return std::mem::forget(std::mem::take(&mut self.reads)),
            }
        }
    }
}
// ANCHOR_END: reader

/// Reads this program's executable file by io_uring, and compares the bytes with an ordinary read.
///
/// # Errors
/// If a file cannot be read, or no pool can be built.
pub(crate) fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::current_exe()?;
    let (file, expected) = (File::open(&path)?, std::fs::read(&path)?);
    let pool = Pool::builder().size(4 << 20).pinned().fork(Fork::Hide).build()?;
    let mut reader = match Reader::new(&pool) {
        Ok(reader) => reader,
        Err(error) => {
            println!("not run: no io_uring here: {error} (see kernel.io_uring_disabled and ulimit -l)");
            return Ok(());
        }
    };
    let mut count = 0;
    reader.read(&file, expected.len(), |offset, block, length| {
        assert!(block[..length] == expected[offset..offset + length], "at {offset}");
        count += length;
    })?;
    drop(reader);
    assert_eq!((count, pool.stats().nr_used), (expected.len(), 0));
    println!("{count} bytes read, {} KiB at a time, {DEPTH} reads under way", BLOCK_BYTES >> 10);
    Ok(())
}
