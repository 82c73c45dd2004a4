//! The errors of building a pool, of allocations, and of `validate`.

use std::{fmt, io};

pub use pageset_core::FreeError;
use pageset_core::{ConfigError, Order, Violation};

use crate::Numa;
use crate::heap::HeapExhausted;

/// The end of messages about NUMA nodes: it names the file where the system lists the nodes.
const NODES_ONLINE: &str = "see /sys/devices/system/node/online";

/// Why an allocation failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AllocError {
    /// No block of this order is free, even after the arrays of all CPUs were emptied. Smaller blocks may be
    /// free.
    OutOfMemory {
        /// The wanted order.
        order: Order,
    },
    /// The allocation would exceed the pool's capacity.
    OverCapacity,
    /// A child of `fork` cannot allocate from its parent's pool. [`Fork`](crate::Fork) says what the child
    /// may do.
    Forked,
    /// Some pages of the wanted block are in use. (Only from `alloc_at`.)
    NotFree,
    /// The wanted block does not lie in the pool, or its first page's number is not a multiple of the block's
    /// size.
    BadFrame,
    /// The caller asked for 0 pages.
    BadCount,
    /// The alignment is no power of two.
    BadAlign,
    /// No run of this many contiguous pages is free, even after every cache was emptied. `NoRun` is only for
    /// counts larger than the largest block.
    NoRun {
        /// The wanted number of pages.
        page_count: usize,
    },
    /// The program's heap has no memory for a list of pages.
    HeapExhausted,
    /// A signal handler asked for pages, and its thread was interrupted inside an operation of the same pool.
    /// The interrupted operation may hold a lock, and the handler would wait for this lock for ever. Only
    /// signal handlers get the error `WouldBlock`.
    WouldBlock,
}

impl AllocError {
    /// Whether the allocation could succeed after other pages were freed.
    pub(crate) const fn is_shortage(self) -> bool {
        matches!(self, Self::OutOfMemory { .. } | Self::NoRun { .. } | Self::OverCapacity)
    }
}

impl fmt::Display for AllocError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OutOfMemory { order } => {
                write!(f, "the pool has no free block of order {order} ({} KiB)", 4 << order.get())
            }
            Self::OverCapacity => {
                f.write_str("this would exceed the pool's capacity: free pages, or raise it by set_capacity")
            }
            Self::Forked => {
                f.write_str("the pool belongs to the parent process: a child cannot allocate from it")
            }
            Self::NotFree => f.write_str("the pages are not all free"),
            Self::BadFrame => f.write_str("no block of this order begins at this page of the pool"),
            Self::BadCount => f.write_str("a count must be 1 page or more"),
            Self::BadAlign => f.write_str("an alignment must be a power of two, in bytes"),
            Self::NoRun { page_count } => {
                write!(f, "the pool has no {page_count} contiguous free pages")
            }
            Self::HeapExhausted => f.write_str("the program's heap has no memory for a list of pages"),
            Self::WouldBlock => f.write_str(
                "this signal handler has interrupted an operation of the pool: allocate when it has returned",
            ),
        }
    }
}

impl std::error::Error for AllocError {}

/// The reason why [`Pool::validate`](crate::Pool::validate) failed: a violation, or a caller that cannot
/// check the pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ValidateError {
    /// A child of `fork` cannot check its parent's pool.
    Forked,
    /// A signal handler called `validate`, and its thread was interrupted inside an operation of the same
    /// pool.
    WouldBlock,
    /// The check of the base, the allocator behind the arrays, found a violation.
    Base(Violation),
    /// A block in a CPU's array is not an allocated block of the order `order` in the base, or the base keeps
    /// the same block for the next refill.
    NotAllocated {
        /// The block's first page, counted from the pool's start.
        page: u32,
        /// The block's order.
        order: Order,
    },
    /// Two blocks in arrays contain the page `page`.
    Doubled {
        /// The page, counted from the pool's start.
        page: u32,
    },
    /// The number of allocated pages differs from the number of pages that the pool accounts for, so pages
    /// are lost or doubled.
    Sum {
        /// Pages that are allocated in the base.
        allocated: u64,
        /// Pages of users, pages in arrays, and pages out of service.
        accounted: u64,
    },
}

