//! Rounds of faults, and what is said about them.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Instant;

use pageset_core::{Config, CpuId, NodeId, Order, PageAllocator, Tables, ZoneConfig, ZoneKind};
use pageset_fault::{
    Access, AddressSpace, Backing, Geometry, Host, Locks, Machine, MachineConfig, Memory, NoMemory, Options,
    Prot, Task, World,
};

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use crate::arena::Arena;

/// Bytes of a page.
pub(crate) const PAGE: u64 = 4096;
/// Pages that a thread touches in a round: 64 MiB, larger than this machine's caches of one core.
pub(crate) const PAGES: u64 = 16_384;
/// Frames of a machine, per thread: the pages, their tables, and as many again.
const FRAMES: u64 = 2 * PAGES;

type Lock = crate::lock::Spin;
type Allocator = PageAllocator<'static, Locks<Lock>>;
type Parts<M> = Host<Lock, Allocator, M>;

/// A machine and a strategy, with or without contents.
pub(crate) enum Engine {
    /// Frames are numbers.
    Bare(Setting<NoMemory>),
    /// Frames are memory, and are cleared.
    Clearing(Setting<Arena>),
}

/// A machine, and options of its address spaces.
pub(crate) struct Setting<M: Memory + Sync> {
    machine: Arc<Machine<Parts<M>>>,
    options: Options,
}

impl Engine {
    pub(crate) fn bare(strategy: &str, threads: u32) -> Self {
        Self::Bare(Setting::new(strategy, threads, NoMemory))
    }

    /// `arena` has the frames of [`arena`], for as many threads.
    pub(crate) fn clearing(strategy: &str, threads: u32, arena: &Arena) -> Self {
        Self::Clearing(Setting::new(strategy, threads, arena.clone()))
    }

    /// ns per fault of so many threads at once, from the start of the first to the end of the last.
    pub(crate) fn fault_ns(&self, threads: u32) -> f64 {
        match self {
            Self::Bare(setting) => setting.fault_ns(threads),
            Self::Clearing(setting) => setting.fault_ns(threads),
        }
    }

    /// ns to clear a page, in the order in which faults clear them.
    pub(crate) fn clear_alone_ns(&self) -> f64 {
        match self {
            Self::Bare(_) => 0.0,
            Self::Clearing(setting) => setting.clear_alone_ns(),
        }
    }
}

/// Memory for engines of so many threads.
pub(crate) fn arena(threads: u32) -> Arena {
    Arena::new(FRAMES * u64::from(threads))
}

/// Faults per second of two threads against one.
pub(crate) fn pair_of(engine: &Engine) -> f64 {
    2.0 * engine.fault_ns(1) / engine.fault_ns(2)
}

impl<M: Memory + Send + Sync + 'static> Setting<M> {
    fn new(strategy: &str, threads: u32, memory: M) -> Self {
        let frames = FRAMES * u64::from(threads);
        let regions = [0..frames];
        let zones =
            [ZoneConfig { kind: ZoneKind::Normal, node: NodeId(0), span: 0..frames, regions: &regions }];
        let cpus = vec![NodeId(0); threads as usize];
        let config = Config::new(&zones, &cpus);
        let tables = Tables::on_heap(&config).expect("a span of a sensible size");
        let allocator = PageAllocator::new(Locks::new(), &config, tables).expect("a sensible configuration");
        let config = MachineConfig::new(Geometry::PAGES_4K, threads, frames);
        let options = Options::new(strategy.parse().expect("a strategy"));
        Self { machine: Machine::new(Host::new(allocator, memory), &config), options }
    }

    fn fault_ns(&self, threads: u32) -> f64 {
        let space = AddressSpace::new(&self.machine, self.options).expect("memory");
        Task::new(&space, CpuId(0))
            .expect("a task is free")
            .map(0..PAGES * PAGE * u64::from(threads), Prot::ReadWrite)
            .expect("free");
        let ready = Arc::new(AtomicU32::new(0));
        let workers: Vec<_> = (0..threads)
            .map(|cpu| {
                let (space, ready) = (Arc::clone(&space), Arc::clone(&ready));
                thread::spawn(move || {
                    let mut task = Task::new(&space, CpuId(cpu)).expect("a task is free");
                    let start = u64::from(cpu) * PAGES * PAGE;
                    // One thread alone may flee from a disturbance, as clearing alone and the kernel's faults may.
                    if threads > 1 {
                        pin(cpu);
                    }
                    ready.fetch_add(1, Ordering::AcqRel);
                    while ready.load(Ordering::Acquire) < threads {
                        std::hint::spin_loop();
                    }
                    let begin = Instant::now();
                    for va in (start..start + PAGES * PAGE).step_by(PAGE as usize) {
                        std::hint::black_box(task.fault(va, Access::Write)).expect("mapped");
                    }
                    (begin, Instant::now())
                })
            })
            .collect();
        let spans: Vec<_> = workers.into_iter().map(|worker| worker.join().expect("no panic")).collect();
        let begin = spans.iter().map(|span| span.0).min().expect("a thread");
        let end = spans.iter().map(|span| span.1).max().expect("a thread");
        self.machine.check(&[&space]).expect("the invariants");
        // Two threads do twice as much in this time.
        (end - begin).as_nanos() as f64 / PAGES as f64
    }

    fn clear_alone_ns(&self) -> f64 {
        let space = AddressSpace::new(&self.machine, self.options).expect("memory");
        let mut task = Task::new(&space, CpuId(0)).expect("a task is free");
        task.map(0..PAGES * PAGE, Prot::ReadWrite).expect("free");
        let pages = (0..PAGES).map(|page| task.fault(page * PAGE, Access::Write).expect("mapped"));
        let frames: Vec<_> =
            pages.filter_map(|page| if let Backing::Frame(pfn) = page { Some(pfn) } else { None }).collect();
        let begin = Instant::now();
        for pfn in &frames {
            self.machine.world().memory().clear(CpuId(0), *pfn, Order::ZERO, 0);
        }
        begin.elapsed().as_nanos() as f64 / frames.len() as f64
    }
}

/// Keeps this thread on the CPU with this index among those it may use: a round is too short for the scheduler to spread
/// threads by itself.
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

/// Figures of all rounds.
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
