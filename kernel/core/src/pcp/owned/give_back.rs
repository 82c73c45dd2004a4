//! Gives a freed block to the CPU that owns its pageblock. The policy chooses the owner's page set or the
//! owner's list of blocks that other CPUs freed.

use crate::frame::State;
use crate::pcp::pageset::PagesetState;
use crate::pcp::{Claimed, CpuZone};
use crate::platform::Platform;
use crate::policy::{BusyOwner, RemoteFrees};
use crate::{MigrateType, Order};

impl<P: Platform> CpuZone<'_, '_, P> {
    /// Whether this page set takes a freed block, because the page set's CPU owns the pageblock, or frees the
    /// block itself. If the CPU owns the pageblock, this function marks the block as `Owned`. The caller
    /// holds the page set's lock.
    ///
    /// Race: the owner goes offline while another CPU frees a block. `cpu_offline` first ends the owner's
    /// ownership of pageblocks, and then empties the owner's page set under the lock. A free that gets the
    /// lock after the end of the ownership finds no owner, and goes to another page set. A free that gets the
    /// lock earlier adds its block before the page set is emptied. In both orders, no block stays in the page
    /// set of an owner that goes offline.
    #[cold]
    pub(crate) fn takes_back(self, block: Claimed, migratetype: MigrateType) -> bool {
        let Claimed { frame, order } = block;
        if self.zone.body.owners.owner(frame) == Some(self.owner) {
            // The exchange fails if the block was marked bad meanwhile. The drain of the block then notices
            // that the block is bad.
            let claimed = State::Cached { order, migratetype };
            self.zone.body.frames.exchange_state(frame, claimed, State::Owned { order });
            return true;
        }
        self.owner == self.cpu
    }

    /// Whether a freed block may go to the freeing CPU's page set, because the owner's page set is locked.
    /// `self` has the owner's page set.
    #[cold]
    pub(crate) fn may_try_own(self) -> bool {
        let busy_owner = self.policy.ownership().map(|rule| rule.busy_owner);
        self.owner != self.cpu && busy_owner == Some(BusyOwner::FreeingCpu)
    }

    /// Adds a freed block to the owner's list of remote frees. Returns `false` if the policy has no lists of
    /// remote frees, or if the owner frees the block itself.
    #[cold]
    pub(crate) fn gives_to_list(self, block: Claimed) -> bool {
        let remote = self.policy.ownership().map(|rule| rule.remote);
        let gives = self.owner != self.cpu && remote == Some(RemoteFrees::OwnersList);
        if gives {
            self.pageset.remote.add(&self.zone.body.frames, block.frame);
        }
        gives
    }

    /// Moves all blocks from the owner's list of remote frees into the owner's page set. The caller holds the
    /// page set's lock.
    #[cold]
    pub(crate) fn take_in(self, state: &mut PagesetState) {
        let frames = &self.zone.body.frames;
        let mut blocks = self.pageset.remote.take();
        while let Some(frame) = blocks.pop_head(frames) {
            // If a block is corrupted, its order is not known, so only its first frame is treated as bad.
            let order = frames.state(frame).order().unwrap_or(Order::ZERO);
            let migratetype = match frames.state(frame) {
                State::Cached { migratetype, .. } => migratetype,
                _ => frames.pageblock_type(frame),
            };
            self.takes_back(Claimed { frame, order }, migratetype);
            let list = self.policy.lists.list_of_held(order, migratetype);
            state.pcp.push(frames, list, frame, order);
            state.counters.pgfree += u64::from(order.frames());
            state.counters.pcp_free += 1;
        }
    }
}
