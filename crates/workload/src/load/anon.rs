//! Anonymous memory of one task: faults bring pages one by one, an unmap gives all of them back.

use pageset_core::{MigrateType, Order};

use super::{Parameter, Setup};
use crate::lru::Lru;
use crate::target::{Block, Fill, Hold, LockId, Target};

/// Pages that one page-table page maps. Source: x86-64, 512 entries of 8 bytes.
pub(crate) const TABLE_PAGES: u64 = 512;
/// Pages that an unmap collects before it frees them as one list. Source: `mmu_gather`, one page of pointers less its
/// header: (4096 - 16) / 8, less 4 that a batch on the stack replaces; general knowledge, not in the spec.
const GATHER_PAGES: usize = 506;

/// Work of a fault.
pub(crate) const FAULT_NS: Parameter = Parameter {
    key: "fault_ns",
    default: 600,
    min: 0,
    meaning: "work of one page fault outside the allocator, without clearing the page, in ns",
    source: "guess: entry, VMA lookup, charge, page-table update, return",
};
/// Work of an unmap.
pub(crate) const UNMAP_NS: Parameter = Parameter {
    key: "unmap_page_ns",
    default: 100,
    min: 0,
    meaning: "work of an unmap for each page outside the allocator, in ns",
    source: "guess: page-table entry, reverse map, gather",
};

/// A mapping that one worker fills and empties.
#[derive(Debug)]
pub(crate) struct AnonMemory {
    pages: Vec<Block>,
    tables: Vec<Block>,
    lru: Lru,
    mmap: Option<LockId>,
    fault_ns: u64,
    unmap_ns: u64,
}

impl AnonMemory {
    /// An empty mapping. `mmap` is the lock of an address space that other workers share.
    pub(crate) fn new(setup: &Setup<'_>, lru: Lru, mmap: Option<LockId>) -> Self {
        Self {
            pages: Vec::new(),
            tables: Vec::new(),
            lru,
            mmap,
            fault_ns: setup.get(&FAULT_NS),
            unmap_ns: setup.get(&UNMAP_NS),
        }
    }

    /// Writes to the next page: a page-table page first, where one begins.
    pub(crate) fn fault(&mut self, target: &mut dyn Target) {
        self.take(target, Hold::Shared);
        target.compute(self.fault_ns);
        if self.pages.len() as u64 >= self.tables.len() as u64 * TABLE_PAGES {
            let table = target.alloc(Order::ZERO, MigrateType::Unmovable, Fill::Zeroed);
            self.tables.extend(table.map(|pfn| (pfn, Order::ZERO)));
        }
        if let Ok(pfn) = target.alloc(Order::ZERO, MigrateType::Movable, Fill::Zeroed) {
            self.pages.push((pfn, Order::ZERO));
            self.lru.add(target);
        }
        self.give(target, Hold::Shared);
    }

    /// Unmaps everything: data pages in lists, in the order of their addresses, then page tables.
    pub(crate) fn unmap(&mut self, target: &mut dyn Target) {
        self.take(target, Hold::Exclusive);
        let mut gathered = Vec::with_capacity(GATHER_PAGES);
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
