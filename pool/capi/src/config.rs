//! The configuration of a pool.

use std::ffi::{c_int, c_void};
use std::ptr::{self, NonNull};
use std::time::Duration;

use pageset::{
    Backing, Builder, FastPath, Fork, HugePageSize, Numa, Pool, Prezero, Residency, ReturnPolicy, Worker,
};

use crate::failure::{Failure, number};
use crate::sized::{self, Grows};

/// Number of bytes of a page. A page is a block of order 0.
pub const PAGESET_PAGE_BYTES: usize = 4096;
/// The largest order: a block of 4 MiB.
pub const PAGESET_MAX_ORDER: u32 = 10;
/// Number of pages of the largest block. pageset_alloc_exact also allocates longer runs.
pub const PAGESET_MAX_PAGE_COUNT: usize = 1024;
/// The largest number of pools that a process may have at a time.
pub const PAGESET_MAX_POOLS: usize = 4096;

/// Private memory, in transparent huge pages where the system has them.
pub const PAGESET_BACKING_THP: u32 = 0;
/// Huge pages of huge_page_bytes each that the administrator reserved. pageset_create takes all huge pages of
/// the pool. The pages belong to a file: see pageset_get_memfd.
pub const PAGESET_BACKING_HUGETLB: u32 = 1;
/// A file in memory, which other processes can share: see pageset_get_memfd.
pub const PAGESET_BACKING_MEMFD: u32 = 2;
/// Private memory in pages of 4 KiB.
pub const PAGESET_BACKING_PLAIN: u32 = 3;
/// PAGESET_BACKING_HUGETLB if the system has enough hugetlb pages for the whole pool, otherwise
/// PAGESET_BACKING_THP. The pool also gets PAGESET_BACKING_THP if any other error prevents hugetlb, or if
/// fork is neither PAGESET_FORK_HIDE nor PAGESET_FORK_COPY. page_bytes of pageset_get_backing tells which of
/// the two backings the pool got. With PAGESET_BACKING_HUGETLB, children of fork share the parent's pages.
pub const PAGESET_BACKING_HUGETLB_OR_THP: u32 = 4;

/// Each page comes from the node of the CPU that first touches the page.
pub const PAGESET_NUMA_FIRST_TOUCH: u32 = 0;
/// Memory comes from numa_node only.
pub const PAGESET_NUMA_BIND: u32 = 1;
/// Memory comes from each node of numa_nodes in turn.
pub const PAGESET_NUMA_INTERLEAVE: u32 = 2;

/// A child of fork sees a copy of the pages. The pages of a memfd and of hugetlb are not copied: the child
/// shares these pages with its parent.
pub const PAGESET_FORK_COPY: u32 = 0;
/// A child of fork does not see the pages, and the fork is faster.
pub const PAGESET_FORK_HIDE: u32 = 1;
/// A child of fork sees a copy, as with PAGESET_FORK_COPY. When the parent has ended, the child may become
/// the pool's owner by pageset_take_over. The pool's memory must be private and not locked.
pub const PAGESET_FORK_HAND_OVER: u32 = 2;

/// The memory may be swapped out.
pub const PAGESET_RESIDENCY_PAGEABLE: u32 = 0;
/// pageset_create makes all memory of the pool resident, and locks it. The pool gives no memory back to the
/// system.
pub const PAGESET_RESIDENCY_LOCKED: u32 = 1;

/// Restartable sequences if the system has them and the environment variable PAGESET_RSEQ is not 0, otherwise
/// locks.
pub const PAGESET_FAST_PATH_AUTO: u32 = 0;
/// A lock for each CPU. Only a thread that empties the arrays of all CPUs waits for a CPU's lock.
pub const PAGESET_FAST_PATH_LOCKS: u32 = 1;

/// A thread of the pool gives idle memory back to the system, and sleeps while no memory is idle.
pub const PAGESET_WORKER_THREAD: u32 = 0;
/// The pool has no thread. The program calls pageset_tick.
pub const PAGESET_WORKER_NONE: u32 = 1;

