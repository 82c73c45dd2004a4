//! The settings of a pool.

mod memory;

use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize};

use crate::arrays::{ArraySet, Caps, Share};
use crate::base::Base;
use crate::error::BuildError;
use crate::ledger::{Contents, Ledger};
use crate::lock::Lock;
use crate::options::{Backing, FastPath, Fork, Numa, Residency, ReturnPolicy, Worker};
use crate::percpu::PerCpu;
use crate::pool::{Capacity, Counts, HandOver, Inner, OnShortage, Pool, PoolId};
use crate::rseq::{self, HotPage};
use crate::sys;
use crate::sys::advice::Giveback;
use crate::sys::checkers::Checked;
use crate::sys::share::Shared;
use crate::sys::{BLOCK_BYTES, MapStep, PAGE_BYTES, PAGE_SHIFT, cpu, environment, membarrier};
use memory::refused;

/// The most bytes of a pool: 4 TiB. In a pool of at most 4 TiB, a frame number fits into 30 bits.
const BYTES_MAX: usize = 1 << (30 + PAGE_SHIFT);

/// The origin of the memory.
#[derive(Clone, Copy, Debug)]
enum Source {
    System,
    Caller(NonNull<u8>),
}

/// Builds a [`Pool`].
#[derive(Clone, Debug)]
pub struct Builder {
    bytes: usize,
    capacity: Option<usize>,
    backing: Backing,
    source: Source,
    numa: Numa,
    /// How children of `fork` see the memory. `None` stands for the backing's default.
    fork: Option<Fork>,
    residency: Residency,
    fast_path: FastPath,
    returns: ReturnPolicy,
    /// Whether every address keeps its page.
    is_pinned: bool,
    on_shortage: Option<OnShortage>,
    /// The number of CPUs that get arrays. Default: all CPUs that can exist.
    array_cpus: Option<usize>,
}

impl Builder {
    pub(crate) fn new() -> Self {
        Self {
            bytes: 1 << 30,
            capacity: None,
            backing: Backing::Thp,
            source: Source::System,
            numa: Numa::FirstTouch,
            fork: None,
            residency: Residency::Pageable,
            fast_path: FastPath::Auto,
            returns: ReturnPolicy::default(),
            is_pinned: false,
            on_shortage: None,
            array_cpus: None,
        }
    }

    /// Sets the pool's size in bytes, a multiple of the backing's page size. Default: 1 GiB. The pool maps
    /// address space of the size `bytes`, plus [`metadata_bytes`](crate::Stats::metadata_bytes) for tables.
    /// To align the memory, building reserves 4 MiB more for a moment (1 GiB more for a pool of at least 1
    /// GiB, if there is room). A page takes memory when the program first touches the page. With
    /// [`Backing::Hugetlb`] or [`Residency::Locked`], building takes all memory at once.
    #[must_use]
    pub fn size(mut self, bytes: usize) -> Self {
        self.bytes = bytes;
        self
    }

    /// Limits the bytes that users and the CPUs' arrays may have together. The default and the maximum is the
    /// pool's size. With 0, every allocation fails (in C, 0 stands for the default).
    #[must_use]
    pub fn capacity(mut self, bytes: usize) -> Self {
        self.capacity = Some(bytes);
        self
    }

    /// Sets the kind of memory. Default: [`Backing::Thp`]. [`Pool::backing`] tells what the system really
    /// provided.
    #[must_use]
    pub fn backing(mut self, backing: Backing) -> Self {
        self.backing = backing;
        self
    }

    /// Uses the caller's memory instead of the system's. The pool never unmaps the caller's memory or gives
    /// it back to the system, and does not rely on its contents. Dropping the pool undoes
    /// [`Self::residency`], [`Self::numa`] and [`Self::fork`]: the memory is unlocked, bound to no node, and
    /// visible to children again.
    ///
    /// # Safety
    /// `start` is valid for reads and writes of `bytes` initialised bytes until the pool is dropped. Until
    /// the pool is dropped, only the pool uses these bytes.
    #[must_use]
    #[expect(unsafe_code, reason = "the caller answers for the region")]
    pub unsafe fn region(mut self, start: NonNull<u8>, bytes: usize) -> Self {
        self.source = Source::Caller(start);
        self.bytes = bytes;
        self.backing = Backing::Plain;
        self
    }

    /// Sets the NUMA nodes that provide the memory. Default: [`Numa::FirstTouch`].
    #[must_use]
    pub fn numa(mut self, numa: Numa) -> Self {
        self.numa = numa;
        self
    }

    /// Sets how children of `fork` see the memory. Default for private memory: [`Fork::Copy`]. Default for a
    /// memfd and for hugetlb: children share the parent's memory.
    #[must_use]
    pub fn fork(mut self, fork: Fork) -> Self {
        self.fork = Some(fork);
        self
    }

