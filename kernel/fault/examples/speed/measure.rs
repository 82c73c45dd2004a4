//! Runs rounds of faults, and computes the figures.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use pageset_core::{Config, CpuId, NodeId, Order, PageAllocator, Tables, ZoneConfig, ZoneKind};
use pageset_fault::{
    Access, AddressSpace, Backing, Engine, EngineConfig, Geometry, Host, Locks, Memory, NoMemory, Options,
    Prot, Task, World,
};

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use crate::arena::Arena;

/// Bytes of a page.
pub(crate) const PAGE: u64 = 4096;
/// The number of pages that a thread touches in a round: 64 MiB, chosen to exceed the caches of one core.
pub(crate) const PAGES: u64 = 16_384;
/// The number of an engine's frames for each thread. The frames of an engine suffice for the pages, for the
/// page tables and for the page sets, and few frames are left. With many more frames, each round would use
/// frames that earlier rounds had not used. Unused frames are colder in the caches than the pages that
/// `clear_alone` clears.
const FRAMES: u64 = PAGES + PAGES / 4;

type Lock = crate::lock::Spin;
type Allocator = PageAllocator<'static, Locks<Lock>>;
type Parts<M> = Host<Lock, Allocator, M>;

/// An engine and a strategy to measure, with or without real page contents.
pub(crate) enum Contestant {
    /// In this setting, frames are only numbers, so a fault clears nothing.
    Bare(Setting<NoMemory>),
    /// In this setting, frames are real memory, and each fault clears its frame.
    Clearing(Setting<Arena>),
}

/// An engine, and the options of the address spaces to make in this engine.
pub(crate) struct Setting<M: Memory + Sync> {
    engine: Arc<Engine<Parts<M>>>,
    options: Options,
}

impl Contestant {
    pub(crate) fn bare(strategy: &str, threads: u32, magazine: u32) -> Self {
        Self::Bare(Setting::new(strategy, threads, magazine, NoMemory))
    }

    /// Builds an engine whose frames are real memory. The argument `arena` must come from a call of the
    /// function [`arena`] with at least `threads` threads.
    pub(crate) fn clearing(strategy: &str, threads: u32, magazine: u32, arena: &Arena) -> Self {
        Self::Clearing(Setting::new(strategy, threads, magazine, arena.clone()))
    }

    /// Runs one round on `threads` threads at once.
    pub(crate) fn round(&self, threads: u32) -> Round {
        match self {
            Self::Bare(setting) => setting.round(threads),
            Self::Clearing(setting) => setting.round(threads),
        }
    }
}

/// Times of one round.
pub(crate) struct Round {
    /// Nanoseconds from the first thread's begin of its second touch to the last thread's end of its second
    /// touch, divided by the number of one thread's faults.
    pub(crate) fault_ns: f64,
    /// Nanoseconds to clear a page without a fault. After its faults, a single thread clears its pages again
    /// in the same order. With several threads, `clear_ns` is 0.
    pub(crate) clear_ns: f64,
}

/// Allocates memory for the engines of `threads` threads.
pub(crate) fn arena(threads: u32) -> Arena {
    Arena::new(FRAMES * u64::from(threads))
}

/// The faults per second of two threads, divided by the faults per second of one thread.
pub(crate) fn pair_of(contestant: &Contestant) -> f64 {
    2.0 * contestant.round(1).fault_ns / contestant.round(2).fault_ns
}

/// One thread's times.
struct Spans {
    begin: Instant,
    end: Instant,
    clear: Duration,
}

