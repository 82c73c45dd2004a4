//! Makes the pool a Python object.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::os::fd::{AsRawFd, RawFd};
use std::sync::Arc;
use std::thread::{available_parallelism, sleep};
use std::time::{Duration, Instant};

use pageset::{AllocError, Backing, Fork, HugePageSize, Numa, Order, PAGE_BYTES, Prezero, Residency, Worker};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::error::{bad_number, out_of_memory, raised, refused};
use crate::number::Whole;
use crate::pages::Pages;
use crate::work::{Interrupted, run};

/// A pool that hands out pages of 4 KiB to 4 MiB. Each CPU has a cache of pages, huge pages back the pool,
/// and idle memory goes back to the system unless the pool is `pinned`.
///
/// The memory stays until neither the pool nor any of its pages exist any more. A child of a fork may read
/// the pages, but in the child most calls on the pool and its pages raise an exception.
#[pyclass(frozen, module = "pageset")]
pub(crate) struct Pool(Arc<pageset::Pool>);

#[pymethods]
impl Pool {
    #[new]
    #[pyo3(
        signature = (
            size=Whole(1 << 30), *, capacity=None, backing="thp", node=None, interleave=None, fork=None, locked=false,
            pinned=false, returns=None
        ),
        text_signature = "(size=1073741824, *, capacity=None, backing='thp', node=None, interleave=None, fork=None, locked=False, pinned=False, returns=None)"
    )]
    #[expect(clippy::too_many_arguments, reason = "Python names them")]
    fn new(
        py: Python<'_>,
        size: Whole<usize>,
        capacity: Option<Whole<usize>>,
        backing: &str,
        node: Option<Whole<u16>>,
        interleave: Option<Vec<Whole<u16>>>,
        fork: Option<&str>,
        locked: bool,
        pinned: bool,
        returns: Option<&ReturnPolicy>,
    ) -> PyResult<Self> {
        let backing = named_backing(backing)?;
        let numa = numa_of(node, interleave)?;
        let fork = fork.map(named_fork).transpose()?;
        let returns = returns.map_or_else(Default::default, |returns| returns.0);
        let build = || {
            let mut builder =
                pageset::Pool::builder().size(size.0).backing(backing).numa(numa).returns(returns);
            if let Some(Whole(capacity)) = capacity {
                builder = builder.capacity(capacity);
            }
            if let Some(fork) = fork {
                builder = builder.fork(fork);
            }
            if locked {
                builder = builder.residency(Residency::Locked);
            }
            if pinned {
                builder = builder.pinned();
            }
            builder.build().map_err(|error| format!("{:#}", anyhow::Error::from(error)))
        };
        let pool = py.detach(build).map_err(refused)?;
        Ok(Self(Arc::new(pool)))
    }

    /// The size of the pool, in bytes.
    #[getter]
    fn size(&self) -> usize {
        self.0.page_count() * PAGE_BYTES
    }

    /// The number of pages of 4 KiB in the pool.
    #[getter]
    fn page_count(&self) -> usize {
        self.0.page_count()
    }

    /// The address of the pool's first byte, for a registration with a device. A page's `offset` is its
    /// distance from this address.
    #[getter]
    fn start(&self) -> usize {
        self.0.start().addr()
    }

    /// The file descriptor of a pool whose backing is `memfd` or hugetlb. The pool closes the descriptor at
    /// the pool's end. Another process can map pages of the file by their `offset`, but must map whole huge
    /// pages of a hugetlb file. The other process must not change free pages.
    fn fileno(&self) -> PyResult<RawFd> {
        file_of(&self.0).ok_or_else(|| refused("only a pool whose backing is memfd or hugetlb has a file"))
    }

    /// Whether the pool's fast path uses restartable sequences.
    #[getter]
    fn uses_rseq(&self) -> bool {
        self.0.uses_rseq()
    }

    /// Allocates a block of `2**order` pages, aligned to its size. The order is 0 to 10. With `zeroed`, all
    /// bytes are zero. Without `zeroed`, the contents are unspecified.
    ///
    /// If no block of this order is free, the call collects garbage, because reference cycles may hold pages.
    /// After the collection, the call waits up to `timeout` seconds until another thread frees enough pages.
    #[pyo3(
        signature = (order=Whole(0), *, zeroed=false, timeout=None),
        text_signature = "($self, order=0, *, zeroed=False, timeout=None)"
    )]
    fn alloc(
        &self,
        py: Python<'_>,
        order: Whole<u64>,
        zeroed: bool,
        timeout: Option<f64>,
    ) -> PyResult<Pages> {
        let order = order_of(order)?;
        if !zeroed && let Ok(block) = self.0.alloc(order) {
            return Ok(Pages::new(block.into_owned(&self.0)));
        }
        self.waited(py, timeout, || if zeroed { self.0.alloc_zeroed(order) } else { self.0.alloc(order) })
    }

    /// Allocates exactly `count` contiguous pages, up to the whole pool.
    #[pyo3(signature = (count, *, timeout=None), text_signature = "($self, count, *, timeout=None)")]
    fn alloc_exact(&self, py: Python<'_>, count: Whole<usize>, timeout: Option<f64>) -> PyResult<Pages> {
        self.waited(py, timeout, || self.0.alloc_exact(count.0))
    }

    /// Allocates contiguous `nbytes`, rounded up to pages, up to the whole pool. The address of the pages is
    /// a multiple of `align` bytes, a power of two.
    #[pyo3(
        signature = (nbytes, *, align=Whole(PAGE_BYTES), zeroed=false, timeout=None),
        text_signature = "($self, nbytes, *, align=4096, zeroed=False, timeout=None)"
    )]
    fn alloc_run(
        &self,
        py: Python<'_>,
        nbytes: Whole<usize>,
        align: Whole<usize>,
        zeroed: bool,
        timeout: Option<f64>,
    ) -> PyResult<Pages> {
        let (Whole(bytes), Whole(align)) = (nbytes, align);
        self.waited(py, timeout, || match zeroed {
            true => self.0.alloc_run_aligned_zeroed(bytes, align),
            false => self.0.alloc_run_aligned(bytes, align),
        })
    }

    /// Allocates 1 GiB that begins at a multiple of 1 GiB from the pool's start.
    #[pyo3(signature = (*, timeout=None), text_signature = "($self, *, timeout=None)")]
    fn alloc_gib(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<Pages> {
        self.waited(py, timeout, || self.0.alloc_gib())
    }

    /// Allocates the block of `2**order` pages that begins `page` pages after the pool's start, if all its
    /// pages are free. If some pages are not free, empties all caches and tries again.
    #[pyo3(signature = (page, order=Whole(0)), text_signature = "($self, page, order=0)")]
    fn alloc_at(&self, py: Python<'_>, page: Whole<usize>, order: Whole<u64>) -> PyResult<Pages> {
        let order = order_of(order)?;
        let pages = py.detach(|| self.0.alloc_at(page.0, order)).map_err(not_allocated)?;
        Ok(Pages::new(pages.into_owned(&self.0)))
    }

    /// Allocates `count` single pages. Returns fewer pages if no more pages are free, even after the call has
    /// collected garbage. Waits up to `timeout` seconds for the first page.
    #[pyo3(signature = (count, *, timeout=None), text_signature = "($self, count, *, timeout=None)")]
    fn alloc_bulk(&self, py: Python<'_>, count: Whole<usize>, timeout: Option<f64>) -> PyResult<Vec<Pages>> {
        let Whole(count) = count;
        let mut pages = Vec::new();
        let outcome = py.detach(|| self.0.alloc_bulk(count, &mut pages));
        if !is_short(&outcome) {
            outcome.map_err(not_allocated)?;
        }
        let mut pages: Vec<Pages> =
            pages.into_iter().map(|page| Pages::new(page.into_owned(&self.0))).collect();
        if pages.len() < count {
            if pages.is_empty() {
                pages.push(self.waited(py, timeout, || self.0.alloc(Order::ZERO))?);
            } else {
                py.import("gc")?.call_method0("collect")?;
            }
            let mut more = Vec::new();
            // An error of `alloc_bulk` means only that no further page is free. The caller gets the pages
            // that were allocated before.
            let _ = py.detach(|| self.0.alloc_bulk(count - pages.len(), &mut more));
            pages.extend(more.into_iter().map(|page| Pages::new(page.into_owned(&self.0))));
        }
        Ok(pages)
    }

    /// Counters and gauges of the pool.
    fn stats(&self, py: Python<'_>) -> PyResult<PoolStats> {
        self.check_process()?;
        Ok(py.detach(|| PoolStats::of(&self.0)))
    }

    /// The pool's memory as the kernel accounts for it, in bytes. `nodes` has the resident bytes of each NUMA
    /// node.
    fn backing<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        self.check_process()?;
        let report = py.detach(|| self.0.backing()).map_err(|error| raised(error.into()))?;
        let backing = PyDict::new(py);
        for (key, bytes) in [
            ("mapped_bytes", report.mapped_bytes),
            ("resident_bytes", report.resident_bytes),
            ("huge_bytes", report.huge_bytes),
            ("small_bytes", report.small_bytes),
            ("locked_bytes", report.locked_bytes),
            ("page_bytes", report.page_bytes),
        ] {
            backing.set_item(key, bytes)?;
        }
        backing.set_item("nodes", report.nodes.into_iter().collect::<BTreeMap<u16, u64>>())?;
        Ok(backing)
    }

    /// Gives free memory back to the system now: whole pageblocks, and free parts of 64 KiB or more. Returns
    /// the number of bytes that the call gave back.
    fn trim(&self, py: Python<'_>) -> PyResult<u64> {
        self.check_process()?;
        Ok(py.detach(|| self.0.trim()).returned_bytes)
    }

    /// Asks the system to replace the pool's small pages by huge pages, also for `memfd`. Contents do not
    /// change. Returns the number of bytes that are now in huge pages. Unless the pool is hugetlb, the result
    /// is 0 before Linux 6.1, and for a pinned pool.
    fn collapse(&self, py: Python<'_>) -> PyResult<u64> {
        self.check_process()?;
        Ok(py.detach(|| self.0.collapse()))
    }

    /// Makes the first `size` bytes of the pool resident until the next `trim`. Without `size`, makes the
    /// whole pool resident. Uses `threads` threads, or by default one for each CPU that the process may use.
    /// Contents do not change. Returns the number of bytes that this call made resident.
    #[pyo3(
        signature = (size=None, *, threads=None, progress=None),
        text_signature = "($self, size=None, *, threads=None, progress=None)"
    )]
    fn populate(
        &self,
        py: Python<'_>,
        size: Option<Whole<usize>>,
        threads: Option<Whole<usize>>,
        progress: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<usize> {
        self.check_process()?;
        let threads = match threads {
            Some(Whole(threads)) => {
                NonZeroUsize::new(threads).ok_or_else(|| refused("threads is 0: use 1 or more"))?
            }
            None => available_parallelism().unwrap_or(NonZeroUsize::MIN),
        };
        let size = size.map_or(self.size(), |Whole(size)| size.min(self.size()));
        let pool = Arc::clone(&self.0);
        run(py, progress, Interrupted::LeftAlone, move |watch| {
            watch.begin("populating", Some(size as u64));
            let mut done_bytes = 0;
            pool.populate(size, threads, |moved| {
                done_bytes = moved.done_bytes;
                watch.show(done_bytes as u64);
                if watch.is_cancelled() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            })?;
            Ok(done_bytes)
        })
    }

    /// Scans once for idle memory, as the pool's own thread does ten times a second by default. Gives
    /// pageblocks that two scans in a row found free back to the system. Returns the number of bytes that the
    /// call gave back.
    fn tick(&self, py: Python<'_>) -> PyResult<u64> {
        self.check_process()?;
        Ok(py.detach(|| self.0.tick()).returned_bytes)
    }

    /// Takes free memory out of service until at most `size` bytes are in service. With a larger `size`, puts
    /// memory back into service, up to the size that the pool was built with. Returns the number of bytes in
    /// service. The result is more than `size` if too little memory is free.
    fn resize(&self, py: Python<'_>, size: Whole<usize>) -> PyResult<usize> {
        self.check_process()?;
        Ok(py.detach(|| self.0.resize(size.0)))
    }

    /// Limits the bytes that users and the pool's caches may have together. For a pool that can grow, build a
    /// larger pool with a smaller capacity, and raise the capacity later.
    fn set_capacity(&self, size: Whole<usize>) -> PyResult<()> {
        self.check_process()?;
        self.0.set_capacity(size.0);
        Ok(())
    }

    /// Sets the policy for idle memory. The new policy applies from the next scan on. With `thread`, the call
    /// starts the pool's thread if the pool has none and there is work for it. Without `thread`, the call
    /// ends the thread.
    fn set_returns(&self, py: Python<'_>, returns: &ReturnPolicy) -> PyResult<()> {
        self.check_process()?;
        Ok(py.detach(|| self.0.set_returns(returns.0))?)
    }

    /// Pins or unpins the pool. When this call has returned, a pinned pool keeps the page behind every
    /// address.
    fn set_pinned(&self, py: Python<'_>, pinned: bool) -> PyResult<()> {
        self.check_process()?;
        py.detach(|| self.0.set_pinned(pinned));
        Ok(())
    }

    /// Makes a child of `os.fork()` the owner of its parent's pool, when the parent has ended. Waits up to
    /// `timeout` seconds for the end of the parent. Use this call in a program that becomes a daemon, for a
    /// pool with `fork="hand-over"`.
    #[pyo3(signature = (*, timeout=1.0), text_signature = "($self, *, timeout=1.0)")]
    fn take_over(&self, py: Python<'_>, timeout: f64) -> PyResult<()> {
        let wait = Duration::try_from_secs_f64(timeout)
            .map_err(|_| bad_number(format!("timeout is {timeout}: use seconds from 0 on")))?;
        py.detach(|| self.0.take_over(wait)).map_err(refused)
    }

    /// Checks the pool's tables, and raises an exception if the tables are inconsistent. The result is exact
    /// only while no other thread uses the pool.
    fn validate(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| self.0.validate()).map_err(refused)
    }

    fn __repr__(&self) -> String {
        format!("<pageset.Pool of {} bytes>", self.size())
    }
}

