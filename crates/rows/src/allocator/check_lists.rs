//! `validate`, of what CPUs and zones have of pageblocks: each list says what the pageblocks say.

use pageset_core::{CpuId, Order, ZoneId};

use super::{BlockAllocator, FRAMES};
use crate::cpu_lists::Wanted;
use crate::stack::{BlockIndex, Stack};
use crate::state::State;
use crate::zone::Zone;

impl BlockAllocator<'_> {
    /// Counts the frames that CPUs keep of other CPUs' pageblocks.
    pub(super) fn check_kept(&self, id: ZoneId, zone: &Zone) -> Result<u64, &'static str> {
        for cpu in 0..self.cpus() {
            let kept = &self.lists_at(id, CpuId(cpu as u32)).kept;
            if kept.is_busy() {
                return Err("nobody is at what a CPU keeps while nobody is at work");
            }
            if !kept.is_sound() {
                return Err("a CPU keeps as many blocks as it counts");
            }
            if !kept.iter().all(|frame| self.is_in_use(zone, frame as usize)) {
                return Err("a block that a CPU keeps is in use for its pageblock");
            }
        }
        Ok(self.kept_in(id) as u64)
    }

    /// Whether a frame of a split pageblock is in use as far as that knows.
    fn is_in_use(&self, zone: &Zone, index: usize) -> bool {
        let (block, frame) = (index / FRAMES, index % FRAMES);
        if !zone.blocks.contains(&block) {
            return false;
        }
        let state = self.states[block].get();
        if !state.is_open() || self.free[block].is_free(frame) {
            return false;
        }
        if state.is_holed() {
            !self.tails[block].is_tail(frame)
        } else {
            self.begins_in_split(block, frame, state)
        }
    }

    /// A pageblock that says that it is in a stack is in one.
    pub(super) fn check_stacks(&self, id: ZoneId, zone: &Zone) -> Result<(), &'static str> {
        let mut found = 0;
        for cpu in 0..self.cpus() {
            let lists = self.lists_at(id, CpuId(cpu as u32));
            let mut own = 0;
            for wanted in Wanted::all() {
                own += self.check_stack(zone, lists.stack(wanted))?;
            }
            if own != lists.budget.linked() {
                return Err("a CPU has as many pageblocks in its stacks as its budget counts");
            }
            found += own;
        }
        for wanted in Wanted::all() {
            found += self.check_stack(zone, zone.shared(wanted))?;
            if wanted.order == Order::ZERO {
                found += self.check_stack(zone, zone.mixed(wanted.migratetype))?;
            }
        }
        let linked = zone.blocks.clone().filter(|block| self.states[*block].get().is_linked()).count();
        if found == linked { Ok(()) } else { Err("every pageblock that says so is in a stack, once") }
    }

    /// Pageblocks of a stack.
    fn check_stack(&self, zone: &Zone, stack: &Stack) -> Result<usize, &'static str> {
        let most = zone.blocks.len() + 1;
        let mut found = 0;
        for block in stack.iter(&self.states).take(most) {
            if !zone.blocks.contains(&block) || !self.states[block].get().is_linked() {
                return Err("a stack has pageblocks of its zone that say so");
            }
            found += 1;
        }
        if found < most { Ok(found) } else { Err("a stack has an end") }
    }

    /// Whether the owner of a pageblock takes its blocks from it.
    pub(super) fn is_at_hand(&self, id: ZoneId, block: BlockIndex, state: State, blocks: Wanted) -> bool {
        let lists = self.lists_at(id, state.owner());
        let mixed = lists.mixed(blocks.migratetype);
        let own = if state.is_mixed() { mixed } else { &lists.cursor(blocks).at_hand };
        own.get().is_some_and(|(at_hand, _)| at_hand == block)
    }
}
