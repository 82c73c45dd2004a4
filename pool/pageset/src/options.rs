//! The choices that a user makes when building a pool.

use std::time::Duration;

use crate::sys::BLOCK_BYTES;

/// The kind of memory of a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Backing {
    /// Private memory, in transparent huge pages where the system provides them.
    Thp,
    /// Huge pages that the administrator reserved (hugetlb). Building the pool takes and clears all its huge
    /// pages, in some tenths of a second for each GiB. The pages stay until the pool is dropped, so no access
    /// finds a page missing. The pages belong to a file, as with [`Backing::Memfd`]. So children of `fork`
    /// share the parent's memory, and [`Fork::Copy`] is refused.
    Hugetlb(HugePageSize),
    /// [`Hugetlb`](Self::Hugetlb) if the builder can get hugetlb pages for the whole pool. If hugetlb causes
    /// any error, the builder uses [`Thp`](Self::Thp).
    /// [`BackingReport::page_bytes`](crate::BackingReport::page_bytes) tells which of the two kinds the pool
    /// got. A pool with [`Fork::Copy`] or [`Fork::HandOver`] always gets `Thp`.
    HugetlbOrThp(HugePageSize),
    /// A file in memory, to be shared with other processes: see [`Pool::memfd`](crate::Pool::memfd). The file
    /// has huge pages where `/sys/kernel/mm/transparent_hugepage/shmem_enabled` is `advise` or `always`, and
    /// after [`Pool::collapse`](crate::Pool::collapse).
    Memfd,
    /// Private memory in pages of 4 KiB.
    Plain,
}

/// A size of huge pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HugePageSize {
    /// 2 MiB.
    Mib2,
    /// 1 GiB.
    Gib1,
}

impl HugePageSize {
    /// Bytes of one page.
    #[must_use]
    pub const fn bytes(self) -> usize {
        match self {
            Self::Mib2 => 2 << 20,
            Self::Gib1 => 1 << 30,
        }
    }
}

/// The NUMA nodes that provide the memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Numa {
    /// A page comes from the node of the CPU that first touches the page. Hugetlb pages come from the node of
    /// the CPU that builds the pool.
    FirstTouch,
    /// Only the node with the given number provides memory.
    Bind(u16),
    /// Pages come from each of the given nodes in turn. Bit `n` stands for node `n`.
    Interleave(u64),
}

/// How a child of `fork` sees the pool's memory.
///
/// # What a child may do
/// A child, and its own children, can only read a pool. No operation in a child waits for a lock. A thread of
/// the parent may have held the lock at the fork, and this thread does not exist in the child. No operation
/// in a child changes memory, because the child has only a copy of the metadata. A page that is free in the
/// child's copy of the pool may be in use in the parent. The rules are:
///
/// - A child can read pages as the variants of `Fork` say. Pages of a memfd and of hugetlb are the parent's
///   own memory. The program is responsible for its child's writes to pages of a memfd and of hugetlb.
///   [`Pool::memfd`](crate::Pool::memfd) gives the rules.
/// - Every allocation returns the error [`AllocError::Forked`](crate::AllocError::Forked), and
///   [`Pool::populate`](crate::Pool::populate) returns the system's error `EPERM`.
/// - Dropping [`Pages`](crate::Pages), or giving up a part of them, does nothing.
///   [`from_raw_checked`](crate::Pages::from_raw_checked) returns `None`, because a child cannot check pages.
/// - [`Pool::trim`](crate::Pool::trim) and [`Pool::tick`](crate::Pool::tick) give no memory back.
///   [`Pool::resize`](crate::Pool::resize) changes nothing, and returns the size that the pool was built
///   with. All counters of [`Pool::stats`](crate::Pool::stats) are zero.
///   [`Pool::validate`](crate::Pool::validate) returns an error.
/// - [`Pool::backing`](crate::Pool::backing) describes the child's own memory.
/// - Dropping the [`Pool`](crate::Pool) does nothing. The pool's memory stays mapped in the child until the
///   child ends or runs another program.
///
/// [`Pool::take_over`](crate::Pool::take_over) ends the limits of a child whose parent has ended, if the pool
/// was built with [`Fork::HandOver`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fork {
    /// The child sees a copy as of the fork. A memfd is not copied: the child shares the parent's memory.
    /// `Builder::build` refuses `Copy` for hugetlb. If no huge page were left for a copy, the system would
    /// take the child's page away. The system would kill the child at its next read of the page.
    Copy,
    /// The child does not see the memory, and the fork is faster. In the child, the pool's addresses are not
    /// mapped, or the child has mapped other memory at these addresses.
    Hide,
    /// The child sees a copy, as with `Copy`, and may become the owner of the pool when its parent has ended:
    /// [`Pool::take_over`](crate::Pool::take_over). Use `HandOver` for a program that builds its pool and
    /// then becomes a daemon. The memory must be private and not locked. Every fork empties the pool's
    /// caches.
    HandOver,
}

/// Whether the pool's memory may be swapped out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Residency {
    /// The system may swap the memory out.
    Pageable,
    /// Building the pool makes all of its memory resident and locks it. Idle memory never goes back to the
    /// system. The pool's own tables are not locked.
    Locked,
}

/// The protection of the CPUs' arrays, which only one thread at a time may change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FastPath {
    /// Restartable sequences if the system has them, the environment variable `PAGESET_RSEQ` is not `0`, and
    /// no memory checker (AddressSanitizer, ThreadSanitizer, valgrind) watches the process. Otherwise locks.
    Auto,
    /// A lock for each CPU. Only a thread that empties the arrays of all CPUs waits for a CPU's lock.
    Locks,
}