impl Pool {
    /// Raises an exception in a child of the process that owns the pool.
    fn check_process(&self) -> PyResult<()> {
        if self.0.is_in_child() { Err(refused(AllocError::Forked)) } else { Ok(()) }
    }

    /// Allocates by `alloc`. If no memory is free, collects garbage and tries again. If there is still no
    /// free memory, waits up to the timeout until another thread frees pages.
    fn waited<'p>(
        &'p self,
        py: Python<'_>,
        timeout: Option<f64>,
        alloc: impl Fn() -> Result<pageset::Pages<'p>, AllocError> + Sync,
    ) -> PyResult<Pages> {
        let timeout = timeout.unwrap_or(0.0);
        let wait = Duration::try_from_secs_f64(timeout)
            .map_err(|_| bad_number(format!("timeout is {timeout}: use seconds from 0 on")))?;
        // A Python object cannot borrow, so the pages share the ownership of their pool.
        let attempt = || alloc().map(|pages| pages.into_owned(&self.0));
        let mut outcome = py.detach(attempt);
        if is_short(&outcome) {
            py.import("gc")?.call_method0("collect")?;
            let begun = Instant::now();
            let mut pause = Duration::from_micros(50);
            outcome = py.detach(attempt);
            while is_short(&outcome) && begun.elapsed() < wait {
                py.check_signals()?;
                let left = wait.saturating_sub(begun.elapsed());
                outcome = py.detach(|| {
                    sleep(pause.min(left));
                    attempt()
                });
                pause = (2 * pause).min(Duration::from_millis(10));
            }
        }
        outcome.map(Pages::new).map_err(not_allocated)
    }
}

