//! Registers a whole pool as one buffer of io_uring, and shows which pools then lose reads. `cargo run
//! --release -p pageset --example registered`
//!
//! The ring pins the pages that the pool has at the registration. Each row of the printed table is a pool,
//! and each column is an action after the registration. A cell counts the reads, out of 1024, whose bytes are
//! not in the pool although the ring reported success.

use std::fs::File;
use std::io::Write;
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::os::fd::AsRawFd;
use std::thread::sleep;
use std::time::Duration;

use io_uring::{IoUring, opcode, types};
use pageset::{Builder, Order, PAGE_BYTES, Pages, Pool, Residency, ReturnPolicy, Worker};

const BYTES: usize = 16 << 20;
/// Reads of 16 KiB.
const ORDER: Order = Order::new(2).unwrap();
const READ_BYTES: usize = PAGE_BYTES << ORDER.get();

type Named<T> = (&'static str, T);

fn builder() -> Builder {
    Pool::builder().size(BYTES)
}

fn without_thread() -> ReturnPolicy {
    ReturnPolicy::default().with_worker(Worker::None)
}

/// The settings of the tested pools. Each pool has a row in the printed table.
const POOLS: [Named<fn() -> Builder>; 4] = [
    ("pinned()", || builder().pinned()),
    ("default policy", builder),
    ("Worker::None", || builder().returns(without_thread())),
    ("Residency::Locked", || builder().residency(Residency::Locked)),
];

const SINCE: [Named<fn(&Pool)>; 6] = [
    ("nothing", |_| {}),
    ("3 s idle", |_| sleep(Duration::from_secs(3))),
    ("tick", |pool| (0..5).for_each(|_| while pool.tick().more {})),
    ("trim", |pool| assert!(!pool.trim().more)),
    ("resize", |pool| {
        pool.resize(BYTES / 2);
        pool.resize(BYTES);
    }),
    ("shortage", |pool| {
        drop(all(pool, Order::MAX));
        drop(all(pool, Order::ZERO));
    }),
];

/// All of a pool, in blocks of one order.
fn all(pool: &Pool, order: Order) -> Vec<Pages<'_>> {
    std::iter::from_fn(|| pool.alloc(order).ok()).collect()
}

/// Makes a ring, and registers the pool's memory as its buffer number 0.
fn register(pool: &Pool) -> std::io::Result<IoUring> {
    let ring = IoUring::new(8)?;
    let buffer =
        libc::iovec { iov_base: pool.start().cast_mut().cast(), iov_len: pool.page_count() * PAGE_BYTES };
    // SAFETY: the pool outlives the ring, and the ring only writes to the bytes that `read` names.
    unsafe { ring.submitter().register_buffers(&[buffer]) }?;
    Ok(ring)
}

/// Reads the file's first bytes into a block. The ring neither copies the bytes nor pins the block again.
fn read(ring: &mut IoUring, file: &File, block: &mut Pages<'_>) -> std::io::Result<i32> {
    let file = types::Fd(file.as_raw_fd());
    let request = opcode::ReadFixed::new(file, block.as_ptr().as_ptr(), READ_BYTES as u32, 0).build();
    // SAFETY: the block is borrowed exclusively until the ring has answered.
    unsafe { ring.submission().push(&request) }.expect("the ring is empty");
    ring.submit_and_wait(1)?;
    Ok(ring.completion().next().expect("one was waited for").result())
}

/// Reads into all blocks. Returns the number of blocks that do not have the file's contents afterwards.
fn lost(ring: &mut IoUring, file: &File, pool: &Pool) -> std::io::Result<usize> {
    let mut blocks = all(pool, ORDER);
    for block in &mut blocks {
        block.fill(0);
        assert_eq!(read(ring, file, block)?, READ_BYTES as i32);
    }
    Ok(blocks.iter().filter(|block| block.iter().any(|byte| *byte != 0xab)).count())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::temp_dir().join(format!("pageset-registered-{}", std::process::id()));
    File::create_new(&path)?.write_all(&[0xab; READ_BYTES])?;
    let file = File::open(&path)?;
    std::fs::remove_file(&path)?;

    print!("{:24}", "reads lost of 1024");
    SINCE.iter().for_each(|(name, _)| print!("{name:>10}"));
    println!();
    for (name, make) in POOLS {
        print!("{name:24}");
        for (_, act) in SINCE {
            let pool = make().build()?;
            let mut ring = register(&pool)?;
            all(&pool, ORDER).iter_mut().for_each(|block| block.fill(1));
            act(&pool);
            print!("{:>10}", lost(&mut ring, &file, &pool)?);
        }
        println!();
    }
    // Populated memory stays resident as well, but `trim` and `resize` give populated memory back.
    let pool = builder().pinned().build()?;
    pool.populate(BYTES, NonZeroUsize::MIN, |_| ControlFlow::Continue(()))?;
    let mut ring = register(&pool)?;
    let _ = pool.trim();
    println!("pinned and populated, after trim: {} lost", lost(&mut ring, &file, &pool)?);
    Ok(())
}
