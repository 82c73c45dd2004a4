//! All simulations of the study, each different one once.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread;

use anyhow::{Context as _, Result};
use pageset_fault::{Geometry, Strategy};
use pageset_sim::Machine;

use crate::pft::{AreaCache, Regions, RssLine, Run, Shape, VirtualSpec, run_virtual};
use crate::progress::Progress;
use crate::reproduce::study::Options;

/// One simulation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    pub(super) strategy: Strategy,
    pub(super) threads: u32,
    /// Pages of each thread, in full size.
    pub(super) thread_pages: u64,
    pub(super) sharing: Sharing,
    /// Whether the counters have a line of their own.
    pub(super) own_line: bool,
    /// Whether the address space remembers the area that was used last, as in 2005.
    pub(super) shared_cache: bool,
    /// Pages that are simulated, of all threads.
    pub(super) pages_max: u64,
}

/// How threads share memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Sharing {
    /// A region for each.
    Apart,
    /// Slices of one region.
    Sliced,
    /// Every N-th page.
    Interleaved,
}

/// Pages of all threads that a simulation of a printed row touches, and the fewest and most of one thread. Guess: a few
/// hundred faults reach the steady state, and a run takes a second.
pub(super) const PAGES_MAX: u64 = 1 << 17;
const THREAD_PAGES: (u64, u64) = (256, 8192);

impl Key {
    pub(super) fn new(strategy: Strategy, threads: u32, thread_pages: u64) -> Self {
        let (sharing, own_line, shared_cache) = (Sharing::Apart, false, false);
        Self { strategy, threads, thread_pages, sharing, own_line, shared_cache, pages_max: PAGES_MAX }
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
                lines: 1,
                magazine: 0,
            },
            strategy: self.strategy,
            rss_line: if self.own_line { RssLine::Own } else { RssLine::WithMmapLock },
            area_cache: if self.shared_cache { AreaCache::Space } else { AreaCache::Task },
            fault_ns,
            thread_pages_max: (self.pages_max / u64::from(self.threads)).clamp(least, most),
        };
        run_virtual(machine, &spec)
    }
}

/// Results by what was simulated.
pub(super) struct Runs(BTreeMap<Key, Run>);

impl Runs {
    /// Simulates everything, several at once; the largest first, so that the end is not waited for.
    pub(super) fn all(
        machine: &Machine,
        fault_ns: f64,
        mut keys: Vec<Key>,
        options: &Options,
    ) -> Result<Self> {
        keys.sort();
        keys.dedup();
        keys.sort_by_key(|key| std::cmp::Reverse(key.threads));
        let (next, found) = (AtomicUsize::new(0), Mutex::new(BTreeMap::new()));
        let progress = Mutex::new(Progress::new("simulating", "runs", Some(keys.len() as u64)));
        let work = || -> Result<()> {
            while let Some(key) = keys.get(next.fetch_add(1, Relaxed)) {
                let run = key.run(machine, fault_ns).with_context(|| format!("{key:?}"))?;
                let mut found = found.lock().expect("no panic");
                found.insert(*key, run);
                progress.lock().expect("no panic").update(found.len() as u64);
            }
            Ok(())
        };
        thread::scope(|scope| {
            let workers: Vec<_> = (0..options.jobs.max(1)).map(|_| scope.spawn(work)).collect();
            workers.into_iter().try_for_each(|worker| worker.join().expect("no panic"))
        })?;
        Ok(Self(found.into_inner().expect("no panic")))
    }

    pub(super) fn get(&self, key: &Key) -> Result<&Run> {
        self.0.get(key).with_context(|| format!("{key:?} was not simulated; this is a bug"))
    }
}
