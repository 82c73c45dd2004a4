//! The world of the tests has a memory that tests can read, and an allocator that tests can make fail. The
//! engines of the tests are so small that tasks often use the same page-table words.

#![expect(dead_code, reason = "each test target uses only a part of this module")]

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Mutex as StdMutex;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering::Relaxed};

use pageset_core::lock_api::RawMutex;
use pageset_core::{
    Config, CpuId, FreeError, NodeId, Order, PageAllocator, Pfn, Platform, Tables, ZoneConfig, ZoneKind,
};
use pageset_fault::{
    Backing, Engine, EngineConfig, FrameSource, FrameUse, Geometry, Line, Locks, Memory, Strategy, World,
};

/// Decides which thread runs at each step that touches shared data.
pub(crate) trait Scheduler: Send + Sync + 'static {
    type RawLock: RawMutex + Send + Sync + 'static;
    /// A call at which another thread may run.
    fn step();
    /// A call at which another thread must run.
    fn relax();
}

/// Leaves the scheduling to the operating system.
pub(crate) struct Threads;

impl Scheduler for Threads {
    type RawLock = parking_lot::RawMutex;
    fn step() {}
    fn relax() {
        std::thread::yield_now();
    }
}

/// A memory that has one number per frame instead of the frame's bytes. Before the first write to a frame,
/// its number is garbage.
pub(crate) struct Words<S> {
    contents: Vec<AtomicU64>,
    slots: StdMutex<HashMap<u64, (u64, u32)>>,
    keeps_contents: AtomicBool,
    scheduler: std::marker::PhantomData<S>,
}

/// The contents of a frame that was not yet cleared.
const GARBAGE: u64 = 0xDEAD;

impl<S: Scheduler> Words<S> {
    fn new(frames: u64) -> Self {
        Self {
            contents: (0..frames).map(|_| AtomicU64::new(GARBAGE)).collect(),
            slots: StdMutex::default(),
            keeps_contents: AtomicBool::new(true),
            scheduler: std::marker::PhantomData,
        }
    }

    /// Loads a page's contents.
    pub(crate) fn load(&self, page: Backing) -> u64 {
        S::step();
        match page {
            Backing::Frame(pfn) => self.contents[pfn.0 as usize].load(Relaxed),
            Backing::ZeroPage => 0,
        }
    }

    /// Stores to a page.
    pub(crate) fn store(&self, page: Backing, value: u64) {
        S::step();
        match page {
            Backing::Frame(pfn) => self.contents[pfn.0 as usize].store(value, Relaxed),
            Backing::ZeroPage => panic!("the zero page cannot be written"),
        }
    }

    /// Adds to a page's contents.
    pub(crate) fn add(&self, page: Backing, more: u64) {
        S::step();
        match page {
            Backing::Frame(pfn) => self.contents[pfn.0 as usize].fetch_add(more, Relaxed),
            Backing::ZeroPage => panic!("the zero page cannot be written"),
        };
    }

    /// Sets whether the memory keeps the contents of reclaimed pages. A new memory keeps the contents of
    /// reclaimed pages.
    pub(crate) fn keep_contents(&self, keeps: bool) {
        self.keeps_contents.store(keeps, Relaxed);
    }

    pub(crate) fn keeps_contents(&self) -> bool {
        self.keeps_contents.load(Relaxed)
    }

    /// The number of reclaimed pages whose contents are kept.
    pub(crate) fn slots_in_use(&self) -> usize {
        self.slots.lock().expect("no panic").len()
    }
}

impl<S: Scheduler> Memory for Words<S> {
    fn clear(&self, _: CpuId, pfn: Pfn, order: Order, target: u32) {
        assert!(target < order.frames());
        S::step();
        for frame in pfn.0..pfn.0 + u64::from(order.frames()) {
            self.contents[frame as usize].store(0, Relaxed);
        }
    }

    fn copy(&self, _: CpuId, from: Pfn, to: Pfn) {
        let value = self.contents[from.0 as usize].load(Relaxed);
        S::step();
        self.contents[to.0 as usize].store(value, Relaxed);
    }

    fn save(&self, _: CpuId, pfn: Pfn) -> Option<u64> {
        S::step();
        if !self.keeps_contents() {
            return None;
        }
        let mut slots = self.slots.lock().expect("no panic");
        // Take the lowest free number, so that slots are reused soon.
        let slot = (1..).find(|slot| !slots.contains_key(slot))?;
        slots.insert(slot, (self.contents[pfn.0 as usize].load(Relaxed), 1));
        Some(slot)
    }

    fn restore(&self, _: CpuId, slot: u64, pfn: Pfn) {
        S::step();
        let kept = self.slots.lock().expect("no panic").get(&slot).map_or(GARBAGE, |(value, _)| *value);
        self.contents[pfn.0 as usize].store(kept, Relaxed);
    }

    fn share_slot(&self, slot: u64) {
        self.slots.lock().expect("no panic").get_mut(&slot).expect("in use").1 += 1;
    }

    fn drop_slot(&self, slot: u64) {
        let mut slots = self.slots.lock().expect("no panic");
        let users = &mut slots.get_mut(&slot).expect("in use").1;
        *users -= 1;
        if *users == 0 {
            slots.remove(&slot);
        }
    }
}

