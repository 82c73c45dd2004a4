//! Runs the page fault test on a simulated machine, in virtual time.
//!
//! A simulation cannot touch each page of hundreds of gibibytes, so each thread touches only a few thousand
//! pages. The number of touched pages becomes smaller by a factor. The simulation makes the memory of each
//! node smaller by the same factor, so that the same fraction of the touched pages is on distant nodes. After
//! the run, the simulation multiplies the times of touching and of teardown by the factor. The simulation
//! does not multiply the time to start the threads, nor the time until all threads have ended.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

use anyhow::{Context as _, Result, bail};
use pageset_core::{CpuId, NodeId, ZoneKind, policy};
use pageset_fault::{
    Access, AddressSpace, Backing, Census, Engine, EngineConfig, Line, Options, Prot, Stabilise, Stats,
    Strategy, Task, World as _,
};
use pageset_measure::pft::{Ahead, Run, Shape};
use pageset_sim::machine::ZoneLayout;
use pageset_sim::{Machine, Simulation, Span, Time, Touch, VirtualCpu};

use super::virtual_world::{Present, RssLine, VirtualWorld};

/// One test on a simulated machine.
#[derive(Clone, Debug)]
pub struct VirtualSpec {
    /// The memory that the test touches, before the simulation makes it smaller.
    pub shape: Shape,
    /// How the fault engine synchronises faults, and counts pages.
    pub strategy: Strategy,
    /// Work ahead of the first touch of a page: mapping neighbouring pages, or clearing pages.
    pub ahead: Ahead,
    /// The cache line that holds the counters of resident pages.
    pub rss_line: RssLine,
    /// The place that remembers the area that was used last: each task, or the address space.
    pub area_cache: AreaCache,
    /// Time that one fault needs to enter the kernel, walk the page table and return. `fault_ns` is the cost
    /// `fault` of the machine file, or a value that a fit tries.
    pub fault_ns: f64,
    /// Largest number of pages that each thread touches in the simulation.
    pub thread_pages_max: u64,
}

/// The place that remembers the area that was used last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AreaCache {
    /// Each task remembers the area that it used last, as in Linux since 3.15 and in `pageset-fault`.
    Task,
    /// The address space remembers one area for all threads. If each thread has its own area, each fault
    /// overwrites the remembered area. Source: the changelog of "mm: per-thread vma caching" (3.15), "we
    /// currently cache the last used vma for the whole address space". The changelog reports that the
    /// remembered area is right for less than 2 % of the faults of a program with many threads. Guess: the
    /// pointer to the area is on the cache line of mmap_sem, like the counters of resident pages.
    Space,
}

/// Time to create one thread. One thread creates all threads, one after another. Guess: cloning a thread and
/// mapping its stack take a few times as long as a wake-up of 10 us.
const CREATION: Span = Span::from_us(40);
/// Virtual time when threads begin to map memory. The first thread has made the address space before.
const MAPPING: Span = Span::from_ms(1);
/// Virtual time when all threads begin to touch pages. All threads have mapped their memory before.
const TOUCHING: Span = Span::from_ms(100_000);
/// Virtual time at which the simulation would be cut off. Every run ends earlier.
const END: Span = Span::from_ms(100_000_000);
/// Time that a thread runs before it calls the scheduler. Guess: the default time slice of Linux 2.6, 100 ms.
const SLICE: Span = Span::from_ms(100);
/// Number of pages that a page set fetches in one refill. Source: the rule of Linux 2.6.13 for a zone of 4
/// GiB with pages of 16 KiB. A batch is a quarter of 512 KiB, rounded to 2^n - 1 pages, and a page set holds
/// at most six batches.
const BATCH: i32 = 7;
const HIGH: i32 = 6 * BATCH;
/// Limit of the memory of a simulated node, divided by the pages that threads on all of the node's CPUs
/// touch. No node needs more than four times the memory that its threads touch.
const NODE_SHARES_MAX: u64 = 4;

