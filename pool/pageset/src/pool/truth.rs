//! The memory that the system really provided.

use std::io;

use super::{Inner, Pool};
use crate::sys::smaps;
use crate::{Backing, HugePageSize, PAGE_BYTES};

/// The pool's memory as the kernel accounts for it, in bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BackingReport {
    /// The requested kind of memory.
    pub asked: Backing,
    /// Mapped bytes. The number equals the pool's size.
    pub mapped_bytes: u64,
    /// Bytes that are resident now.
    pub resident_bytes: u64,
    /// Bytes that are resident in huge pages, transparent or hugetlb.
    pub huge_bytes: u64,
    /// Bytes that are resident in pages of 4 KiB.
    pub small_bytes: u64,
    /// Bytes that are locked in memory.
    pub locked_bytes: u64,
    /// The page size of the mapping. For a pool with [`Backing::HugetlbOrThp`], `page_bytes` tells which of
    /// the two kinds the pool got. A size of 4096 means [`Backing::Thp`], because transparent huge pages do
    /// not change a mapping's page size.
    pub page_bytes: u64,
    /// Resident bytes of each NUMA node. Empty if the kernel does not report nodes.
    pub nodes: Vec<(u16, u64)>,
}

impl Pool {
    /// Tells what memory the system really provided, by page size and by NUMA node.
    ///
    /// The call reads `/proc/self/smaps`, and takes milliseconds if the process has some thousands of
    /// mappings. For a caller's region, the figures cover all mappings that overlap the region.
    ///
    /// # Errors
    /// The system's error if `/proc` cannot be read. [`OutOfMemory`](io::ErrorKind::OutOfMemory) if the heap
    /// has no memory for the list of nodes.
    pub fn backing(&self) -> io::Result<BackingReport> {
        let inner = self.inner();
        let start = self.start().addr();
        let range = start..start + inner.memory.bytes();
        let resident = smaps::resident(range.clone())?;
        let huge = match inner.backing {
            Backing::Hugetlb(_) => resident.all,
            _ => resident.huge,
        };
        Ok(BackingReport {
            asked: inner.asked,
            mapped_bytes: inner.memory.bytes() as u64,
            resident_bytes: resident.all,
            huge_bytes: huge,
            small_bytes: resident.all.saturating_sub(huge),
            locked_bytes: resident.locked,
            page_bytes: resident.kernel_page,
            nodes: smaps::nodes(range)?,
        })
    }
}

impl Inner {
    /// Bytes of the mapping's pages.
    pub(super) fn backing_page_bytes(&self) -> usize {
        match self.backing {
            Backing::Hugetlb(HugePageSize::Mib2) => HugePageSize::Mib2.bytes(),
            Backing::Hugetlb(HugePageSize::Gib1) => HugePageSize::Gib1.bytes(),
            Backing::Thp | Backing::HugetlbOrThp(_) | Backing::Memfd | Backing::Plain => PAGE_BYTES,
        }
    }
}
