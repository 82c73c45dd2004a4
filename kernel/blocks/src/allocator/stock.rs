//! The stock of a CPU: a few whole pageblocks that the CPU keeps for its next requests. With a stock, a CPU
//! claims several whole pageblocks, and returns several, by one change of the set that all CPUs share.
//!
//! A pageblock in a stock has the phase `Whole`, like the pageblocks in the set of whole ones, but is in no
//! set.
//!
//! # Which operations may race, who loses, and why that is safe
//!
//! Race: a thread takes a pageblock of its CPU's stock while a thread of another CPU empties the stock, or
//! while a second thread of the same CPU takes a pageblock. Both exchange the stock's word. The slower thread
//! loses: its exchange fails because the word has changed, and it reads the word again. So only one thread
//! gets the pageblock.
//!
//! Race: a CPU adds a pageblock to its stock while another CPU takes the pageblock out of service. The CPU
//! that takes the pageblock out of service first writes the pageblock's state, and then searches the stocks.
//! This CPU first adds the pageblock to its stock, and then reads the pageblock's state. So at least one of
//! the two CPUs sees the change of the other CPU, and removes the pageblock from the stock.

use pageset_core::{CpuId, MigrateType, Order, ZoneId};

use super::BlockAllocator;
use super::needy::Needy;
use crate::access::Access;
use crate::cpu_share::{CpuShare, STOCK_MAX};
use crate::ids::BlockId;
use crate::index::Several;
use crate::state::{Phase, State};
use crate::zone::Zone;

impl<A: Access> BlockAllocator<'_, A> {
    /// Frees a block of pageblock size and keeps it in the CPU's stock. Returns `false` if no block of one
    /// pageblock is in use and in service there, or if this allocator keeps no stocks.
    pub(super) fn free_to_stock(&self, cpu: CpuId, zone: ZoneId, block: BlockId) -> bool {
        let is_freed = self.steers() && self.end_block(block);
        if is_freed {
            self.add_to_stock(cpu, &self.zones[zone.index()], block);
        }
        is_freed
    }

    /// Adds a whole pageblock to a CPU's stock. If the stock has no room, its other pageblocks go to the
    /// zone.
    pub(super) fn add_to_stock(&self, cpu: CpuId, zone: &Zone, block: BlockId) {
        let share = self.share_at(zone.id, cpu);
        let may_add = share.stock.is_empty() || self.has_for_each(zone, STOCK_MAX);
        if !(may_add && share.stock.add::<A>(block, STOCK_MAX)) {
            self.publish_stock(zone, share.stock.replace::<A>(block));
        }
        if self.state(block).get().is_isolated() {
            self.give_stock(zone, share);
        }
    }

    /// Whether the zone has enough whole pageblocks for each CPU to keep `blocks` of them. If CPUs kept
    /// stocks of fewer, other CPUs would have to search the stocks.
    fn has_for_each(&self, zone: &Zone, blocks: usize) -> bool {
        zone.whole_blocks() >= blocks * self.cpus()
    }

    /// Takes a pageblock of the CPU's stock, and turns it into a block in use.
    #[inline]
    pub(super) fn take_of_stock(&self, share: &CpuShare, migratetype: MigrateType) -> Option<BlockId> {
        loop {
            let block = share.stock.take::<A>()?;
            if self.states.get(block.0).is_some() && self.hand_out(block, Order::PAGEBLOCK, migratetype) {
                self.note_use(migratetype, block);
                return Some(block);
            }
        }
    }

    /// Claims a whole pageblock. Takes the pageblock from the CPU's stock if the stock lies in a suitable
    /// unit. If not, claims several pageblocks, or one if few are whole, and keeps the surplus as the CPU's
    /// stock.
    pub(super) fn claim_with_stock(&self, needy: Needy<'_>) -> Option<BlockId> {
        let zone = &self.zones[needy.zone.index()];
        let stock = &needy.share.stock;
        if !self.steers() {
            return self.claim_whole(needy);
        }
        if stock.first().is_some_and(|block| !self.is_suitable(zone, needy, block)) {
            self.give_stock(zone, needy.share);
        }
        let kept = stock.take::<A>().filter(|block| zone.blocks.contains(block));
        if kept.is_some() {
            return kept;
        }
        let limit = if self.has_for_each(zone, 2 * STOCK_MAX) { STOCK_MAX } else { 1 };
        let mut claimed = self.claim_several(needy, limit);
        let block = claimed.next();
        claimed.for_each(|more| self.add_to_stock(needy.cpu, zone, more));
        block
    }

    /// Returns the pageblocks of a CPU's stock to the zone.
    pub(super) fn give_stock(&self, zone: &Zone, share: &CpuShare) {
        if !share.stock.is_empty() {
            self.publish_stock(zone, share.stock.take_all::<A>());
        }
    }

    /// Returns pageblocks that were in a stock to the zone. A damaged stock may name pageblocks of no zone.
    fn publish_stock(&self, zone: &Zone, blocks: Several) {
        if { blocks }.all(|block| zone.blocks.contains(&block)) {
            self.publish_several(zone, blocks);
        } else {
            self.note_damage(zone.id);
        }
    }

    /// Returns the pageblocks of all stocks of a zone. O(CPUs).
    pub(super) fn give_stocks(&self, zone: &Zone) {
        self.shares_in(zone.id).for_each(|share| self.give_stock(zone, share));
    }

    /// If the pageblock is in a stock, returns all pageblocks of the stock to the zone. O(CPUs) for a
    /// pageblock that is whole and not in the set.
    pub(super) fn give_stock_with(&self, block: BlockId) {
        let is_claimed = |state: State| state.phase() == Phase::Whole && !self.is_published(block);
        if self.states.get(block.0).is_some_and(|state| is_claimed(state.get())) {
            let zone = self.zone_at(block);
            self.shares_in(zone.id)
                .filter(|share| share.stock.has(block))
                .for_each(|share| self.give_stock(zone, share));
        }
    }

    /// The number of pageblocks in all stocks of a zone. O(CPUs).
    pub(super) fn stocked(&self, zone: ZoneId) -> usize {
        self.shares_in(zone).map(|share| share.stock.blocks().len()).sum()
    }
}