/// The descriptor of a pool's file.
#[expect(unsafe_code, reason = "who has the file can change memory behind references")]
pub(crate) fn file_of(pool: &pageset::Pool) -> Option<RawFd> {
    // SAFETY: Python code has addresses of bytes and no Rust references. The documentation forbids changes of
    // free pages.
    unsafe { pool.memfd() }.map(|file| file.as_raw_fd())
}

fn is_short<T>(outcome: &Result<T, AllocError>) -> bool {
    use AllocError::{NoRun, OutOfMemory, OverCapacity};
    matches!(outcome, Err(OutOfMemory { .. } | NoRun { .. } | OverCapacity))
}

fn order_of(Whole(order): Whole<u64>) -> PyResult<Order> {
    let known = u8::try_from(order).ok().and_then(Order::new);
    known.ok_or_else(|| refused(format!("order {order} is none: use 0 to {}", Order::MAX.get())))
}

/// The NUMA setting: one node, or several nodes in turn.
fn numa_of(node: Option<Whole<u16>>, interleave: Option<Vec<Whole<u16>>>) -> PyResult<Numa> {
    match (node, interleave) {
        (Some(_), Some(_)) => Err(refused("node and interleave: give one of them")),
        (Some(Whole(node)), None) => Ok(Numa::Bind(node)),
        (None, None) => Ok(Numa::FirstTouch),
        (None, Some(nodes)) => {
            let mut bits = nodes.into_iter().map(|Whole(node)| {
                let bit = 1_u64.checked_shl(node.into());
                bit.ok_or_else(|| bad_number(format!("node {node} of interleave: use 0 to 63")))
            });
            bits.try_fold(0, |all, bit| Ok(all | bit?)).map(Numa::Interleave)
        }
    }
}

