//! Runs the fault engine on real threads. The core's allocator chooses frames, a mapped arena is the memory
//! of the frames, and each thread is one task.

use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context as _, Result, bail};
use pageset_core::{Config, CpuId, NodeId, PageAllocator, Platform, Tables, ZoneConfig, ZoneKind};
use pageset_fault::{
    Access, AddressSpace, Backing, Engine, EngineConfig, Locks, NoMemory, Options, Prot, Stats, Strategy,
    Task, World,
};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use super::ahead::Ahead;
use super::arena::{self, Arena, Contents};
use super::result::Run;
use super::shape::Shape;
use super::threads::{self, Toucher, account};

type Frames = PageAllocator<'static, Locks<parking_lot::RawMutex>>;

/// The engine's view of this process: the threads, and the memory behind the frames, if there is any.
struct ThreadWorld<M> {
    frames: Frames,
    memory: M,
    locks: Locks<parking_lot::RawMutex>,
}

impl<M: Sync> Platform for ThreadWorld<M> {
    type RawLock = parking_lot::RawMutex;
    type Events = ();

    fn events(&self) -> &() {
        self.locks.events()
    }
}

impl<M: Contents> World for ThreadWorld<M> {
    type Frames = Frames;
    type Memory = M;

    fn frames(&self) -> &Frames {
        &self.frames
    }

    fn memory(&self) -> &M {
        &self.memory
    }

    /// Yields, because the thread that holds the lock may need this CPU.
    fn relax(&self, _: CpuId) {
        std::thread::yield_now();
    }
}

/// Whether pages are cleared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Zero {
    /// Pages are cleared, as in a kernel.
    Real,
    /// Pages are not cleared, so only the engine's own work is measured.
    Skip,
}

/// Runs one repetition with one strategy.
///
/// # Errors
///
/// An error if the system gives no threads or no memory.
pub fn run(shape: &Shape, strategy: Strategy, ahead: Ahead, zero: Zero) -> Result<Run> {
    match zero {
        Zero::Skip => run_over(shape, strategy, ahead, NoMemory),
        Zero::Real => {
            let page_bytes = shape.geometry.page_bytes();
            let mut map = arena::map(frames_for(shape), page_bytes)?;
            run_over(shape, strategy, ahead, Arena::new(&mut map, page_bytes))
        }
    }
}

/// Runs one repetition without an engine: each thread clears its pages and touches them. No fault engine can
/// be faster than a repetition without an engine.
///
/// # Errors
///
/// An error if the system gives no threads or no memory.
pub fn run_clear(shape: &Shape) -> Result<Run> {
    let page_bytes = shape.geometry.page_bytes();
    let mut map = arena::map(shape.thread_pages * u64::from(shape.threads), page_bytes)?;
    let slice_bytes = (shape.thread_pages * page_bytes) as usize;
    let slices: Vec<_> = map.chunks_exact_mut(slice_bytes).map(|slice| Mutex::new(Some(slice))).collect();
    let phases = threads::run(shape.threads, |thread| {
        let slice = slices[thread as usize].lock().take().context("each thread takes its slice once")?;
        Ok(Clear { slice, shape })
    })?;
    let pages = shape.thread_pages * u64::from(shape.threads);
    Ok(Run { pages_computed: pages, pages_counted: phases.left.iter().sum(), ..phases.run })
}

struct Clear<'a> {
    slice: &'a mut [u8],
    shape: &'a Shape,
}

impl Toucher for Clear<'_> {
    type Left = u64;

    fn touch(&mut self) -> Result<()> {
        let line_bytes = self.shape.line_bytes() as usize;
        for page in self.slice.chunks_exact_mut(self.shape.geometry.page_bytes() as usize) {
            arena::clear(page);
            page.iter_mut().step_by(line_bytes).take(self.shape.lines as usize).for_each(|byte| *byte = 1);
        }
        Ok(())
    }

    fn leave(self) -> u64 {
        self.slice.len() as u64 / self.shape.geometry.page_bytes()
    }
}

/// The number of frames for pages and tables, plus frames that page sets may keep.
fn frames_for(shape: &Shape) -> u64 {
    let needed = shape.pages() + u64::from(shape.tables());
    needed + needed / 8 + 2048 * u64::from(shape.threads)
}

fn allocator(shape: &Shape) -> Result<Frames> {
    let span = 0..frames_for(shape);
    let regions = [span.clone()];
    let zones = [ZoneConfig { kind: ZoneKind::Normal, node: NodeId(0), span, regions: &regions }];
    let nodes = vec![NodeId(0); shape.threads as usize];
    let mut config = Config::new(&zones, &nodes);
    // The test needs no reserve for emergencies.
    config.min_free_kbytes = Some(0);
    config.page_bytes = shape.geometry.page_bytes() as u32;
    let tables = Tables::on_heap(&config)?;
    Ok(PageAllocator::new(Locks::new(), &config, tables)?)
}