/// Runs the test on `machine`, which must have the page size of the test.
pub fn run(machine: &Machine, spec: &VirtualSpec) -> Result<Run> {
    let shape = Shape { thread_pages: spec.shape.thread_pages.min(spec.thread_pages_max), ..spec.shape };
    let scale = spec.shape.thread_pages as f64 / shape.thread_pages as f64;
    if u64::from(machine.page_bytes) != shape.geometry.page_bytes() {
        bail!(
            "{}: its pages have {} bytes; choose --page-shift accordingly",
            machine.name,
            machine.page_bytes
        );
    }
    let machine = shrunk(machine, scale, &shape);
    let lines_per_table = shape.geometry.entries().div_ceil(8);
    let tables = (shape.tables(), lines_per_table);
    let planes = machine.planes.as_ref().map_or(0, |planes| planes.count);
    let world = VirtualWorld::new(0..machine.memory.end(), tables, spec.rss_line, planes);
    let config = EngineConfig {
        tables: shape.tables(),
        magazine: shape.magazine,
        prezeroed: spec.ahead.pool(shape.thread_pages),
        ..EngineConfig::new(shape.geometry, shape.threads, shape.pages())
    };
    let shared = Rc::new(Shared {
        shape,
        strategy: spec.strategy,
        ahead: spec.ahead,
        writes_lines: spec.ahead.prezero || shape.lines > 1,
        writes_area_cache: spec.area_cache == AreaCache::Space
            && spec.strategy.stabilise() == Stabilise::V1
            && shape.regions.is_percore()
            && shape.threads > 1,
        fault: Span::from_ns_f64(spec.fault_ns),
        engine: Engine::new(world, &config),
        space: RefCell::new(None),
        left: Cell::new(shape.threads),
        found: RefCell::default(),
    });
    let mut simulation = Simulation::builder(&machine)
        .cpus(shape.threads)
        .policy(policy::fixed(BATCH, HIGH))
        .duration(END)
        .tick(END)
        .build()?;
    for thread in 0..shape.threads {
        let shared = Rc::clone(&shared);
        simulation.spawn(CpuId(thread), move |cpu| {
            if let Err(error) = shared.body(cpu, thread) {
                shared.found.borrow_mut().error.get_or_insert(error);
            }
        })?;
    }
    let outcome = simulation.run()?;
    let found = shared.found.take();
    if let Some(error) = found.error {
        return Err(error.context(format!("{} with {} threads", spec.strategy, shape.threads)));
    }
    if !outcome.stuck.is_empty() || outcome.census.allocated > 0 {
        bail!("{}: {} frames were lost; this is a bug", spec.strategy, outcome.census.allocated);
    }
    Ok(found.into_run(&spec.shape, scale))
}

/// Returns a smaller copy of `machine`: each node has `scale` times less memory, or even less if the threads
/// cannot fill this memory. The copy has only the first nodes, because threads take memory from the nearest
/// nodes. The copy lacks nodes that no thread would use.
fn shrunk(machine: &Machine, scale: f64, shape: &Shape) -> Machine {
    let (all, cpus_per_node) = (machine.topology.nodes, machine.topology.cpus_per_node());
    let real = machine.memory.pages() / u64::from(all);
    let needed = NODE_SHARES_MAX * shape.thread_pages * u64::from(cpus_per_node);
    let pages = ((real as f64 / scale) as u64).min(needed).max(64);
    // All pages of a region count, because prefaulting may map pages that no thread touches. A further
    // quarter is for page tables and for the pages that watermarks keep free. The copy has nodes in whole
    // groups of eight, because the machine altix-512 is built of groups of eight nodes.
    let filled = (shape.mapped_pages() + u64::from(shape.tables())) * 5 / 4 / pages + 1;
    let used = u32::try_from(filled).unwrap_or(all).max(shape.threads.div_ceil(cpus_per_node));
    let nodes = used.next_multiple_of(8).min(all);
    let zone = |node: u64| {
        // The zone leaves out frame 0, because allocators do not use this frame.
        (ZoneKind::Normal, NodeId(node as u16), (node * pages).max(1)..(node + 1) * pages)
    };
    let mut shrunk = Machine {
        memory: ZoneLayout { zones: (0..u64::from(nodes)).map(zone).collect() },
        ..machine.clone()
    };
    let topology = &mut shrunk.topology;
    let rows = topology.distances.chunks(all as usize).take(nodes as usize);
    topology.distances = rows.flat_map(|row| row[..nodes as usize].to_vec()).collect();
    topology.nodes = nodes;
    shrunk
}

