//! An address space has areas, a page table and counters. This module also has the operations that change
//! areas and pages.
//!
//! `build` adds missing tables. `write` keeps other writers out, and closes areas. `change` has map, unmap
//! and protect. `zap` removes pages and tables. `fork` copies an address space. `split` turns a huge page
//! into small pages, and `collapse` turns small pages into a huge page. `reclaim` frees a page after the host
//! has saved its contents, and `teardown` ends an address space.

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
    /// How tasks keep areas, page table and counts consistent.
    pub strategy: Strategy,
    /// Whether faults map huge pages. With 4 KiB pages, a huge page has order 9.
    pub huge: Huge,
    /// The largest order of a block that a write fault maps at once, if all its words are empty (mTHP, spec
    /// §1.9). With `gang_order` 0, a fault maps single pages. With `gang_order` 4 and pages of 4 KiB, a fault
    /// maps up to 64 KiB.
    pub gang_order: u8,
    /// The largest order of a run of pages that a fault maps in advance (prefaulting, spec §1.9), at most 5.
    /// With `prefault_order` 0, faults map no pages in advance. The first prefaulting patches of December
    /// 2004 used order 3.
    pub prefault_order: u8,
}

/// Whether faults map huge pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Huge {
    /// Map only small pages.
    Never,
    /// A fault by a store maps a huge page if the huge page's range has no leaf table and lies inside
    /// one area, and a block is free. Pages of 16 KiB
    /// ([`Geometry::PAGES_16K`](crate::Geometry::PAGES_16K)) cannot have huge pages. Their leaf table
    /// covers 32 MiB, more than the allocator's largest block of 2^10 pages.
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
    /// Whether a fault checks its area again before it maps a page, as V3 and P3 require.
    looks_again: bool,
    /// The CPU of the task that ended last in the address space.
    last_cpu: AtomicU32,
}

impl<W: World> AddressSpace<W> {
    /// Makes an empty address space.
    ///
    /// # Errors
    /// [`SpaceError::OutOfMemory`] if there is no frame or table for the root. [`SpaceError::NoHugePages`] if
    /// `options` ask for huge pages and the geometry cannot have them.
    pub fn new(engine: &Arc<Engine<W>>, options: Options) -> Result<Arc<Self>, SpaceError> {
        if options.huge == Huge::Always && engine.geometry.huge_order().is_none() {
            return Err(SpaceError::NoHugePages);
        }
        let cpu = CpuId(0);
        let root = engine.take_table(cpu).ok_or(SpaceError::OutOfMemory)?;
        Ok(Arc::new(Self::on(engine, options, cpu, root, AreaMap::default())))
    }

    /// Makes an address space with these areas and no pages. The caller has checked that the engine supports
    /// the options.
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

    /// The address space's number, which no other address space of the engine has.
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

    /// Reads the counters quickly. Counts that tasks have not folded yet are missing in the result.
    pub fn quick_counts(&self) -> Counts {
        self.account.quick()
    }

    /// The number of resident pages, and the number of tables without the root. The counts of pages and
    /// tables are exact after all tasks have ended.
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

    /// Whether the area is unchanged since the fault found the area. Always true unless the strategy has V3
    /// or P3. The caller has the right to change the fault's page-table word. Race: a writer unmaps the area
    /// while a fault maps a page into the area. The writer marks the area before it takes the right to change
    /// words. So either the fault sees the mark and starts again, or the writer later finds the fault's page
    /// and removes the page.
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
