//! The allocator and its operations.
//!
//! Files in the order of an allocation: `alloc` (from the pageblock at hand), `refill` (another pageblock), `few` (orders that share
//! one), `neighbours` (CPUs that do), `slow` (which zone, and what else to try), `room` (how much memory a zone has), `soon` (who gives
//! up sooner), `rescue` (what is left when no pageblock is), `reserve` (for atomic
//! requests of high order), `whole` (pageblocks and pairs of them), `whole_use` (which is next); `free`,
//! `keep` (frees to pageblocks of other
//! CPUs), `settle` (what a pageblock becomes after a free), `line` (which CPU changed it last); `word` (blocks that lie
//! together), `arrays` and `array` (what a host's CPU has to itself), `bulk`; `mixed` (pageblocks with blocks of several orders), `mixed_layout` (which blocks are where in them), `in_use` (whether a frame is), `range` (a given place, exact counts, parts);
//! `add` (memory that comes later); `isolation` (pageblocks out of service), `bad` (frames out of service for good); `tick`,
//! `cpu`, `settings`; `build`, `tables`, `look` (what is at one place), `parts` (what a laboratory leaves out); `info`,
//! `check`, `check_lists`; `orderings` (tests of the whole under loom), `damage` (tests of damaged tables).

mod add;
mod alloc;
mod array;
mod arrays;
mod bad;
mod build;
mod bulk;
mod check;
mod check_lists;
mod collect;
mod cpu;
// Hours under miri.
#[cfg(all(test, not(any(loom, miri))))]
mod damage;
mod few;
mod free;
mod home;
mod in_use;
mod info;
mod isolation;
mod keep;
mod line;
mod look;
mod mixed;
mod mixed_layout;
mod neighbours;
#[cfg(all(loom, test))]
mod orderings;
mod parts;
mod range;
mod refill;
mod rescue;
mod reserve;
mod room;
mod settings;
mod settle;
mod slow;
mod soon;
mod tables;
mod tick;
mod whole;
mod whole_use;
mod word;

use core::fmt;

use pageset_core::{ConfigError, CpuId, Order, PAGEBLOCK_FRAMES, Pfn, Storage, ZoneId};

pub use arrays::CpuArrays;
pub use info::ZoneUse;
pub use keep::RemoteFrees;
#[cfg(feature = "line-counts")]
pub use line::CONTENDED_NS;
pub use parts::Part;
pub use tables::{TableCounts, TableLender, Tables};
pub use whole_use::WholeUse;

use parts::Parts;

use crate::atomic::AtomicUsize;
use crate::bad_bits::BadBits;
use crate::cpu_lists::{CpuHome, CpuLists, count};
use crate::free_bits::{FRAMES, FreeBits};
use crate::stack::BlockIndex;
use crate::state::{BlockState, State};
use crate::tail_bits::TailBits;
use crate::whole_map::WholeMap;
use crate::zone::Zone;

/// A page-frame allocator without a lock: CPUs own pageblocks, and a free sets a bit.
///
/// A CPU splits the pageblocks that it owns into blocks of one type, and of one order if it needs many of that. An allocation clears
/// a bit in a pageblock of its CPU's, and a free from any CPU sets it: one atomic exchange each. So no operation ever waits for another, and
/// a CPU that stops in the middle of one does not stop the others.
///
/// Every operation takes the CPU it runs on. Several threads may pass the same one at once.
///
/// Cost: an allocation or free is O(1) while the CPU's pageblock has a free block, O(words of a pageblock) for each pageblock
/// that it is done with. An allocation that finds no pageblock for its order and type looks at all of them: O(pageblocks). So it is when a
/// zone is nearly used up; and much sooner, at a fifth of the memory, if most requests are [exact](Self::alloc_exact) counts that are no
/// power of two, since their rests leave no pageblock whole. `pageset-core` serves those better.
///
/// # Holes
/// A pageblock is 512 frames that begin at a multiple of 512. If one of them is no memory, the pageblock has single frames only, until
/// [`add_memory`](Self::add_memory) fills the hole and all 512 are free. All its frames can be had one by one. What is lost is larger
/// blocks: up to 511 frames in a row at each end of a region that is no multiple of 512. [`alloc`](Self::alloc) takes larger blocks
/// elsewhere, or is out of memory. [`alloc_at`](Self::alloc_at) of free frames says [`SingleFramesOnly`](pageset_core::AllocError).
///
/// On a PC this is the first pageblock, since the frames from 640 KiB to 1 MiB are no memory.
pub struct BlockAllocator<'a> {
    free: Storage<'a, FreeBits>,
    tails: Storage<'a, TailBits>,
    bad: Storage<'a, BadBits>,
    states: Storage<'a, BlockState>,
    whole: WholeMap<'a>,
    /// By zone and CPU.
    lists: Storage<'a, CpuLists>,
    homes: Storage<'a, CpuHome>,
    zones: Storage<'a, Zone>,
    /// One row of zones per node.
    zonelists: Storage<'a, ZoneId>,
    parts: Parts,
    /// Memory to keep free, from which watermarks follow; at most what a word holds.
    min_free_kbytes: AtomicUsize,
    /// Bytes per frame.
    page_bytes: u32,
    /// Distance between watermarks, in 10 000ths of a zone.
    watermark_scale_factor: u32,
    #[cfg(feature = "line-counts")]
    now_ns: fn() -> u64,
}

impl BlockAllocator<'_> {
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

    /// What the owner of a split pageblock has of its zone. A CPU that does not exist is damage; then it is CPU 0's.
    fn lists_of_owner(&self, zone: ZoneId, state: State) -> &CpuLists {
        let owner = state.owner();
        self.lists_at(zone, if self.is_known(owner) { owner } else { CpuId(0) })
    }

    /// Notes that a table contradicts another one.
    #[cold]
    fn note_damage(&self, zone: ZoneId) {
        count(&self.lists_at(zone, CpuId(0)).counters.damaged);
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

impl fmt::Debug for BlockAllocator<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BlockAllocator")
            .field("zones", &self.zones.len())
            .field("cpus", &self.cpus())
            .field("pageblocks", &self.states.len())
            .finish_non_exhaustive()
    }
}
