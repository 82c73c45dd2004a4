//! What a CPU gives up when it is idle, off-line, or asked to.

use pageset_core::{ConfigError, CpuId, TickOutcome, ZoneId};

use super::BlockAllocator;
use crate::atomic::Relaxed;
use crate::budget::Budget;
use crate::cpu_lists::{CpuLists, Cursor, Wanted};
use crate::spares::CLAIM_MIN;

impl BlockAllocator<'_> {
    /// Does one CPU's periodic work. Call it about once a second, on or for that CPU.
    ///
    /// A CPU that did next to nothing since the last tick but one gives up all it has but a few whole pageblocks. One that is busy
    /// gives back what it collected of a pageblock that its owner has left. One that found all it asked for among its own leaves a
    /// part of its budget for pageblocks to those that did not.
    ///
    /// # Errors
    /// [`ConfigError::BadCpu`] for an unknown CPU.
    pub fn tick(&self, cpu: CpuId) -> Result<TickOutcome, ConfigError> {
        self.check_cpu(cpu)?;
        let mut outcome = TickOutcome::Idle;
        for zone in self.zone_ids() {
            let lists = self.lists_at(zone, cpu);
            lists.cursors().for_each(Cursor::forget_few);
            lists.budget.adjust(self.zones[zone.index()].unassigned());
            if !lists.outlook.is_plenty() {
                self.look_at(&self.zones[zone.index()], lists);
            }
            if lists.activity.age() {
                lists.kept.try_with(|held| self.give_back_left(cpu, lists, held));
                Wanted::all().for_each(|wanted| self.give_up_stack(zone, lists, wanted, Budget::is_exceeded));
                outcome = TickOutcome::Again;
            } else {
                self.give_up_split(zone, cpu);
                // What one claim takes: a CPU that does little would give them back and take others again and again.
                self.give_spares(lists, lists.spares.shed(CLAIM_MIN as usize));
            }
        }
        Ok(outcome)
    }

    /// Lets others have everything that a CPU keeps back, as before the CPU goes off-line.
    ///
    /// # Errors
    /// [`ConfigError::BadCpu`] for an unknown CPU.
    pub fn drain_cpu(&self, cpu: CpuId) -> Result<(), ConfigError> {
        self.check_cpu(cpu)?;
        for zone in self.zone_ids() {
            self.lists_at(zone, cpu).activity.forget();
            self.give_up_split(zone, cpu);
            let lists = self.lists_at(zone, cpu);
            self.give_spares(lists, lists.spares.iter());
        }
        Ok(())
    }

    /// Lets everybody have everything that any CPU keeps back.
    pub fn drain_all(&self) {
        for cpu in 0..self.cpus() {
            let drained = self.drain_cpu(CpuId(cpu as u32));
            debug_assert!(drained.is_ok(), "it is one of the CPUs");
        }
    }

    pub(super) fn zone_ids(&self) -> impl Iterator<Item = ZoneId> {
        (0..self.zones.len()).map(|zone| ZoneId(zone as u16))
    }

    /// Lets others have the blocks that a CPU keeps, and its pageblocks of which a part is in use.
    fn give_up_split(&self, zone: ZoneId, cpu: CpuId) {
        let lists = self.lists_at(zone, cpu);
        self.give_back_all(zone, cpu);
        lists.cursors().for_each(|cursor| self.put_at_hand(&cursor.at_hand, None, cpu));
        self.give_up_mixed(zone, cpu);
        Wanted::all().for_each(|wanted| self.give_up_stack(zone, lists, wanted, |_| true));
        self.give_up_surplus(zone, lists);
        lists.spares.claim_size.store(CLAIM_MIN, Relaxed);
    }

    /// What a CPU has of pageblocks with free frames is anybody's, while its budget says so.
    fn give_up_stack(&self, id: ZoneId, lists: &CpuLists, wanted: Wanted, is_due: impl Fn(&Budget) -> bool) {
        let zone = &self.zones[id.index()];
        // No more than there are: somebody who runs as the same CPU may put others there meanwhile, without end.
        for _ in zone.blocks.clone().take_while(|_| is_due(&lists.budget)) {
            let Some(block) = self.pop_own(lists, wanted) else { break };
            if self.free[block].is_full() {
                self.states[block].update(|state| Some(state.linked(false))).ok();
                self.settle(block);
            } else {
                zone.shared(wanted).push(&self.states, block);
            }
        }
    }
}