/// Data that all threads share.
struct Shared {
    shape: Shape,
    strategy: Strategy,
    ahead: Ahead,
    /// Whether the simulation charges time for the program's writes to its pages.
    writes_lines: bool,
    /// Whether each fault overwrites the area that the address space remembers, because each thread has its
    /// own area.
    writes_area_cache: bool,
    fault: Span,
    engine: Arc<Engine<VirtualWorld>>,
    space: RefCell<Option<Arc<AddressSpace<VirtualWorld>>>>,
    /// Number of threads that have not finished.
    left: Cell<u32>,
    found: RefCell<Found>,
}

/// The result of one run, in virtual nanoseconds.
#[derive(Default)]
struct Found {
    map_ns: Vec<u64>,
    touch_ns: Vec<u64>,
    exit_ns: u64,
    teardown_ns: u64,
    stats: Stats,
    census: Census,
    error: Option<anyhow::Error>,
}

impl Shared {
    /// Does the work of one thread.
    fn body(&self, cpu: &VirtualCpu, thread: u32) -> Result<()> {
        let _present = Present::new(cpu);
        if thread == 0 {
            self.make_space()?;
        }
        cpu.sleep_until(Time::ZERO + MAPPING);
        let space =
            self.space.borrow().clone().context("the first thread could not make an address space")?;
        let mut task = Task::new(&space, cpu.id())?;
        drop(space);
        if self.shape.regions.is_percore() {
            task.map(self.shape.region(thread), Prot::ReadWrite)?;
        }
        self.found.borrow_mut().map_ns.push(cpu.now().since(Time::ZERO + MAPPING).as_ns());
        if self.ahead.prezero {
            task.prezero(self.shape.thread_pages as usize);
        }
        cpu.sleep_until(Time::ZERO + TOUCHING);
        self.touch(cpu, &mut task, thread)?;
        self.found.borrow_mut().touch_ns.push(cpu.now().since(Time::ZERO + TOUCHING).as_ns());
        let stats = *task.stats();
        drop(task);
        self.engine.empty_prezeroed(cpu.id());
        {
            let mut found = self.found.borrow_mut();
            found.stats += &stats;
            found.exit_ns = found.exit_ns.max(cpu.now().since(Time::ZERO + TOUCHING).as_ns());
        }
        self.left.set(self.left.get() - 1);
        if self.left.get() == 0 { self.tear_down(cpu) } else { Ok(()) }
    }

    fn options(&self) -> Options {
        Options { prefault_order: self.ahead.prefault_order, ..Options::new(self.strategy) }
    }

    fn make_space(&self) -> Result<()> {
        let space = AddressSpace::new(&self.engine, self.options())?;
        if !self.shape.regions.is_percore() {
            Task::new(&space, CpuId(0))?.map(self.shape.region(0), Prot::ReadWrite)?;
        }
        *self.space.borrow_mut() = Some(space);
        Ok(())
    }