fn run_over<M: Contents>(shape: &Shape, strategy: Strategy, ahead: Ahead, memory: M) -> Result<Run> {
    let world = ThreadWorld { frames: allocator(shape)?, memory, locks: Locks::new() };
    let config = EngineConfig {
        tables: shape.tables(),
        magazine: shape.magazine,
        prezeroed: ahead.pool(shape.thread_pages),
        ..EngineConfig::new(shape.geometry, shape.threads, shape.pages())
    };
    let engine = Engine::new(world, &config);
    let options = Options { prefault_order: ahead.prefault_order, ..Options::new(strategy) };
    let space = AddressSpace::new(&engine, options)?;
    if !shape.regions.is_percore() {
        Task::new(&space, CpuId(0))?.map(shape.region(0), Prot::ReadWrite)?;
    }
    let phases = threads::run(shape.threads, |thread| {
        let mut task = Task::new(&space, CpuId(thread))?;
        if shape.regions.is_percore() {
            task.map(shape.region(thread), Prot::ReadWrite)?;
        }
        if ahead.prezero {
            task.prezero(shape.thread_pages as usize);
        }
        Ok(Touch { task, shape, ahead, thread })
    })?;
    for thread in 0..shape.threads {
        engine.empty_prezeroed(CpuId(thread));
    }
    let mut run = phases.run;
    let mut stats = Stats::default();
    phases.left.iter().for_each(|left| stats += left);
    let census = engine.check(&[&space]).with_context(|| format!("{strategy}: after the run"))?;
    // `space` is the last reference, so this thread frees all pages and tables here.
    let (before, began) = (account()?, Instant::now());
    drop(space);
    run.teardown_s = began.elapsed().as_secs_f64();
    run.user_s += (account()?.cpu - before.cpu).as_secs_f64();
    let rest = engine.check(&[]).with_context(|| format!("{strategy}: after the teardown"))?;
    if rest.pages + rest.tables > 0 || census.pages != stats.installed {
        bail!("{strategy}: {stats:?}, {census:?} and then {rest:?} contradict each other; this is a bug");
    }
    run.pages_computed = shape.pages();
    run.pages_counted = stats.installed;
    run.pages_untouched = stats.installed.saturating_sub(shape.pages());
    run.stats = Some(stats);
    run.census = Some(census);
    Ok(run)
}

struct Touch<'a, M: Contents> {
    task: Task<ThreadWorld<M>>,
    shape: &'a Shape,
    ahead: Ahead,
    thread: u32,
}

impl<M: Contents> Toucher for Touch<'_, M> {
    type Left = Stats;

    fn touch(&mut self) -> Result<()> {
        let engine = Arc::clone(self.task.space().engine());
        let contents = engine.world().memory();
        let (lines, line_bytes) = (self.shape.lines, self.shape.line_bytes());
        let start = self.shape.region(self.thread).start;
        let page_shift = self.shape.geometry.page_shift();
        for step in 0..self.shape.thread_pages {
            let address = start + (self.shape.page(self.thread, step) << page_shift);
            let write = |backing| {
                if let Backing::Frame(pfn) = backing {
                    contents.write(pfn, lines, line_bytes);
                }
            };
            // If pages are mapped ahead, a page may be there already, so look first. If no pages are mapped
            // ahead, each page needs a fault, and a look would waste time.
            if self.ahead.prefault_order > 0 {
                self.task.access(address, Access::Write, write)?;
            } else {
                write(self.task.fault(address, Access::Write)?);
            }
        }
        Ok(())
    }

    fn leave(self) -> Stats {
        *self.task.stats()
    }
}

#[cfg(test)]
mod tests {
    use pageset_fault::Geometry;

    use super::super::shape::Regions;
    use super::*;

    #[test]
    fn every_strategy_installs_what_was_computed() {
        for strategy in Strategy::all() {
            for regions in Regions::ALL {
                let shape = Shape {
                    threads: 2,
                    thread_pages: 600,
                    regions,
                    geometry: Geometry::PAGES_4K,
                    lines: 2,
                    magazine: 5,
                    skipped: 0,
                };
                for (prefault_order, prezero) in [(0, false), (3, false), (0, true), (5, true)] {
                    let ahead = Ahead { prefault_order, prezero };
                    let run = run(&shape, strategy, ahead, Zero::Skip).unwrap();
                    assert_eq!(run.pages_counted, run.pages_computed, "{strategy} {regions:?} {ahead:?}");
                }
            }
        }
    }

    #[test]
    fn large_pages_are_cleared_too() {
        let (regions, geometry) = (Regions::Sliced, Geometry::PAGES_16K);
        let shape =
            Shape { threads: 3, thread_pages: 100, regions, geometry, lines: 1, magazine: 0, skipped: 0 };
        let run = run(&shape, "P2,V7,R3".parse().unwrap(), Ahead::default(), Zero::Real).unwrap();
        assert_eq!((run.pages_counted, run.census.unwrap().pages), (300, 300));
        assert_eq!(run_clear(&shape).unwrap().pages_counted, 300);
    }
}
