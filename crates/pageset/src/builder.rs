//! What a pool is built from.

use std::io;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::time::Duration;

use pageset_core::{Config, FrameCounts, NodeId, Policy, Watermarks, ZoneConfig, ZoneId, ZoneKind, policy};

use crate::arrays::{ArraySet, Caps};
use crate::background::Background;
use crate::core::Core;
use crate::depot::{Depot, DepotLock};
use crate::error::BuildError;
use crate::ledger::{Contents, Ledger};
use crate::percpu::PerCpu;
use crate::pool::{Capacity, Counts, Inner, Pool};
use crate::rseq::{self, HotPage};
use crate::sys::advice::Giveback;
use crate::sys::node::{Binding, NodeSet};
use crate::sys::{BLOCK_BYTES, Mapping, PAGE_BYTES, PAGE_SHIFT, POOL_ALIGN, advice, cpu, membarrier, node};

/// Most bytes of a pool: frame numbers of arrays have 30 bits.
const BYTES_MAX: usize = 1 << (30 + PAGE_SHIFT);

/// What kind of memory a pool consists of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Backing {
    /// Private memory, in transparent huge pages as far as the system has them.
    Thp,
    /// Huge pages that the administrator reserved; all are claimed when the pool is built.
    Hugetlb(HugePageSize),
    /// A file in memory, to be shared with other processes: see [`Pool::memfd`].
    Memfd,
    /// Private memory in pages of 4 KiB.
    Plain,
}

/// A size of huge pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HugePageSize {
    /// 2 MiB.
    Mib2,
    /// 1 GiB. Such a pool returns nothing before it is dropped.
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

/// From which NUMA nodes the memory comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Numa {
    /// From the node of the CPU that touches it first.
    FirstTouch,
    /// From this node or not at all.
    Bind(u16),
    /// From each of these nodes (bit `n` for node `n`) in turn.
    Interleave(u64),
}

/// What a child of `fork` sees of the pool's memory.
///
/// # What a child may do
/// A child has one thread only, and a copy of the rest: a lock that another thread held stays locked, and what the copied
/// metadata calls free may be in use in the parent a moment later. So in a child, and in its children, a pool is for reading
/// pages and for nothing else. No operation waits for a lock there, changes memory, or reaches the parent:
///
/// - Pages can be read, as the variants say. Those of a memfd are the parent's own memory: whoever forks
///   answers for what the child writes there, as for all that [`Pool::memfd`] says.
/// - Every allocation, and [`Pool::populate`], is the error [`AllocError::Forked`](crate::AllocError::Forked).
/// - The end of [`Pages`](crate::Pages), and a part of them given up, does nothing.
///   [`from_raw_checked`](crate::Pages::from_raw_checked) gives none, since it cannot look.
/// - [`Pool::trim`] and [`Pool::tick`] give nothing back, [`Pool::resize`] leaves the pool at the size it was built with,
///   [`Pool::stats`] are all zero, and [`Pool::validate`] says that it cannot check.
/// - [`Pool::backing`] tells of the child's own memory.
/// - The end of the [`Pool`] does nothing: what is mapped stays so until the child ends or runs another program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fork {
    /// A copy as of the fork; the parent's memory itself, if the pool is a memfd.
    Copy,
    /// Nothing: the addresses are not mapped, or are somebody else's in the child; but the fork is faster.
    Hide,
}

/// Whether the pool's memory may be swapped out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Residency {
    /// As any memory.
    Pageable,
    /// All of it is made resident and locked when the pool is built. Nothing is returned.
    Locked,
}

/// Whether sequences are restarted or locks are taken on the fast path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FastPath {
    /// Restartable sequences if the system has them and `PAGESET_RSEQ` is not `0`, otherwise locks.
    Auto,
    /// A try-lock per CPU.
    Locks,
}