/// The core's allocator, which tests can make fail.
pub(crate) struct Frames<S: Scheduler> {
    allocator: PageAllocator<'static, Locks<S::RawLock>>,
    /// The number of further allocations that succeed. A negative number means that all further allocations
    /// succeed.
    until_failure: AtomicI64,
    failures: AtomicU64,
}

impl<S: Scheduler> Frames<S> {
    fn new(frames: u64, cpus: u32) -> Self {
        let regions = [0..frames];
        let zone = ZoneConfig { kind: ZoneKind::Normal, node: NodeId(0), span: 0..frames, regions: &regions };
        let (zones, nodes) = ([zone], vec![NodeId(0); cpus as usize]);
        let mut config = Config::new(&zones, &nodes);
        config.min_free_kbytes = Some(0);
        let tables = Tables::on_heap(&config).expect("a span of a sensible size");
        let allocator = PageAllocator::new(Locks::new(), &config, tables).expect("a sensible configuration");
        Self { allocator, until_failure: AtomicI64::new(-1), failures: AtomicU64::new(0) }
    }

    /// Lets `count` more allocations succeed, and makes all later allocations fail.
    pub(crate) fn fail_after(&self, count: i64) {
        self.until_failure.store(count, Relaxed);
    }

    /// The number of frames that are in use.
    pub(crate) fn allocated(&self) -> u64 {
        self.allocator.frames_allocated().expect("an allocator that counts")
    }

    /// The number of allocations that failed.
    pub(crate) fn failures(&self) -> u64 {
        self.failures.load(Relaxed)
    }
}

impl<S: Scheduler> FrameSource for Frames<S> {
    fn span(&self) -> Range<u64> {
        FrameSource::span(&self.allocator)
    }

    fn alloc(&self, cpu: CpuId, order: Order, wanted_for: FrameUse) -> Option<Pfn> {
        let left = self.until_failure.load(Relaxed);
        if left == 0 {
            self.failures.fetch_add(1, Relaxed);
            return None;
        }
        self.until_failure.store((left - 1).max(-1), Relaxed);
        let block = FrameSource::alloc(&self.allocator, cpu, order, wanted_for);
        self.failures.fetch_add(u64::from(block.is_none()), Relaxed);
        block
    }

    fn free(&self, cpu: CpuId, pfn: Pfn, order: Order) -> Result<(), FreeError> {
        FrameSource::free(&self.allocator, cpu, pfn, order)
    }

    fn frames_allocated(&self) -> Option<u64> {
        self.allocator.frames_allocated()
    }
}

/// The world of the tests.
pub(crate) struct TestWorld<S: Scheduler> {
    pub(crate) frames: Frames<S>,
    pub(crate) memory: Words<S>,
}

impl<S: Scheduler> Platform for TestWorld<S> {
    type RawLock = S::RawLock;
    type Events = ();

    fn events(&self) -> &() {
        &()
    }
}

impl<S: Scheduler> World for TestWorld<S> {
    type Frames = Frames<S>;
    type Memory = Words<S>;

    fn frames(&self) -> &Frames<S> {
        &self.frames
    }

    fn memory(&self) -> &Words<S> {
        &self.memory
    }

    fn shares(&self, _: CpuId, _: Line) {
        S::step();
    }

    fn relax(&self, _: CpuId) {
        S::relax();
    }
}

pub(crate) type TestMachine<S> = Engine<TestWorld<S>>;

/// The shape of small page tables: pages of 4 KiB, 8 words per table, and 3 levels. Huge pages have order 3.
pub(crate) const SMALL: Option<Geometry> = Geometry::new(12, 3, 3);
/// Bytes of a page.
pub(crate) const PAGE: u64 = 4096;

/// Makes an engine with 512 frames.
pub(crate) fn engine<S: Scheduler>(cpus: u32) -> std::sync::Arc<TestMachine<S>> {
    machine_with(cpus, |_| {})
}

/// Makes an engine with 512 frames, after `change` has changed the engine's configuration.
pub(crate) fn machine_with<S: Scheduler>(
    cpus: u32,
    change: impl FnOnce(&mut EngineConfig),
) -> std::sync::Arc<TestMachine<S>> {
    let geometry = SMALL.expect("a geometry");
    let mut config =
        EngineConfig { geometry, cpus, tasks: 2 * cpus, tables: 64, prezeroed: 0, magazine: 0, lru_lists: 2 };
    change(&mut config);
    let world = TestWorld { frames: Frames::new(512, cpus), memory: Words::new(512) };
    Engine::new(world, &config)
}

/// The strategies that tests use: every valid pair of P and V with R3, and each other R with one pair of P
/// and V.
pub(crate) fn strategies() -> Vec<Strategy> {
    use pageset_fault::{Account, Stabilise, TableSync};
    let of_words = Strategy::all().filter(|strategy| strategy.account() == Account::R3);
    let of_counts = Strategy::all().filter(|strategy| {
        let whole = strategy.account() == Account::R0;
        strategy.stabilise() == Stabilise::V1
            && strategy.sync() == if whole { TableSync::P0 } else { TableSync::P1 }
    });
    of_words.chain(of_counts.filter(|strategy| strategy.account() != Account::R3)).collect()
}