    /// Sets whether the memory is locked. Default: [`Residency::Pageable`].
    #[must_use]
    pub fn residency(mut self, residency: Residency) -> Self {
        self.residency = residency;
        self
    }

    /// Sets what protects the CPUs' arrays. Default: [`FastPath::Auto`].
    #[must_use]
    pub fn fast_path(mut self, fast_path: FastPath) -> Self {
        self.fast_path = fast_path;
        self
    }

    /// Sets how idle memory goes back to the system. The default is `ReturnPolicy::default()`. If the pool's
    /// memory is registered with a device or with the kernel, use [`pinned`](Self::pinned) instead.
    #[must_use]
    pub fn returns(mut self, returns: ReturnPolicy) -> Self {
        self.returns = returns;
        self
    }

    /// Makes a pool that gives no page back to the system. So an address that has a page keeps its page until
    /// the pool is dropped. Use `pinned` for a pool that is registered as a whole: buffers of io_uring, a
    /// memory region of RDMA, the UMEM of AF_XDP, memory of vhost or VFIO.
    ///
    /// A registration pins the pages that the pool has at the moment of the registration. When a pool gives
    /// memory back and uses the addresses again, the system puts other pages at these addresses. The device
    /// still uses the pinned pages: the device reports success and the right length, but the program reads
    /// other bytes.
    ///
    /// A pinned pool gives no memory back: not by its thread, not by [`Pool::tick`], [`Pool::trim`],
    /// [`Pool::resize`] or [`Pages::discard`](crate::Pages::discard), and not when memory is short. A pinned
    /// pool has a thread only for [`Prezero`](crate::Prezero). Pinning a pool locks no memory, so pinning
    /// does not count towards the limit `ulimit -l`. A registration with a device may count towards `ulimit
    /// -l`. [`Pool::populate`] may run before or after the registration.
    ///
    /// The program itself must do two things. First, set [`Fork::Hide`], because before Linux 5.12 the
    /// parent's first write after a fork may put a copy of the page behind its address. Second, free pages
    /// only after the device has finished with the pages.
    #[must_use]
    pub fn pinned(mut self) -> Self {
        self.is_pinned = true;
        self
    }

    /// Sets a function that frees pages, for example by evicting from a cache. An allocation calls `reclaim`
    /// if the allocation finds no memory or no capacity, after the pool emptied its own caches. The argument
    /// of `reclaim` is the number of wanted bytes. The allocating thread holds no lock of the pool, so
    /// `reclaim` may use the pool. If `reclaim` returns `true`, the allocation tries again; otherwise the
    /// allocation fails. Allocations inside of `reclaim`, also from other pools, may fail, and do not call
    /// `reclaim`. [`Pool::alloc_bulk`] calls `reclaim` before the call returns fewer pages than wanted.
    ///
    /// If the program holds a lock while it allocates, and `reclaim` waits for this lock, the thread waits
    /// for ever. So allocate before you lock your cache, as in the example, or let `reclaim` use `try_lock`.
    ///
    /// ```
    /// use std::sync::{Arc, Mutex};
    ///
    /// use pageset::{OwnedPages, Order, Pool};
    ///
    /// let cache = Arc::new(Mutex::new(Vec::<OwnedPages>::new()));
    /// let evicted = Arc::clone(&cache);
    /// let evict = move |_bytes| evicted.lock().unwrap().pop().is_some();
    /// let pool = Arc::new(Pool::builder().size(8 << 20).on_shortage(evict).build()?);
    /// for _ in 0..5 {
    ///     let block = pool.alloc_owned(Order::MAX)?; // there is room for two
    ///     cache.lock().unwrap().push(block);
    /// }
    /// assert_eq!(cache.lock().unwrap().len(), 2);
    /// cache.lock().unwrap().clear(); // the pool has the function, and the cache has the pool
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn on_shortage(mut self, reclaim: impl Fn(usize) -> bool + Send + Sync + 'static) -> Self {
        self.on_shortage = Some(OnShortage(Arc::new(reclaim)));
        self
    }

    /// Builds the pool. Building makes some system calls. The pool's tables take 20 KiB of address space, and
    /// 105 KiB more for each GiB of the pool. Only the used parts of the tables take memory: 100 KiB in a new
    /// pool of 1 GiB (example `reserved`, two CPUs).
    ///
    /// To start the pool's thread, the standard library uses the heap and maps memory. The standard library
    /// ends the program if the heap is exhausted, or if the process may have no more mappings
    /// (`vm.max_map_count`, after some 20 000 pools). With [`Worker::None`], `build` starts no thread, and
    /// returns an error if the heap or the number of mappings is exhausted.
    ///
    /// # Errors
    /// See [`BuildError`]. After an error nothing stays mapped.
    pub fn build(self) -> Result<Pool, BuildError> {
        let pool = Pool::new(Shared::new(self.inner()?)?);
        // From here on, the kernel may have the address of a sequence's descriptor in this library, for an
        // interrupted thread. The library stays loaded for ever, so that the descriptor stays valid.
        sys::stay_loaded();
        if self.fork == Some(Fork::HandOver) {
            pool.prepare_forks()?;
        }
        if self.returns.worker == Worker::Thread && pool.inner().has_work(&self.returns) {
            pool.start_thread()
                .map_err(|source| BuildError::System { what: "start the pool's thread", source })?;
        }
        Ok(pool)
    }