/// The value of keep_bytes that stands for 2 % of the pool, at most 32 MiB.
pub const PAGESET_KEEP_DEFAULT: u64 = u64::MAX;

/// The configuration of a pool. pageset_config_init fills a configuration with the defaults. Each field's
/// description ends with its default, in parentheses.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Config {
    /// The value of sizeof(pageset_config) when the program was built.
    pub struct_bytes: usize,
    /// 1.
    pub version: u32,
    /// PAGESET_BACKING_... (THP)
    pub backing: u32,
    /// Bytes of the pool: a multiple of 4096, or of the huge page size, and at most 4 TiB. (1 GiB)
    pub bytes: usize,
    /// The most bytes that the program and the pool's caches may have together, rounded down to pages of 4096
    /// bytes. 0 stands for the pool's size. With 1 to 4095, every allocation fails. (0)
    pub capacity_bytes: usize,
    /// Bytes of a huge page if backing is PAGESET_BACKING_HUGETLB or PAGESET_BACKING_HUGETLB_OR_THP: 2 MiB or
    /// 1 GiB. (2 MiB)
    pub huge_page_bytes: usize,
    /// The program's own memory, which the pool uses instead of the system's memory. The region has `bytes`
    /// bytes and is aligned to 4 MiB. Until the pool is destroyed, only the pool may use the region. With a
    /// region, `backing` is ignored. NULL stands for memory of the system. (NULL)
    pub region: *mut c_void,
    /// The nodes, if numa is PAGESET_NUMA_INTERLEAVE. Bit n stands for node n. (0)
    pub numa_nodes: u64,
    /// PAGESET_NUMA_... (FIRST_TOUCH)
    pub numa: u32,
    /// The node, if numa is PAGESET_NUMA_BIND. (0)
    pub numa_node: u32,
    /// PAGESET_FORK_... (COPY)
    pub fork: u32,
    /// PAGESET_RESIDENCY_... (PAGEABLE)
    pub residency: u32,
    /// PAGESET_FAST_PATH_... (AUTO)
    pub fast_path: u32,
    /// PAGESET_WORKER_... (THREAD)
    pub worker: u32,
    /// Nanoseconds between two scans for idle memory. A pageblock of 2 MiB goes back when two scans in a row
    /// found the pageblock free. (100 ms)
    pub return_interval_ns: u64,
    /// The most bytes of whole pageblocks that the pool gives back to the system in one second. Each scan may
    /// give back at least one pageblock. A second limit of the same size applies to parts of pageblocks (see
    /// part_bytes). (4 GiB)
    pub return_bytes_per_second: u64,
    /// The bytes of whole free pageblocks that scans leave resident, or PAGESET_KEEP_DEFAULT.
    /// (PAGESET_KEEP_DEFAULT)
    pub keep_bytes: u64,
    /// The most free pageblocks of 2 MiB that each scan clears, so that pageset_alloc_zeroed need not clear
    /// these pageblocks. (0)
    pub prezero_blocks: u32,
    /// With 1, every address keeps its page until the pool is destroyed, and the pool gives no memory back to
    /// the system. Use 1 if you register the whole pool: as buffers of io_uring, or memory of RDMA, AF_XDP,
    /// vhost or VFIO. Otherwise use 0. (0)
    pub pinned: u32,
    /// Scans give back parts of at least this number of contiguous free bytes, although other pages of the
    /// pageblock are in use. With 4096, scans give back single pages. With 0, scans give back no parts. To
    /// give a part back costs about a microsecond. Each page that went back costs a page fault at its next
    /// use. (0)
    pub part_bytes: u64,
    /// A function of the program that frees pages, for example by evicting from a cache. An allocation that
    /// finds no memory, or no capacity, calls on_shortage. The allocating thread passes shortage_context and
    /// the number of wanted bytes. The thread holds no lock of the pool, so on_shortage may call the pool. If
    /// on_shortage returns another number than 0, the allocation tries again. on_shortage must return 0 if it
    /// has freed nothing. Allocations inside of on_shortage, also from other pools, may fail, and do not call
    /// on_shortage. on_shortage must not wait for a lock that its thread holds during an allocation, because
    /// the wait would never end. on_shortage must return, without longjmp or a C++ exception. (NULL)
    pub on_shortage: ShortageCallback,
    /// The first argument of on_shortage. (NULL)
    pub shortage_context: *mut c_void,
}

