//! A CPU whose pageblock has no free block reserves another pageblock.

use pageset_core::{CpuId, MigrateType, Order, PAGEBLOCK_ORDER, ZoneId};

use super::BlockAllocator;
use super::reserve::Reserve;
use super::unit::Places;
use crate::access::Access;
use crate::atomic::Relaxed;
use crate::cpu_lists::{AtHand, CpuLists, TYPES, Wanted, count, types};
use crate::index::{BlockIndex, Set};
use crate::state::{Phase, State};
use crate::zone::Zone;

/// A request of a CPU for a block of a zone.
#[derive(Clone, Copy, Debug)]
pub(super) struct Needy<'l> {
    pub(super) zone: ZoneId,
    pub(super) cpu: CpuId,
    pub(super) lists: &'l CpuLists,
    pub(super) wanted: Wanted,
    pub(super) reserve: Reserve,
    pub(super) places: Places,
}

/// A CPU that needs single frames prefers a pageblock whose largest free block has at least this order to a
/// whole pageblock.
const RICH: usize = 2;
/// The largest order that CPUs reserve pageblocks for. A CPU takes a larger block out of a pageblock without
/// reserving it.
const RESERVED_FOR_MAX: Order = match Order::new(3) {
    Some(order) => order,
    None => Order::ZERO,
};

