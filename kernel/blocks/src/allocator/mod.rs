//! The allocator and its operations.
//!
//! A walk through the code goes down this list:
//!
//! - An allocation: `alloc` (from the reserved pageblock), `slow` (which zone), `rescue` (other types, other
//!   CPUs' pageblocks), `refill` (another pageblock). An allocation also uses `take` (a block of one
//!   pageblock), `claim` (whole pageblocks), and `reservation` (of a pageblock, by a CPU). Its data and
//!   checks are in `needy` (the request), `room` (whether a zone has enough memory), and `highatomic` (for
//!   atomic requests of high order).
//! - A free: `free`, `stock` (whole pageblocks that each CPU keeps for its next requests), `settle` (a
//!   pageblock after a free), `whole` (whole pageblocks), `unit` (which whole pageblock to use next), `sets`.
//!
//! The other modules serve calls that allocate or free in other ways, and administration. Many blocks at
//! once: `of_row`, `bulk`, `arrays` and `array`. Frames that are not one block: `range` (a given place, parts
//! of blocks), `run` (exact counts), `contiguous` (larger than a block, any alignment, any range). `look`
//! tells what is at one place. Administration: `add`, `isolation`, `bad`, `tick`, `cpu`, `settings`.
//! `attempt` repeats a change that waits for another CPU. The allocator itself: `build`, `tables`, `info`,
//! `check`.

mod add;
mod alloc;
mod array;
mod arrays;
mod attempt;
mod bad;
mod build;
mod bulk;
mod check;
mod claim;
mod contiguous;
mod cpu;
#[cfg(all(test, feature = "alloc", not(any(loom, shuttle))))]
mod damage;
mod free;
mod highatomic;
mod home;
mod info;
mod isolation;
mod line;
mod look;
mod needy;
mod of_row;
mod range;
mod refill;
mod rescue;
mod reservation;
mod room;
mod run;
mod sets;
mod settings;
mod settle;
mod slow;
mod stock;
mod table_memory;
mod tables;
mod take;
mod tick;
mod unit;
mod whole;

use core::fmt;

use pageset_core::{ConfigError, CpuId, Order, PAGEBLOCK_FRAMES, Pfn, Storage, ZoneId};

pub use arrays::CpuArrays;
pub use info::ZoneUse;
#[cfg(feature = "line-counts")]
pub use line::CONTENDED_NS;
pub use table_memory::TableMemory;
pub use tables::{TableCounts, TableLender, Tables};
pub use unit::WholeUse;

use crate::access::{Access, Shared};
use crate::atomic::AtomicUsize;
use crate::bad_bits::BadBits;
use crate::cpu_share::{CpuHome, CpuShare, count};
use crate::ids::{BlockId, FrameId};
use crate::index::Index;
use crate::row::FRAMES;
use crate::rows::Rows;
use crate::state::BlockState;
use crate::zone::Zone;

/// A page-frame allocator without a lock.
///
/// Each CPU reserves a pageblock, takes blocks from it, and reserves another when this one is used up.
/// Usually one exchange takes a block out of its pageblock, and one exchange on any CPU returns the block.
/// Pageblocks that no CPU reserves are members of sets, by type and by the order of their largest free block.
/// In these sets a CPU finds its next pageblock in a few steps, however large memory is. A CPU that stops in
/// the middle of an operation blocks no allocation or free of another CPU.
///
/// Each allocation and each free takes the number of the CPU that it runs on. Several threads may pass the
/// same CPU at once.
///
/// Cost: a free is O(1). An allocation is O(1) while the CPU's pageblock has a free block. If it has none,
/// the search for another pageblock may look at each unit of 1 GiB, up to 512 units. An allocation near a
/// watermark, or one that found no block, settles each unsettled pageblock. The documentation of other
/// operations says if their cost grows with the size of memory.
pub struct BlockAllocator<'a, A = Shared> {
    rows: Storage<'a, Rows<A>>,
    bad: Storage<'a, BadBits>,
    states: Storage<'a, BlockState>,
    index: Index<'a>,
    /// The entries of all CPUs for the first zone, then their entries for the next zone, and so on.
    shares: Storage<'a, CpuShare>,
    homes: Storage<'a, CpuHome>,
    zones: Storage<'a, Zone>,
    /// The zonelist of each node: the zones in the order that requests try them.
    zonelists: Storage<'a, ZoneId>,
    whole_use: WholeUse,
    /// The setting `min_free_kbytes`, or a word's maximum if the setting is larger. The allocator computes
    /// the watermarks from this number.
    min_free_kbytes: AtomicUsize,
    /// Bytes per frame.
    page_bytes: u32,
    /// Distance between watermarks, in 10 000ths of a zone.
    watermark_scale_factor: u32,
    #[cfg(feature = "line-counts")]
    now_ns: fn() -> u64,
}

