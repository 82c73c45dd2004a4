//! Address spaces: areas, a page table, counters, and what changes areas.
//!
//! `write` (what all changes have in common), `change` (map, unmap, protect), `zap` (taking pages and tables away),
//! `fork`, `split` and `collapse` (huge to small and back), `reclaim`, `teardown`.

mod change;
mod collapse;
mod fork;
mod reclaim;
mod split;
mod teardown;
mod write;
mod zap;

use alloc::sync::Arc;

use lock_api::Mutex;
use pageset_core::CpuId;

use crate::account::AnyAccount;
use crate::area::AreaMap;
use crate::atomic::{AtomicU32, AtomicU64, Ordering, Padded};
use crate::counts::Counts;
use crate::engine::Engine;
use crate::error::SpaceError;
use crate::local::{KnownAreas, Local};
use crate::pte::TableId;
use crate::rwsem::RwSem;
use crate::stabilise::{AnyStabilise, Ticket};
use crate::strategy::Strategy;
use crate::sync::AnySync;
use crate::world::{Line, World};

/// What an address space does beside the plain fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// How it is kept consistent.
    pub strategy: Strategy,
    /// Whether a fault in an empty, aligned, fully covered span takes one huge page (order 9 with 4 KiB pages).
    pub huge: Huge,
    /// Order of the blocks that a write fault maps at once, if their words are all empty (mTHP, spec §1.9); 0 for
    /// single pages, 4 for 64 KiB.
    pub gang_order: u8,
    /// Largest order of the run that anticipatory prefaulting maps (Dec 2004, spec §1.9); 0 for none. The first
    /// version had 3, with 2^5 pages measured.
    pub prefault_order: u8,
}

/// Whether huge pages are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Huge {
    /// Small pages only.
    Never,
    /// Where a whole span is empty and covered. Not with [`Geometry::PAGES_16K`](crate::Geometry::PAGES_16K), where the
    /// 32 MiB of a leaf table are more than the allocator's largest block of 2^10 pages.
    Always,
}

impl Options {
    /// Small pages, one at a time.
    #[must_use]
    pub const fn new(strategy: Strategy) -> Self {
        Self { strategy, huge: Huge::Never, gang_order: 0, prefault_order: 0 }
    }
}

/// An address space.
pub struct AddressSpace<W: World> {
    engine: Arc<Engine<W>>,
    id: u32,
    options: Options,
    root: TableId,
    pub(crate) sync: AnySync,
    pub(crate) stabilise: AnyStabilise,
    pub(crate) account: AnyAccount,
    /// Whether a fault looks again at its area before it installs.
    looks_again: bool,
    /// Map of all areas, and, with it, its number.
    areas: Mutex<W::RawLock, Arc<AreaMap>>,
    map_number: AtomicU64,
    /// Number of the write that goes on, or comes next.
    write_number: AtomicU64,
    /// CPU of the last task that left.
    last_cpu: AtomicU32,
    /// mmap_sem: writers exclude each other, and, with V1, faults.
    pub(crate) mmap_lock: Padded<RwSem>,
    /// Linux's page_table_lock.
    pub(crate) page_table_lock: Padded<Mutex<W::RawLock, ()>>,
    /// Lock of counters that are folded (R4).
    pub(crate) fold_lock: Padded<Mutex<W::RawLock, ()>>,
}

impl<W: World> AddressSpace<W> {
    /// An empty address space.
    ///
    /// # Errors
    /// [`SpaceError::OutOfMemory`] if there is no frame or no table for the root; [`SpaceError::NoHugePages`] if huge pages
    /// are wanted and the geometry has none.
    pub fn new(engine: &Arc<Engine<W>>, options: Options) -> Result<Arc<Self>, SpaceError> {
        if options.huge == Huge::Always && engine.geometry.huge_order().is_none() {
            return Err(SpaceError::NoHugePages);
        }
        let cpu = CpuId(0);
        let root = engine.take_table(cpu).ok_or(SpaceError::OutOfMemory)?;
        Ok(Arc::new(Self::on(engine, options, cpu, root)))
    }