impl<A: Access> BlockAllocator<'_, A> {
    /// Takes a block from another pageblock of the right type, or from a whole pageblock.
    pub(super) fn take_from(&self, needy: Needy<'_>) -> Option<usize> {
        let order = needy.wanted.order;
        if order == Order::ZERO {
            return self
                .take_from_indexed(needy, RICH)
                .or_else(|| self.take_from_whole(needy))
                .or_else(|| (0..RICH).rev().find_map(|order| self.take_from_indexed(needy, order)));
        }
        // With no whole pageblock left, orders 1 to 3, too, take a block that fits without reserving its
        // pageblock.
        let is_short = self.zones[needy.zone.index()].whole_blocks() == 0;
        let from_indexed = if order <= RESERVED_FOR_MAX && !is_short {
            self.take_from_indexed(needy, order.index())
        } else {
            self.take_alone(needy, needy.wanted)
        };
        from_indexed.or_else(|| self.take_from_whole(needy))
    }

    /// Reserves a pageblock of the right type whose largest free block has at least this order, and takes a
    /// block of the wanted order.
    fn take_from_indexed(&self, needy: Needy<'_>, order: usize) -> Option<usize> {
        let zone = &self.zones[needy.zone.index()];
        loop {
            let near = needy.lists.near.load(Relaxed) as usize;
            let block = self.find_indexed(zone, needy, needy.wanted.migratetype, order, near)?;
            if !self.reserve_indexed(needy, block, needy.wanted.migratetype, order) {
                continue;
            }
            count::<A>(&needy.lists.counters.adopted);
            self.put_at_hand(needy.lists.at_hand(needy.wanted), Some(block), needy.cpu);
            // Other CPUs may have taken the pageblock's last free block. Then try the next pageblock.
            if let Some(index) = self.take_rest(needy) {
                return Some(index);
            }
        }
    }

    /// Reserves a whole pageblock, and takes a block of it.
    fn take_from_whole(&self, needy: Needy<'_>) -> Option<usize> {
        loop {
            let block = self.claim_whole(needy)?;
            let state = State::open(needy.wanted.migratetype).reserved_by(needy.cpu);
            if !self.open(block, state) {
                continue;
            }
            self.zones[needy.zone.index()].note_reserved::<A>();
            self.put_at_hand(needy.lists.at_hand(needy.wanted), Some(block), needy.cpu);
            if let Some(index) = self.take_rest(needy) {
                return Some(index);
            }
        }
    }

    /// Takes one block of a pageblock of this type that no CPU reserves, without reserving it.
    pub(super) fn take_alone(&self, needy: Needy<'_>, wanted: Wanted) -> Option<usize> {
        let zone = &self.zones[needy.zone.index()];
        loop {
            let block = self.find_fitting(needy, zone, wanted)?;
            let taken = self.take_one(block, wanted);
            // Without this, the pageblock would stay in a set whose order it no longer has, and other CPUs
            // would look there in vain.
            self.settle(block);
            if taken.is_some() {
                needy.lists.near.store(block as u32, Relaxed);
                return taken;
            }
        }
    }

    /// Takes one block of a pageblock, reserved or not.
    pub(super) fn take_one(&self, block: BlockIndex, wanted: Wanted) -> Option<usize> {
        let Some(frame) = self.rows[block].take_any(wanted.order) else {
            self.note_missed(block, wanted.order);
            return None;
        };
        self.note_taken(block, wanted.order.frames());
        self.still(block, frame, wanted)
    }

    /// An unreserved pageblock of this type whose free block of this order fits exactly. If none of the
    /// pageblocks that are looked at has one, the pageblock with the smallest larger block. So larger blocks
    /// stay for larger requests.
    fn find_fitting(&self, needy: Needy<'_>, zone: &Zone, wanted: Wanted) -> Option<BlockIndex> {
        /// Pageblocks to look at: 128 MiB of memory. Their states lie in eight cache lines.
        const LOOKS: usize = 64;
        let order = wanted.order.index();
        let near = self.search_start(needy).clamp(zone.blocks.start, zone.blocks.end);
        let found = self.find_indexed(zone, needy, wanted.migratetype, order, near)?;
        let fitting = |block: &BlockIndex| self.states[*block].get().fitting(wanted.migratetype, order);
        let (mut best, mut smallest) = (found, fitting(&found).unwrap_or(PAGEBLOCK_ORDER));
        for block in (near..zone.blocks.end).chain(zone.blocks.start..near).take(LOOKS) {
            if smallest == order {
                break;
            }
            match fitting(&block) {
                Some(fitting) if fitting < smallest && self.suits(zone, needy, block) => {
                    (best, smallest) = (block, fitting)
                }
                _ => {}
            }
        }
        Some(best)
    }

    /// An unreserved pageblock of this type with a free block of at least this order. The search begins with
    /// the smallest order. So the fullest pageblocks are used up, and nearly free ones can become whole.
    pub(super) fn find_indexed(
        &self,
        zone: &Zone,
        needy: Needy<'_>,
        migratetype: MigrateType,
        order: usize,
        near: BlockIndex,
    ) -> Option<BlockIndex> {
        (order..PAGEBLOCK_ORDER).find_map(|order| self.find_in_set(zone, needy, migratetype, order, near))
    }

    /// An unreserved pageblock of this type whose largest free block has this order.
    pub(super) fn find_in_set(
        &self,
        zone: &Zone,
        needy: Needy<'_>,
        migratetype: MigrateType,
        order: usize,
        near: BlockIndex,
    ) -> Option<BlockIndex> {
        let set = self.set_of(migratetype.index(), order);
        loop {
            let block = self.find_open(zone, &set, needy, near)?;
            if self.belongs(block, migratetype.index(), order) {
                return Some(block);
            }
            self.leave_set(block, migratetype.index(), order);
        }
    }

    fn belongs(&self, block: BlockIndex, type_index: usize, order: usize) -> bool {
        let state = self.states[block].get();
        state.set_order() == Some(order) && state.type_index() == type_index
    }

    /// The set of pageblocks of a type, by the order of their largest free block.
    pub(super) fn set_of(&self, type_index: usize, order: usize) -> Set<'_, A> {
        // A damaged state may name another type. Its pageblock is in no set.
        let is_there = type_index < TYPES && order < PAGEBLOCK_ORDER;
        if is_there { self.index.set::<A>(type_index * PAGEBLOCK_ORDER + order) } else { self.index.none() }
    }

    /// Removes a pageblock from a set that it does not belong to.
    ///
    /// Race: another CPU makes the pageblock belong to the set, and adds it just before this removal. Then
    /// the set would lack a member. So this CPU reads the state after the removal, and adds the pageblock
    /// again if it belongs there.
    pub(super) fn leave_set(&self, block: BlockIndex, type_index: usize, order: usize) {
        let set = self.set_of(type_index, order);
        set.remove(block);
        if self.belongs(block, type_index, order) {
            set.add(block);
        }
    }

    /// Removes a pageblock from the set of its state `before`, unless it belongs there again.
    pub(super) fn leave_set_of(&self, block: BlockIndex, before: State) {
        if let Some(order) = before.mark().checked_sub(1) {
            self.leave_set(block, before.type_index(), order);
        }
    }

    /// Reserves a pageblock of this type whose largest free block has at least this order, and gives it the
    /// type of the request. Returns `false` if another CPU changed the pageblock first.
    pub(super) fn reserve_indexed(
        &self,
        needy: Needy<'_>,
        block: BlockIndex,
        migratetype: MigrateType,
        order: usize,
    ) -> bool {
        let has_block = |state: State| state.set_order().is_some_and(|largest| largest >= order);
        let is_there = |state: State| has_block(state) && state.migratetype() == migratetype;
        let reserve = |state: State| state.of_type(needy.wanted.migratetype).reserved_by(needy.cpu);
        let reserved = self.states[block].update::<A>(|state| is_there(state).then(|| reserve(state)));
        let Ok(before) = reserved else { return false };
        self.leave_set_of(block, before);
        self.uncount(block);
        self.zones[needy.zone.index()].note_reserved::<A>();
        needy.lists.near.store(block as u32, Relaxed);
        true
    }

    /// Makes `block` the CPU's pageblock for such requests, and gives up the CPU's previous pageblock.
    pub(super) fn put_at_hand(&self, at_hand: &AtHand, block: Option<BlockIndex>, cpu: CpuId) {
        if let Some(before) = at_hand.replace::<A>(block)
            && Some(before) != block
        {
            self.unreserve(before, |state| state.is_reserved_by(cpu));
        }
    }

    /// Ends the reservation of a pageblock if `is_this` accepts its state.
    pub(super) fn unreserve(&self, block: BlockIndex, is_this: impl Fn(State) -> bool) {
        let Some(of_block) = self.states.get(block) else { return };
        let is_this =
            |state: State| state.phase() == Phase::Open && state.owner().is_some() && is_this(state);
        if let Ok(before) = of_block.update::<A>(|state| is_this(state).then(|| state.unreserved())) {
            self.note_unreserved(block, before);
            self.settle(block);
            self.count_free(block);
        }
    }

    /// Does what has to follow the end of a reservation. `before` is the state that the pageblock had.
    pub(super) fn note_unreserved(&self, block: BlockIndex, before: State) {
        let zone = self.zone_at(block);
        zone.note_unreserved::<A>();
        if let Some(cpu) = before.owner().filter(|cpu| self.is_known(*cpu)) {
            self.forget(zone.id, cpu, block);
        }
    }

    /// Removes a pageblock that a CPU no longer reserves from the CPU's hints.
    ///
    /// Race: a thread of the same CPU reserves the pageblock again and stores the hint, just before this
    /// removal. Then no hint would name a pageblock that the CPU reserves, and the CPU could never give it
    /// up. So this thread reads the state after the removal, and ends that reservation too.
    pub(super) fn forget(&self, zone: ZoneId, cpu: CpuId, block: BlockIndex) {
        let mut forgot_any = false;
        for at_hand in self.lists_at(zone, cpu).all_at_hand() {
            forgot_any |= at_hand.forget::<A>(block);
        }
        if forgot_any && self.states[block].get().is_reserved_by(cpu) {
            self.unreserve(block, |state| state.is_reserved_by(cpu));
        }
    }

    /// Ends all reservations in a zone. O(CPUs).
    pub(super) fn unreserve_all(&self, zone: &Zone) {
        self.give_spares(zone);
        if !zone.has_reserved() {
            return;
        }
        for cpu in (0..self.cpus()).map(|cpu| CpuId(cpu as u32)) {
            self.unreserve_of(zone.id, cpu);
        }
    }

    /// Ends a CPU's reservations in a zone, and gives up its spare pageblock.
    pub(super) fn unreserve_of(&self, zone: ZoneId, cpu: CpuId) {
        self.give_spare_of(self.lists_at(zone, cpu));
        for at_hand in self.lists_at(zone, cpu).all_at_hand().filter(|at_hand| at_hand.get().is_some()) {
            self.put_at_hand(at_hand, None, cpu);
        }
    }
}

impl Wanted {
    /// The types whose pageblocks a request of this type may take instead, in this order.
    pub(super) const fn fallbacks(self) -> [MigrateType; 2] {
        match self.migratetype {
            MigrateType::Movable => [MigrateType::Reclaimable, MigrateType::Unmovable],
            MigrateType::Reclaimable => [MigrateType::Unmovable, MigrateType::Movable],
            _ => [MigrateType::Reclaimable, MigrateType::Movable],
        }
    }

    /// The request once for each type, beginning with the request's own type.
    pub(super) fn of_each_type(self) -> impl Iterator<Item = Self> {
        let own = core::iter::once(self.migratetype);
        own.chain(types().filter(move |other| *other != self.migratetype))
            .map(move |migratetype| Self { migratetype, ..self })
    }
}
