//! The allocator and its operations.
//!
//! Files in the order of an allocation: `alloc` (from the pageblock at hand), `slow` (which zone), `room` (how much memory a zone has),
//! `refill` (another pageblock), `rescue` (what is left when no pageblock of the right type is), `reserve` (for atomic requests of
//! high order), `whole` (pageblocks and pairs of them), `unit` (which of them), `spare` (one at hand); `free`, `settle` (what a pageblock becomes after a free); `word` (blocks that lie
//! together), `bulk`, `arrays` and `array` (what a host's CPU has to itself); `range` (a given place, exact counts, parts), `contiguous` (more than
//! a block, any alignment, any range), `look` (what is
//! at one place); `add` (memory that comes later), `isolation` (pageblocks out of service), `bad` (frames out of service for good);
//! `tick`, `cpu`, `settings`; `build`, `tables`, `info`, `check`.

mod add;
mod alloc;
mod array;
mod arrays;
mod bad;
mod build;
mod bulk;
mod check;
mod contiguous;
mod cpu;
#[cfg(all(test, feature = "alloc", not(any(loom, shuttle))))]
mod damage;
mod free;
mod home;
mod info;
mod isolation;
mod line;
mod look;
mod range;
mod refill;
mod rescue;
mod reserve;
mod room;
mod run;
mod settings;
mod settle;
mod slow;
mod spare;
mod tables;
mod tick;
mod unit;
mod whole;
mod word;

use core::fmt;

use pageset_core::{ConfigError, CpuId, Order, PAGEBLOCK_FRAMES, Pfn, Storage, ZoneId};

pub use arrays::CpuArrays;
pub use info::ZoneUse;
#[cfg(feature = "line-counts")]
pub use line::CONTENDED_NS;
pub use tables::{TableCounts, TableLender, Tables};
pub use whole::WholeUse;

use crate::access::{Access, Shared};
use crate::atomic::AtomicUsize;
use crate::bad_bits::BadBits;
use crate::cpu_lists::{CpuHome, CpuLists, count};
use crate::index::{BlockIndex, Index};
use crate::row::FRAMES;
use crate::rows::Rows;
use crate::state::BlockState;
use crate::zone::Zone;

/// A page-frame allocator without a lock: a CPU reserves a pageblock, takes its frames one after the other, and then reserves another one.
///
/// An allocation takes a block of the pageblock that its CPU reserves, by one exchange. A free puts a block back to its pageblock, whoever
/// frees, by one exchange too. Pageblocks that no CPU reserves stand in sets, by type and by the orders of which they have free
/// blocks: so a CPU finds its next one in a few steps, however much memory there is. So no operation ever waits for another, and a
/// CPU that stops in the middle of one blocks nobody.
///
/// Every operation takes the CPU it runs on. Several threads may pass the same one at once.
///
/// Cost: an allocation or free is O(1) while the CPU's pageblock has a free block. What an operation costs does not grow with the size
/// of memory, unless its own text says so.
pub struct BlockAllocator<'a, A = Shared> {
    rows: Storage<'a, Rows<A>>,
    bad: Storage<'a, BadBits>,
    states: Storage<'a, BlockState>,
    index: Index<'a>,
    /// By zone and CPU.
    lists: Storage<'a, CpuLists>,
    homes: Storage<'a, CpuHome>,
    zones: Storage<'a, Zone>,
    /// One row of zones per node.
    zonelists: Storage<'a, ZoneId>,
    whole_use: WholeUse,
    /// Memory to keep free, from which watermarks follow; at most what a word holds.
    min_free_kbytes: AtomicUsize,
    /// Bytes per frame.
    page_bytes: u32,
    /// Distance between watermarks, in 10 000ths of a zone.
    watermark_scale_factor: u32,
    #[cfg(feature = "line-counts")]
    now_ns: fn() -> u64,
}

impl<A: Access> BlockAllocator<'_, A> {
    /// CPUs that operations may name.
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
    fn lists_at(&self, zone: ZoneId, cpu: CpuId) -> &CpuLists {
        &self.lists[zone.index() * self.cpus() + cpu.index()]
    }

    /// Notes that a table contradicts another one.
    #[cold]
    fn note_damage(&self, zone: ZoneId) {
        count::<A>(&self.lists_at(zone, CpuId(0)).counters.damaged);
    }

    /// The zone of a pageblock.
    fn zone_of_block(&self, block: BlockIndex) -> ZoneId {
        let zone = self.zones.iter().position(|zone| zone.blocks.contains(&block));
        ZoneId(zone.expect("every pageblock is a zone's") as u16)
    }

    /// The zone of a frame, and the frame's index.
    #[inline]
    fn locate(&self, pfn: Pfn) -> Option<(&Zone, usize)> {
        // The last zone is the largest one, mostly.
        self.zones.iter().rev().find_map(|zone| zone.frame(pfn).map(|frame| (zone, frame)))
    }
}

/// The pageblock in which a block of two begins, of which this is the second.
const fn head_of(block: BlockIndex) -> BlockIndex {
    block.saturating_sub(1)
}

/// Pageblocks in a block of an order that is not below theirs.
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
