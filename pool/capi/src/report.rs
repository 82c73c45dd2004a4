//! Reports the counters of a pool, and the memory that the pool really has.

use std::ffi::{c_char, c_int};
use std::io;
use std::mem::MaybeUninit;

use pageset::Backing;

use crate::array::{output, string};
use crate::config::{
    PAGESET_BACKING_HUGETLB, PAGESET_BACKING_HUGETLB_OR_THP, PAGESET_BACKING_MEMFD, PAGESET_BACKING_PLAIN,
    PAGESET_BACKING_THP,
};
use crate::failure::{Failure, NULL_OUTPUT, number};
use crate::memory::own;
use crate::pools::{PoolHandle, open};
use crate::sized::{self, Grows};

/// The state of a pool at one moment. A page has 4 KiB. While other threads use the pool, numbers of pages
/// may be inexact by a few pages.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Stats {
    /// Bytes of this struct that were written.
    pub struct_bytes: usize,
    /// 1.
    pub version: u32,
    /// The largest order of a free block, or -1 if no page is free.
    pub largest_free_order: i32,
    /// Pages that the program has allocated since it made the pool (kernel: pgalloc_normal).
    pub pgalloc: u64,
    /// Pages that the program has freed (kernel: pgfree).
    pub pgfree: u64,
    /// Free pages that are in no array (kernel: nr_free_pages).
    pub nr_free_pages: u64,
    /// Pages in the arrays of the fast path.
    pub nr_array: u64,
    /// Pages that the program holds.
    pub nr_used: u64,
    /// Pages out of service after pageset_resize.
    pub nr_retired: u64,
    /// The most pages that the program and the arrays may have together.
    pub capacity_pages: u64,
    /// How often an array fetched blocks from the allocator behind the arrays.
    pub array_refills: u64,
    /// How often blocks went to the allocator behind the arrays because an array had no room.
    pub array_flushes: u64,
    /// How often the pool emptied the arrays of all CPUs.
    pub array_drains: u64,
    /// The number of restarted sequences, in all pools of the process.
    pub rseq_restarts: u64,
    /// Number of frees that the pool refused late, while the pool emptied an array. The pool refuses a free
    /// late if two threads freed the same pages at the same moment.
    pub bad_frees: u64,
    /// Bytes that allocations of zeroed memory have cleared.
    pub cleared_bytes: u64,
    /// Bytes that the pool has cleared in idle time.
    pub prezeroed_bytes: u64,
    /// Bytes that the pool gave back to the system.
    pub returned_bytes: u64,
    /// Bytes that the pool gave back to the system and used again later.
    pub refaulted_bytes: u64,
    /// Nanoseconds that the pool spent to give memory back to the system.
    pub return_time_ns: u64,
    /// Bytes of mapped metadata, without the C library's own table of 2 bytes for each page. Only the used
    /// part of the metadata is resident.
    pub metadata_bytes: u64,
    /// How often a drain failed because the system refused membarrier(2). The system refuses membarrier(2) if
    /// a filter of system calls was installed after the pool was made. While drains fail, pages in arrays
    /// neither form larger blocks nor go back to the system.
    pub array_drains_refused: u64,
}

// SAFETY: the struct has C's layout, and begins with its size and version. All fields are numbers.
unsafe impl Grows for Stats {
    const NAME: &'static str = "pageset_stats";

    fn head(&mut self) -> (&mut usize, &mut u32) {
        (&mut self.struct_bytes, &mut self.version)
    }
}

/// The pool's memory as the kernel accounts for it, in bytes.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct BackingReport {
    /// Bytes of this struct that were written.
    pub struct_bytes: usize,
    /// 1.
    pub version: u32,
    /// The requested backing: PAGESET_BACKING_...
    pub asked: u32,
    /// Mapped bytes: the pool's size.
    pub mapped_bytes: u64,
    /// Bytes that are resident now.
    pub resident_bytes: u64,
    /// Bytes that are resident in huge pages, transparent or hugetlb.
    pub huge_bytes: u64,
    /// Bytes that are resident in pages of 4 KiB.
    pub small_bytes: u64,
    /// Bytes that are locked in memory.
    pub locked_bytes: u64,
    /// The page size of the mapping. For a pool with PAGESET_BACKING_HUGETLB_OR_THP, page_bytes tells which
    /// backing the pool got. A size of 4096 means transparent huge pages, which do not change a mapping's
    /// page size.
    pub page_bytes: u64,
}

// SAFETY: the struct has C's layout, and begins with its size and version. All fields are numbers.
unsafe impl Grows for BackingReport {
    const NAME: &'static str = "pageset_backing";

    fn head(&mut self) -> (&mut usize, &mut u32) {
        (&mut self.struct_bytes, &mut self.version)
    }
}

/// Memory of one NUMA node.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct NodeMemory {
    /// Bytes of the pool that are resident on the node.
    pub resident_bytes: u64,
    /// The node.
    pub node: u32,
    /// 0.
    pub reserved: u32,
}

