//! Runs all simulations of the study. Equal simulations run only once.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result};
use pageset_fault::{Geometry, Strategy};
use pageset_measure::pft::{Ahead, Regions, Run, Shape};
use pageset_report::Progress;
use pageset_sim::Machine;
use pageset_sim::machine::Cost;
use pageset_study::jobs::{self, Stage};
use pageset_study::pft::{AreaCache, RssLine, VirtualSpec, run_virtual};

/// The parameters of one simulation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    pub(super) strategy: Strategy,
    pub(super) threads: u32,
    /// Number of pages that each thread touches in the test. In the simulation, each thread may touch fewer
    /// pages.
    pub(super) thread_pages: u64,
    pub(super) sharing: Sharing,
    /// Whether the counters of resident pages have their own cache line.
    pub(super) own_line: bool,
    /// Whether the address space remembers the area that was used last, as in 2005.
    pub(super) shared_cache: bool,
    /// Changes of the networks between bricks (groups of nodes).
    pub(super) wiring: Wiring,
    /// Largest number of pages that all threads together touch in the simulation.
    pub(super) pages_max: u64,
    /// Work ahead of the first touch of a page: mapping neighbouring pages, or clearing pages.
    pub(super) ahead: Ahead,
    /// Number of pages that a thread skips after each group of touched pages.
    pub(super) skipped: u64,
    /// Number of cache lines that a thread writes in each page.
    pub(super) lines: u32,
}

/// Changes of the planes (the parallel networks between nodes) that the machine file describes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Wiring {
    /// Whether all cache lines move over one plane.
    pub(super) has_one_plane: bool,
    /// Whether waiting CPUs send [requests](REQUEST_NS).
    pub(super) has_requests: bool,
}

/// Time that a request occupies a plane: 16 bytes at 1.6 GB/s, the rate of the machine file. The Origin 2000
/// refuses a request for a moving cache line, and the CPU asks again (Laudon and Lenoski, 1997). Guess: an
/// Altix refuses requests for moving lines too.
const REQUEST_NS: f64 = 10.0;

impl Wiring {
    fn of(self, machine: &Machine) -> Machine {
        let mut machine = machine.clone();
        if let Some(planes) = &mut machine.planes {
            if self.has_one_plane {
                planes.count = 1;
            }
            if self.has_requests {
                planes.request = Some(Cost { ns: REQUEST_NS, source: "guess: see REQUEST_NS".to_owned() });
            }
        }
        machine
    }
}

/// Whether threads have separate regions of memory or share one region.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Sharing {
    /// Each thread has its own region.
    Apart,
    /// Each thread has a slice of one region.
    Sliced,
    /// All threads share one region. Each of n threads touches every n-th page.
    Interleaved,
}

/// Largest number of pages that all threads together touch in the simulation of a printed row.
/// [`THREAD_PAGES`] has the smallest and the largest number of pages for one thread. Guess: after a few
/// hundred faults a thread is in a steady state, and a run takes a second.
pub(super) const PAGES_MAX: u64 = 1 << 17;
const THREAD_PAGES: (u64, u64) = (256, 8192);

impl Key {
    pub(super) fn new(strategy: Strategy, threads: u32, thread_pages: u64) -> Self {
        let (sharing, own_line, shared_cache) = (Sharing::Apart, false, false);
        Self {
            strategy,
            threads,
            thread_pages,
            sharing,
            own_line,
            shared_cache,
            wiring: Wiring::default(),
            pages_max: PAGES_MAX,
            ahead: Ahead::default(),
            skipped: 0,
            lines: 1,
        }
    }

    pub(super) fn run(&self, machine: &Machine, fault_ns: f64) -> Result<Run> {
        let regions = match self.sharing {
            Sharing::Apart => Regions::Percore,
            Sharing::Sliced => Regions::Sliced,
            Sharing::Interleaved => Regions::Interleaved,
        };
        let (least, most) = THREAD_PAGES;
        let spec = VirtualSpec {
            shape: Shape {
                threads: self.threads,
                thread_pages: self.thread_pages,
                regions,
                geometry: Geometry::PAGES_16K,
                lines: self.lines,
                magazine: 0,
                skipped: self.skipped,
            },
            strategy: self.strategy,
            ahead: self.ahead,
            rss_line: if self.own_line { RssLine::Own } else { RssLine::WithMmapLock },
            area_cache: if self.shared_cache { AreaCache::Space } else { AreaCache::Task },
            fault_ns,
            thread_pages_max: (self.pages_max / u64::from(self.threads)).clamp(least, most),
        };
        run_virtual(&self.wiring.of(machine), &spec)
    }
}

/// The result of each simulation.
pub(super) struct Runs(BTreeMap<Key, Run>);

impl Runs {
    /// Runs all simulations, up to `jobs` of them at once. Begins with the simulations that have the most
    /// threads, so that no large simulation runs alone at the end.
    pub(super) fn all(
        machine: &Machine,
        fault_ns: f64,
        mut keys: Vec<Key>,
        jobs: usize,
        progress: &mut dyn Progress,
    ) -> Result<Self> {
        keys.sort();
        keys.dedup();
        keys.sort_by_key(|key| std::cmp::Reverse(key.threads));
        let mut found = BTreeMap::new();
        let mut stage = Stage::begin(progress, "simulating", "runs", keys.len());
        jobs::each(
            &keys,
            jobs,
            |key| key.run(machine, fault_ns),
            |index, run| {
                let key = keys[index];
                found.insert(key, run.with_context(|| format!("{key:?}"))?);
                Ok(stage.step()?)
            },
        )?;
        Ok(Self(found))
    }

    pub(super) fn get(&self, key: &Key) -> Result<&Run> {
        self.0.get(key).with_context(|| format!("{key:?} was not simulated; this is a bug"))
    }
}
