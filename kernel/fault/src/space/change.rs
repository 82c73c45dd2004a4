//! Maps, unmaps and protects ranges of addresses.

use core::ops::Range;

use super::AddressSpace;
use crate::area::Prot;
use crate::error::SpaceError;
use crate::local::Local;
use crate::world::World;

impl<W: World> AddressSpace<W> {
    pub(crate) fn map(&self, local: &mut Local, range: Range<u64>, prot: Prot) -> Result<(), SpaceError> {
        self.check_range(&range)?;
        let mut write = self.write(local);
        if write.map.touches(&range) {
            return Err(SpaceError::Occupied);
        }
        let change = write.change(&range, Some(prot));
        // Adjacent areas with the rights `prot` become parts of one larger area. Close these adjacent areas,
        // so that faults look again and find the larger area.
        write.close(local, &change.replaced);
        write.publish(change.map);
        Ok(())
    }

    pub(crate) fn unmap(&self, local: &mut Local, range: Range<u64>) -> Result<(), SpaceError> {
        self.check_range(&range)?;
        let mut write = self.write(local);
        let change = write.change(&range, None);
        if change.replaced.is_empty() {
            return Ok(());
        }
        write.close(local, &change.replaced);
        // If the range begins or ends inside a huge page, split the huge page. A split can fail, so the
        // splits come before `publish` and `zap`, which change the areas and pages for good.
        self.split_at(local, range.start)?;
        self.split_at(local, range.end)?;
        // After `publish`, new faults in the range find no area. `zap` removes the pages that earlier faults
        // have mapped in the range.
        write.publish(change.map);
        self.zap(local, &range, &write.map);
        Ok(())
    }

    pub(crate) fn protect(&self, local: &mut Local, range: Range<u64>, prot: Prot) -> Result<(), SpaceError> {
        self.check_range(&range)?;
        let mut write = self.write(local);
        if !write.map.covers(&range) {
            return Err(SpaceError::NoArea);
        }
        let change = write.change(&range, Some(prot));
        write.close(local, &change.replaced);
        self.split_at(local, range.start)?;
        self.split_at(local, range.end)?;
        let (map, replaced) = (change.map, change.replaced);
        // Close the new areas before `publish`, so that no fault uses these areas until the page-table words
        // have the new rights.
        write.close(
            local,
            map.areas().iter().filter(|area| area.range.start < range.end && range.start < area.range.end),
        );
        write.publish(map);
        drop(replaced);
        if prot != Prot::ReadWrite {
            self.restrict(local, &range, prot);
        }
        Ok(())
    }
}