    fn inner(&self) -> Result<Inner, BuildError> {
        let (memory, backing) = self.map()?;
        let frames = (self.bytes >> PAGE_SHIFT) as u64;
        let cpus = cpu::possible();
        let checked = Checked::new(&memory);
        let area = match self.fast_path {
            FastPath::Auto if rseq_wanted() && checked.is_none() => {
                rseq::area().filter(|_| membarrier::register())
            }
            FastPath::Auto | FastPath::Locks => None,
        };
        let usable = cpu::usable();
        let caps = Caps::for_free(frames, Share::FIRST, usable);
        let base = Base::new(frames, cpus, caps)?;
        let array_cpus = self.array_cpus.unwrap_or(cpus);
        let set = || ArraySet::new(array_cpus, caps);
        // Without restartable sequences, the second set of arrays is not used.
        let spare = if area.is_some() { set()? } else { ArraySet::new(0, Caps::NONE)? };
        let hot = HotPage::new([set()?, spare]).map_err(|error| match error.step {
            MapStep::Wipe => refused("madvise", "hide the page of the fast path from children", error.source),
            _ => refused("mmap", "map the page of the fast path", error.source),
        })?;
        let contents = match self.source {
            Source::Caller(_) => Contents::Unknown,
            Source::System => Contents::Zero,
        };
        let capacity = self.capacity.map_or(frames, |bytes| (bytes >> PAGE_SHIFT) as u64).min(frames);
        Ok(Inner {
            percpu: PerCpu::new(hot, area, frames, usable, checked),
            memory,
            base,
            ledger: Ledger::new(frames as usize, contents)?,
            capacity: Capacity::new(capacity),
            counts: Counts::default(),
            frames: frames as u32,
            asked: self.backing,
            backing,
            unpinned_giveback: self.giveback(backing),
            is_pinned: AtomicBool::new(self.is_pinned),
            policy: Lock::new(self.returns),
            worker: Lock::default(),
            drain: Lock::default(),
            retired: Lock::default(),
            returning: Lock::default(),
            populated_blocks: AtomicU32::new(0),
            on_shortage: self.on_shortage.clone(),
            id: PoolId::next(),
            in_service: AtomicUsize::new(self.bytes),
            deferred: AtomicU64::new(0),
            looks: Lock::default(),
            hand_over: (self.fork == Some(Fork::HandOver)).then(HandOver::default),
        })
    }

    /// The system call that gives free memory back, or `Never`.
    fn giveback(&self, backing: Backing) -> Giveback {
        match (self.source, backing) {
            _ if self.residency == Residency::Locked => Giveback::Never,
            // Do not give hugetlb pages back. Another program could take a hugetlb page that went back, and
            // the pool could not get the page again.
            (Source::Caller(_), _) | (_, Backing::Hugetlb(_)) => Giveback::Never,
            (_, Backing::Memfd) => Giveback::PunchHole,
            _ => Giveback::DontNeed,
        }
    }
}

/// Whether the environment allows restartable sequences.
fn rseq_wanted() -> bool {
    !environment::says(c"PAGESET_RSEQ", c"0")
}

const _: () = assert!(BLOCK_BYTES == (1 << pageset_core::PAGEBLOCK_ORDER) * PAGE_BYTES);

#[cfg(all(test, not(interpreted)))]
mod tests {
    use pageset_core::Order;
    use rustix::thread::{CpuSet, sched_setaffinity};

    use super::*;

    /// Simulates CPUs that appear after the pool is built. The ids of the simulated CPUs are beyond the last
    /// array.
    #[test]
    fn cpus_beyond_the_arrays_use_the_base() {
        let mut last = CpuSet::new();
        last.set(cpu::possible() - 1);
        if cpu::possible() < 2 || sched_setaffinity(None, &last).is_err() {
            return;
        }
        for path in [FastPath::Auto, FastPath::Locks] {
            let mut builder = Builder::new().size(16 << 20).fast_path(path);
            builder.array_cpus = Some(1);
            let pool = builder.build().unwrap();
            for order in [0, 0, 3, 9, 5] {
                let pages: Vec<_> = (0..3).map(|_| pool.alloc(Order::new(order).unwrap()).unwrap()).collect();
                drop(pages);
                assert_eq!(pool.stats().nr_array, 0, "order {order}");
            }
            assert_eq!(pool.stats().array_refills, 0);
            pool.validate().unwrap();
        }
    }
}
