//! The last attempts in a zone: the stocks of all CPUs, pageblocks of other types, and pageblocks that CPUs
//! reserve.

use pageset_core::{CpuId, Order, PAGEBLOCK_ORDER, Request, Watermark, ZoneId};

use super::needy::Needy;
use super::{BlockAllocator, FRAMES};
use crate::access::Access;
use crate::cpu_share::{RESERVATIONS, Wanted, count};
use crate::ids::{BlockId, FrameId};
use crate::state::State;
use crate::zone::Zone;

impl<A: Access> BlockAllocator<'_, A> {
    pub(super) fn rescue(&self, needy: Needy<'_>, request: &Request) -> Option<(ZoneId, FrameId)> {
        let zone = &self.zones[needy.zone.index()];
        self.give_stocks(zone);
        self.add_all_unsettled(zone);
        let floor = zone.floor(request, Watermark::Min);
        let mut is_tight = false;
        if floor > 0 && !self.is_free_at_least(zone, floor.saturating_add(FRAMES as u64)) {
            // A CPU takes blocks of its reserved pageblock without checking a watermark. When the zone is
            // close to its minimum, the blocks could come from memory that only other requests may use. End
            // all reservations.
            self.unreserve_all(zone);
            is_tight = !self.is_free_at_least(zone, floor.saturating_add(FRAMES as u64));
            if is_tight
                && !self.is_free_at_least(zone, floor.saturating_add(u64::from(request.order.frames())))
            {
                return None;
            }
        }
        let found = if request.order >= Order::PAGEBLOCK {
            self.reap(zone);
            self.alloc_whole(needy).map(|block| FrameId::of(block, 0))
        } else if is_tight {
            self.take_each_alone(needy)
        } else {
            self.take_from_another(needy)
                .or_else(|| self.steal(needy))
                .or_else(|| self.take_from_others(needy))
        };
        found.map(|id| {
            count::<A>(&needy.share.counters.rescued);
            (needy.zone, id)
        })
    }

    /// Takes one block without a reservation. The zone is so near its minimum that no CPU may reserve a
    /// pageblock.
    fn take_each_alone(&self, needy: Needy<'_>) -> Option<FrameId> {
        let of_whole = || loop {
            let block = self.claim_whole(needy)?;
            if self.open(block, State::open(needy.wanted.migratetype)) {
                let taken = self.take_one(block, needy.wanted);
                self.settle(block);
                return taken;
            }
        };
        self.take_alone(needy, needy.wanted).or_else(of_whole).or_else(|| {
            needy.wanted.of_each_type().skip(1).find_map(|other| self.take_alone_of(needy, other))
        })
    }

    fn take_alone_of(&self, needy: Needy<'_>, other: Wanted) -> Option<FrameId> {
        let taken = self.take_alone(needy, other);
        if let Some(id) = taken {
            count::<A>(&needy.share.counters.fallbacks);
            self.note_use(needy.wanted.migratetype, id.block());
        }
        taken
    }

    /// Takes a block of a pageblock of another type. Among the pageblocks of one type, takes one with the
    /// largest free block. If half of the pageblock is free, the pageblock changes to the wanted type.
    fn steal(&self, needy: Needy<'_>) -> Option<FrameId> {
        let zone = &self.zones[needy.zone.index()];
        let near = needy.share.near();
        for migratetype in needy.wanted.fallbacks() {
            for order in (needy.wanted.order.index()..PAGEBLOCK_ORDER).rev() {
                let Some(block) = self.find_in_set(zone, needy, migratetype, order, near) else { continue };
                if self.rows(block).free() >= FRAMES / 2
                    && self.reserve_indexed(needy, block, migratetype, order)
                {
                    self.note_use(needy.wanted.migratetype, block);
                    count::<A>(&needy.share.counters.retyped);
                    count::<A>(&needy.share.counters.fallbacks);
                    self.set_reservation(needy.share.reservation(needy.wanted), Some(block), needy.cpu);
                    if let Some(id) = self.take_from_own(needy) {
                        return Some(id);
                    }
                }
                let taken = self.take_alone_of(needy, Wanted { migratetype, ..needy.wanted });
                if taken.is_some() {
                    return taken;
                }
            }
        }
        None
    }

    /// Takes from a pageblock that a CPU reserves. O(CPUs).
    fn take_from_others(&self, needy: Needy<'_>) -> Option<FrameId> {
        needy.wanted.of_each_type().find_map(|wanted| {
            let blocks = self.reserved_in(needy.zone);
            { blocks }.find_map(|block| {
                let state = self.state(block).get();
                if !state.serves(wanted.migratetype)
                    || self.rows(block).largest_free() < Some(wanted.order.index())
                {
                    return None;
                }
                if wanted.migratetype == needy.wanted.migratetype && self.take_over(needy, block, state) {
                    return self.take_from_own(needy);
                }
                let id = self.take_one(block, wanted)?;
                if wanted.migratetype != needy.wanted.migratetype {
                    count::<A>(&needy.share.counters.fallbacks);
                    self.note_use(needy.wanted.migratetype, id.block());
                }
                Some(id)
            })
        })
    }

    /// Moves the reservation from another CPU to this CPU, so that the next block needs no search.
    fn take_over(&self, needy: Needy<'_>, block: BlockId, state: State) -> bool {
        let Some(cpu) = state.owner().filter(|cpu| *cpu != needy.cpu && self.is_known(*cpu)) else {
            return false;
        };
        let ours = state.reserved_by(needy.cpu);
        let taken = self.state(block).update::<A>(|now| (now == state).then_some(ours)).is_ok();
        if taken {
            self.forget(needy.zone, cpu, block);
            self.set_reservation(needy.share.reservation(needy.wanted), Some(block), needy.cpu);
        }
        taken
    }

    /// The reserved pageblocks of a zone.
    pub(super) fn reserved_in(&self, zone: ZoneId) -> impl Iterator<Item = BlockId> {
        let mut next = 0;
        core::iter::from_fn(move || self.next_reserved(zone, &mut next))
    }

    /// The first reserved pageblock from the place `next` on, in the shares of all CPUs one after the other.
    /// This code is one function, because a kernel would otherwise link a copy of a chain of iterators for
    /// each caller.
    fn next_reserved(&self, zone: ZoneId, next: &mut usize) -> Option<BlockId> {
        loop {
            let (cpu, place) = (*next / RESERVATIONS, *next % RESERVATIONS);
            if cpu >= self.cpus() {
                return None;
            }
            *next += 1;
            let reservation = self.share_at(zone, CpuId(cpu as u32)).reservations()[place].get();
            let Some((block, _)) = reservation else { continue };
            if self.states.get(block.0).is_some_and(|state| state.get().owner().is_some()) {
                return Some(block);
            }
        }
    }

    /// Finds reserved pageblocks whose frames are all free, and makes them whole. O(CPUs).
    pub(super) fn reap(&self, zone: &Zone) {
        for block in self.reserved_in(zone.id) {
            self.reap_block(block);
        }
    }

    /// Makes a pageblock whole if all of its frames are free, whether a CPU reserves it or not.
    pub(super) fn reap_block(&self, block: BlockId) {
        self.give_stock_with(block);
        if self.rows(block).is_free() {
            self.unreserve(block, None, |_| true);
            self.settle(block);
        }
    }
}