/// The type of pageset_config's on_shortage.
pub type ShortageCallback = Option<extern "C" fn(context: *mut c_void, bytes: usize) -> c_int>;

// SAFETY: the struct has C's layout, and begins with its size and version. The other fields are numbers, raw
// pointers, and a function that may be NULL. By the header, C promises that the function is valid.
unsafe impl Grows for Config {
    const NAME: &'static str = "pageset_config";

    fn head(&mut self) -> (&mut usize, &mut u32) {
        (&mut self.struct_bytes, &mut self.version)
    }
}

/// Fills *config with the defaults. Pass sizeof(pageset_config) as struct_bytes.
///
/// Errors: EINVAL (config is NULL, or struct_bytes is smaller than the first two fields), E2BIG.
#[unsafe(no_mangle)]
pub extern "C" fn pageset_config_init(config: *mut Config, struct_bytes: usize) -> c_int {
    number(|| sized::fill(config, struct_bytes, Config::default()))
}

impl Default for Config {
    fn default() -> Self {
        let returns = ReturnPolicy::default();
        Self {
            struct_bytes: size_of::<Self>(),
            version: sized::VERSION,
            backing: PAGESET_BACKING_THP,
            bytes: 1 << 30,
            capacity_bytes: 0,
            huge_page_bytes: HugePageSize::Mib2.bytes(),
            region: ptr::null_mut(),
            numa_nodes: 0,
            numa: PAGESET_NUMA_FIRST_TOUCH,
            numa_node: 0,
            fork: PAGESET_FORK_COPY,
            residency: PAGESET_RESIDENCY_PAGEABLE,
            fast_path: PAGESET_FAST_PATH_AUTO,
            worker: PAGESET_WORKER_THREAD,
            return_interval_ns: returns.interval.as_nanos() as u64,
            return_bytes_per_second: returns.bytes_per_second,
            keep_bytes: PAGESET_KEEP_DEFAULT,
            prezero_blocks: 0,
            pinned: 0,
            part_bytes: 0,
            on_shortage: None,
            shortage_context: ptr::null_mut(),
        }
    }
}

/// The error for a field with an impossible value.
fn bad<T>(field: &str, value: impl std::fmt::Display, wanted: &str) -> Result<T, Failure> {
    Err(Failure::with_text(libc::EINVAL, format_args!("pageset_config: {field} is {value}, not {wanted}")))
}

impl Config {
    /// Reads the configuration of a program. NULL stands for the defaults.
    pub(crate) fn read(at: *const Self) -> Result<Self, Failure> {
        if at.is_null() { Ok(Self::default()) } else { sized::read(at, Self::default()) }
    }

    /// The builder with this configuration.
    pub(crate) fn builder(&self) -> Result<Builder, Failure> {
        let mut builder = Pool::builder()
            .size(self.bytes)
            .backing(self.backing()?)
            .numa(self.numa()?)
            .residency(self.residency()?)
            .fast_path(self.fast_path()?)
            .returns(self.returns()?);
        if let Some(fork) = self.fork()? {
            builder = builder.fork(fork);
        }
        builder = match self.pinned {
            0 => builder,
            1 => builder.pinned(),
            other => return bad("pinned", other, "0 or 1"),
        };
        if let Some(call) = self.on_shortage {
            // Keep the pointer as a number, because other threads pass the pointer to the function too. Only
            // the program reads the memory behind the pointer.
            let context = self.shortage_context.expose_provenance();
            builder =
                builder.on_shortage(move |bytes| call(ptr::with_exposed_provenance_mut(context), bytes) != 0);
        }
        if self.capacity_bytes != 0 {
            builder = builder.capacity(self.capacity_bytes);
        }
        if let Some(region) = NonNull::new(self.region) {
            // SAFETY: the header makes the caller promise the contract of `region`.
            builder = unsafe { builder.region(region.cast(), self.bytes) };
        }
        Ok(builder)
    }