/// The `fork` setting with this name.
fn named_fork(name: &str) -> PyResult<Fork> {
    match name {
        "copy" => Ok(Fork::Copy),
        "hide" => Ok(Fork::Hide),
        "hand-over" => Ok(Fork::HandOver),
        _ => Err(refused(format!("unknown fork `{name}`; choose one of: copy, hide, hand-over"))),
    }
}

/// The backing with this name.
fn named_backing(name: &str) -> PyResult<Backing> {
    match name {
        "thp" => Ok(Backing::Thp),
        "plain" => Ok(Backing::Plain),
        "memfd" => Ok(Backing::Memfd),
        "hugetlb-2m" => Ok(Backing::Hugetlb(HugePageSize::Mib2)),
        "hugetlb-1g" => Ok(Backing::Hugetlb(HugePageSize::Gib1)),
        "hugetlb-2m-or-thp" => Ok(Backing::HugetlbOrThp(HugePageSize::Mib2)),
        "hugetlb-1g-or-thp" => Ok(Backing::HugetlbOrThp(HugePageSize::Gib1)),
        _ => Err(refused(format!(
            "unknown backing `{name}`; choose one of: thp, plain, memfd, hugetlb-2m, hugetlb-1g, \
             hugetlb-2m-or-thp, hugetlb-1g-or-thp"
        ))),
    }
}

