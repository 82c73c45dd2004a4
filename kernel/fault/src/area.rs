//! Areas and area maps. An area is a range of addresses with the same rights (Linux's VMA). An area map holds
//! all areas of an address space.
//!
//! The ranges and rights in an area map never change, so readers need no lock. To change areas, a writer
//! makes a new area map. The new map and the old map have the unchanged areas in common.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::Range;

use crate::atomic::{AtomicU64, Ordering};
use crate::rwsem::RwSem;
use crate::world::Line;

/// Access rights of an area.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Prot {
    /// No access. The area only reserves its addresses.
    None,
    /// Loads.
    Read,
    /// Loads and stores.
    ReadWrite,
}

/// An attempted access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Access {
    /// A load.
    Read,
    /// A store.
    Write,
}

impl Prot {
    /// Whether these rights allow the access.
    #[inline]
    #[must_use]
    pub fn allows(self, access: Access) -> bool {
        match self {
            Self::None => false,
            Self::Read => access == Access::Read,
            Self::ReadWrite => true,
        }
    }
}

/// A range of addresses with the same rights.
#[derive(Debug)]
pub(crate) struct Area {
    pub(crate) range: Range<u64>,
    pub(crate) prot: Prot,
    /// The area's number, which no other area of the engine has.
    pub(crate) id: u32,
    /// Under strategy V2, a fault in this area holds this lock as a reader.
    pub(crate) lock: RwSem,
    /// The number of the last write that closed this area. The area is closed while the write with this
    /// number is in progress.
    marked: AtomicU64,
}

impl Area {
    pub(crate) fn new(range: Range<u64>, prot: Prot, id: u32) -> Self {
        Self { range, prot, id, lock: RwSem::new(), marked: AtomicU64::new(0) }
    }

    /// The cache line of the area's lock.
    #[inline]
    pub(crate) fn line(&self) -> Line {
        Line::AreaLock { area: self.id }
    }

    /// Closes the area to faults until write number `write` ends.
    pub(crate) fn mark(&self, write: u64) {
        self.marked.store(write, Ordering::Release);
    }

    /// Whether the area is closed. `write` must be the number of the write in progress, or of the next write
    /// if no write is in progress.
    #[inline]
    pub(crate) fn is_marked(&self, write: u64) -> bool {
        self.marked.load(Ordering::Acquire) == write
    }
}

/// All areas of an address space, in ascending order of their addresses. Areas do not overlap. Two adjacent
/// areas have different rights, because [`AreaMap::with`] joins adjacent areas with the same rights.
#[derive(Clone, Debug, Default)]
pub(crate) struct AreaMap {
    areas: Vec<Arc<Area>>,
}

/// A new map, and the areas of the old map that the new map does not have.
#[derive(Debug)]
pub(crate) struct Change {
    pub(crate) map: AreaMap,
    pub(crate) replaced: Vec<Arc<Area>>,
}

impl AreaMap {
    pub(crate) fn areas(&self) -> &[Arc<Area>] {
        &self.areas
    }

    /// Whether the map is valid: no area is empty, areas ascend, and two areas that touch have different
    /// rights.
    fn is_proper(&self) -> bool {
        let fits = |left: &Area, right: &Area| {
            left.range.end < right.range.start
                || left.range.end == right.range.start && left.prot != right.prot
        };
        self.areas.iter().all(|area| !area.range.is_empty())
            && self.areas.windows(2).all(|pair| fits(&pair[0], &pair[1]))
    }

    /// The index of the area that contains address `va`.
    #[inline]
    pub(crate) fn find(&self, va: u64) -> Option<usize> {
        let index = self.areas.partition_point(|area| area.range.end <= va);
        self.areas.get(index).filter(|area| area.range.start <= va).map(|_| index)
    }

    /// Whether an area overlaps the range.
    pub(crate) fn touches(&self, range: &Range<u64>) -> bool {
        let first = self.areas.partition_point(|area| area.range.end <= range.start);
        self.areas.get(first).is_some_and(|area| area.range.start < range.end)
    }

    /// Whether areas cover the whole range.
    pub(crate) fn covers(&self, range: &Range<u64>) -> bool {
        let mut at = range.start;
        for area in self.areas.iter().skip(self.areas.partition_point(|area| area.range.end <= at)) {
            if area.range.start > at || at >= range.end {
                break;
            }
            at = area.range.end;
        }
        at >= range.end
    }

