//! Registers a whole pool with io_uring, and tests that the program sees the bytes that io_uring reads into
//! the pool. If the kernel refuses io_uring, the test prints the refusal on standard error (`--nocapture`
//! shows the text) and passes.
#![cfg(not(miri))]

use std::io::Write;
use std::ops::ControlFlow;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::{fs, io, iter};

use io_uring::{IoUring, opcode, types};
use pageset::{Backing, Builder, Fork, Order, PAGE_BYTES, Pages, Pool, ReturnPolicy, Trimmed, Worker};

/// The pool is small, because registered memory may count for `ulimit -l`.
const BYTES: usize = 4 << 20;
const ORDER: Order = Order::new(2).unwrap();
const BLOCK_BYTES: usize = PAGE_BYTES << ORDER.get();
const PATTERN: u8 = 0xab;

/// A ring with all memory of a pool as one buffer, and a file to read from.
struct Ring {
    ring: IoUring,
    file: fs::File,
}

impl Ring {
    /// Registers a pool. If the kernel refuses the ring, prints the reason and returns `None`.
    fn of(pool: &Pool) -> Option<Self> {
        let ring = IoUring::new(8).and_then(|ring| {
            let all = libc::iovec { iov_base: pool.start().cast_mut().cast(), iov_len: BYTES };
            // SAFETY: the pool is mapped as long as the ring, and reads go to pages that the test owns.
            unsafe { ring.submitter().register_buffers(&[all]) }?;
            Ok(ring)
        });
        let ring = ring.inspect_err(|error| eprintln!("NOT TESTED: no io_uring here: {error}")).ok()?;
        Some(Self { ring, file: file_of(PATTERN).unwrap() })
    }

    /// Reads into each block of the pool. Returns the number of blocks without the file's bytes, although the
    /// kernel reported success.
    fn reads_lost(&mut self, pool: &Pool) -> usize {
        let mut blocks: Vec<Pages<'_>> = iter::from_fn(|| pool.alloc(ORDER).ok()).collect();
        assert_eq!(blocks.len(), BYTES / BLOCK_BYTES, "all of the pool");
        for block in &mut blocks {
            block.fill(0);
            let file = types::Fd(self.file.as_raw_fd());
            let read = opcode::ReadFixed::new(file, block.as_ptr().as_ptr(), BLOCK_BYTES as u32, 0).build();
            // SAFETY: the test owns the block until the read has ended.
            unsafe { self.ring.submission().push(&read) }.unwrap();
            self.ring.submit_and_wait(1).unwrap();
            let completion = self.ring.completion().next().unwrap();
            assert_eq!(completion.result(), BLOCK_BYTES as i32);
        }
        blocks.iter().filter(|block| block.iter().any(|byte| *byte != PATTERN)).count()
    }
}

/// Makes a file of the size of a block, and fills it with one byte.
fn file_of(byte: u8) -> io::Result<fs::File> {
    // SAFETY: the name ends with zero.
    let file = unsafe { libc::memfd_create(c"pattern".as_ptr(), 0) };
    assert!(file >= 0, "{}", io::Error::last_os_error());
    // SAFETY: the descriptor was just made, and has no other owner.
    let mut file = fs::File::from(unsafe { OwnedFd::from_raw_fd(file) });
    file.write_all(&vec![byte; BLOCK_BYTES])?;
    Ok(file)
}

/// Uses all of the pool once, and frees it.
fn use_all(pool: &Pool) {
    let mut blocks: Vec<_> = iter::from_fn(|| pool.alloc(ORDER).ok()).collect();
    blocks.iter_mut().for_each(|block| block.fill(1));
}