    fn touch(&self, cpu: &VirtualCpu, task: &mut Task<VirtualWorld>, thread: u32) -> Result<()> {
        let mut slice_ends = cpu.now() + SLICE;
        for step in 0..self.shape.thread_pages {
            let address = self.shape.address(thread, step);
            if self.ahead.prefault_order > 0 && task.reaches(address, Access::Write) {
                continue;
            }
            cpu.advance(self.fault);
            if self.writes_area_cache {
                self.engine.world().shares(cpu.id(), Line::MmapLock { space: task.space().id() });
            }
            let backing = task.fault(address, Access::Write)?;
            // If a page was cleared just now, its lines are in this CPU's caches. If the page was cleared
            // long ago, the CPU fetches the page's lines from memory.
            if self.writes_lines
                && let Backing::Frame(pfn) = backing
            {
                let bytes = u64::from(self.shape.lines) * self.shape.line_bytes();
                cpu.touch(pfn, bytes, Touch::Access);
            }
            if cpu.now() >= slice_ends {
                task.schedule();
                slice_ends = cpu.now() + SLICE;
            }
        }
        Ok(())
    }

    /// Checks the engine's invariants, and then frees all memory. The thread that ends last calls this
    /// function.
    fn tear_down(&self, cpu: &VirtualCpu) -> Result<()> {
        let space = self.space.take().context("there is no address space to tear down; this is a bug")?;
        let census = self.engine.check(&[&space])?;
        let began = cpu.now();
        drop(space);
        let teardown_ns = cpu.now().since(began).as_ns();
        self.engine.check(&[])?;
        let mut found = self.found.borrow_mut();
        (found.census, found.teardown_ns) = (census, teardown_ns);
        Ok(())
    }
}

impl Found {
    fn into_run(self, shape: &Shape, scale: f64) -> Run {
        let seconds = |ns: u64| ns as f64 / 1e9;
        let sum = |spans: &[u64]| spans.iter().sum::<u64>() as f64 / 1e9;
        let most = |spans: &[u64]| spans.iter().copied().max().unwrap_or(0);
        let touch_ns = most(&self.touch_ns);
        let touch_cpu_s = sum(&self.touch_ns) * scale;
        let teardown_s = seconds(self.teardown_ns) * scale;
        let creation_s = CREATION.as_ns() as f64 / 1e9 * f64::from(shape.threads);
        let pages_counted = (self.stats.installed as f64 * scale).round() as u64;
        Run {
            start_s: creation_s + seconds(most(&self.map_ns)),
            touch_s: seconds(touch_ns) * scale,
            exit_s: seconds(self.exit_ns.saturating_sub(touch_ns)),
            teardown_s,
            user_s: 0.0,
            system_s: creation_s + sum(&self.map_ns) + touch_cpu_s + teardown_s,
            touch_cpu_s,
            imbalance: seconds(touch_ns) * self.touch_ns.len() as f64 / sum(&self.touch_ns),
            pages_computed: shape.pages(),
            pages_counted,
            pages_untouched: pages_counted.saturating_sub(shape.pages()),
            stats: Some(self.stats),
            census: Some(self.census),
        }
    }
}

#[cfg(test)]
mod tests {
    use pageset_fault::Geometry;
    use pageset_measure::pft::Regions;

    use super::*;

    fn spec(strategy: &str, threads: u32) -> VirtualSpec {
        let (regions, geometry) = (Regions::Percore, Geometry::PAGES_16K);
        VirtualSpec {
            shape: Shape {
                threads,
                thread_pages: 4096,
                regions,
                geometry,
                lines: 1,
                magazine: 0,
                skipped: 0,
            },
            strategy: strategy.parse().unwrap(),
            ahead: Ahead::default(),
            rss_line: RssLine::default(),
            area_cache: AreaCache::Task,
            fault_ns: 2000.0,
            thread_pages_max: 256,
        }
    }

    #[test]
    fn equal_input_gives_an_equal_run() {
        let machine = Machine::named("altix-512").unwrap();
        let one = run(&machine, &spec("P1,V1,R1", 9)).unwrap();
        let other = run(&machine, &spec("P1,V1,R1", 9)).unwrap();
        assert_eq!((one.touch_s, one.system_s), (other.touch_s, other.system_s));
        assert_eq!((one.pages_counted, one.census.unwrap().pages), (9 * 4096, 9 * 256));
    }