    /// Builds a map that gives `range` the rights `prot`, or has no area in `range` if `prot` is `None`.
    /// Areas that overlap `range` keep only their parts outside `range`. After that, adjacent areas with
    /// equal rights become one area.
    pub(crate) fn with(
        &self,
        range: Range<u64>,
        prot: Option<Prot>,
        mut next_id: impl FnMut() -> u32,
    ) -> Change {
        let mut map = AreaMap { areas: Vec::with_capacity(self.areas.len() + 2) };
        let mut put = |map: &mut AreaMap, piece: Range<u64>, prot: Prot| {
            if piece.is_empty() {
                return;
            }
            if let Some(last) =
                map.areas.last().filter(|last| last.range.end == piece.start && last.prot == prot)
            {
                let joined = Area::new(last.range.start..piece.end, prot, next_id());
                map.areas.pop();
                map.areas.push(Arc::new(joined));
            } else {
                map.areas.push(Arc::new(Area::new(piece, prot, next_id())));
            }
        };
        let before = self.areas.partition_point(|area| area.range.end < range.start);
        let after = self.areas.partition_point(|area| area.range.start <= range.end);
        map.areas.extend_from_slice(&self.areas[..before]);
        for area in &self.areas[before..after] {
            put(&mut map, area.range.start..area.range.end.min(range.start), area.prot);
        }
        prot.into_iter().for_each(|prot| put(&mut map, range.clone(), prot));
        for area in &self.areas[before..after] {
            put(&mut map, area.range.start.max(range.end)..area.range.end, area.prot);
        }
        map.areas.extend_from_slice(&self.areas[after..]);
        // Keep the old `Area` value of each adjacent area that did not change, so that the writer need not
        // close this area.
        for area in &mut map.areas[before..] {
            let same = |old: &&Arc<Area>| old.range == area.range && old.prot == area.prot;
            if let Some(old) = self.areas[before..after].iter().find(same) {
                *area = Arc::clone(old);
            }
        }
        debug_assert!(map.is_proper(), "{map:?}");
        let is_gone = |old: &&Arc<Area>| !map.areas.iter().skip(before).any(|area| Arc::ptr_eq(area, old));
        let replaced = self.areas[before..after].iter().filter(is_gone).cloned().collect();
        Change { map, replaced }
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn shape(map: &AreaMap) -> Vec<(u64, u64, Prot)> {
        map.areas.iter().map(|area| (area.range.start, area.range.end, area.prot)).collect()
    }

    fn with(map: &AreaMap, range: Range<u64>, prot: impl Into<Option<Prot>>) -> AreaMap {
        map.with(range, prot.into(), || 0).map
    }

    #[test]
    fn a_hole_splits_and_the_same_rights_join() {
        let map = with(&AreaMap::default(), 0..10, Prot::ReadWrite);
        let holed = with(&map, 4..6, None);
        assert_eq!(shape(&holed), [(0, 4, Prot::ReadWrite), (6, 10, Prot::ReadWrite)]);
        assert_eq!(shape(&with(&holed, 4..6, Prot::ReadWrite)), [(0, 10, Prot::ReadWrite)]);
        let read = with(&map, 4..6, Prot::Read);
        assert_eq!(shape(&read), [(0, 4, Prot::ReadWrite), (4, 6, Prot::Read), (6, 10, Prot::ReadWrite)]);
    }

    #[test]
    fn an_area_that_stays_is_the_same_area() {
        let map = with(&with(&AreaMap::default(), 0..4, Prot::Read), 4..8, Prot::ReadWrite);
        let change = map.with(8..9, Some(Prot::Read), || 1);
        assert!(change.replaced.is_empty());
        assert!(Arc::ptr_eq(&change.map.areas[1], &map.areas[1]));
        let change = map.with(8..9, Some(Prot::ReadWrite), || 1);
        assert_eq!(change.replaced.len(), 1, "joined with its neighbour, so the old area must be closed");
    }

    proptest! {
        #[test]
        fn a_map_is_what_its_pages_say(
            steps in prop::collection::vec((0..24_u64, 1..9_u64, 0..3_u8), 1..24),
        ) {
            let mut map = AreaMap::default();
            let mut pages = [None; 40];
            for (start, len, prot) in steps {
                let prot = [None, Some(Prot::Read), Some(Prot::ReadWrite)][usize::from(prot)];
                let range = start..start + len;
                let change = map.with(range.clone(), prot, || 0);
                for old in map.areas() {
                    let stays = change.map.areas().iter().any(|area| Arc::ptr_eq(area, old));
                    let replaced = change.replaced.iter().any(|area| Arc::ptr_eq(area, old));
                    prop_assert!(stays != replaced);
                }
                map = change.map;
                pages[start as usize..(start + len) as usize].fill(prot);
                for (page, prot) in pages.iter().enumerate() {
                    prop_assert_eq!(map.find(page as u64).map(|index| map.areas()[index].prot), *prot);
                }
                let all = pages[start as usize..(start + len) as usize].iter().all(Option::is_some);
                prop_assert_eq!(map.covers(&range), all);
                for pair in map.areas().windows(2) {
                    let (left, right) = (&pair[0], &pair[1]);
                    prop_assert!(left.range.end <= right.range.start);
                    prop_assert!(left.range.end < right.range.start || left.prot != right.prot);
                }
            }
        }
    }
}