type Action = (&'static str, fn(&Pool));

/// Actions after a registration. Some actions put other pages behind the addresses of a pool that is not
/// pinned.
const ACTIONS: [Action; 7] = [
    ("nothing", |_| {}),
    ("tick", |pool| (0..5).for_each(|_| while pool.tick().more {})),
    ("trim", |pool| assert!(!pool.trim().more)),
    ("resize", |pool| {
        let halved = pool.resize(BYTES / 2);
        assert_eq!((halved, pool.resize(BYTES)), (BYTES / 2, BYTES));
    }),
    ("shortage", |pool| {
        for order in [Order::MAX, Order::ZERO, Order::new(5).unwrap()] {
            drop(iter::from_fn(|| pool.alloc(order).ok()).collect::<Vec<_>>());
        }
    }),
    ("populate", |pool| {
        let outcome = pool.populate(BYTES, 2.try_into().unwrap(), |_| ControlFlow::Continue(()));
        outcome.expect("memory is there");
        let _ = pool.trim();
    }),
    // The pool's thread scans many times during this sleep.
    ("idle", |_| std::thread::sleep(std::time::Duration::from_millis(100))),
];

fn builder(backing: Backing, worker: Worker) -> Builder {
    let mut returns = ReturnPolicy::default().with_worker(worker);
    returns.interval = std::time::Duration::from_millis(2);
    Pool::builder().size(BYTES).backing(backing).returns(returns)
}

const BACKINGS: [Backing; 3] = [Backing::Plain, Backing::Thp, Backing::Memfd];

#[test]
fn reads_into_a_registered_pool_that_is_pinned_arrive_whatever_is_called() {
    for backing in BACKINGS {
        for worker in [Worker::Thread, Worker::None] {
            for (name, act) in ACTIONS {
                let pool = builder(backing, worker).pinned().build().unwrap();
                let Some(mut ring) = Ring::of(&pool) else { return };
                use_all(&pool);
                act(&pool);
                assert_eq!(ring.reads_lost(&pool), 0, "{name} of {backing:?} with {worker:?}");
                assert_eq!(pool.stats().returned_bytes, 0, "{name}");
                pool.validate().unwrap();
            }
        }
    }
}

/// Tests that reads into a pool get lost if the pool gives memory back, as the documentation warns. If this
/// test fails, programs no longer need `pinned`.
#[test]
fn reads_into_a_registered_pool_that_gives_memory_back_are_lost() {
    for backing in BACKINGS {
        let pool = builder(backing, Worker::None).build().unwrap();
        let Some(mut ring) = Ring::of(&pool) else { return };
        use_all(&pool);
        assert_eq!(ring.reads_lost(&pool), 0, "nothing went back yet");
        assert_eq!(pool.trim().returned_bytes, BYTES as u64);
        assert_eq!(ring.reads_lost(&pool), BYTES / BLOCK_BYTES, "{backing:?}");
    }
}

/// Tests a fork with `Fork::Hide`. The child does not share the pool's pages, so the parent never writes to a
/// copy of a page.
#[test]
fn a_fork_of_a_program_whose_pool_is_hidden_loses_no_reads() {
    let pool = builder(Backing::Plain, Worker::None).pinned().fork(Fork::Hide).build().unwrap();
    let Some(mut ring) = Ring::of(&pool) else { return };
    use_all(&pool);
    // SAFETY: the child does nothing but wait for its end.
    let child = unsafe { libc::fork() };
    if child == 0 {
        // SAFETY: `pause` takes no pointers and only waits. The parent ends the child.
        unsafe { libc::pause() };
        // SAFETY: the call ends the process at once.
        unsafe { libc::_exit(0) };
    }
    assert!(child > 0);
    let lost = ring.reads_lost(&pool);
    // SAFETY: this test made the child.
    assert_eq!(unsafe { libc::kill(child, libc::SIGKILL) }, 0);
    // SAFETY: this test made the child, and a null pointer means that its status is not wanted.
    assert_eq!(unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) }, child);
    assert_eq!(lost, 0);
}

#[test]
fn a_pinned_pool_locks_nothing_and_keeps_what_was_used() {
    for backing in BACKINGS {
        let pool = builder(backing, Worker::Thread).pinned().build().unwrap();
        let built = pool.backing().unwrap();
        assert_eq!((built.resident_bytes, built.locked_bytes), (0, 0), "memory comes when it is touched");
        use_all(&pool);
        assert_eq!(pool.trim(), Trimmed::default());
        assert_eq!(pool.resize(0), 0);
        let kept = pool.backing().unwrap();
        assert_eq!((kept.resident_bytes, kept.locked_bytes), (BYTES as u64, 0), "{backing:?}");
        assert_eq!(pool.resize(BYTES), BYTES);
        assert_eq!(pool.stats().refaulted_bytes, 0, "nothing had gone");
        pool.validate().unwrap();
    }
}
