//! The memory that one task has mapped. Faults allocate its pages one by one, and an unmap frees all of them.

use pageset_core::{MigrateType, Order};

use super::setup::{Parameter, Setup};
use crate::lru::Lru;
use crate::slab::PAGE_BYTES;
use crate::target::{Access, Block, Fill, Hold, LockId, Target};

/// Number of pages that one page-table page maps. Source: x86-64, 512 entries of 8 bytes.
pub(super) const TABLE_PAGES: u64 = 512;
/// Number of pages that an unmap collects and frees as one list. Source: `mmu_gather` collects pointers in
/// one page, which also holds a header, so the page has fewer than 512 pointers. The size of an `mmu_gather`
/// page is general knowledge and not in the spec.
const GATHER_PAGES: usize = 506;

pub(super) const FAULT_NS: Parameter = Parameter {
    key: "fault_ns",
    default: 600,
    min: 0,
    meaning: "work of one page fault outside the allocator, without clearing the page, in ns",
    source: "guess: entry, VMA lookup, charge, page-table update, return",
};
pub(super) const COPY_NS: Parameter = Parameter {
    key: "copy_fault_ns",
    default: 1400,
    min: 0,
    meaning: "work of a fault to find and lock a file's page and to read the data to copy, in ns",
    source: "the 2018 study, batch 31 on the Skylake desktop: 8 CPUs / 2.31 M/s (page_fault2) - 8 CPUs / 3.91 M/s (page_fault1)",
};
pub(super) const UNMAP_NS: Parameter = Parameter {
    key: "unmap_page_ns",
    default: 100,
    min: 0,
    meaning: "work of an unmap for each page outside the allocator, in ns",
    source: "guess: page-table entry, reverse map, gather",
};

/// The kind of page that a fault maps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Backing {
    /// A page of zeros.
    Anonymous,
    /// A copy of a page of a file.
    PrivateFile,
    /// The page of the file itself, which is cached already.
    SharedFile,
}

/// A mapping of one task: its pages and page tables, its LRU list, and the costs of its faults.
#[derive(Clone, Debug)]
pub(super) struct Mapping {
    backing: Backing,
    pages: Vec<Block>,
    tables: Vec<Block>,
    mapped: u64,
    lru: Lru,
    mmap: Option<LockId>,
    fault_ns: u64,
    copy_ns: u64,
    unmap_ns: u64,
}

impl Mapping {
    /// Makes an empty mapping. `mmap` is the lock of the address space. `mmap` is `None` if only one worker
    /// uses the address space.
    pub(super) fn new(setup: &Setup<'_>, backing: Backing, lru: Lru, mmap: Option<LockId>) -> Self {
        Self {
            backing,
            pages: Vec::new(),
            tables: Vec::new(),
            mapped: 0,
            lru,
            mmap,
            fault_ns: setup.get(&FAULT_NS),
            copy_ns: setup.get(&COPY_NS),
            unmap_ns: setup.get(&UNMAP_NS),
        }
    }

    /// Lets the task fault at a write to the mapping's next page. If no page table covers this page yet, also
    /// allocates a page table.
    pub(super) fn fault(&mut self, target: &mut dyn Target) {
        self.take(target, Hold::Shared);
        target.compute(self.fault_ns);
        if self.mapped.is_multiple_of(TABLE_PAGES) {
            self.add_table(target);
        }
        self.mapped += 1;
        self.add_page(target);
        self.give(target, Hold::Shared);
    }

    /// Allocates a page-table page.
    pub(super) fn add_table(&mut self, target: &mut dyn Target) {
        let table = target.alloc(Order::ZERO, MigrateType::Unmovable, Fill::Zeroed);
        self.tables.extend(table.map(|pfn| (pfn, Order::ZERO)));
    }

    fn add_page(&mut self, target: &mut dyn Target) {
        let fill = match self.backing {
            Backing::Anonymous => Fill::Zeroed,
            Backing::PrivateFile => Fill::Undefined,
            Backing::SharedFile => return,
        };
        let Ok(pfn) = target.alloc(Order::ZERO, MigrateType::Movable, fill) else { return };
        if self.backing == Backing::PrivateFile {
            target.compute(self.copy_ns);
            target.touch(pfn, u64::from(PAGE_BYTES), Access::Copy);
        }
        self.pages.push((pfn, Order::ZERO));
        self.lru.add(target);
    }

    /// Lets the task fault at a write to a block that other processes share. Allocates a block of the same
    /// order, and copies `source` to the new block. Returns `None` if there is no memory.
    pub(super) fn copy_on_write(&mut self, target: &mut dyn Target, source: Block) -> Option<Block> {
        let (from, order) = source;
        target.compute(self.fault_ns);
        let pfn = target.alloc(order, MigrateType::Movable, Fill::Undefined).ok()?;
        let bytes = u64::from(order.frames()) * u64::from(PAGE_BYTES);
        target.touch(from, bytes, Access::Read);
        target.touch(pfn, bytes, Access::Copy);
        self.pages.push((pfn, order));
        self.lru.add(target);
        Some((pfn, order))
    }

    /// Unmaps everything. Frees the pages of data in lists, in the order of their addresses, and then the
    /// page tables.
    pub(super) fn unmap(&mut self, target: &mut dyn Target) {
        self.take(target, Hold::Exclusive);
        self.lru.flush(target);
        if self.backing == Backing::SharedFile {
            target.compute(self.unmap_ns * self.mapped);
        }
        let mut gathered = Vec::with_capacity(GATHER_PAGES.min(self.pages.len()));
        for pages in self.pages.chunks(GATHER_PAGES) {
            target.compute(self.unmap_ns * pages.len() as u64);
            self.lru.remove(target, pages.len() as u32);
            gathered.extend_from_slice(pages);
            target.free_list(&mut gathered);
        }
        self.pages.clear();
        for table in self.tables.drain(..) {
            target.free(table);
        }
        self.mapped = 0;
        self.give(target, Hold::Exclusive);
    }

    /// Unmaps everything for a task that has moved to another CPU. Returns the pages and the page tables,
    /// which the task's new CPU must free.
    pub(super) fn unmap_for_another(&mut self, target: &mut dyn Target) -> Vec<Block> {
        self.lru.flush(target);
        target.compute(self.unmap_ns * self.pages.len() as u64);
        self.lru.remove(target, self.pages.len() as u32);
        self.mapped = 0;
        self.pages.drain(..).chain(self.tables.drain(..)).collect()
    }

    /// Does `work` while this worker holds the lock of the address space exclusively.
    pub(super) fn exclusively(&self, target: &mut dyn Target, work: impl FnOnce(&mut dyn Target)) {
        self.take(target, Hold::Exclusive);
        work(target);
        self.give(target, Hold::Exclusive);
    }

    fn take(&self, target: &mut dyn Target, hold: Hold) {
        if let Some(lock) = self.mmap {
            target.lock(lock, hold);
        }
    }

    fn give(&self, target: &mut dyn Target, hold: Hold) {
        if let Some(lock) = self.mmap {
            target.unlock(lock, hold);
        }
    }
}
