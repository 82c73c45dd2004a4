//! Records the CPU that owns each pageblock. Each CPU also has a list of its pageblocks that have free blocks
//! on the zone's lists.
//!
//! Owners are read without a lock and written under the zone's lock. Each list is a ring that begins and ends
//! at an entry for the CPU itself. Because a ring has an entry for its CPU, a CPU can unlink a pageblock
//! without a search for the pageblock's owner. The table holds the entries of pageblocks first, and then the
//! entries of CPUs.

use core::sync::atomic::{AtomicU32, Ordering::Relaxed};

use super::{FrameCounts, FrameIndex};
use crate::error::ConfigError;
use crate::policy::{HAS_LAB, Policy};
use crate::{CpuId, PAGEBLOCK_ORDER, Storage};

/// The owner of one pageblock, and the pageblock's links in the owner's list. All-zero bytes are a valid
/// `PageblockOwner`.
#[derive(Debug, Default)]
#[repr(C)]
pub struct PageblockOwner {
    /// In a pageblock's entry: the owner's number plus one, or 0 if no CPU owns the pageblock. In a CPU's
    /// entry, `owner` is 0 while the CPU is online.
    owner: AtomicU32,
    /// The indices of the previous and the next entry in the ring, plus one. Both fields are 0 while this
    /// entry is on no list.
    prev: AtomicU32,
    next: AtomicU32,
}

impl PageblockOwner {
    /// The entry of a pageblock that no CPU owns.
    #[must_use]
    pub const fn new() -> Self {
        Self { owner: AtomicU32::new(0), prev: AtomicU32::new(0), next: AtomicU32::new(0) }
    }
}

/// Index of an entry: the entries of the zone's pageblocks come first, and then the entries of CPUs.
pub(crate) type EntryIndex = u32;

/// The owners of one zone's pageblocks. The table is empty if the policy has no owners.
#[derive(Debug)]
pub(crate) struct Owners<'a> {
    table: Storage<'a, PageblockOwner>,
    pageblocks: EntryIndex,
}

impl<'a> Owners<'a> {
    /// The empty table of a policy without owners.
    pub(crate) const fn none() -> Self {
        Self { table: Storage::Borrowed(&mut []), pageblocks: 0 }
    }

    pub(crate) fn new(table: Storage<'a, PageblockOwner>) -> Self {
        Self { table, pageblocks: 0 }
    }

    /// Checks that the table is long enough for a zone. Stores the index at which the entries of CPUs begin.
    pub(crate) fn fit(&mut self, counts: FrameCounts, cpus: usize) -> Result<(), ConfigError> {
        let needed = entries(counts, cpus);
        if self.table.len() < needed || EntryIndex::try_from(needed).is_err() {
            return Err(ConfigError::TableLength("owners", needed));
        }
        self.pageblocks = counts.pageblocks as EntryIndex;
        Ok(())
    }

    /// Whether the policy has no owners.
    pub(crate) fn is_empty(&self) -> bool {
        self.table.is_empty()
    }

    fn entry(&self, index: EntryIndex) -> &PageblockOwner {
        &self.table[index as usize]
    }

    fn entry_of(&self, cpu: CpuId) -> EntryIndex {
        self.pageblocks + cpu.0
    }

    /// The owner of the frame's pageblock.
    pub(crate) fn owner(&self, frame: FrameIndex) -> Option<CpuId> {
        if !HAS_LAB {
            return None;
        }
        let entry = self.table.get((frame >> PAGEBLOCK_ORDER) as usize)?;
        entry.owner.load(Relaxed).checked_sub(1).map(CpuId)
    }

    /// Makes `cpu` the owner of the frame's pageblock, which has no owner yet.
    pub(crate) fn own(&self, frame: FrameIndex, cpu: CpuId) {
        debug_assert_eq!(self.owner(frame), None, "a pageblock that is free as a whole has no owner");
        self.entry(frame >> PAGEBLOCK_ORDER).owner.store(cpu.0 + 1, Relaxed);
    }

    /// Ends the ownership of the frame's pageblock, if it has an owner.
    pub(crate) fn disown(&self, frame: FrameIndex) {
        if self.owner(frame).is_some() {
            self.unlist(frame >> PAGEBLOCK_ORDER);
            self.entry(frame >> PAGEBLOCK_ORDER).owner.store(0, Relaxed);
        }
    }

    /// Whether the CPU may own pageblocks. True while the CPU is online.
    pub(crate) fn may_own(&self, cpu: CpuId) -> bool {
        self.entry(self.entry_of(cpu)).owner.load(Relaxed) == 0
    }

    /// Allows a CPU that came online to own pageblocks.
    pub(crate) fn admit(&self, cpu: CpuId) {
        self.entry(self.entry_of(cpu)).owner.store(0, Relaxed);
    }

    /// Ends a CPU's ownership of all its pageblocks, because the CPU goes offline. O(pageblocks).
    pub(crate) fn dismiss(&self, cpu: CpuId) {
        self.entry(self.entry_of(cpu)).owner.store(1, Relaxed);
        for pageblock in 0..self.pageblocks {
            if self.owner(pageblock << PAGEBLOCK_ORDER) == Some(cpu) {
                self.disown(pageblock << PAGEBLOCK_ORDER);
            }
        }
    }

