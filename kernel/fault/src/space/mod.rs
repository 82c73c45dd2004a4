//! Address spaces: areas, a page table, counters, and the operations that change areas.
//!
//! `build` (missing tables), `write` (the steps that all changes of areas share), `change` (map, unmap,
//! protect), `zap` (removes pages and tables), `fork`, `split` and `collapse` (huge to small and back),
//! `reclaim`, `teardown`.

mod build;
mod change;
mod collapse;
mod fork;
mod reclaim;
mod split;
mod teardown;
mod write;
mod zap;

use alloc::sync::Arc;

use pageset_core::CpuId;

use crate::account::AnyAccount;
use crate::area::AreaMap;
use crate::atomic::{AtomicU32, Ordering};
use crate::counts::Counts;
use crate::engine::Engine;
use crate::error::SpaceError;
use crate::local::Local;
use crate::mm::Mm;
use crate::pte::TableId;
use crate::stabilise::{AnyStabilise, Ticket};
use crate::strategy::Strategy;
use crate::sync::AnySync;
use crate::world::World;

/// Options of an address space. With the defaults of [`new`](Self::new), each fault maps one small page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// How the address space is kept consistent.
    pub strategy: Strategy,
    /// Whether a fault in an empty, aligned, fully covered span maps one huge page (order 9 with 4 KiB
    /// pages).
    pub huge: Huge,
    /// Order of the block that a write fault maps at once if all its words are empty (mTHP, spec §1.9).
    /// Order 0 means single pages; order 4 means 64 KiB.
    pub gang_order: u8,
    /// Largest order of a run of pages that a fault maps ahead (prefaulting, spec §1.9), at most 5. 0
    /// switches it off. The first patches, of December 2004, used 3.
    pub prefault_order: u8,
}

/// Whether huge pages are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Huge {
    /// Small pages only.
    Never,
    /// Huge pages where a whole span is empty and inside one area. Not possible with
    /// [`Geometry::PAGES_16K`](crate::Geometry::PAGES_16K): its leaf table covers 32 MiB, more than the
    /// allocator's largest block of 2^10 pages.
    Always,
}

impl Options {
    /// Options for faults that map one small page each.
    #[must_use]
    pub const fn new(strategy: Strategy) -> Self {
        Self { strategy, huge: Huge::Never, gang_order: 0, prefault_order: 0 }
    }
}

/// An address space.
pub struct AddressSpace<W: World> {
    pub(crate) mm: Mm<W>,
    options: Options,
    pub(crate) sync: AnySync,
    pub(crate) stabilise: AnyStabilise,
    pub(crate) account: AnyAccount,
    /// Whether a fault checks its area again before it installs a page (V3 and P3).
    looks_again: bool,
    /// CPU of the last task that left.
    last_cpu: AtomicU32,
}

impl<W: World> AddressSpace<W> {
    /// An empty address space.
    ///
    /// # Errors
    /// [`SpaceError::OutOfMemory`] if there is no frame or table for the root. [`SpaceError::NoHugePages`] if
    /// `options` want huge pages and the geometry has none.
    pub fn new(engine: &Arc<Engine<W>>, options: Options) -> Result<Arc<Self>, SpaceError> {
        if options.huge == Huge::Always && engine.geometry.huge_order().is_none() {
            return Err(SpaceError::NoHugePages);
        }
        let cpu = CpuId(0);
        let root = engine.take_table(cpu).ok_or(SpaceError::OutOfMemory)?;
        Ok(Arc::new(Self::on(engine, options, cpu, root, AreaMap::default())))
    }

    /// Makes an address space with these areas and no pages. The engine must support the options.
    fn on(engine: &Arc<Engine<W>>, options: Options, cpu: CpuId, root: TableId, areas: AreaMap) -> Self {
        let strategy = options.strategy;
        let sync = AnySync::new(strategy.sync(), engine.tasks);
        let stabilise = AnyStabilise::new(strategy.stabilise(), engine.tasks);
        Self {
            mm: Mm::new(engine, root, areas),
            options,
            looks_again: sync.looks_again() || stabilise.looks_again(),
            sync,
            stabilise,
            account: AnyAccount::new(strategy.account(), engine.tasks),
            last_cpu: AtomicU32::new(cpu.0),
        }
    }

    /// The address space's number, unique in the engine.
    pub fn id(&self) -> u32 {
        self.mm.id()
    }

    /// The options that the address space was made with.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// The address space's engine.
    pub fn engine(&self) -> &Arc<Engine<W>> {
        self.mm.engine()
    }

    /// Reads the counters quickly, without the deltas that tasks or CPUs have not folded yet.
    pub fn quick_counts(&self) -> Counts {
        self.account.quick()
    }

    /// Resident pages and tables, without the root. Exact once all tasks have left and no thread changes
    /// anything.
    pub fn counts(&self) -> Counts {
        self.account.exact()
    }

    #[inline]
    pub(crate) fn world(&self) -> &W {
        self.mm.world()
    }

    #[inline]
    pub(crate) fn root(&self) -> TableId {
        self.mm.root()
    }

    /// Whether the area is unchanged since the fault found it, under strategies that check. The fault has
    /// the right to change its word. Race: a writer unmaps the area. The writer marks the area before it
    /// takes the right to change words. So either the fault sees the mark here, or the writer later sees the
    /// fault's page.
    #[inline]
    pub(crate) fn is_unchanged(&self, local: &Local, ticket: &Ticket) -> bool {
        !self.looks_again || ticket.is_current(&self.mm, local)
    }

    pub(crate) fn note_exit(&self, cpu: CpuId) {
        self.last_cpu.store(cpu.0, Ordering::Relaxed);
    }
}

impl<W: World> core::fmt::Debug for AddressSpace<W> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("AddressSpace")
            .field("id", &self.id())
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}
