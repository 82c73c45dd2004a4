//! Makes memory resident before it is used. Several threads share the work.

use std::io;
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::sync::Mutex;
use std::sync::atomic::{
    AtomicBool, AtomicUsize,
    Ordering::{Relaxed, SeqCst},
};
use std::thread;

use pageset_core::PAGEBLOCK_FRAMES;

use super::{Inner, Pool};
use crate::Backing;
use crate::ledger::ReturnState;
use crate::sys::{BLOCK_BYTES, advice};

/// The number of bytes that a thread populates in one system call. A call takes about 10 ms, so a cancel
/// takes effect quickly.
const CHUNK_BYTES: usize = 16 * BLOCK_BYTES;

/// The progress of [`Pool::populate`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PopulateProgress {
    /// Bytes that were populated so far.
    pub done_bytes: usize,
    /// Bytes to populate in all.
    pub total_bytes: usize,
}

/// How [`Pool::populate`] ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Populated {
    /// All bytes are resident.
    All,
    /// The callback stopped the work when this many bytes were resident.
    Cancelled(usize),
}

impl Pool {
    /// Makes the whole pool resident, with one thread for each CPU that the process may use.
    /// [`populate`](Self::populate) can also populate a part, with a number of threads of your choice.
    /// `populate` also reports its progress and can be cancelled.
    ///
    /// ```
    /// use pageset::Pool;
    ///
    /// let pool = Pool::builder().size(16 << 20).build()?;
    /// pool.populate_all()?;
    /// assert_eq!(pool.backing()?.resident_bytes, 16 << 20);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`populate`](Self::populate).
    pub fn populate_all(&self) -> io::Result<()> {
        let threads = thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
        self.populate(usize::MAX, threads, |_| ControlFlow::Continue(())).map(|_all| ())
    }

    /// Asks the system to replace the pool's small pages by huge pages. The call also works if the system
    /// gives no huge pages on its own, for example for a [`Backing::Memfd`]. The call does not change
    /// contents, so the pool may be in use. If a page of a pageblock was used since the pageblock last went
    /// back to the system, the call tries to collapse the pageblock. A collapsed pageblock is resident as a
    /// whole. Returns the number of bytes that are now in huge pages. The result is 0 before Linux 6.1,
    /// unless the pool is hugetlb. For a [pinned](crate::Builder::pinned) pool that is not hugetlb, the call
    /// does nothing, because a device may use the pages. The system needs about 100 µs for each 2 MiB.
    pub fn collapse(&self) -> u64 {
        let Ok((inner, _inside)) = self.enter() else { return 0 };
        let blocks = inner.ledger.blocks_in_use(0..inner.frames / PAGEBLOCK_FRAMES);
        let collapse = |block: &u32| {
            // While this thread holds the lock `returning`, no other thread can pin the pool.
            let _batch = inner.returning.lock();
            let start = *block as usize * BLOCK_BYTES;
            let is_pinned = inner.is_pinned.load(Relaxed);
            let is_huge = matches!(inner.backing, Backing::Hugetlb(_));
            is_huge || !is_pinned && advice::collapse(&inner.memory, start..start + BLOCK_BYTES).is_ok()
        };
        blocks.filter(collapse).count() as u64 * BLOCK_BYTES as u64
    }