fn not_allocated(error: AllocError) -> PyErr {
    match error {
        AllocError::OutOfMemory { .. } | AllocError::NoRun { .. } | AllocError::OverCapacity => {
            out_of_memory(error)
        }
        error => refused(error),
    }
}

/// The state of a pool at one moment. If the kernel has the same counter, the field has the kernel's name.
/// Fields that begin with `nr_` count pages of 4 KiB.
#[pyclass(frozen, get_all, module = "pageset")]
pub(crate) struct PoolStats {
    /// Pages that users have allocated since the program built the pool.
    pgalloc: u64,
    /// Pages that users have freed.
    pgfree: u64,
    /// Free pages that are in no array.
    nr_free_pages: u64,
    /// Pages in the arrays of the fast path.
    nr_array: u64,
    /// Pages that users hold.
    nr_used: u64,
    /// Pages out of service after `resize`.
    nr_retired: u64,
    /// The most pages that users and arrays may have together.
    capacity_pages: u64,
    /// The largest order of a free block outside of the arrays.
    largest_free_order: Option<u8>,
    /// How often the pool fetched blocks for an array or a bulk allocation.
    array_refills: u64,
    /// How often blocks left an array because the array had no room.
    array_flushes: u64,
    /// How often the pool emptied the arrays of all CPUs.
    array_drains: u64,
    /// How often a drain failed because the system refused membarrier(2).
    array_drains_refused: u64,
    /// The number of restarted sequences in all pools of the process.
    rseq_restarts: u64,
    /// The number of frees that the pool refused.
    bad_frees: u64,
    /// Bytes that the pool has cleared for zeroed allocations.
    cleared_bytes: u64,
    /// Bytes that the pool has cleared in idle time.
    prezeroed_bytes: u64,
    /// Bytes that the pool gave back to the system.
    returned_bytes: u64,
    /// Bytes that the pool gave back to the system and used again later.
    refaulted_bytes: u64,
    /// Nanoseconds that the pool spent to give memory back to the system.
    return_time_ns: u64,
    /// Bytes of mapped metadata.
    metadata_bytes: u64,
    /// The counters of the allocator behind the arrays, by name.
    base: BTreeMap<&'static str, u64>,
}

