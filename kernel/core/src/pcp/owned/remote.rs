//! Blocks that other CPUs freed, until their owner's page set takes them in.

use core::mem;
use core::sync::atomic::{AtomicBool, Ordering::SeqCst};

use crate::Order;
use crate::event::DrainReason;
use crate::frame::{FrameIndex, FrameTables, List, State};
use crate::pcp::pageset::PagesetState;
use crate::pcp::{Claimed, CpuZone, DrainFrom};
use crate::platform::{Lock, Platform};
use crate::policy::RemoteFrees;

/// A list of blocks that CPUs other than the owner freed.
///
/// In the RFC, the list has no lock. Here a lock of its own guards it while a block is added or the whole list
/// is taken. So an addition is one exchange of this lock, as it is one exchange of the list there, and the
/// core needs no unsafe code.
pub(in crate::pcp) struct RemoteList<P: Platform> {
    blocks: Lock<P, List>,
    has_any: AtomicBool,
}

impl<P: Platform> RemoteList<P> {
    pub(in crate::pcp) const fn new() -> Self {
        Self { blocks: Lock::<P, _>::new(List::UNUSED), has_any: AtomicBool::new(false) }
    }

    pub(in crate::pcp) fn begin(&mut self) {
        *self.blocks.get_mut() = List::EMPTY;
    }

    fn add(&self, frames: &FrameTables<'_>, frame: FrameIndex) {
        let mut blocks = self.blocks.lock();
        blocks.push_head(frames, frame);
        self.has_any.store(true, SeqCst);
    }

    fn take(&self) -> List {
        if !self.has_any.load(SeqCst) {
            return List::EMPTY;
        }
        let mut blocks = self.blocks.lock();
        self.has_any.store(false, SeqCst);
        mem::replace(&mut *blocks, List::EMPTY)
    }

    /// Calls `visit` for the first frame of each block.
    pub(in crate::pcp) fn for_each(&self, frames: &FrameTables<'_>, visit: impl FnMut(FrameIndex)) {
        if self.has_any.load(SeqCst) {
            self.blocks.lock().iter(frames).for_each(visit);
        }
    }
}

impl<P: Platform> CpuZone<'_, '_, P> {
    /// Adds a freed block to the owner's list. `false` if the policy has no such lists, or if the owner frees
    /// the block itself.
    #[cold]
    pub(crate) fn gives_to_list(self, block: Claimed) -> bool {
        let remote = self.policy.ownership.map(|rule| rule.remote);
        if self.owner == self.cpu || remote != Some(RemoteFrees::OwnersList) {
            return false;
        }
        self.pageset.remote.add(&self.zone.body.frames, block.frame);
        // Race: the owner goes offline. It gives up its pageblocks first, and then empties its page set and this
        // list. If the list was emptied before the block was added, the pageblock has no owner now, and this
        // CPU empties the list. So no block stays behind.
        if self.zone.body.owners.owner(block.frame) != Some(self.owner) {
            self.pageset.with(|state| {
                self.take_in(state);
                let pages = state.pcp.count;
                if pages > 0 {
                    self.drain(state, DrainFrom { pages, list: 0 }, DrainReason::Demand);
                }
            });
        }
        true
    }

    /// Takes the blocks of the owner's list into its page set, whose lock is held.
    #[cold]
    pub(crate) fn take_in(self, state: &mut PagesetState) {
        let frames = &self.zone.body.frames;
        let mut blocks = self.pageset.remote.take();
        while let Some(frame) = blocks.pop_head(frames) {
            // A corrupted block has no order. Only its first frame is treated as bad.
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
