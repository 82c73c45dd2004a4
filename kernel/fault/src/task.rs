//! A task: a thread of execution in an address space, on a CPU, with private state.

use alloc::sync::Arc;
use core::ops::Range;

use pageset_core::CpuId;

use crate::area::{Access, Prot};
use crate::counts::Counts;
use crate::error::{FaultError, SpaceError};
use crate::fault::Backing;
use crate::local::Local;
use crate::magazine::Magazine;
use crate::space::AddressSpace;
use crate::stats::Stats;
use crate::world::World;

/// A task in an address space. Dropping a task folds its counts, and drops its [`Arc`] of the address space.
///
/// ```
/// # use pageset_core::CpuId;
/// # use pageset_fault::{Access, AddressSpace, Bump, Engine, EngineConfig, Geometry, Host};
/// # use pageset_fault::{NoMemory, Options, Prot, Task};
/// # let host = Host::<parking_lot::RawMutex, _, _>::new(Bump::new(0..4096), NoMemory);
/// # let engine = Engine::new(host, &EngineConfig::new(Geometry::PAGES_4K, 2, 4096));
/// let space = AddressSpace::new(&engine, Options::new("P1,V1,R1".parse()?))?;
/// let mut task = Task::new(&space, CpuId(0))?;
/// task.map(0x10_0000..0x20_0000, Prot::ReadWrite)?;
/// task.fault(0x12_3456, Access::Write)?;
/// assert_eq!(task.stats().installed, 1);
/// task.unmap(0x10_0000..0x20_0000)?;
/// assert!(task.fault(0x12_3456, Access::Write).is_err());
/// drop(task);
/// engine.check(&[&space])?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Task<W: World> {
    space: Arc<AddressSpace<W>>,
    local: Local,
}

impl<W: World> Task<W> {
    /// Makes a task on `cpu`.
    ///
    /// # Errors
    /// [`SpaceError::BadCpu`] if the engine has no such CPU, and [`SpaceError::TooManyTasks`] if all tasks of
    /// the engine exist already.
    pub fn new(space: &Arc<AddressSpace<W>>, cpu: CpuId) -> Result<Self, SpaceError> {
        if cpu.0 >= space.engine().cpus() {
            return Err(SpaceError::BadCpu);
        }
        let engine = space.engine();
        let slot = engine.take_task().ok_or(SpaceError::TooManyTasks)?;
        let local = Local { magazine: Magazine::new(engine.magazine), ..Local::new(cpu, slot, space.id()) };
        Ok(Self { space: Arc::clone(space), local })
    }

    /// The task's address space.
    pub fn space(&self) -> &Arc<AddressSpace<W>> {
        &self.space
    }

    /// The task's counters so far.
    pub fn stats(&self) -> &Stats {
        &self.local.stats
    }

    /// The CPU that the task runs on.
    pub fn cpu(&self) -> CpuId {
        self.local.cpu
    }

    /// Handles a page fault. After success, the page at `va` is mapped and allows the access, unless another
    /// task has already removed the page. The returned page is valid until a task unmaps, reclaims, collapses
    /// or copies the page. If another task may do one of these operations while you use the page, call
    /// [`access`](Self::access).
    ///
    /// # Errors
    /// [`FaultError`]. After an error, the fault has mapped no page.
    #[inline]
    pub fn fault(&mut self, va: u64, access: Access) -> Result<Backing, FaultError> {
        self.space.fault(&mut self.local, va, access)
    }

    /// Handles a page fault in another address space of the same engine, as a debugger does. See
    /// [`fault`](Self::fault).
    ///
    /// # Errors
    /// The errors of `fault`, and [`FaultError::OtherMachine`].
    pub fn fault_in(
        &mut self,
        space: &AddressSpace<W>,
        va: u64,
        access: Access,
    ) -> Result<Backing, FaultError> {
        // The task's CPU, slot and frames have a meaning only in the task's own engine.
        if !Arc::ptr_eq(space.engine(), self.space.engine()) {
            return Err(FaultError::OtherMachine(va));
        }
        space.fault(&mut self.local, va, access)
    }

    /// Accesses a page as a CPU does: translates the address, and handles a page fault if the page table does
    /// not permit the access. Calls `touch` while the translation is valid. `touch` must not use the engine,
    /// because `touch` runs inside a section.
    ///
    /// # Errors
    /// The errors of [`fault`](Self::fault).
    pub fn access<T>(
        &mut self,
        va: u64,
        access: Access,
        touch: impl FnMut(Backing) -> T,
    ) -> Result<T, FaultError> {
        self.space.access(&mut self.local, va, access, touch)
    }

