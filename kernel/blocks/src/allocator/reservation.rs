//! Begins and ends a CPU's reservation of a pageblock.

use pageset_core::{CpuId, MigrateType, ZoneId};

use super::BlockAllocator;
use super::needy::Needy;
use crate::access::Access;
use crate::cpu_share::{Reservation, count};
use crate::ids::BlockId;
use crate::state::{Phase, State};
use crate::zone::Zone;

impl<A: Access> BlockAllocator<'_, A> {
    /// Reserves a pageblock of this type whose largest free block has at least this order, and gives the
    /// pageblock the type of the request. Returns `false` if another CPU changed the pageblock first.
    pub(super) fn reserve_indexed(
        &self,
        needy: Needy<'_>,
        block: BlockId,
        migratetype: MigrateType,
        order: usize,
    ) -> bool {
        let has_block = |state: State| state.set_order().is_some_and(|largest| largest >= order);
        self.reserve(needy, block, |state| has_block(state) && state.migratetype() == migratetype)
    }

    /// Reserves an unsettled pageblock of the request's type. Returns `false` if another CPU changed the
    /// pageblock first.
    pub(super) fn reserve_unsettled(&self, needy: Needy<'_>, block: BlockId) -> bool {
        let is_unsettled = |state: State| state.is_idle() && !state.is_settled();
        self.reserve(needy, block, |state| is_unsettled(state) && state.serves(needy.wanted.migratetype))
    }

    /// Reserves a pageblock for the requests of a CPU if `is_this` accepts its state. A pageblock that was
    /// full when a CPU settled it last is in no set.
    fn reserve(&self, needy: Needy<'_>, block: BlockId, is_this: impl Fn(State) -> bool) -> bool {
        let reserve = |state: State| state.of_type(needy.wanted.migratetype).reserved_by(needy.cpu);
        let reserved = self
            .states
            .get(block.0)
            .map(|state| state.update::<A>(|state| is_this(state).then(|| reserve(state))));
        let Some(Ok(before)) = reserved else { return false };
        if before.mark() > 0 {
            count::<A>(&needy.share.counters.adopted);
            self.leave_set_of(block, before);
        }
        self.uncount(block);
        needy.share.set_near(block);
        true
    }

    /// Whether this CPU really reserves a pageblock that its `CpuShare` names. The `CpuShare` may be out of
    /// date.
    pub(super) fn is_reserved_by(&self, cpu: CpuId, block: BlockId) -> bool {
        self.states.get(block.0).is_some_and(|state| state.get().is_reserved_by(cpu))
    }

    /// Writes `block` into a reservation of the CPU's `CpuShare`. Gives up the pageblock that the reservation
    /// named before.
    pub(super) fn set_reservation(&self, reservation: &Reservation, block: Option<BlockId>, cpu: CpuId) {
        if let Some(before) = reservation.replace::<A>(block)
            && Some(before) != block
        {
            self.unreserve(before, Some(cpu), |state| state.is_reserved_by(cpu));
        }
    }

    /// Ends the reservation of a pageblock if `is_this` accepts its state. If the pageblock becomes whole,
    /// the pageblock goes to the stock of the CPU `keeper`, if `keeper` is a CPU and the allocator keeps
    /// stocks.
    pub(super) fn unreserve(&self, block: BlockId, keeper: Option<CpuId>, is_this: impl Fn(State) -> bool) {
        let Some(of_block) = self.states.get(block.0) else { return };
        let is_this =
            |state: State| state.phase() == Phase::Open && state.owner().is_some() && is_this(state);
        if let Ok(before) = of_block.update::<A>(|state| is_this(state).then(|| state.unreserved())) {
            self.note_unreserved(block, before);
            self.settle_for(block, keeper);
        }
    }

    /// Removes a pageblock that is no longer reserved from its CPU's `CpuShare`. `before` is the state during
    /// the reservation.
    pub(super) fn note_unreserved(&self, block: BlockId, before: State) {
        if let Some(cpu) = before.owner().filter(|cpu| self.is_known(*cpu)) {
            self.forget(self.zone_of_block(block), cpu, block);
        }
    }

    /// Removes a pageblock that a CPU no longer reserves from the CPU's share.
    ///
    /// Race: just before this removal, another thread of the same CPU reserves the pageblock again and writes
    /// it into the share. After the removal, the CPU would reserve a pageblock that its share does not name,
    /// and could never give it up. So this thread reads the state after the removal, and ends the new
    /// reservation, too.
    pub(super) fn forget(&self, zone: ZoneId, cpu: CpuId, block: BlockId) {
        let mut forgot_any = false;
        for reservation in self.share_at(zone, cpu).reservations() {
            forgot_any |= reservation.forget::<A>(block);
        }
        if forgot_any && self.state(block).get().is_reserved_by(cpu) {
            self.unreserve(block, None, |state| state.is_reserved_by(cpu));
        }
    }

    /// Ends all reservations in a zone, and gives up all stocks of the zone. O(CPUs).
    pub(super) fn unreserve_all(&self, zone: &Zone) {
        for cpu in (0..self.cpus()).map(|cpu| CpuId(cpu as u32)) {
            self.unreserve_of(zone.id, cpu);
        }
    }

    /// Ends a CPU's reservations in a zone. Gives up the CPU's stock in the zone, and the unsettled
    /// pageblocks of the zone that the CPU keeps.
    pub(super) fn unreserve_of(&self, zone: ZoneId, cpu: CpuId) {
        for reservation in
            self.share_at(zone, cpu).reservations().iter().filter(|reservation| reservation.get().is_some())
        {
            self.set_reservation(reservation, None, cpu);
        }
        self.give_stock(&self.zones[zone.index()], self.share_at(zone, cpu));
        self.add_unsettled_of(self.share_at(zone, cpu));
    }
}
