//! A CPU whose pageblock has no free block reserves another pageblock.

use pageset_core::{MigrateType, Order, PAGEBLOCK_ORDER};

use super::BlockAllocator;
use super::needy::{Needy, Places};
use super::sets::Members;
use crate::access::Access;
use crate::cpu_share::{Wanted, count, types};
use crate::ids::{BlockId, FrameId, each};
use crate::state::State;
use crate::zone::Zone;

/// A CPU that needs single frames opens a whole pageblock only if no pageblock in part use has a free block
/// of at least this order. The CPU prefers a smaller block to a whole pageblock in a unit that does not suit.
/// Measured with `--example orders -- 256 50 4 300000`: if this constant is 0, the program executes 8 % more
/// instructions. If it is 4, the program executes 11 % fewer instructions, and 57 pageblocks stay whole
/// instead of 59.
const RICH: usize = 2;
/// For orders up to this one, a CPU reserves the pageblock in part use that it takes a block from. For orders
/// 1 to 3, a CPU does not reserve the pageblock if no pageblock is whole. For larger orders, a CPU reserves a
/// pageblock in part use only to change its type. Measured with `--example orders -- 4096 75 8 200000`: if
/// this constant is 0, 456 pageblocks stay whole instead of 482. If it is 8, the program executes 10 % fewer
/// instructions, and 436 pageblocks stay whole.
const RESERVED_FOR_MAX: Order = match Order::new(3) {
    Some(order) => order,
    None => Order::ZERO,
};

/// How many pageblocks a CPU settles before it searches. Chosen by a test that frees pages at random. The
/// remaining pages would fit into 16 pageblocks. With this constant at 4, the pages stayed in 22 pageblocks.
/// At 8, they stayed in at most 20 pageblocks. Measured with `--example orders -- 256 50 4 300000`: if this
/// constant is 1, 9 pageblocks stay whole instead of 59.
const SETTLED_AT_ONCE: usize = 8;

