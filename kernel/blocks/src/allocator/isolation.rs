//! Takes pageblocks out of service and back. A bit of the pageblock's state says that it is out of service.
//! Race: while one CPU isolates a pageblock, another CPU puts the pageblock to another use. Both CPUs
//! exchange the word of the pageblock's state. If the other CPU's exchange comes second, the other CPU sees
//! the bit and loses: it leaves the pageblock out of service.

use pageset_core::{ConfigError, CpuId, MigrateType, Pfn};

use super::BlockAllocator;
use crate::access::Access;
use crate::state::{Phase, State};

impl<A: Access> BlockAllocator<'_, A> {
    /// Takes a pageblock out of service. Its free frames are no longer handed out or counted as free. Frames
    /// of the pageblock that are freed later are not handed out either. Frames in use stay in use.
    ///
    /// # Errors
    /// [`ConfigError::BadCpu`] for an unknown CPU, [`ConfigError::Foreign`] if the frame lies in no zone,
    /// [`ConfigError::AlreadyIsolated`] if the pageblock is out of service.
    pub fn isolate_pageblock(&self, cpu: CpuId, pfn: Pfn) -> Result<(), ConfigError> {
        self.check_cpu(cpu)?;
        let block = self.locate(pfn).ok_or(ConfigError::Foreign(pfn))?.1.block();
        let isolate = |state: State| {
            let left = if state.phase() == Phase::Open { state.unreserved() } else { state };
            (!state.is_isolated()).then(|| left.isolated(true))
        };
        let before = self.state(block).update::<A>(isolate).map_err(|_| ConfigError::AlreadyIsolated(pfn))?;
        if before.phase() == Phase::Open {
            if before.owner().is_some() {
                self.note_unreserved(block, before);
            } else {
                self.leave_set_of(block, before);
            }
            self.uncount(block);
        }
        self.withdraw(block);
        self.give_stock_with(block);
        Ok(())
    }

    /// Returns a pageblock to service, for requests of `migratetype`.
    ///
    /// # Errors
    /// [`ConfigError::BadCpu`] for an unknown CPU, [`ConfigError::Foreign`] if the frame lies in no zone,
    /// [`ConfigError::BadType`] for a type that no request can have, [`ConfigError::NotIsolated`] if the
    /// pageblock is in service.
    pub fn unisolate_pageblock(
        &self,
        cpu: CpuId,
        pfn: Pfn,
        migratetype: MigrateType,
    ) -> Result<(), ConfigError> {
        self.check_cpu(cpu)?;
        let (_, id) = self.locate(pfn).ok_or(ConfigError::Foreign(pfn))?;
        if !migratetype.is_mergeable() {
            return Err(ConfigError::BadType(migratetype));
        }
        let block = id.block();
        let to_service = |state: State| {
            let to = if state.phase() == Phase::Parked { Phase::Changing } else { state.phase() };
            state.is_isolated().then(|| state.isolated(false).of_type(migratetype).in_phase(to))
        };
        let before = self.state(block).update::<A>(to_service).map_err(|_| ConfigError::NotIsolated(pfn))?;
        if before.phase() == Phase::Parked {
            self.give_whole(block);
        } else {
            self.note_use(migratetype, block);
        }
        self.settle(block);
        Ok(())
    }
}
