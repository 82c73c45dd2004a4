//! A freed block comes to the page set of the CPU that owns its pageblock.

use crate::MigrateType;
use crate::frame::State;
use crate::pcp::pageset::PagesetState;
use crate::pcp::{Claimed, CpuZone, DueDrain, ListIndex};
use crate::platform::Platform;

/// What became of a block that was to go to its owner.
pub(crate) enum GivenBack {
    /// The owner's page set has it; so much is to be drained under new holds of its lock.
    Kept(Option<DueDrain>),
    /// The CPU does not own the pageblock any more.
    Disowned,
}

impl<P: Platform> CpuZone<'_, '_, P> {
    /// Adds a freed block to the owner's page set, whose lock is held.
    pub(crate) fn push_owned_and_drain(
        self,
        state: &mut PagesetState,
        list: ListIndex,
        block: Claimed,
        migratetype: MigrateType,
    ) -> GivenBack {
        let Claimed { frame, order } = block;
        // A CPU that goes offline gives its pageblocks back first, and then empties its page set: whoever comes between finds
        // the one, and whoever comes earlier is found by the other.
        if self.zone.body.owners.owner(frame) != Some(self.owner) {
            return GivenBack::Disowned;
        }
        let claimed = State::Cached { order, migratetype };
        // If that fails, the block was marked bad meanwhile, and the drain will find it so.
        self.zone.body.frames.exchange_state(frame, claimed, State::Owned { order });
        GivenBack::Kept(self.push_and_drain(state, list, block))
    }
}
