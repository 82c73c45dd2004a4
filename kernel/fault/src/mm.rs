//! The state of an address space that is the same for all strategies (Linux's mm_struct).

use alloc::sync::Arc;

use lock_api::Mutex;
use pageset_core::CpuId;

use crate::area::AreaMap;
use crate::atomic::{AtomicU64, Ordering, Padded};
use crate::engine::Engine;
use crate::held::Held;
use crate::local::{KnownAreas, Local};
use crate::pte::TableId;
use crate::rwsem::RwSem;
use crate::world::{Line, World};

/// The areas of an address space, the root of its page table, and the locks that strategies may take.
pub(crate) struct Mm<W: World> {
    engine: Arc<Engine<W>>,
    id: u32,
    root: TableId,
    /// The map of all areas of the address space. `map_number` is the number of this map.
    areas: Mutex<W::RawLock, Arc<AreaMap>>,
    map_number: AtomicU64,
    /// The number of the write in progress, or of the next write if no write is in progress.
    write_number: AtomicU64,
    /// mmap_sem: a reader-writer lock with one writer at a time. Under V1, every fault takes mmap_sem as a
    /// reader. Under V0, V2, V3 and V7, only a fault that looks for its area again takes mmap_sem as a
    /// reader.
    mmap_lock: Padded<RwSem>,
    /// Linux's page_table_lock.
    pub(crate) page_table_lock: Padded<Mutex<W::RawLock, ()>>,
    /// The lock of the shared counters under strategy R4. A task takes this lock to add its slot to the
    /// shared counters.
    pub(crate) fold_lock: Padded<Mutex<W::RawLock, ()>>,
}

impl<W: World> Mm<W> {
    pub(crate) fn new(engine: &Arc<Engine<W>>, root: TableId, areas: AreaMap) -> Self {
        Self {
            id: engine.next_space(),
            root,
            areas: Mutex::new(Arc::new(areas)),
            map_number: AtomicU64::new(0),
            // The first write has number 1, because mark 0 of a new area must mean "not closed".
            write_number: AtomicU64::new(1),
            mmap_lock: Padded(RwSem::new()),
            page_table_lock: Padded(Mutex::new(())),
            fold_lock: Padded(Mutex::new(())),
            engine: Arc::clone(engine),
        }
    }

    #[inline]
    pub(crate) fn id(&self) -> u32 {
        self.id
    }

    #[inline]
    pub(crate) fn engine(&self) -> &Arc<Engine<W>> {
        &self.engine
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
    pub(crate) fn rss_line(&self) -> Line {
        Line::Rss { space: self.id }
    }

    #[inline]
    fn mmap_line(&self) -> Line {
        Line::MmapLock { space: self.id }
    }

    /// Takes mmap_sem as a reader.
    #[inline]
    pub(crate) fn read(&self, local: &mut Local) {
        self.mmap_lock.0.read(self.world(), local.cpu, self.mmap_line(), &mut local.stats.locks);
    }

    #[inline]
    pub(crate) fn end_read(&self, local: &Local) {
        self.mmap_lock.0.end_read(self.world(), local.cpu, self.mmap_line());
    }

    /// Takes mmap_sem as the writer.
    pub(crate) fn write(&self, cpu: CpuId) {
        self.mmap_lock.0.write(self.world(), cpu, self.mmap_line());
    }

    /// Ends a write, and so opens the areas that the write had closed.
    pub(crate) fn end_write(&self, cpu: CpuId) {
        self.write_number.fetch_add(1, Ordering::Release);
        self.mmap_lock.0.end_write(self.world(), cpu, self.mmap_line());
    }

    /// Takes the lock over the page table.
    #[inline]
    pub(crate) fn lock_page_table(&self, local: &mut Local) -> Held<'_, W> {
        Held::lock(self.world(), local.cpu, &mut local.stats.locks, &self.page_table_lock.0)
    }

    /// Takes one table's own lock.
    #[inline]
    pub(crate) fn lock_table(&self, local: &mut Local, table: TableId) -> Held<'_, W> {
        Held::lock(self.world(), local.cpu, &mut local.stats.locks, self.engine.tables.lock_of(table))
    }

    #[inline]
    pub(crate) fn write_number(&self) -> u64 {
        self.write_number.load(Ordering::Acquire)
    }

    #[inline]
    pub(crate) fn map_number(&self) -> u64 {
        self.map_number.load(Ordering::Acquire)
    }

    /// The current map.
    pub(crate) fn map(&self) -> Arc<AreaMap> {
        Arc::clone(&self.areas.lock())
    }

    /// Replaces the area map. Only the writer calls this function.
    pub(crate) fn publish(&self, map: Arc<AreaMap>) {
        let mut current = self.areas.lock();
        *current = map;
        self.map_number.fetch_add(1, Ordering::Release);
    }

    /// Makes the task's reference `known` point to the current area map. Returns the number of this map.
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
}