impl PoolStats {
    fn of(pool: &pageset::Pool) -> Self {
        let stats = pool.stats();
        Self {
            pgalloc: stats.pgalloc,
            pgfree: stats.pgfree,
            nr_free_pages: stats.nr_free_pages,
            nr_array: stats.nr_array,
            nr_used: stats.nr_used,
            nr_retired: stats.nr_retired,
            capacity_pages: stats.capacity_pages,
            largest_free_order: stats.largest_free_order.map(Order::get),
            array_refills: stats.array_refills,
            array_flushes: stats.array_flushes,
            array_drains: stats.array_drains,
            array_drains_refused: stats.array_drains_refused,
            rseq_restarts: stats.rseq_restarts,
            bad_frees: stats.bad_frees,
            cleared_bytes: stats.cleared_bytes,
            prezeroed_bytes: stats.prezeroed_bytes,
            returned_bytes: stats.returned_bytes,
            refaulted_bytes: stats.refaulted_bytes,
            return_time_ns: u64::try_from(stats.return_time.as_nanos()).unwrap_or(u64::MAX),
            metadata_bytes: stats.metadata_bytes,
            base: stats.base.named().map(|(name, count)| (name, count as u64)).collect(),
        }
    }
}

#[pymethods]
impl PoolStats {
    fn __repr__(&self) -> String {
        format!(
            "<pageset.PoolStats: {} pages used, {} cached, {} free>",
            self.nr_used, self.nr_array, self.nr_free_pages
        )
    }
}

/// How a pool gives idle memory back to the system.
#[pyclass(frozen, module = "pageset")]
pub(crate) struct ReturnPolicy(pageset::ReturnPolicy);

#[pymethods]
impl ReturnPolicy {
    #[new]
    #[pyo3(
        signature = (
            *, interval=0.1, bytes_per_second=Whole(4 << 30), keep_bytes=None, part_bytes=Whole(0), prezero_blocks=Whole(0),
            thread=true
        ),
        text_signature = "(*, interval=0.1, bytes_per_second=4294967296, keep_bytes=None, part_bytes=0, prezero_blocks=0, thread=True)"
    )]
    fn new(
        interval: f64,
        bytes_per_second: Whole<u64>,
        keep_bytes: Option<Whole<u64>>,
        part_bytes: Whole<u64>,
        prezero_blocks: Whole<u32>,
        thread: bool,
    ) -> PyResult<Self> {
        let mut returns = pageset::ReturnPolicy::default();
        returns.interval = Duration::try_from_secs_f64(interval)
            .map_err(|_| bad_number(format!("interval is {interval}: use seconds from 0 on")))?;
        returns.bytes_per_second = bytes_per_second.0;
        returns.keep_bytes = keep_bytes.map(|Whole(bytes)| bytes);
        returns.part_bytes = part_bytes.0;
        returns.prezero = match prezero_blocks.0 {
            0 => Prezero::Off,
            blocks => Prezero::Blocks(blocks),
        };
        returns.worker = if thread { Worker::Thread } else { Worker::None };
        Ok(Self(returns))
    }

    fn __repr__(&self) -> String {
        format!("<pageset.{:?}>", self.0)
    }
}