/// How idle memory goes back to the system, and who does it.
///
/// It begins with the default, and is changed by its methods or field by field:
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
    /// Time between two looks at what is idle. A pageblock goes back when it was all free at two looks.
    pub interval: Duration,
    /// Most bytes that go back in one second.
    pub bytes_per_second: u64,
    /// Bytes of free pageblocks (2 MiB), the lowest and so the first to be used, that looks leave with the pool, so that
    /// whoever comes next need not wait for the system. `None` for a fiftieth of the pool, 32 MiB at most.
    /// [`Pool::trim`] and shortage take them all. What [`Pool::populate`] made resident stays besides.
    pub keep_bytes: Option<u64>,
    /// Whether a thread of the pool's does it; if not, call [`Pool::tick`].
    pub worker: Worker,
    /// Whether idle time is used to clear free pages for `alloc_zeroed`.
    pub prezero: Prezero,
}

/// Whether a pool has a thread of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Worker {
    /// It sleeps while nothing is idle.
    Thread,
    /// The program calls [`Pool::tick`].
    None,
}

/// Whether free pages are cleared before somebody asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prezero {
    /// No: `alloc_zeroed` clears what is not known to be zero.
    Off,
    /// A look clears up to this many free pageblocks (2 MiB), which then stay resident until they are idle.
    Blocks(u32),
}

impl ReturnPolicy {
    /// Share of a pool that is kept by default.
    const KEPT_SHARE: u64 = 50;
    /// Most bytes that are kept by default.
    const KEPT_BYTES_MAX: u64 = 32 << 20;

    /// The same with another worker.
    #[must_use]
    pub const fn with_worker(mut self, worker: Worker) -> Self {
        self.worker = worker;
        self
    }

    /// Whole pageblocks that are kept of a pool of `bytes`.
    pub(crate) fn kept_blocks(&self, bytes: usize) -> usize {
        let kept = self.keep_bytes.unwrap_or((bytes as u64 / Self::KEPT_SHARE).min(Self::KEPT_BYTES_MAX));
        usize::try_from(kept).unwrap_or(usize::MAX) / BLOCK_BYTES
    }
}

impl Default for ReturnPolicy {
    /// Looks every 100 ms, at most 4 GiB a second, a fiftieth is kept, a thread, no prezeroing. (Guesses: 100 ms so that
    /// a burst is gone within the second that users expect; 4 GiB is 2000 calls of 20 µs, so a twenty-fifth of one CPU;
    /// a fiftieth, since of a burst a twentieth may stay resident, and something stays besides.)
    fn default() -> Self {
        Self {
            interval: Duration::from_millis(100),
            bytes_per_second: 4 << 30,
            keep_bytes: None,
            worker: Worker::Thread,
            prezero: Prezero::Off,
        }
    }
}