    /// Makes the first `bytes` of the pool resident, with `threads` threads. The call does not change
    /// contents, so the pool may be in use. Populated memory stays resident until [`trim`](Self::trim), even
    /// if it is free. [`populate_all`](Self::populate_all) is the simple form.
    ///
    /// ```
    /// use std::num::NonZeroUsize;
    /// use std::ops::ControlFlow;
    ///
    /// use pageset::{Pool, Populated};
    ///
    /// let pool = Pool::builder().size(16 << 20).build()?;
    /// let threads = NonZeroUsize::new(2).expect("two is not zero"); // NonZeroUsize::MIN is one thread
    /// let ended = pool.populate(8 << 20, threads, |progress| {
    ///     println!("{} of {} bytes", progress.done_bytes, progress.total_bytes);
    ///     ControlFlow::Continue(())
    /// })?;
    /// assert_eq!(ended, Populated::All);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// A thread calls `progress` after each part that it has populated. A part has 32 MiB, except for the
    /// last part. Two calls of `progress` never overlap. If `progress` returns [`ControlFlow::Break`], the
    /// work ends.
    ///
    /// The calling thread is one of the `threads` threads. If the system starts no other thread, the calling
    /// thread does all the work. With more than one thread, the program needs heap memory: to start a thread,
    /// the standard library allocates, and ends the program if the heap is exhausted.
    ///
    /// # Errors
    /// The system's error if memory is short or the kernel is older than 5.14. Memory that was populated
    /// before the error stays. In a child of [`fork`](crate::Fork), the error is
    /// [`PermissionDenied`](io::ErrorKind::PermissionDenied) (`EPERM`).
    pub fn populate(
        &self,
        bytes: usize,
        threads: NonZeroUsize,
        progress: impl FnMut(PopulateProgress) -> ControlFlow<()> + Send,
    ) -> io::Result<Populated> {
        let inner = self.in_parent().map_err(|_| io::Error::from_raw_os_error(libc::EPERM))?;
        let total = bytes.min(inner.memory.bytes()).next_multiple_of(crate::PAGE_BYTES);
        let work = Work {
            inner,
            total,
            next: AtomicUsize::new(0),
            ended: AtomicBool::new(false),
            state: Mutex::new(State { done: 0, error: None, progress }),
        };
        match threads.get().min(total.div_ceil(CHUNK_BYTES)) {
            // Do not open a scope for a single thread, because even a scope without threads allocates on the
            // heap.
            0 | 1 => work.run(),
            threads => work.run_by(threads),
        }
        let state = work.state.into_inner().expect("a panic of the callback has left the scope");
        match state.error {
            Some(error) => Err(error),
            None if state.done == total => Ok(Populated::All),
            None => Ok(Populated::Cancelled(state.done)),
        }
    }
}

/// The state that the populating threads share.
struct Work<'a, F> {
    inner: &'a Inner,
    total: usize,
    next: AtomicUsize,
    ended: AtomicBool,
    state: Mutex<State<F>>,
}

struct State<F> {
    done: usize,
    error: Option<io::Error>,
    progress: F,
}

impl<F: FnMut(PopulateProgress) -> ControlFlow<()> + Send> Work<'_, F> {
    /// Runs the work in this thread and in `threads - 1` other threads. If the system cannot start so many
    /// threads, fewer run.
    fn run_by(&self, threads: usize) {
        thread::scope(|scope| {
            let start = |_| thread::Builder::new().spawn_scoped(scope, || self.run()).is_ok();
            let _all_started = (1..threads).all(start);
            self.run();
        });
    }

    fn run(&self) {
        while !self.ended.load(SeqCst) {
            let start = self.next.fetch_add(CHUNK_BYTES, Relaxed);
            if start >= self.total {
                return;
            }
            let end = (start + CHUNK_BYTES).min(self.total);
            let blocks = start / BLOCK_BYTES..end.div_ceil(BLOCK_BYTES);
            // Raise `populated_blocks` before the system call, so that no scan gives back memory that this
            // thread populates.
            self.inner.populated_blocks.fetch_max(blocks.end as u32, Relaxed);
            let outcome = advice::populate(&self.inner.memory, start..end);
            let Ok(mut state) = self.state.lock() else { return };
            match outcome {
                Ok(()) => {
                    self.inner.note_populated(blocks);
                    state.done += end - start;
                    let progress = PopulateProgress { done_bytes: state.done, total_bytes: self.total };
                    if (state.progress)(progress).is_break() {
                        self.ended.store(true, SeqCst);
                    }
                }
                Err(error) => {
                    self.ended.store(true, SeqCst);
                    state.error.get_or_insert(error);
                }
            }
        }
    }
}

impl Inner {
    /// Notes in the ledger that pageblocks are resident, so that a trim gives them back.
    fn note_populated(&self, blocks: std::ops::Range<usize>) {
        for block in blocks {
            for before in [ReturnState::Fresh, ReturnState::Returned] {
                self.ledger.exchange_block(block, before, ReturnState::Resident);
            }
        }
    }
}