    #[test]
    fn only_lines_that_all_write_limit() {
        let machine = Machine::named("altix-512").unwrap();
        let touch =
            |strategy, threads| run(&machine, &spec(strategy, threads)).unwrap().touch_ns_per_page(threads);
        assert!(touch("P1,V1,R1", 64) > 3.0 * touch("P1,V1,R1", 2));
        assert!(touch("P2,V7,R3", 64) < 1.1 * touch("P2,V7,R3", 2));
    }

    #[test]
    fn runs_of_pages_take_fewer_faults_and_may_map_what_nobody_touches() {
        let machine = Machine::named("altix-512").unwrap();
        let run = |prefault_order, skipped| {
            let mut spec = spec("P2,V1,R1", 32);
            spec.ahead.prefault_order = prefault_order;
            spec.shape.skipped = skipped;
            run(&machine, &spec).unwrap()
        };
        let (none, ahead) = (run(0, 0), run(3, 0));
        assert!(ahead.touch_pages_per_s() > 1.5 * none.touch_pages_per_s());
        assert!(ahead.stats.unwrap().faults < none.stats.unwrap().faults / 4);
        assert_eq!((ahead.pages_untouched, run(0, 16).pages_untouched), (0, 0));
        assert!(run(5, 16).pages_untouched > run(1, 16).pages_untouched);
    }

    #[test]
    fn memory_suffices_for_what_is_mapped_ahead_of_few_threads() {
        let machine = Machine::named("altix-512").unwrap();
        let mut spec = spec("P2,V1,R1", 1);
        // One thread touches 512 GiB, so its pages fill nearly all of the simulated nodes.
        (spec.shape.thread_pages, spec.thread_pages_max) = (1 << 25, 8192);
        (spec.shape.skipped, spec.ahead.prefault_order) = (16, 5);
        assert!(run(&machine, &spec).unwrap().pages_untouched > 0);
    }

    #[test]
    fn cleared_ahead_pays_where_few_lines_are_touched() {
        let machine = Machine::named("altix-512").unwrap();
        let touch = |prezero, lines| {
            let mut spec = spec("P2,V1,R1", 2);
            (spec.ahead.prezero, spec.shape.lines) = (prezero, lines);
            spec.thread_pages_max = 2048;
            run(&machine, &spec).unwrap().touch_ns_per_page(2)
        };
        let gain = |lines| touch(false, lines) / touch(true, lines);
        assert!(gain(2) > 1.1, "{}", gain(2));
        assert!(gain(128) < gain(2), "{} {}", gain(128), gain(2));
    }

    #[test]
    fn a_cache_of_areas_is_one_more_write_of_the_line() {
        let machine = Machine::named("altix-512").unwrap();
        let touch = |area_cache| {
            let run = run(&machine, &VirtualSpec { area_cache, ..spec("P1,V1,R1", 64) }).unwrap();
            run.touch_ns_per_page(64)
        };
        let ratio = touch(AreaCache::Space) / touch(AreaCache::Task);
        assert!((1.15..1.35).contains(&ratio), "five writes of the line take {ratio} times as long as four");
    }

    #[test]
    fn every_way_to_share_and_every_axis_runs() {
        let machine = Machine::named("altix-512").unwrap();
        for regions in Regions::ALL {
            for strategy in ["P0,V1,R0", "P0n,V2,R1b", "P1,V3,R1p", "P2,V7,R4", "P3,V0,R2"] {
                let mut spec = spec(strategy, 6);
                spec.shape.regions = regions;
                let run = run(&machine, &spec).unwrap();
                assert_eq!(run.pages_counted, run.pages_computed, "{regions:?} {strategy}");
            }
        }
    }
}