/// Reads the counters and gauges of the pool. Pass sizeof(pageset_stats) as struct_bytes.
///
/// Errors: EINVAL (stats is NULL, or struct_bytes is too small), EBADF, EPERM.
#[unsafe(no_mangle)]
pub extern "C" fn pageset_get_stats(pool: *mut PoolHandle, stats: *mut Stats, struct_bytes: usize) -> c_int {
    number(move || {
        let now = own(pool)?.pool.stats();
        let largest_free_order = now.largest_free_order.map_or(-1, |order| i32::from(order.get()));
        let report = Stats {
            struct_bytes: 0,
            version: sized::VERSION,
            largest_free_order,
            pgalloc: now.pgalloc,
            pgfree: now.pgfree,
            nr_free_pages: now.nr_free_pages,
            nr_array: now.nr_array,
            nr_used: now.nr_used,
            nr_retired: now.nr_retired,
            capacity_pages: now.capacity_pages,
            array_refills: now.array_refills,
            array_flushes: now.array_flushes,
            array_drains: now.array_drains,
            rseq_restarts: now.rseq_restarts,
            bad_frees: now.bad_frees,
            cleared_bytes: now.cleared_bytes,
            prezeroed_bytes: now.prezeroed_bytes,
            returned_bytes: now.returned_bytes,
            refaulted_bytes: now.refaulted_bytes,
            return_time_ns: u64::try_from(now.return_time.as_nanos()).unwrap_or(u64::MAX),
            metadata_bytes: now.metadata_bytes,
            array_drains_refused: now.array_drains_refused,
        };
        sized::write(stats, struct_bytes, report)
    })
}

/// Reads a counter of the allocator behind the arrays by its name: "adopted", "claimed", "published",
/// "closed", "settled", "rescued", "fallbacks", "retyped", "double_frees", "damaged", "line_transfers",
/// "contended_lines", "below_low", "failed". The book's page on the C library explains these counters.
///
/// Errors: ENOENT (no counter has this name), EINVAL (name or value is NULL), EBADF, EPERM.
#[unsafe(no_mangle)]
pub extern "C" fn pageset_get_counter(
    pool: *mut PoolHandle,
    name: *const c_char,
    value: Option<&mut MaybeUninit<u64>>,
) -> c_int {
    number(move || {
        let value = value.ok_or(NULL_OUTPUT)?;
        let stats = own(pool)?.pool.stats();
        let name = string(name)?;
        let found = stats.base.named().find(|(counter, _)| counter.as_bytes() == name.to_bytes());
        let unknown = || Failure::with_text(libc::ENOENT, format_args!("no counter is called {name:?}"));
        value.write(found.ok_or_else(unknown)?.1 as u64);
        Ok(())
    })
}

/// Reports the memory that the pool really has. Pass sizeof(pageset_backing) as struct_bytes. The call reads
/// /proc/self/smaps, so it takes time in proportion to the process's mappings. In a child of fork, the call
/// reports the child's own memory.
///
/// Errors: ENOSYS (/proc cannot be read), ENOMEM (the heap is exhausted), EINVAL (backing is NULL, or
/// struct_bytes is too small), EBADF.
#[unsafe(no_mangle)]
pub extern "C" fn pageset_get_backing(
    pool: *mut PoolHandle,
    backing: *mut BackingReport,
    struct_bytes: usize,
) -> c_int {
    number(move || {
        let now = backing_of(pool)?;
        let report = BackingReport {
            struct_bytes: 0,
            version: sized::VERSION,
            asked: match now.asked {
                Backing::Thp => PAGESET_BACKING_THP,
                Backing::Hugetlb(_) => PAGESET_BACKING_HUGETLB,
                Backing::HugetlbOrThp(_) => PAGESET_BACKING_HUGETLB_OR_THP,
                Backing::Memfd => PAGESET_BACKING_MEMFD,
                Backing::Plain => PAGESET_BACKING_PLAIN,
                // The library makes no pool with any other backing.
                _ => return Err(UNKNOWN_BACKING),
            },
            mapped_bytes: now.mapped_bytes,
            resident_bytes: now.resident_bytes,
            huge_bytes: now.huge_bytes,
            small_bytes: now.small_bytes,
            locked_bytes: now.locked_bytes,
            page_bytes: now.page_bytes,
        };
        sized::write(backing, struct_bytes, report)
    })
}

/// Reports the pool's resident memory for each node. Writes at most nodes_max entries. *count is the number
/// of all nodes that have memory of the pool. *count may be more than nodes_max, and is 0 if the kernel does
/// not tell the nodes of memory.
///
/// Errors: ENOSYS (/proc cannot be read), ENOMEM (the heap is exhausted), EINVAL (count is NULL, or nodes is
/// NULL and nodes_max is not 0), EBADF.
#[unsafe(no_mangle)]
pub extern "C" fn pageset_get_nodes(
    pool: *mut PoolHandle,
    nodes: *mut NodeMemory,
    nodes_max: usize,
    count: Option<&mut MaybeUninit<usize>>,
) -> c_int {
    number(move || {
        let count = count.ok_or(NULL_OUTPUT)?;
        let now = backing_of(pool)?.nodes;
        for (to, (node, resident_bytes)) in output(nodes, nodes_max)?.iter_mut().zip(&now) {
            to.write(NodeMemory { resident_bytes: *resident_bytes, node: u32::from(*node), reserved: 0 });
        }
        count.write(now.len());
        Ok(())
    })
}

fn backing_of(pool: *mut PoolHandle) -> Result<pageset::BackingReport, Failure> {
    open(pool)?.pool.backing().map_err(|error| match error.kind() {
        io::ErrorKind::OutOfMemory => Failure::new(libc::ENOMEM, "no memory for the list of nodes"),
        _ => NO_PROC,
    })
}

const UNKNOWN_BACKING: Failure =
    Failure::new(libc::ENOTSUP, "the pool's backing has no PAGESET_BACKING_... yet: update libpageset");

const NO_PROC: Failure =
    Failure::new(libc::ENOSYS, "/proc/self/smaps is not there: mount /proc to see what memory the pool has");