    fn link(&self, first: EntryIndex, second: EntryIndex) {
        self.entry(first).next.store(second + 1, Relaxed);
        self.entry(second).prev.store(first + 1, Relaxed);
    }

    /// Appends the frame's pageblock to the list of the pageblock's owner, unless the pageblock is already on
    /// this list.
    pub(crate) fn list(&self, frame: FrameIndex) {
        let pageblock = frame >> PAGEBLOCK_ORDER;
        let Some(cpu) = self.owner(frame) else { return };
        if self.is_listed(pageblock) {
            return;
        }
        let ring = self.entry_of(cpu);
        let last = self.entry(ring).prev.load(Relaxed).checked_sub(1).unwrap_or(ring);
        self.link(last, pageblock);
        self.link(pageblock, ring);
    }

    fn is_listed(&self, pageblock: EntryIndex) -> bool {
        self.entry(pageblock).next.load(Relaxed) != 0
    }

    /// Removes a pageblock from its owner's list, if the pageblock is on this list.
    pub(crate) fn unlist(&self, pageblock: EntryIndex) {
        let entry = self.entry(pageblock);
        let (prev, next) = (entry.prev.swap(0, Relaxed), entry.next.swap(0, Relaxed));
        let (Some(prev), Some(next)) = (prev.checked_sub(1), next.checked_sub(1)) else { return };
        if prev == next {
            // The last pageblock has left the ring, so only the CPU's entry is left.
            self.entry(prev).next.store(0, Relaxed);
            self.entry(prev).prev.store(0, Relaxed);
        } else {
            self.link(prev, next);
        }
    }

    /// The pageblocks on a CPU's list. The iterator stops after as many steps as there are pageblocks, so a
    /// corrupted ring cannot cause an endless loop.
    pub(crate) fn listed(&self, cpu: CpuId) -> impl Iterator<Item = EntryIndex> + '_ {
        let next = |entry: EntryIndex| {
            let next = self.entry(entry).next.load(Relaxed).checked_sub(1);
            next.filter(|next| *next < self.pageblocks)
        };
        core::iter::successors(next(self.entry_of(cpu)), move |entry| next(*entry))
            .take(self.pageblocks as usize)
    }
}

impl FrameCounts {
    /// Number of entries of the table of owners ([`Zone::with_owners`](crate::Zone::with_owners)). A policy
    /// with owners needs one entry for each pageblock and one for each CPU. A policy without owners needs no
    /// entry.
    #[must_use]
    pub fn owners(self, policy: &Policy, cpus: usize) -> usize {
        if policy.ownership().is_some() { entries(self, cpus) } else { 0 }
    }
}

fn entries(counts: FrameCounts, cpus: usize) -> usize {
    counts.pageblocks.saturating_add(cpus)
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use super::*;

    fn owners(pageblocks: usize, cpus: usize) -> Owners<'static> {
        let table: Vec<_> = (0..pageblocks + cpus).map(|_| PageblockOwner::new()).collect();
        let mut owners = Owners::new(Storage::Borrowed(Vec::leak(table)));
        owners.fit(FrameCounts { frames: pageblocks * 512, pageblocks }, cpus).unwrap();
        owners
    }

    fn listed(owners: &Owners<'_>, cpu: u32) -> Vec<EntryIndex> {
        owners.listed(CpuId(cpu)).collect()
    }

    #[test]
    fn pageblocks_enter_and_leave_the_list_of_their_owner() {
        let owners = owners(8, 2);
        (0..4).for_each(|pageblock| owners.own(pageblock << 9, CpuId(pageblock % 2)));
        for frame in [5, 512, 1024, 1030, 1536, 7 << 9] {
            owners.list(frame);
        }
        assert_eq!((listed(&owners, 0), listed(&owners, 1)), (std::vec![0, 2], std::vec![1, 3]));
        owners.unlist(0);
        owners.unlist(0);
        assert_eq!(listed(&owners, 0), [2], "one that is on no list stays off");
        owners.disown(1024);
        assert_eq!((owners.owner(1025), listed(&owners, 0).len()), (None, 0));
        owners.list(0);
        assert_eq!(listed(&owners, 0), [0]);
    }

    #[test]
    fn a_cpu_that_leaves_owns_nothing_until_it_is_back() {
        let owners = owners(4, 2);
        owners.own(0, CpuId(1));
        owners.own(512, CpuId(0));
        owners.own(1024, CpuId(1));
        owners.list(0);
        owners.dismiss(CpuId(1));
        assert_eq!([0, 512, 1024].map(|frame| owners.owner(frame)), [None, Some(CpuId(0)), None]);
        assert!(!owners.may_own(CpuId(1)) && owners.may_own(CpuId(0)) && listed(&owners, 1).is_empty());
        owners.admit(CpuId(1));
        assert!(owners.may_own(CpuId(1)));
    }

    #[test]
    fn a_table_without_entries_has_no_owners() {
        assert_eq!(Owners::none().owner(700), None);
        let needed =
            Owners::new(Storage::Borrowed(&mut [])).fit(FrameCounts { frames: 1024, pageblocks: 2 }, 3);
        assert_eq!(needed, Err(ConfigError::TableLength("owners", 5)));
    }
}