impl<M: Memory + Send + Sync + 'static> Setting<M> {
    fn new(strategy: &str, threads: u32, magazine: u32, memory: M) -> Self {
        let frames = FRAMES * u64::from(threads);
        let regions = [0..frames];
        let zones =
            [ZoneConfig { kind: ZoneKind::Normal, node: NodeId(0), span: 0..frames, regions: &regions }];
        let cpus = vec![NodeId(0); threads as usize];
        let mut config = Config::new(&zones, &cpus);
        // Set no emergency reserve, because this program does not need a reserve.
        config.min_free_kbytes = Some(0);
        let tables = Tables::on_heap(&config).expect("a span of a sensible size");
        let allocator = PageAllocator::new(Locks::new(), &config, tables).expect("a sensible configuration");
        let config = EngineConfig { magazine, ..EngineConfig::new(Geometry::PAGES_4K, threads, frames) };
        let options = Options::new(strategy.parse().expect("a strategy"));
        Self { engine: Engine::new(Host::new(allocator, memory), &config), options }
    }

    fn round(&self, threads: u32) -> Round {
        let space = AddressSpace::new(&self.engine, self.options).expect("memory");
        let ready = AtomicU32::new(0);
        let spans: Vec<_> = thread::scope(|scope| {
            let worker = |cpu| self.worker(&space, cpu, threads, &ready);
            let workers: Vec<_> = (0..threads).map(|cpu| scope.spawn(move || worker(cpu))).collect();
            workers.into_iter().map(|worker| worker.join().expect("no panic")).collect()
        });
        let begin = spans.iter().map(|span| span.begin).min().expect("a thread");
        let end = spans.iter().map(|span| span.end).max().expect("a thread");
        self.engine.check(&[&space]).expect("the invariants");
        // `PAGES` are the pages of one thread, so for two threads the result is the time per page of each
        // thread.
        let per_page = |span: Duration| span.as_nanos() as f64 / PAGES as f64;
        Round { fault_ns: per_page(end - begin), clear_ns: per_page(spans[0].clear) }
    }

    /// Touches a slice of pages twice. The first touch brings the engine's tables into this CPU's caches, as
    /// in a program that has run for a while. Measures the time of the second touch.
    fn worker(
        &self,
        space: &Arc<AddressSpace<Parts<M>>>,
        cpu: u32,
        threads: u32,
        ready: &AtomicU32,
    ) -> Spans {
        // Pin the threads to CPUs only if several threads run. A single thread may move away from a CPU that
        // has other work, as in the test of the operating system's own fault.
        if threads > 1 {
            pin(cpu);
        }
        let mut task = Task::new(space, CpuId(cpu)).expect("a task is free");
        // Leave a gap between the threads' slices, so that no two threads use the same leaf table.
        let start = 2 * u64::from(cpu) * PAGES * PAGE;
        let slice = start..start + PAGES * PAGE;
        let pages = || slice.clone().step_by(PAGE as usize);
        task.map(slice.clone(), Prot::ReadWrite).expect("free");
        for va in pages() {
            task.fault(va, Access::Write).expect("mapped");
        }
        task.unmap(slice.clone()).expect("a range of pages");
        task.map(slice.clone(), Prot::ReadWrite).expect("free");
        meet(ready, threads);
        let begin = Instant::now();
        for va in pages() {
            std::hint::black_box(task.fault(va, Access::Write)).expect("mapped");
        }
        let end = Instant::now();
        meet(ready, 2 * threads);
        let clear = if threads == 1 { self.clear_alone(&mut task, pages()) } else { Duration::ZERO };
        task.unmap(slice.clone()).expect("a range of pages");
        Spans { begin, end, clear }
    }

    /// Clears the mapped pages in the order of their faults. In this order, each page is as cold in the
    /// caches as it was at its fault.
    fn clear_alone(&self, task: &mut Task<Parts<M>>, pages: impl Iterator<Item = u64>) -> Duration {
        let page = |va| task.fault(va, Access::Write).expect("mapped");
        let frame = |page| if let Backing::Frame(pfn) = page { Some(pfn) } else { None };
        let frames: Vec<_> = pages.map(page).filter_map(frame).collect();
        let begin = Instant::now();
        for pfn in &frames {
            self.engine.world().memory().clear(CpuId(0), *pfn, Order::ZERO, 0);
        }
        begin.elapsed()
    }
}

/// Waits until this function has been called at least `arrivals` times in this round.
fn meet(ready: &AtomicU32, arrivals: u32) {
    ready.fetch_add(1, Ordering::AcqRel);
    while ready.load(Ordering::Acquire) < arrivals {
        std::hint::spin_loop();
    }
}

/// Pins this thread to CPU number `index` of the CPUs that the thread may use. Without pinning, the scheduler
/// may leave several threads on one CPU in the short time of a round.
fn pin(index: u32) {
    let allowed = sched_getaffinity(None).expect("one's own CPUs");
    let cpu = (0..CpuSet::MAX_CPU)
        .filter(|cpu| allowed.is_set(*cpu))
        .nth(index as usize)
        .expect("a CPU per thread");
    let mut one = CpuSet::new();
    one.set(cpu);
    sched_setaffinity(None, &one).expect("a CPU one may use");
}

/// The figures of all rounds, in ascending order.
#[derive(Clone, Default)]
pub(crate) struct Series(Vec<f64>);

impl Series {
    pub(crate) fn add(&mut self, figure: f64) {
        self.0.push(figure);
        self.0.sort_by(f64::total_cmp);
    }

    pub(crate) fn median(&self) -> f64 {
        self.0[self.0.len() / 2]
    }
}

impl fmt::Display for Series {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let quartile = |quarter: usize| self.0[(self.0.len() - 1) * quarter / 4];
        let digits = if self.median() < 10.0 { 2 } else { 0 };
        write!(f, "{:5.digits$} [{:4.digits$}, {:4.digits$}]", self.median(), quartile(1), quartile(3))
    }
}
