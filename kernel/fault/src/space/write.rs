//! The steps that several operations on an address space have in common. Only one writer runs at a time. A
//! map, unmap or protect closes the areas that it changes, and then publishes a new area map. A fork or
//! collapse closes areas, but publishes no map. A reclaim only keeps other writers out.

use alloc::sync::Arc;
use core::ops::Range;

use super::AddressSpace;
use crate::area::{Area, AreaMap, Change, Prot};
use crate::error::SpaceError;
use crate::local::Local;
use crate::world::World;

/// The right to change the areas of an address space. Dropping the `Write` value ends the write.
pub(super) struct Write<'a, W: World> {
    pub(super) space: &'a AddressSpace<W>,
    pub(super) map: Arc<AreaMap>,
    cpu: pageset_core::CpuId,
}

impl<W: World> AddressSpace<W> {
    /// Begins a write.
    pub(super) fn write(&self, local: &mut Local) -> Write<'_, W> {
        self.mm.write(local.cpu);
        Write { space: self, map: self.mm.map(), cpu: local.cpu }
    }

    /// Returns an error if the range is empty, leaves the address space, or does not begin and end at page
    /// boundaries.
    pub(super) fn check_range(&self, range: &Range<u64>) -> Result<(), SpaceError> {
        let geometry = self.engine().geometry;
        let is_page = |va: u64| va.is_multiple_of(geometry.page_bytes());
        let sane = range.start < range.end
            && range.end <= geometry.end()
            && is_page(range.start)
            && is_page(range.end);
        if sane { Ok(()) } else { Err(SpaceError::BadRange) }
    }
}

impl<W: World> Write<'_, W> {
    /// Computes the area map that gives `range` the rights `prot`, or that has no area in `range` if `prot`
    /// is `None`.
    pub(super) fn change(&self, range: &Range<u64>, prot: Option<Prot>) -> Change {
        self.map.with(range.clone(), prot, || self.space.engine().next_area())
    }

    /// Closes areas. Under V1, V2 and V7, no fault uses these areas when the call returns, and no fault can
    /// use these areas until the write ends. V0 and V3 only mark the areas.
    pub(super) fn close<'a>(&self, local: &mut Local, areas: impl IntoIterator<Item = &'a Arc<Area>>) {
        self.space.stabilise.close(&self.space.mm, local, areas.into_iter().map(|area| &**area));
    }

    /// Replaces the area map. Faults may use the new map at once, except the areas that this write has
    /// closed.
    pub(super) fn publish(&mut self, map: AreaMap) {
        self.map = Arc::new(map);
        self.space.mm.publish(Arc::clone(&self.map));
    }
}

impl<W: World> Drop for Write<'_, W> {
    /// Opens all areas that this write closed.
    fn drop(&mut self) {
        self.space.mm.end_write(self.cpu);
    }
}