    fn backing(&self) -> Result<Backing, Failure> {
        let huge_page = |bytes| match bytes {
            bytes if bytes == HugePageSize::Mib2.bytes() => Ok(HugePageSize::Mib2),
            bytes if bytes == HugePageSize::Gib1.bytes() => Ok(HugePageSize::Gib1),
            bytes => bad("huge_page_bytes", bytes, "2097152 or 1073741824"),
        };
        match self.backing {
            PAGESET_BACKING_THP => Ok(Backing::Thp),
            PAGESET_BACKING_HUGETLB => huge_page(self.huge_page_bytes).map(Backing::Hugetlb),
            PAGESET_BACKING_HUGETLB_OR_THP => huge_page(self.huge_page_bytes).map(Backing::HugetlbOrThp),
            PAGESET_BACKING_MEMFD => Ok(Backing::Memfd),
            PAGESET_BACKING_PLAIN => Ok(Backing::Plain),
            other => bad("backing", other, "a PAGESET_BACKING_..."),
        }
    }

    fn numa(&self) -> Result<Numa, Failure> {
        match self.numa {
            PAGESET_NUMA_FIRST_TOUCH => Ok(Numa::FirstTouch),
            PAGESET_NUMA_BIND => match u16::try_from(self.numa_node) {
                Ok(node) => Ok(Numa::Bind(node)),
                Err(_) => bad("numa_node", self.numa_node, "a node"),
            },
            PAGESET_NUMA_INTERLEAVE => Ok(Numa::Interleave(self.numa_nodes)),
            other => bad("numa", other, "a PAGESET_NUMA_..."),
        }
    }

    /// How children of `fork` see the memory. `None` for the backing's default.
    fn fork(&self) -> Result<Option<Fork>, Failure> {
        match self.fork {
            PAGESET_FORK_COPY => Ok(None),
            PAGESET_FORK_HIDE => Ok(Some(Fork::Hide)),
            PAGESET_FORK_HAND_OVER => Ok(Some(Fork::HandOver)),
            other => bad("fork", other, "a PAGESET_FORK_..."),
        }
    }

    fn residency(&self) -> Result<Residency, Failure> {
        match self.residency {
            PAGESET_RESIDENCY_PAGEABLE => Ok(Residency::Pageable),
            PAGESET_RESIDENCY_LOCKED => Ok(Residency::Locked),
            other => bad("residency", other, "a PAGESET_RESIDENCY_..."),
        }
    }

    fn fast_path(&self) -> Result<FastPath, Failure> {
        match self.fast_path {
            PAGESET_FAST_PATH_AUTO => Ok(FastPath::Auto),
            PAGESET_FAST_PATH_LOCKS => Ok(FastPath::Locks),
            other => bad("fast_path", other, "a PAGESET_FAST_PATH_..."),
        }
    }

    pub(crate) fn returns(&self) -> Result<ReturnPolicy, Failure> {
        if self.return_interval_ns == 0 {
            return bad("return_interval_ns", 0, "1 or more");
        }
        let mut returns = ReturnPolicy::default();
        returns.interval = Duration::from_nanos(self.return_interval_ns);
        returns.bytes_per_second = self.return_bytes_per_second;
        returns.keep_bytes = (self.keep_bytes != PAGESET_KEEP_DEFAULT).then_some(self.keep_bytes);
        returns.worker = match self.worker {
            PAGESET_WORKER_THREAD => Worker::Thread,
            PAGESET_WORKER_NONE => Worker::None,
            other => return bad("worker", other, "a PAGESET_WORKER_..."),
        };
        returns.prezero = match self.prezero_blocks {
            0 => Prezero::Off,
            blocks => Prezero::Blocks(blocks),
        };
        returns.part_bytes = self.part_bytes;
        Ok(returns)
    }
}
