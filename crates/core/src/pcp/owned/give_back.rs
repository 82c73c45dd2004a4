//! A freed block comes to the page set of the CPU that owns its pageblock.

use crate::MigrateType;
use crate::frame::State;
use crate::pcp::{Claimed, CpuZone};
use crate::platform::Platform;
use crate::policy::BusyOwner;

impl<P: Platform> CpuZone<'_, '_, P> {
    /// Whether this page set, whose lock is held, may have a freed block: nobody owns its pageblock, or still this CPU.
    ///
    /// A CPU that goes offline gives its pageblocks back first, and then empties its page set: whoever comes between finds the
    /// one, and whoever comes earlier is found by the other.
    #[cold]
    pub(crate) fn takes_back(self, block: Claimed, migratetype: MigrateType) -> bool {
        let Claimed { frame, order } = block;
        if self.zone.body.owners.owner(frame) == Some(self.owner) {
            // If that fails, the block was marked bad meanwhile, and the drain will find it so.
            let claimed = State::Cached { order, migratetype };
            self.zone.body.frames.exchange_state(frame, claimed, State::Owned { order });
            return true;
        }
        self.owner == self.cpu
    }

    /// Whether a block goes to the page set of the CPU that frees it, since this one, the owner's, is busy.
    #[cold]
    pub(crate) fn may_try_own(self) -> bool {
        let busy_owner = self.policy.ownership.map(|rule| rule.busy_owner);
        self.owner != self.cpu && busy_owner == Some(BusyOwner::FreeingCpu)
    }
}
