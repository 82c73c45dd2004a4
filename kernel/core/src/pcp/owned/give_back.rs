//! Puts a freed block into the page set of the CPU that owns its pageblock.

use crate::MigrateType;
use crate::frame::State;
use crate::pcp::{Claimed, CpuZone};
use crate::platform::Platform;
use crate::policy::BusyOwner;

impl<P: Platform> CpuZone<'_, '_, P> {
    /// Whether this page set, whose lock is held, takes a freed block: its CPU owns the pageblock, or frees
    /// the block itself.
    ///
    /// Race: a free against the owner going offline. The CPU first gives up its pageblocks, then empties its
    /// page set under the lock. A free that gets the lock after the pageblocks were given up finds no owner
    /// and goes elsewhere. A free that gets the lock earlier adds its block before the page set is emptied.
    /// So no block stays behind.
    #[cold]
    pub(crate) fn takes_back(self, block: Claimed, migratetype: MigrateType) -> bool {
        let Claimed { frame, order } = block;
        if self.zone.body.owners.owner(frame) == Some(self.owner) {
            // The exchange fails if the block was marked bad meanwhile. The drain of the block then notices
            // it.
            let claimed = State::Cached { order, migratetype };
            self.zone.body.frames.exchange_state(frame, claimed, State::Owned { order });
            return true;
        }
        self.owner == self.cpu
    }

    /// Whether a block may go to the freeing CPU's page set because this one, the owner's, is busy.
    #[cold]
    pub(crate) fn may_try_own(self) -> bool {
        let busy_owner = self.policy.ownership.map(|rule| rule.busy_owner);
        self.owner != self.cpu && busy_owner == Some(BusyOwner::FreeingCpu)
    }
}
