//! An engine has the host (its *world*), frames, page tables, and the state that all address spaces share.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;

use lock_api::Mutex;
use pageset_core::{CpuId, Order, Pfn};

use crate::atomic::{AtomicU32, Ordering::Relaxed, Padded};
use crate::frame_table::FrameTable;
use crate::frames::{FrameSource, FrameUse};
use crate::geometry::Geometry;
use crate::grace::Grace;
use crate::local::Local;
use crate::lru::{LISTS_MAX, Lru};
use crate::pte::TableId;
use crate::table::TableArena;
use crate::world::World;

/// Sizes of an engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EngineConfig {
    /// The shape of all page tables of the engine.
    pub geometry: Geometry,
    /// The number of CPUs. CPUs are numbered from 0.
    pub cpus: u32,
    /// The largest number of tasks that can exist at one time: usually one per CPU, and a few more.
    pub tasks: u32,
    /// The largest number of page tables that can exist at one time, in all address spaces together. With
    /// [`Geometry::PAGES_4K`], the words of each table take 4 KiB of the heap.
    pub tables: u32,
    /// The largest number of cleared frames that [`Task::prezero`](crate::Task::prezero) keeps for each CPU.
    /// With `prezeroed` 0, `prezero` clears no frames.
    pub prezeroed: u32,
    /// The number of frames that a task fetches with one allocator call and keeps for its next faults (the
    /// task's magazine), at most 32. With `magazine` 0, a task calls the allocator for each frame, as in
    /// Linux. Other tasks cannot use the frames in a task's magazine, even when memory is short.
    pub magazine: u32,
    /// The number of lists of pages in use, each with its own lock. In Linux, the lists of each node have one
    /// lock. With fewer lists than CPUs, several CPUs share a list. If a strategy's faults write no other
    /// shared cache line, the lock of a shared list limits how many faults per second CPUs can handle
    /// together.
    pub lru_lists: u16,
}

impl EngineConfig {
    /// Makes the sizes for one task per CPU. The engine gets one list of pages in use per CPU, and enough
    /// tables to map `pages` pages in one address space.
    #[must_use]
    pub fn new(geometry: Geometry, cpus: u32, pages: u64) -> Self {
        let leaves = pages.div_ceil(u64::from(geometry.entries()));
        let upper = leaves.div_ceil(u64::from(geometry.entries())) + u64::from(geometry.root_level());
        // Add some spare tables. Each CPU may have prepared a table per level, although another CPU has
        // already put a table into the same word. A mapped range may also begin in the middle of a table.
        let spare =
            u64::from(cpus) * u64::from(geometry.root_level()) + 2 * u64::from(geometry.root_level()) + 2;
        let tables = u32::try_from(leaves + upper + spare).unwrap_or(u32::MAX);
        let lru_lists = u16::try_from(cpus).unwrap_or(LISTS_MAX);
        Self { geometry, cpus, tasks: cpus, tables, prezeroed: 0, magazine: 0, lru_lists }
    }
}

/// A stack of one CPU's frames that were cleared in advance.
type ZeroPool<W> = Padded<Mutex<<W as pageset_core::Platform>::RawLock, Vec<Pfn>>>;

/// An engine has the frames of a host, memory for page tables, and lists of pages in use. All address spaces
/// of an engine use the engine's frames and tables, and may share pages.
pub struct Engine<W: World> {
    pub(crate) world: W,
    pub(crate) geometry: Geometry,
    pub(crate) tables: TableArena<W::RawLock>,
    pub(crate) frames: FrameTable,
    pub(crate) grace: Grace,
    pub(crate) lru: Lru<W::RawLock>,
    /// For each CPU, the frames that were cleared in advance.
    pub(crate) prezeroed: Box<[ZeroPool<W>]>,
    pub(crate) prezeroed_max: usize,
    pub(crate) magazine: u32,
    pub(crate) tasks: u32,
    free_tasks: Mutex<W::RawLock, Vec<u32>>,
    spaces: AtomicU32,
    areas: AtomicU32,
}

impl<W: World> Engine<W> {
    /// Builds an engine around `world`. From the heap, the engine takes 16 bytes per frame, and about 8 bytes
    /// per entry of each page table.
    #[must_use]
    pub fn new(world: W, config: &EngineConfig) -> Arc<Self> {
        let frames = FrameTable::new(world.frames().span());
        Arc::new(Self {
            geometry: config.geometry,
            tables: TableArena::new(config.geometry, config.tables),
            frames,
            grace: Grace::new(config.tasks),
            lru: Lru::new(config.lru_lists),
            prezeroed: (0..config.cpus).map(|_| Padded(Mutex::new(Vec::new()))).collect(),
            prezeroed_max: config.prezeroed as usize,
            magazine: config.magazine,
            tasks: config.tasks,
            free_tasks: Mutex::new((0..config.tasks).rev().collect()),
            spaces: AtomicU32::new(0),
            areas: AtomicU32::new(0),
            world,
        })
    }

