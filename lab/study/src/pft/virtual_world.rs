//! The environment of the fault engine on virtual CPUs. Frames come from the simulated allocator. Moving
//! cache lines and clearing pages takes virtual time.
//!
//! The engine names a CPU only by its number. A thread-local table has the virtual CPU of each number,
//! because all virtual CPUs of a simulation run on one OS thread.

use std::cell::RefCell;
use std::ops::Range;
use std::sync::Arc;

use pageset_core::{CpuId, FreeError, Order, Pfn, Platform, Request};
use pageset_fault::{FrameSource, FrameUse, Line, Memory, World};
use pageset_sim::{Link, SharedLine, VirtualCpu, VirtualLock};
use serde::{Deserialize, Serialize};

thread_local! {
    static CPUS: RefCell<Vec<Option<VirtualCpu>>> = const { RefCell::new(Vec::new()) };
}

/// A guard that keeps a virtual CPU in the thread-local table until the guard is dropped.
pub(super) struct Present(CpuId);

impl Present {
    pub(super) fn new(cpu: &VirtualCpu) -> Self {
        CPUS.with_borrow_mut(|cpus| {
            let needed = cpus.len().max(cpu.id().index() + 1);
            cpus.resize(needed, None);
            cpus[cpu.id().index()] = Some(cpu.clone());
        });
        Self(cpu.id())
    }
}

impl Drop for Present {
    fn drop(&mut self) {
        CPUS.with_borrow_mut(|cpus| cpus[self.0.index()] = None);
    }
}

/// Returns a copy of a virtual CPU from the table. The caller needs a copy, because other CPUs borrow the
/// table while this CPU works.
fn on(cpu: CpuId) -> VirtualCpu {
    let found = CPUS.with_borrow(|cpus| cpus.get(cpu.index()).cloned().flatten());
    found.expect("tasks run on virtual CPUs that are present")
}

/// The cache line that holds an address space's counters of resident pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RssLine {
    /// The counters of resident pages are on the cache line of mmap_sem. Source: spec fault.md §1.6, R1, "the
    /// same line as other hot words".
    #[default]
    WithMmapLock,
    /// The counters of resident pages are on a cache line of their own.
    Own,
}

impl RssLine {
    /// Both places of the counters.
    pub const ALL: [Self; 2] = [Self::WithMmapLock, Self::Own];

    /// Returns the name of this place in command-line options.
    pub const fn name(self) -> &'static str {
        match self {
            Self::WithMmapLock => "with-mmap-lock",
            Self::Own => "own",
        }
    }

    /// Returns the place called `name`.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|line| line.name() == name)
    }
}

/// The simulated machine, as the fault engine's environment.
pub(super) struct VirtualWorld {
    frames: VirtualFrames,
    memory: VirtualMemory,
    lines: CounterLines,
    rss_line: RssLine,
}

impl VirtualWorld {
    /// Makes the environment. `span` is the range of the machine's frames. The engine may use `tables` page
    /// tables of `lines_per_table` cache lines each. `planes` is the number of parallel networks between
    /// groups of nodes. The contended cache lines of the address space are distributed over the planes.
    pub(super) fn new(
        span: Range<u64>,
        (tables, lines_per_table): (u32, u32),
        rss_line: RssLine,
        planes: u32,
    ) -> Self {
        let line = |_| SharedLine::new();
        let links: Vec<_> = (0..planes).map(|_| Arc::new(Link::default())).collect();
        let mut links = links.iter().cycle();
        let mut hot = || SharedLine::over(links.next().cloned());
        let lines = CounterLines {
            mmap_lock: hot(),
            rss: hot(),
            anon_rss: hot(),
            areas: (0..AREAS).map(line).collect(),
            words: (0..tables as usize * lines_per_table as usize).map(line).collect(),
            lines_per_table,
        };
        Self { frames: VirtualFrames(span), memory: VirtualMemory, lines, rss_line }
    }
}

/// Number of cache lines for the locks of areas. If there are more areas, several areas share a line.
const AREAS: usize = 4096;

/// The cache lines of one address space that several CPUs write. In the model, all other cache lines of the
/// fault engine belong to one CPU each.
struct CounterLines {
    mmap_lock: SharedLine,
    rss: SharedLine,
    anon_rss: SharedLine,
    areas: Box<[SharedLine]>,
    words: Box<[SharedLine]>,
    lines_per_table: u32,
}

impl Platform for VirtualWorld {
    type RawLock = VirtualLock;
    type Events = ();

    fn events(&self) -> &() {
        &()
    }
}

impl World for VirtualWorld {
    type Frames = VirtualFrames;
    type Memory = VirtualMemory;

    fn frames(&self) -> &VirtualFrames {
        &self.frames
    }

    fn memory(&self) -> &VirtualMemory {
        &self.memory
    }

    fn shares(&self, _: CpuId, line: Line) {
        let lines = &self.lines;
        let line = match line {
            Line::MmapLock { .. } => Some(&lines.mmap_lock),
            Line::Rss { .. } if self.rss_line == RssLine::WithMmapLock => Some(&lines.mmap_lock),
            Line::Rss { .. } => Some(&lines.rss),
            Line::AnonRss { .. } => Some(&lines.anon_rss),
            Line::AreaLock { area } => lines.areas.get(area as usize % AREAS),
            Line::Words { table, line } => {
                lines.words.get(table as usize * lines.lines_per_table as usize + line as usize)
            }
            Line::Frame(_) => None,
        };
        if let Some(line) = line {
            line.rmw_here();
        }
    }

    /// Charges the time of an atomic operation on a cache line that only this CPU uses. So virtual time
    /// passes, and other CPUs can run.
    fn relax(&self, _: CpuId) {
        SharedLine::new().rmw_here();
    }

    fn now_ns(&self, cpu: CpuId) -> u64 {
        on(cpu).now().as_ns()
    }
}

/// The simulation's allocator.
pub(super) struct VirtualFrames(Range<u64>);

impl FrameSource for VirtualFrames {
    fn span(&self) -> Range<u64> {
        self.0.clone()
    }

    fn alloc(&self, cpu: CpuId, order: Order, wanted_for: FrameUse) -> Option<Pfn> {
        let request = match wanted_for {
            FrameUse::Anon => Request::new(order).movable(),
            FrameUse::Table => Request::new(order),
        };
        on(cpu).alloc(&request).ok()
    }

    fn free(&self, cpu: CpuId, pfn: Pfn, order: Order) -> Result<(), FreeError> {
        on(cpu).free(pfn, order)
    }
}

/// Pages without contents. Clearing or copying a page only takes virtual time, which depends on the place of
/// the page.
pub(super) struct VirtualMemory;

impl Memory for VirtualMemory {
    fn clear(&self, cpu: CpuId, pfn: Pfn, order: Order, _: u32) {
        on(cpu).clear(pfn, order);
    }

    fn copy(&self, cpu: CpuId, from: Pfn, to: Pfn) {
        let cpu = on(cpu);
        cpu.clear(from, Order::ZERO);
        cpu.clear(to, Order::ZERO);
    }
}