impl<A: Access> BlockAllocator<'_, A> {
    /// Takes a block of another pageblock. Settles some unsettled pageblocks first, so that the search finds
    /// the frames that were freed in them. If the search finds no block, settles more and searches again,
    /// until no pageblock is unsettled.
    pub(super) fn take_from_another(&self, needy: Needy<'_>) -> Option<FrameId> {
        let taken = self.take_freed(needy);
        if taken.is_some() {
            return taken;
        }
        // A request of an order above `RESERVED_FOR_MAX` reserves no pageblock in part use, so each such
        // request searches. So it settles only the one pageblock of `take_freed`, unless memory is short.
        if self.is_short(needy) {
            self.settle_some(needy, Self::next_unsettled);
        } else if needy.wanted.order <= RESERVED_FOR_MAX {
            let smallest = self.smallest_in_sets(needy);
            let kept = self.take_from_kept(needy, smallest);
            if kept.is_some() {
                return kept;
            }
            // If a search will find a pageblock, the pageblocks that this CPU keeps may stay unsettled.
            let next = if smallest.is_some() { Self::next_in_set } else { Self::next_unsettled };
            self.settle_some(needy, next);
        }
        loop {
            let taken = self.take_anywhere(needy);
            if taken.is_some() || !self.settle_some(needy, Self::next_unsettled) {
                return taken;
            }
        }
    }

    /// Settles an unsettled pageblock, and takes a block of it if a free block there has exactly the wanted
    /// order. A search would settle the pageblock twice, before and after it takes the block.
    fn take_freed(&self, needy: Needy<'_>) -> Option<FrameId> {
        if !self.takes_alone(needy) {
            return None;
        }
        let zone = &self.zones[needy.zone.index()];
        let block = self.next_unsettled(needy)?;
        let serves = self.state(block).get().serves(needy.wanted.migratetype);
        let taken = if serves && (!self.steers() || self.is_suitable(zone, needy, block)) {
            self.take_exact(block, needy.wanted)
        } else {
            None
        };
        self.settle(block);
        taken
    }

    /// Takes a block of another pageblock: first in units that suit, then anywhere.
    fn take_anywhere(&self, needy: Needy<'_>) -> Option<FrameId> {
        if !self.steers() || !self.has_tainted(needy) {
            return self.take_from(needy);
        }
        let suiting = Needy { places: Places::Suiting, ..needy };
        let found = self.take_from(suiting).or_else(|| self.retype_in_tainted(needy));
        // A request for memory that cannot be moved has searched all pageblocks in part use already.
        found.or_else(|| if needy.is_movable() { self.take_from(needy) } else { self.take_from_whole(needy) })
    }

    /// Whether the zone has no whole pageblock outside of stocks.
    fn is_short(&self, needy: Needy<'_>) -> bool {
        self.zones[needy.zone.index()].whole_blocks() == 0
    }

    fn has_tainted(&self, needy: Needy<'_>) -> bool {
        let blocks = &self.zones[needy.zone.index()].blocks;
        self.set(Members::Tainted).find_from(blocks, blocks.start).is_some()
    }

    /// Reserves a pageblock of another type that is in part use in a tainted unit, and gives the pageblock
    /// the request's type. Movable pageblocks come first, and among movable pageblocks the one with the
    /// largest free block. Only requests for memory that cannot be moved retype a pageblock so, because they
    /// would otherwise taint one more unit.
    #[cold]
    fn retype_in_tainted(&self, needy: Needy<'_>) -> Option<FrameId> {
        if needy.is_movable() {
            return None;
        }
        // The whole pageblocks that are left lie in clean units. If no pageblock is whole, `rescue` takes
        // from pageblocks of other types in any unit, and changes the type only of pageblocks that are half
        // free.
        let would_taint = !self.is_short(needy);
        let types = needy.wanted.fallbacks().into_iter().rev();
        for migratetype in types.filter(|other| *other == MigrateType::Movable || would_taint) {
            for order in (needy.wanted.order.index()..PAGEBLOCK_ORDER).rev() {
                let set = self.set_of(migratetype.index(), order);
                while let Some(block) = self.find_in_tainted(needy, &set) {
                    if !self.reserve_indexed(needy, block, migratetype, order) {
                        // Race: another CPU has changed the pageblock first, or the set was out of date. This
                        // CPU loses, and takes the pageblock out of the set if it no longer belongs there.
                        self.leave_set(block, migratetype.index(), order);
                        continue;
                    }
                    count::<A>(&needy.share.counters.retyped);
                    count::<A>(&needy.share.counters.fallbacks);
                    self.set_reservation(needy.share.reservation(needy.wanted), Some(block), needy.cpu);
                    if let Some(id) = self.take_from_own(needy) {
                        return Some(id);
                    }
                }
            }
        }
        None
    }

    /// Takes a block from another pageblock of the right type, or from a whole pageblock.
    pub(super) fn take_from(&self, needy: Needy<'_>) -> Option<FrameId> {
        let order = needy.wanted.order;
        if order == Order::ZERO {
            return self
                .take_from_indexed(needy, RICH)
                .or_else(|| self.take_from_whole(needy))
                .or_else(|| (0..RICH).rev().find_map(|order| self.take_from_indexed(needy, order)));
        }
        let found = if self.takes_alone(needy) {
            self.take_alone(needy, needy.wanted)
        } else {
            self.take_from_indexed(needy, order.index())
        };
        found.or_else(|| self.take_from_whole(needy))
    }

    /// Whether the CPU takes one block of a pageblock in part use without reserving the pageblock: always for
    /// orders above 3, and for orders 1 to 3 if no pageblock outside of stocks is whole.
    fn takes_alone(&self, needy: Needy<'_>) -> bool {
        let order = needy.wanted.order;
        order > RESERVED_FOR_MAX || order > Order::ZERO && self.is_short(needy)
    }

    /// Reserves a pageblock of the right type whose largest free block has at least this order, and takes a
    /// block of the wanted order.
    fn take_from_indexed(&self, needy: Needy<'_>, order: usize) -> Option<FrameId> {
        let zone = &self.zones[needy.zone.index()];
        loop {
            let near = needy.share.near();
            let block = self.find_indexed(zone, needy, needy.wanted.migratetype, order, near)?;
            if !self.reserve_indexed(needy, block, needy.wanted.migratetype, order) {
                continue;
            }
            self.set_reservation(needy.share.reservation(needy.wanted), Some(block), needy.cpu);
            // Race: other CPUs take the pageblock's last free block first. This CPU loses, and tries the next
            // pageblock.
            if let Some(id) = self.take_from_own(needy) {
                return Some(id);
            }
        }
    }

    /// The smallest order from [`least_order`] on whose set has a pageblock of the request's type.
    fn smallest_in_sets(&self, needy: Needy<'_>) -> Option<usize> {
        let zone = &self.zones[needy.zone.index()];
        let set = |order| self.set_of(needy.wanted.migratetype.index(), order);
        let has_members = |order: &usize| set(*order).find(&zone.blocks, zone.blocks.start).is_some();
        (least_order(needy.wanted)..PAGEBLOCK_ORDER).find(has_members)
    }

    /// Reserves an unsettled pageblock that this CPU keeps, and takes a block of it. Prefers the pageblock
    /// whose largest free block is smallest. `smallest` is the smallest order whose set has a pageblock.
    /// Takes only a pageblock whose largest free block has an order below `smallest`, so that nearly free
    /// pageblocks can become whole.
    fn take_from_kept(&self, needy: Needy<'_>, smallest: Option<usize>) -> Option<FrameId> {
        let zone = &self.zones[needy.zone.index()];
        let orders = least_order(needy.wanted)..smallest.unwrap_or(PAGEBLOCK_ORDER);
        let largest = |block: BlockId| {
            let serves = self.is_unsettled(block) && self.state(block).get().serves(needy.wanted.migratetype);
            let suits = serves && (!self.steers() || self.is_suitable(zone, needy, block));
            let largest = if suits { self.rows(block).largest_free() } else { None };
            largest.filter(|largest| orders.contains(largest))
        };
        let share = needy.share;
        loop {
            let fitting = |block| Some((largest(block)?, block));
            let (_, block) = share.kept_unsettled().filter_map(fitting).min()?;
            let taken = if share.kept.remove::<A>(block) { Some(block) } else { share.unsettled.take::<A>() };
            let Some(block) = taken else { continue };
            if !self.reserve_unsettled(needy, block) {
                // Race: another CPU has changed the pageblock, or another thread of this CPU has replaced it.
                // This thread loses, and looks again.
                self.add_if_unsettled(block);
                continue;
            }
            self.set_reservation(share.reservation(needy.wanted), Some(block), needy.cpu);
            if let Some(id) = self.take_from_own(needy) {
                return Some(id);
            }
        }
    }

    /// Settles up to [`SETTLED_AT_ONCE`] of the pageblocks that `next` returns. Returns `false` if there was
    /// none.
    fn settle_some(&self, needy: Needy<'_>, next: impl Fn(&Self, Needy<'_>) -> Option<BlockId>) -> bool {
        let unsettled = core::iter::from_fn(|| next(self, needy)).take(SETTLED_AT_ONCE);
        unsettled.map(|block| self.settle(block)).count() > 0
    }

    /// Takes an unsettled pageblock. Prefers the pageblocks that this CPU keeps, because their frames are in
    /// the CPU's caches. If this CPU keeps none, takes an unsettled pageblock out of the set.
    pub(super) fn next_unsettled(&self, needy: Needy<'_>) -> Option<BlockId> {
        let mut kept = core::iter::from_fn(|| needy.share.take_unsettled::<A>());
        kept.find(|block| self.is_unsettled(*block)).or_else(|| self.next_in_set(needy))
    }

    /// Takes an unsettled pageblock out of the set.
    fn next_in_set(&self, needy: Needy<'_>) -> Option<BlockId> {
        let zone = &self.zones[needy.zone.index()];
        let unsettled = self.set(Members::Unsettled);
        loop {
            let block = unsettled.find(&zone.blocks, self.search_start(needy))?;
            unsettled.remove(block);
            // Race: another CPU frees a frame, and adds the pageblock to the set just before this CPU removes
            // it. So this CPU reads the state after the removal, and returns the pageblock if it is
            // unsettled.
            if self.is_unsettled(block) {
                return Some(block);
            }
        }
    }

    /// Reserves a whole pageblock, and takes a block of it.
    fn take_from_whole(&self, needy: Needy<'_>) -> Option<FrameId> {
        loop {
            let block = self.claim_with_stock(needy)?;
            let state = State::open(needy.wanted.migratetype).reserved_by(needy.cpu);
            if !self.open(block, state) {
                continue;
            }
            self.set_reservation(needy.share.reservation(needy.wanted), Some(block), needy.cpu);
            if let Some(id) = self.take_from_own(needy) {
                return Some(id);
            }
        }
    }

    /// Takes one block of a pageblock of this type that no CPU reserves. Does not reserve the pageblock.
    pub(super) fn take_alone(&self, needy: Needy<'_>, wanted: Wanted) -> Option<FrameId> {
        let zone = &self.zones[needy.zone.index()];
        loop {
            let block = self.find_fitting(needy, zone, wanted)?;
            let taken = self.take_one(block, wanted);
            // The pageblock may have lost its last block of its set's order. `settle` then moves the
            // pageblock to the set that fits, so that other CPUs do not search the pageblock in vain.
            self.settle(block);
            if taken.is_some() {
                needy.share.set_near(block);
                return taken;
            }
        }
    }

    /// Finds an unreserved pageblock of this type that has a free block of exactly this order. If none of the
    /// first `LOOKS` pageblocks has such a block, returns the pageblock with the smallest larger block. So
    /// large free blocks stay for large requests.
    fn find_fitting(&self, needy: Needy<'_>, zone: &Zone, wanted: Wanted) -> Option<BlockId> {
        /// The number of pageblocks to look at. 64 pageblocks have 128 MiB of memory, and their states lie in
        /// eight cache lines. Measured with `--example small` (10 MiB, 75 % in use): if this constant is 1,
        /// 0.25 % of requests are refused instead of 0.13 %.
        const LOOKS: usize = 64;
        let order = wanted.order.index();
        let near = self.search_start(needy).clamp(zone.blocks.start, zone.blocks.end);
        let found = self.find_indexed(zone, needy, wanted.migratetype, order, near)?;
        let fitting = |block: &BlockId| self.state(*block).get().fitting(wanted.migratetype, order);
        let (mut best, mut smallest) = (found, fitting(&found).unwrap_or(PAGEBLOCK_ORDER));
        for block in each(&(near..zone.blocks.end)).chain(each(&(zone.blocks.start..near))).take(LOOKS) {
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
        near: BlockId,
    ) -> Option<BlockId> {
        (order..PAGEBLOCK_ORDER).find_map(|order| self.find_in_set(zone, needy, migratetype, order, near))
    }

    /// An unreserved pageblock of this type whose largest free block has this order.
    pub(super) fn find_in_set(
        &self,
        zone: &Zone,
        needy: Needy<'_>,
        migratetype: MigrateType,
        order: usize,
        near: BlockId,
    ) -> Option<BlockId> {
        let set = self.set_of(migratetype.index(), order);
        loop {
            let block = self.find_open(zone, &set, needy, near)?;
            if self.belongs(block, migratetype.index(), order) {
                return Some(block);
            }
            self.leave_set(block, migratetype.index(), order);
        }
    }
}

/// The least order that the largest free block of a pageblock must have, so that a CPU reserves the pageblock
/// for `wanted` while memory is not short.
fn least_order(wanted: Wanted) -> usize {
    if wanted.order == Order::ZERO { RICH } else { wanted.order.index() }
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