    /// The world that the host passed to `new`.
    pub fn world(&self) -> &W {
        &self.world
    }

    /// The shape of the engine's page tables.
    pub fn geometry(&self) -> Geometry {
        self.geometry
    }

    /// Number of CPUs that the engine was built for.
    pub fn cpus(&self) -> u32 {
        self.prezeroed.len() as u32
    }

    /// The number of blocks on the lists of pages in use. Blocks that are still in a task's batch, on their
    /// way to a list, do not count.
    pub fn listed_blocks(&self) -> u64 {
        self.lru.len()
    }

    pub(crate) fn next_space(&self) -> u32 {
        self.spaces.fetch_add(1, Relaxed)
    }

    pub(crate) fn next_area(&self) -> u32 {
        self.areas.fetch_add(1, Relaxed)
    }

    pub(crate) fn take_task(&self) -> Option<u32> {
        self.free_tasks.lock().pop()
    }

    pub(crate) fn put_task(&self, slot: u32) {
        self.free_tasks.lock().push(slot);
    }

    /// Allocates a page table, and the frame that the table occupies.
    pub(crate) fn take_table(&self, cpu: CpuId) -> Option<TableId> {
        let frame = self.world.frames().alloc(cpu, Order::ZERO, FrameUse::Table)?;
        match self.tables.take(frame) {
            Some(table) => Some(table),
            None => {
                let _ = self.world.frames().free(cpu, frame, Order::ZERO);
                None
            }
        }
    }

    /// Allocates a page table as [`take_table`](Self::take_table) does. If memory is short, gives the frames
    /// in the task's magazine back to the allocator, and tries again.
    pub(crate) fn take_table_for(&self, local: &mut Local) -> Option<TableId> {
        match self.take_table(local.cpu) {
            None if self.empty_magazine(local) => self.take_table(local.cpu),
            taken => taken,
        }
    }

    /// Allocates a block for a collapse. If no block is free, gives the frames of the task's magazine back
    /// and tries again, because these frames may be parts of a block of this order.
    pub(crate) fn take_large(&self, local: &mut Local, order: Order) -> Option<Pfn> {
        let take = |local: &Local| self.world.frames().alloc(local.cpu, order, FrameUse::Anon);
        match take(local) {
            None if self.empty_magazine(local) => take(local),
            taken => taken,
        }
    }

    /// Gives the frames of the task's magazine back to the allocator. Returns whether the magazine had
    /// frames.
    pub(crate) fn empty_magazine(&self, local: &mut Local) -> bool {
        let mut held = false;
        while let Some(pfn) = local.magazine.pop() {
            held = true;
            if self.world.frames().free(local.cpu, pfn, Order::ZERO).is_err() {
                local.stats.refused_frees += 1;
            }
        }
        held
    }

    /// Waits for a grace period. When the grace period has ended, every section that had begun before this
    /// call has ended. So no section still uses a translation, a table number or an area that a task read
    /// before this call.
    pub(crate) fn wait_for_sections(&self, local: &Local) {
        debug_assert!(!self.grace.is_inside(local.slot), "task {} waits for itself", local.slot);
        self.grace.wait(|| self.world.relax(local.cpu));
    }

    /// Frees blocks that no word maps any more. The caller has made sure that no task holds a translation to
    /// these blocks.
    pub(crate) fn free_blocks(&self, local: &mut Local, blocks: &mut Vec<(Pfn, Order)>) {
        if blocks.is_empty() {
            return;
        }
        self.lru.remove(&self.frames, blocks);
        debug_assert!(blocks.iter().all(|(pfn, _)| self.is_unused(*pfn)), "{blocks:?}: one is still in use");
        if self.world.frames().free_batch(local.cpu, blocks).is_err() {
            local.stats.refused_frees += 1;
        }
        blocks.clear();
    }

    /// Whether no word maps the block, and the block is on no list.
    fn is_unused(&self, pfn: Pfn) -> bool {
        self.frames.refs(pfn) == 0 && Lru::<W::RawLock>::is_unmarked(self.frames.frame(pfn))
    }

    /// Frees tables that are not in the page-table tree. No task may be walking through these tables.
    pub(crate) fn free_tables(&self, local: &mut Local, tables: &mut Vec<TableId>) {
        for table in tables.drain(..) {
            let frame = self.tables.put(table);
            if self.world.frames().free(local.cpu, frame, Order::ZERO).is_err() {
                local.stats.refused_frees += 1;
            }
        }
    }
}

impl<W: World> core::fmt::Debug for Engine<W> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Engine")
            .field("geometry", &self.geometry)
            .field("tasks", &self.tasks)
            .finish_non_exhaustive()
    }
}