/// Where the memory comes from.
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
    fork: Fork,
    residency: Residency,
    policy: String,
    fast_path: FastPath,
    returns: ReturnPolicy,
    /// CPUs that get arrays. Default: all that can exist.
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
            fork: Fork::Copy,
            residency: Residency::Pageable,
            policy: policy::LINUX_6_12.name.to_owned(),
            fast_path: FastPath::Auto,
            returns: ReturnPolicy::default(),
            array_cpus: None,
        }
    }

    /// Bytes of the pool, a multiple of the backing's page size. Default: 1 GiB. Address space for exactly
    /// this much is mapped; memory is used when pages are touched.
    #[must_use]
    pub fn size(mut self, bytes: usize) -> Self {
        self.bytes = bytes;
        self
    }

    /// Most bytes that may be handed out at any time, caches included. Default: the pool's size.
    #[must_use]
    pub fn capacity(mut self, bytes: usize) -> Self {
        self.capacity = Some(bytes);
        self
    }

    /// The kind of memory. Default: [`Backing::Thp`]. [`Pool::backing`] tells what the system really gave.
    #[must_use]
    pub fn backing(mut self, backing: Backing) -> Self {
        self.backing = backing;
        self
    }

    /// Takes the caller's memory instead of the system's. Nothing of it is unmapped or returned to the system; its
    /// contents count as dirty. When the pool ends, it unlocks, unbinds and shows to children what [`Self::residency`],
    /// [`Self::numa`] and [`Self::fork`] had locked, bound and hidden.
    ///
    /// # Safety
    /// `start` is valid for reads and writes of `bytes` bytes, all initialised, until the pool is dropped, and nobody else uses it meanwhile.
    #[must_use]
    #[expect(unsafe_code, reason = "the caller answers for the region")]
    pub unsafe fn region(mut self, start: NonNull<u8>, bytes: usize) -> Self {
        self.source = Source::Caller(start);
        self.bytes = bytes;
        self.backing = Backing::Plain;
        self
    }

    /// The NUMA nodes. Default: [`Numa::FirstTouch`].
    #[must_use]
    pub fn numa(mut self, numa: Numa) -> Self {
        self.numa = numa;
        self
    }

    /// What children see. Default: [`Fork::Copy`].
    #[must_use]
    pub fn fork(mut self, fork: Fork) -> Self {
        self.fork = fork;
        self
    }

    /// Whether the memory is locked. Default: [`Residency::Pageable`].
    #[must_use]
    pub fn residency(mut self, residency: Residency) -> Self {
        self.residency = residency;
        self
    }

    /// The policy of the core's per-CPU page sets, by name. Default: `linux-6.12`.
    #[must_use]
    pub fn policy(mut self, name: &str) -> Self {
        name.clone_into(&mut self.policy);
        self
    }

    /// How the fast path is protected. Default: [`FastPath::Auto`].
    #[must_use]
    pub fn fast_path(mut self, fast_path: FastPath) -> Self {
        self.fast_path = fast_path;
        self
    }

    /// How idle memory goes back; see [`ReturnPolicy`]'s default.
    #[must_use]
    pub fn returns(mut self, returns: ReturnPolicy) -> Self {
        self.returns = returns;
        self
    }

    /// Builds the pool. Costs some system calls and 10 bytes of address space for each 4 KiB.
    ///
    /// # Errors
    /// See [`BuildError`]; nothing stays mapped.
    pub fn build(self) -> Result<Pool, BuildError> {
        let inner = Arc::new(self.inner()?);
        let background = match self.returns.worker {
            Worker::Thread => Some(
                Background::start(&inner)
                    .map_err(|source| BuildError::System { what: "start the pool's thread", source })?,
            ),
            Worker::None => None,
        };
        Ok(Pool::new(inner, background))
    }

    fn inner(&self) -> Result<Inner, BuildError> {
        let policy =
            Policy::named(&self.policy).ok_or_else(|| BuildError::UnknownPolicy(self.policy.clone()))?;
        let memory = self.map()?;
        let frames = (self.bytes >> PAGE_SHIFT) as u64;
        let system = |what| move |source| BuildError::System { what, source };
        let region = [0..frames];
        let zones =
            [ZoneConfig { kind: ZoneKind::Normal, node: NodeId(0), span: 0..frames, regions: &region }];
        let cpus = vec![NodeId(0); cpu::possible()];
        let mut config = Config::new(&zones, &cpus).with_policy(*policy);
        config.watermark_boost_factor = 0;
        let counts = FrameCounts::for_span(0..frames).ok_or(self.bad_size(PAGE_BYTES))?;
        let core = Core::new(&config, counts)?;
        // A pool keeps no reserve: its users may have every page of it.
        core.allocator().set_watermarks(ZoneId(0), Watermarks::default())?;
        let area = match self.fast_path {
            FastPath::Auto if rseq_wanted() => rseq::area().filter(|_| membarrier::register()),
            FastPath::Auto | FastPath::Locks => None,
        };
        let caps = Caps::for_pool(frames, cpu::usable());
        let array_cpus = self.array_cpus.unwrap_or(cpus.len());
        let set = || ArraySet::new(array_cpus, caps);
        // Without sequences the second set is not used.
        let spare = if area.is_some() { set() } else { ArraySet::new(0, Caps::NONE) };
        let hot = HotPage::new([set(), spare]).map_err(system("map the page of the fast path"))?;
        let (contents, giveback) = match (self.source, self.backing, self.residency) {
            (Source::Caller(_), ..) => (Contents::Unknown, Giveback::Never),
            (_, Backing::Hugetlb(HugePageSize::Gib1), _) | (_, _, Residency::Locked) => {
                (Contents::Zero, Giveback::Never)
            }
            (_, Backing::Memfd, _) => (Contents::Zero, Giveback::PunchHole),
            _ => (Contents::Zero, Giveback::DontNeed),
        };
        let capacity = self.capacity.map_or(frames, |bytes| (bytes >> PAGE_SHIFT) as u64).min(frames);
        Ok(Inner {
            percpu: PerCpu::new(hot, area, caps),
            memory,
            core,
            depot: DepotLock::new(Depot::new(frames as usize, cpus.len(), caps)),
            ledger: Ledger::new(frames as usize, contents),
            capacity: Capacity::new(capacity),
            counts: Counts::default(),
            frames: frames as u32,
            backing: self.backing,
            giveback,
            returns: self.returns,
            drain: parking_lot::Mutex::default(),
            retired: parking_lot::Mutex::default(),
            returning: parking_lot::Mutex::default(),
            populated_blocks: AtomicU32::new(0),
            looks: parking_lot::Mutex::default(),
        })
    }

    fn bad_size(&self, multiple_of: usize) -> BuildError {
        BuildError::BadSize { bytes: self.bytes, multiple_of }
    }

    /// Maps the pool's memory as it was asked for.
    fn map(&self) -> Result<Mapping, BuildError> {
        let multiple_of = match self.backing {
            Backing::Hugetlb(size) => size.bytes(),
            _ => PAGE_BYTES,
        };
        if self.bytes == 0 || !self.bytes.is_multiple_of(multiple_of) || self.bytes > BYTES_MAX {
            return Err(self.bad_size(multiple_of));
        }
        let mut memory = match self.source {
            Source::Caller(start) if start.addr().get().is_multiple_of(POOL_ALIGN) => {
                Mapping::lent(start, self.bytes)
            }
            Source::Caller(_) => return Err(BuildError::UnalignedRegion),
            Source::System => {
                Mapping::new(self.bytes, self.backing).map_err(|source| self.map_error(source))?
            }
        };
        self.place(&mut memory).map_err(|source| BuildError::BadNodes { numa: self.numa, source })?;
        if self.residency == Residency::Locked {
            advice::lock(&mut memory)
                .map_err(|source| BuildError::LockLimit { bytes: self.bytes, source })?;
        }
        if self.fork == Fork::Hide {
            advice::hide_from_children(&mut memory)
                .map_err(|source| BuildError::System { what: "hide the pool from children", source })?;
        }
        Ok(memory)
    }

    /// Decides from which nodes the memory will come.
    fn place(&self, memory: &mut Mapping) -> io::Result<()> {
        let (nodes, how) = match self.numa {
            Numa::FirstTouch => return Ok(()),
            Numa::Bind(node) => {
                (NodeSet::of(node).ok_or(io::Error::from_raw_os_error(libc::EINVAL))?, Binding::Bind)
            }
            Numa::Interleave(nodes) => (NodeSet::of_bits(nodes), Binding::Interleave),
        };
        node::bind(memory, &nodes, how)
    }

    fn map_error(&self, source: io::Error) -> BuildError {
        match self.backing {
            Backing::Hugetlb(size) => {
                let kib = size.bytes() / 1024;
                let path = format!("/sys/kernel/mm/hugepages/hugepages-{kib}kB/free_hugepages");
                let free = std::fs::read_to_string(path).ok().and_then(|text| text.trim().parse().ok());
                let wanted = self.bytes / size.bytes();
                if free.is_none_or(|free: usize| free < wanted) {
                    return BuildError::HugetlbShortage { wanted, free, source };
                }
                BuildError::AddressSpace { bytes: self.bytes, source }
            }
            _ => BuildError::AddressSpace { bytes: self.bytes, source },
        }
    }
}

/// Whether the environment allows restartable sequences.
fn rseq_wanted() -> bool {
    std::env::var_os("PAGESET_RSEQ").is_none_or(|value| value != "0")
}

const _: () = assert!(BLOCK_BYTES == (1 << pageset_core::PAGEBLOCK_ORDER) * PAGE_BYTES);

#[cfg(all(test, not(miri)))]
mod tests {
    use pageset_core::Order;
    use rustix::thread::{CpuSet, sched_setaffinity};

    use super::*;

    /// As if CPUs had appeared that nobody thought possible: their ids are beyond the arrays.
    #[test]
    fn cpus_beyond_the_arrays_use_the_core() {
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