    /// Whether an access to `va` would succeed without a fault. If the access would succeed and the page is
    /// prefaulted, this call sets the page's accessed bit, as hardware does.
    pub fn reaches(&mut self, va: u64, access: Access) -> bool {
        self.space.reaches(&self.local, va, access)
    }

    /// Maps a range that has no areas yet (`mmap`). The engine allocates the pages later, when faults need
    /// them.
    ///
    /// # Errors
    /// [`SpaceError::BadRange`], [`SpaceError::Occupied`].
    pub fn map(&mut self, range: Range<u64>, prot: Prot) -> Result<(), SpaceError> {
        self.space.map(&mut self.local, range, prot)
    }

    /// Unmaps a range (`munmap`): removes the range from the areas, and frees the pages in the range that
    /// have no other user. Also frees page tables whose addresses no area covers any more.
    ///
    /// # Errors
    /// [`SpaceError::BadRange`]. [`SpaceError::OutOfMemory`] if a huge page must be split and no table is
    /// free.
    pub fn unmap(&mut self, range: Range<u64>) -> Result<(), SpaceError> {
        self.space.unmap(&mut self.local, range)
    }

    /// Changes the rights of a mapped range (`mprotect`).
    ///
    /// # Errors
    /// [`SpaceError::BadRange`], [`SpaceError::NoArea`], [`SpaceError::OutOfMemory`] as for
    /// [`unmap`](Self::unmap).
    pub fn protect(&mut self, range: Range<u64>, prot: Prot) -> Result<(), SpaceError> {
        self.space.protect(&mut self.local, range, prot)
    }

    /// Copies the task's address space (`fork`). Parent and child share each page until a task of the parent
    /// or child stores to the page.
    ///
    /// # Errors
    /// [`SpaceError::OutOfMemory`]. After an error, no copy of the address space exists.
    pub fn fork(&mut self) -> Result<Arc<AddressSpace<W>>, SpaceError> {
        self.space.fork(&mut self.local)
    }

    /// Replaces the small pages around `va` by one huge page with the same contents.
    ///
    /// # Errors
    /// [`SpaceError::NotEligible`], for example if there is no leaf table for `va`, if a page of the leaf
    /// table was reclaimed, or if no area with rights covers the table's whole range.
    /// [`SpaceError::OutOfMemory`] if no block is free for the huge page. [`SpaceError::NoHugePages`] if the
    /// geometry cannot have huge pages.
    pub fn collapse(&mut self, va: u64) -> Result<(), SpaceError> {
        self.space.collapse(&mut self.local, va)
    }

    /// Reclaims a small page. The host keeps the page's contents, and the next access brings the page back.
    ///
    /// # Errors
    /// [`SpaceError::NotEligible`], [`SpaceError::NoSwap`].
    pub fn reclaim(&mut self, va: u64) -> Result<(), SpaceError> {
        self.space.reclaim(&mut self.local, va)
    }

    /// Tells the engine that the scheduler took the task off its CPU. Under R2, the task then folds its
    /// counts if the page-table lock is free.
    pub fn schedule(&mut self) {
        self.space.account.on_schedule(&self.space.mm, &mut self.local);
    }

    /// Clears up to `frames` frames in advance for later faults on this CPU. Call this function while the CPU
    /// is idle. Returns the number of cleared frames. The number of cleared frames is lower than `frames` if
    /// the CPU's stack is full or memory is short.
    pub fn prezero(&mut self, frames: usize) -> usize {
        self.space.engine().prezero(&mut self.local, frames)
    }
}

impl<W: World> Drop for Task<W> {
    fn drop(&mut self) {
        let engine = Arc::clone(self.space.engine());
        self.space.account.on_exit(&self.space.mm, &mut self.local);
        self.space.note_exit(self.local.cpu);
        engine.lru.flush(&engine.frames, self.local.cpu, &mut self.local.lru);
        engine.empty_magazine(&mut self.local);
        debug_assert_eq!(self.local.deltas, Counts::default(), "a task ends, and its counts were not added");
        debug_assert!(
            self.local.unmapped.is_empty(),
            "a task leaves, and takes {:?} with it",
            self.local.unmapped
        );
        engine.put_task(self.local.slot);
    }
}

impl<W: World> core::fmt::Debug for Task<W> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Task")
            .field("cpu", &self.local.cpu)
            .field("space", &self.space.id())
            .finish_non_exhaustive()
    }
}