    /// An empty address space of options that the engine can do.
    fn on(engine: &Arc<Engine<W>>, options: Options, cpu: CpuId, root: TableId) -> Self {
        let strategy = options.strategy;
        let sync = AnySync::new(strategy.sync(), engine.tasks);
        let stabilise = AnyStabilise::new(strategy.stabilise(), engine.tasks);
        Self {
            id: engine.next_space(),
            options,
            root,
            looks_again: sync.looks_again() || stabilise.looks_again(),
            sync,
            stabilise,
            account: AnyAccount::new(strategy.account(), engine.tasks),
            areas: Mutex::new(Arc::default()),
            map_number: AtomicU64::new(0),
            // Areas begin with mark 0: no write has that number.
            write_number: AtomicU64::new(1),
            last_cpu: AtomicU32::new(cpu.0),
            mmap_lock: Padded(RwSem::new()),
            page_table_lock: Padded(Mutex::new(())),
            fold_lock: Padded(Mutex::new(())),
            engine: Arc::clone(engine),
        }
    }

    /// Its number, unlike any other of the engine's.
    pub fn id(&self) -> u32 {
        self.id
    }

    /// What it was made with.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// The engine it is on.
    pub fn engine(&self) -> &Arc<Engine<W>> {
        &self.engine
    }

    /// What a quick look at the counters shows; what tasks or CPUs have not folded yet is missing.
    pub fn quick_counts(&self) -> Counts {
        self.account.quick()
    }

    /// Resident pages and tables (the root is not counted). Exact once all tasks have left and nobody changes anything.
    pub fn counts(&self) -> Counts {
        self.account.exact()
    }

    #[inline]
    pub(crate) fn world(&self) -> &W {
        self.engine.world()
    }

    #[inline]
    pub(crate) fn root(&self) -> TableId {
        self.root
    }

    #[inline]
    pub(crate) fn mmap_line(&self) -> Line {
        Line::MmapLock { space: self.id }
    }

    #[inline]
    pub(crate) fn rss_line(&self) -> Line {
        Line::Rss { space: self.id }
    }

    #[inline]
    pub(crate) fn write_number(&self) -> u64 {
        self.write_number.load(Ordering::Acquire)
    }

    #[inline]
    pub(crate) fn map_number(&self) -> u64 {
        self.map_number.load(Ordering::Acquire)
    }

    /// Brings a task's copy of the map up to date, if it changed. Returns the map's number.
    #[inline]
    pub(crate) fn refresh(&self, known: &mut KnownAreas) -> u64 {
        let number = self.map_number();
        if known.version == Some((self.id, number)) { number } else { self.copy_map(known) }
    }

    #[cold]
    fn copy_map(&self, known: &mut KnownAreas) -> u64 {
        let map = self.areas.lock();
        let number = self.map_number();
        known.map = Arc::clone(&map);
        known.version = Some((self.id, number));
        number
    }

    /// Whether an area is still as a fault found it, for strategies that ask. Asked with hold of the word that the
    /// fault is about to change: a writer closes areas before it takes hold of words.
    #[inline]
    pub(crate) fn is_unchanged(&self, local: &Local, ticket: &Ticket) -> bool {
        if !self.looks_again {
            return true;
        }
        let write = self.write_number();
        self.map_number() == ticket.map && !local.areas.area(ticket.index).is_marked(write)
    }

    pub(crate) fn current_map(&self) -> Arc<AreaMap> {
        Arc::clone(&self.areas.lock())
    }

    pub(crate) fn note_exit(&self, cpu: CpuId) {
        self.last_cpu.store(cpu.0, Ordering::Relaxed);
    }
}

impl<W: World> core::fmt::Debug for AddressSpace<W> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("AddressSpace")
            .field("id", &self.id)
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}