impl fmt::Display for ValidateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Forked => AllocError::Forked.fmt(f),
            Self::WouldBlock => AllocError::WouldBlock.fmt(f),
            Self::Base(violation) => violation.fmt(f),
            Self::NotAllocated { page, order } => {
                write!(f, "page {page} is in an array as a block of order {order}, which is not allocated")
            }
            Self::Doubled { page } => write!(f, "page {page} is in two blocks that lie in arrays"),
            Self::Sum { allocated, accounted } => {
                write!(f, "{allocated} pages are allocated, but users and arrays have {accounted}")
            }
        }
    }
}

impl std::error::Error for ValidateError {}

/// Why a pool could not be built.
#[derive(Debug)]
#[non_exhaustive]
pub enum BuildError {
    /// The size is zero, more than 4 TiB, or not a multiple of the backing's page size.
    BadSize {
        /// The wanted size, in bytes.
        bytes: usize,
        /// The size must be a multiple of this many bytes.
        multiple_of: usize,
    },
    /// The system cannot reserve the address space, or cannot map memory there. Usual causes are the
    /// process's limit (`ulimit -v`) and the number of its mappings (`vm.max_map_count`).
    AddressSpace {
        /// The wanted size, in bytes.
        bytes: usize,
        /// The system's error.
        source: io::Error,
    },
    /// Too few huge pages of this size are free. See `/proc/sys/vm/nr_hugepages`.
    HugetlbShortage {
        /// Pages wanted.
        wanted: usize,
        /// Pages that were free and not reserved. `None` where `/sys` does not tell.
        free: Option<usize>,
        /// The system's error.
        source: io::Error,
    },
    /// The system has no huge pages of this size.
    NoSuchHugePages {
        /// The size, in bytes.
        bytes: usize,
        /// The system's error.
        source: io::Error,
    },
    /// The system reserved enough huge pages for the mapping, but could not make them resident. Usually the
    /// free pages are on nodes that the builder or the process's cpuset does not allow, or the process's
    /// cgroup has a limit (`hugetlb.*.max`).
    HugetlbOutOfReach {
        /// The wanted size, in bytes.
        bytes: usize,
        /// The nodes that the huge pages should come from.
        numa: Numa,
        /// The system's error.
        source: io::Error,
    },
    /// The pool can have either [`Fork::Copy`](crate::Fork::Copy) or hugetlb pages, because hugetlb pages are
    /// not copied for children.
    CopyOfHugetlb,
    /// A child cannot take over this kind of memory. [`Backing::Thp`](crate::Backing::Thp) and
    /// [`Backing::Plain`](crate::Backing::Plain) work if the memory is neither locked nor a caller's region.
    /// See [`Fork::HandOver`](crate::Fork::HandOver).
    HandOverOfShared,
    /// The system cannot make the pool's file in memory, for example because no file descriptor is left or
    /// the file is too large.
    Memfd {
        /// The file's size, in bytes.
        bytes: usize,
        /// The system's error.
        source: io::Error,
    },
    /// The system denies this call to the process. Usually a filter of system calls (seccomp) forbids the
    /// call, a container withholds a right (`CAP_SYS_NICE` for mbind), or the kernel was built without the
    /// call.
    Denied {
        /// The call's name.
        call: &'static str,
        /// The system's error.
        source: io::Error,
    },
    /// The system cannot lock the memory, usually because the limit (`ulimit -l`) is too low.
    LockLimit {
        /// The bytes to lock.
        bytes: usize,
        /// The system's error.
        source: io::Error,
    },
    /// The system has no memory for this pool on these nodes, or the nodes do not exist.
    BadNodes {
        /// The wanted nodes.
        numa: Numa,
        /// The system's error.
        source: io::Error,
    },
    /// The caller's region is not aligned to 4 MiB.
    UnalignedRegion,
    /// The program's heap has no memory for the pool's tables.
    HeapExhausted {
        /// The wanted size, in bytes.
        bytes: usize,
    },
    /// Another call to the system failed.
    System {
        /// The step that failed, in words that complete a sentence that begins with "cannot".
        what: &'static str,
        /// The system's error.
        source: io::Error,
    },
    /// The base, the allocator behind the arrays, refused the configuration.
    Config(ConfigError),
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BadSize { bytes, multiple_of } => {
                write!(
                    f,
                    "the size is {bytes} bytes: it must be a multiple of {multiple_of}, and at most 4 TiB"
                )
            }
            Self::AddressSpace { bytes, .. } => {
                write!(
                    f,
                    "cannot reserve {bytes} bytes of address space (see ulimit -v and vm.max_map_count)"
                )
            }
            Self::HugetlbShortage { wanted, free: Some(free), .. } => {
                write!(f, "cannot get {wanted} huge pages: {free} are free (see /proc/sys/vm/nr_hugepages)")
            }
            Self::HugetlbShortage { wanted, free: None, .. } => {
                write!(f, "cannot get {wanted} huge pages: too few are free (see /proc/sys/vm/nr_hugepages)")
            }
            Self::NoSuchHugePages { bytes, .. } => {
                write!(f, "this system has no huge pages of {bytes} bytes")
            }
            Self::HugetlbOutOfReach { bytes, numa, .. } => {
                write!(f, "cannot have {bytes} bytes of huge pages ")?;
                match numa {
                    Numa::FirstTouch => f.write_str("here")?,
                    Numa::Bind(node) => write!(f, "on node {node}")?,
                    Numa::Interleave(nodes) => write!(f, "on the nodes {nodes:#b} in turn")?,
                }
                f.write_str(": see free_hugepages of its nodes, its cpuset, and hugetlb.*.max of its cgroup")
            }
            Self::CopyOfHugetlb => f.write_str(
                "huge pages are not copied for children: use Fork::Hide, or leave fork unset to share them",
            ),
            Self::HandOverOfShared => f.write_str(
                "a child takes over only memory that is copied for it: use Backing::Thp or Plain, not locked",
            ),
            Self::Memfd { bytes, source } => match source.raw_os_error() {
                Some(libc::EMFILE) => {
                    f.write_str("cannot create the pool's file: no file descriptor is left (see ulimit -n)")
                }
                Some(libc::ENFILE) => f.write_str(
                    "cannot create the pool's file: the system has too many open (see /proc/sys/fs/file-max)",
                ),
                Some(libc::EFBIG) => {
                    write!(f, "a file may not have the pool's {bytes} bytes (see ulimit -f)")
                }
                _ => write!(f, "cannot create the pool's file of {bytes} bytes"),
            },
            Self::Denied { call, .. } => {
                write!(f, "{call}(2) is denied: allow it in the filter of system calls (seccomp)")?;
                if *call == "mbind" {
                    f.write_str(", or give the container CAP_SYS_NICE")?;
                }
                Ok(())
            }
            Self::LockLimit { bytes, .. } => write!(f, "cannot lock {bytes} bytes in memory (see ulimit -l)"),
            Self::BadNodes { numa, .. } => match numa {
                Numa::Interleave(nodes) => {
                    write!(f, "cannot take memory from the nodes {nodes:#b} in turn ({NODES_ONLINE})")
                }
                Numa::Bind(node) => write!(f, "cannot bind memory to node {node} ({NODES_ONLINE})"),
                Numa::FirstTouch => f.write_str("cannot place memory"),
            },
            Self::UnalignedRegion => f.write_str("a region must be aligned to 4 MiB"),
            Self::HeapExhausted { bytes } => {
                write!(f, "the program's heap has no {bytes} bytes for the pool's tables")
            }
            Self::System { what, .. } => write!(f, "cannot {what}"),
            Self::Config(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for BuildError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::AddressSpace { source, .. }
            | Self::HugetlbShortage { source, .. }
            | Self::NoSuchHugePages { source, .. }
            | Self::HugetlbOutOfReach { source, .. }
            | Self::Memfd { source, .. }
            | Self::Denied { source, .. }
            | Self::LockLimit { source, .. }
            | Self::BadNodes { source, .. }
            | Self::System { source, .. } => Some(source),
            _ => None,
        }
    }
}

impl From<ConfigError> for BuildError {
    fn from(error: ConfigError) -> Self {
        match error {
            ConfigError::OutOfMemory(bytes) => Self::HeapExhausted { bytes },
            other => Self::Config(other),
        }
    }
}

impl From<HeapExhausted> for BuildError {
    fn from(HeapExhausted { bytes }: HeapExhausted) -> Self {
        Self::HeapExhausted { bytes }
    }
}