/// How idle memory goes back to the system, and which thread gives idle memory back.
///
/// Start from the default policy, and change the policy by its methods or field by field:
///
/// ```
/// use pageset::{ReturnPolicy, Worker};
///
/// let mut returns = ReturnPolicy::default().with_worker(Worker::None);
/// returns.keep_bytes = Some(64 << 20);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReturnPolicy {
    /// Time between two scans for idle memory. A pageblock goes back when two scans in a row found the
    /// pageblock free. Default: 100 ms.
    pub interval: Duration,
    /// The most bytes of whole pageblocks that scans give back in one second. But each scan may give back at
    /// least one pageblock. A second limit of the same size applies to free parts of pageblocks
    /// ([`part_bytes`](Self::part_bytes)). Default: 4 GiB.
    pub bytes_per_second: u64,
    /// The bytes of whole free pageblocks (2 MiB) that scans leave resident, so that the next allocations
    /// need not wait for the system. The lowest pageblocks stay, because the pool uses the lowest pageblocks
    /// first. `None` keeps 2 % of the pool, at most 32 MiB. [`Pool::trim`](crate::Pool::trim) and
    /// [`Pool::resize`](crate::Pool::resize) give kept pageblocks back too. Scans also leave memory from
    /// [`Pool::populate`](crate::Pool::populate). If no memory may go back, see
    /// [`Builder::pinned`](crate::Builder::pinned).
    pub keep_bytes: Option<u64>,
    /// Whether a thread of the pool gives idle memory back. Default: [`Worker::Thread`]. Without the thread,
    /// call [`Pool::tick`](crate::Pool::tick). A pool that gives no memory back
    /// ([`Builder::pinned`](crate::Builder::pinned), [`Residency::Locked`], hugetlb, a caller's region) has a
    /// thread only for [`prezero`](Self::prezero).
    pub worker: Worker,
    /// Whether the pool clears free pages for `alloc_zeroed` in idle time. Default: no.
    pub prezero: Prezero,
    /// The smallest number of contiguous free bytes that scans give back to the system although other pages
    /// of the pageblock are in use. If `part_bytes` is 4096, scans give single pages back. If `part_bytes` is
    /// 0, free parts of pageblocks stay until [`Pool::trim`](crate::Pool::trim). Default: 0. While the pool
    /// is in use, every tenth scan looks for free parts of pageblocks. A scan also looks for such parts if
    /// the pool was not used since the last scan.
    ///
    /// Set `part_bytes` for caches that evict pages at scattered addresses. With 0, each page in use may keep
    /// its whole pageblock resident: 400 scattered pages keep 800 MiB. Each part that goes back costs a
    /// system call of about a microsecond. Each page that went back costs a page fault at its next use. A
    /// transparent huge page that loses a part stays split into small pages.
    pub part_bytes: u64,
}

/// Whether a pool has a thread of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Worker {
    /// The pool has a thread, which sleeps while no memory is idle. The thread blocks all signals and has no
    /// real-time policy. The thread may run on every CPU of the process's cpuset, whatever the affinity of
    /// the thread that builds the pool. To use a thread of your own, choose `None`.
    Thread,
    /// The pool has no thread. The program calls [`Pool::tick`](crate::Pool::tick).
    None,
}

/// Whether the pool clears free pages in advance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prezero {
    /// The pool clears no pages in advance. `alloc_zeroed` clears every block that is not known to be zero.
    Off,
    /// Each scan clears up to this many free pageblocks (2 MiB). A cleared pageblock stays resident until a
    /// scan gives the pageblock back as idle memory.
    Blocks(u32),
}

impl ReturnPolicy {
    /// By default, the pool keeps 1/50 of its bytes.
    const KEPT_SHARE: u64 = 50;
    /// By default, the pool keeps at most this many bytes.
    const KEPT_BYTES_MAX: u64 = 32 << 20;

    /// Returns the same policy with another value of `worker`.
    #[must_use]
    pub const fn with_worker(mut self, worker: Worker) -> Self {
        self.worker = worker;
        self
    }

    /// The most pageblocks that one scan may give back: at least one.
    pub(crate) fn blocks_per_scan(&self) -> usize {
        let bytes = u128::from(self.bytes_per_second).saturating_mul(self.interval.as_micros()) / 1_000_000;
        (usize::try_from(bytes).unwrap_or(usize::MAX) / BLOCK_BYTES).max(1)
    }

    /// The number of whole pageblocks that a pool of `bytes` keeps.
    pub(crate) fn kept_blocks(&self, bytes: usize) -> usize {
        let kept = self.keep_bytes.unwrap_or((bytes as u64 / Self::KEPT_SHARE).min(Self::KEPT_BYTES_MAX));
        usize::try_from(kept).unwrap_or(usize::MAX) / BLOCK_BYTES
    }
}

impl Default for ReturnPolicy {
    /// By default, a thread scans every 100 ms. The thread gives back at most 4 GiB of pageblocks a second,
    /// and keeps 2 % of the pool (at most 32 MiB). The thread clears no pages in advance.
    ///
    /// The numbers are guesses. With a scan every 100 ms, memory goes back within a second after a burst.
    /// Giving 4 GiB back takes about 20 µs for each of 2000 pageblocks, so 4 GiB a second take 4 % of one
    /// CPU. The goal is that at most 5 % of a burst stays resident. The pool keeps only 2 %, because some
    /// memory stays for other reasons.
    fn default() -> Self {
        Self {
            interval: Duration::from_millis(100),
            bytes_per_second: 4 << 30,
            keep_bytes: None,
            worker: Worker::Thread,
            prezero: Prezero::Off,
            part_bytes: 0,
        }
    }
}