impl<A: Access> BlockAllocator<'_, A> {
    /// The number of CPUs that operations may name.
    #[must_use]
    pub fn cpus(&self) -> usize {
        self.homes.len()
    }

    fn nodes(&self) -> usize {
        self.zonelists.len() / self.zones.len()
    }

    fn is_known(&self, cpu: CpuId) -> bool {
        cpu.index() < self.cpus()
    }

    pub(crate) fn check_cpu(&self, cpu: CpuId) -> Result<(), ConfigError> {
        if self.is_known(cpu) { Ok(()) } else { Err(ConfigError::BadCpu(cpu.0)) }
    }

    #[inline]
    fn share_at(&self, zone: ZoneId, cpu: CpuId) -> &CpuShare {
        &self.shares[zone.index() * self.cpus() + cpu.index()]
    }

    /// The [`CpuShare`] of each CPU for a zone.
    fn shares_in(&self, zone: ZoneId) -> impl Iterator<Item = &CpuShare> {
        (0..self.cpus()).map(move |cpu| self.share_at(zone, CpuId(cpu as u32)))
    }

    /// Counts a damaged table entry, which contradicts another table.
    #[cold]
    fn note_damage(&self, zone: ZoneId) {
        count::<A>(&self.share_at(zone, CpuId(0)).counters.damaged);
    }

    #[inline]
    fn state(&self, block: BlockId) -> &BlockState {
        &self.states[block.0]
    }

    #[inline]
    fn rows(&self, block: BlockId) -> &Rows<A> {
        &self.rows[block.0]
    }

    /// The zone of a pageblock.
    fn zone_of_block(&self, block: BlockId) -> ZoneId {
        let zone = self.zones.iter().position(|zone| zone.blocks.contains(&block));
        ZoneId(zone.expect("every pageblock is a zone's") as u16)
    }

    /// The zone of a pageblock.
    fn zone_at(&self, block: BlockId) -> &Zone {
        &self.zones[self.zone_of_block(block).index()]
    }

    /// The zone of a frame, and the place of the frame.
    #[inline]
    fn locate(&self, pfn: Pfn) -> Option<(&Zone, FrameId)> {
        // Look at the last zone first, because it is usually the largest.
        self.zones.iter().rev().find_map(|zone| zone.frame(pfn).map(|id| (zone, id)))
    }
}

/// Returns the first pageblock of the pair whose second pageblock is `block`.
const fn head_of(block: BlockId) -> BlockId {
    BlockId(block.0.saturating_sub(1))
}

/// The number of pageblocks in a block of pageblock order or larger.
const fn blocks_in(order: Order) -> usize {
    (order.frames() / PAGEBLOCK_FRAMES) as usize
}

impl<A: Access> fmt::Debug for BlockAllocator<'_, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BlockAllocator")
            .field("zones", &self.zones.len())
            .field("cpus", &self.cpus())
            .field("pageblocks", &self.states.len())
            .finish_non_exhaustive()
    }
}
