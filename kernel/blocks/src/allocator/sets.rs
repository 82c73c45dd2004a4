//! The sets of pageblocks. All CPUs look in these sets for the pageblocks that they use next.

use pageset_core::PAGEBLOCK_ORDER;

use super::BlockAllocator;
use crate::access::Access;
use crate::cpu_share::TYPES;
use crate::ids::BlockId;
use crate::index::Set;
use crate::state::State;

/// The sets except the sets by type and order.
#[derive(Clone, Copy)]
pub(super) enum Members {
    /// Whole pageblocks, which any CPU may claim.
    Whole,
    /// Pairs of whole pageblocks. The member is the first pageblock of the pair. The set `Pairs` may contain
    /// pairs that are no longer whole.
    Pairs,
    /// Unsettled pageblocks that no CPU keeps.
    Unsettled,
    /// Tainted units. The member is the first pageblock of the unit.
    Tainted,
    /// Units that have only whole pageblocks. The member is the first pageblock of the unit. A unit may stay
    /// in this set after one of its pageblocks was claimed.
    WholeUnits,
}

/// Sets by type and order.
const BY_ORDER: usize = TYPES * PAGEBLOCK_ORDER;
/// All sets.
pub(super) const SETS: usize = BY_ORDER + Members::WholeUnits as usize + 1;

impl<A: Access> BlockAllocator<'_, A> {
    pub(super) fn set(&self, members: Members) -> Set<'_, A> {
        self.index.set::<A>(BY_ORDER + members as usize)
    }

    /// The set of the pageblocks of a type whose largest free blocks have this order.
    pub(super) fn set_of(&self, type_index: usize, order: usize) -> Set<'_, A> {
        // A damaged state may name a type that no request has. A pageblock with such a state is in no set.
        let is_there = type_index < TYPES && order < PAGEBLOCK_ORDER;
        if is_there { self.index.set::<A>(type_index * PAGEBLOCK_ORDER + order) } else { self.index.none() }
    }

    pub(super) fn belongs(&self, block: BlockId, type_index: usize, order: usize) -> bool {
        let state = self.state(block).get();
        state.set_order() == Some(order) && state.type_index() == type_index
    }

    /// Removes a pageblock from a set that it no longer belongs to.
    ///
    /// Race: just before this removal, another CPU makes the pageblock belong to the set again, and adds it.
    /// The removal would then take out a rightful member. So this CPU reads the state after the removal, and
    /// adds the pageblock if it belongs there.
    pub(super) fn leave_set(&self, block: BlockId, type_index: usize, order: usize) {
        let set = self.set_of(type_index, order);
        set.remove(block);
        if self.belongs(block, type_index, order) {
            set.add(block);
        }
    }

    /// Removes a pageblock from the set of its state `before`, unless it belongs there again.
    pub(super) fn leave_set_of(&self, block: BlockId, before: State) {
        if let Some(order) = before.mark().checked_sub(1) {
            self.leave_set(block, before.type_index(), order);
        }
    }
}
