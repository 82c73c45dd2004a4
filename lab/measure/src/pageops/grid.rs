//! Measures the clearing and copying of huge pages: every way, target and size of touch, under one load.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::Instant;

use anyhow::{Context as _, Result};
use pageset_pageops::BASE_PAGE_BYTES;
use rand::seq::SliceRandom as _;
use rand::{RngExt as _, SeedableRng as _};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::clock::{Clock, median, tenth, touch};
use super::load::Load;
use super::measurement::Measurement;
use super::memory::{HUGE_PAGE_BYTES, HugeMemory};
use super::rendezvous::{Member, Rendezvous};
use super::way::{Operation, Way};
use crate::host::pin;

/// Number of huge pages that operations use one after the other (192 MiB), and also number of source pages.
/// When an operation uses a page again, the page is no longer in a third-level cache of 32 MiB.
pub(crate) const PAGES: usize = 96;

/// Number of operations of a way that run before its samples and are not counted. The way that ran before
/// this way has left dirty lines in the caches, and the first operations pay for writing these lines back.
/// With 4 instead of 24 operations, copies by streams on two CPUs at once took 135 us for the first samples
/// and 78 us for the last. The 24 pages are more than a third-level cache of 32 MiB holds.
const WARM_UP: usize = 24;

/// The sizes of touches, in bytes.
pub const TOUCHES: [usize; 3] = [4 << 10, 16 << 10, 64 << 10];

/// The place in a page that the program reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// The first byte of the page.
    Start,
    /// The middle of the page.
    Middle,
    /// The last byte of the page.
    End,
    /// A place drawn at random for each touch.
    Random,
}

impl Target {
    /// All targets.
    pub const ALL: [Self; 4] = [Self::Start, Self::Middle, Self::End, Self::Random];

    /// Name of the target in results.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Middle => "middle",
            Self::End => "end",
            Self::Random => "random",
        }
    }

    /// The target's offset in the page, if the offset is the same for all pages.
    pub const fn fixed_offset(self) -> Option<usize> {
        match self {
            Self::Start => Some(0),
            Self::Middle => Some(HUGE_PAGE_BYTES / 2),
            Self::End => Some(HUGE_PAGE_BYTES - 1),
            Self::Random => None,
        }
    }

    fn offset(self, random: &mut Xoshiro256PlusPlus) -> usize {
        self.fixed_offset().unwrap_or_else(|| random.random_range(0..HUGE_PAGE_BYTES))
    }
}

/// The bytes that a touch reads: `bytes` bytes around the middle of the base page at `offset`. At an end of
/// the page, the bytes are moved so that they lie inside the page.
fn touched(page: &[u8], offset: usize, bytes: usize) -> &[u8] {
    let middle = offset / BASE_PAGE_BYTES * BASE_PAGE_BYTES + BASE_PAGE_BYTES / 2;
    let start = middle.saturating_sub(bytes / 2).min(page.len() - bytes);
    &page[start..start + bytes]
}

/// The pages of one CPU. Operations use the pages one after the other.
pub(crate) struct Workspace {
    pages: HugeMemory,
    sources: HugeMemory,
    next: usize,
    clock: Clock,
}

impl Workspace {
    pub(crate) fn new(pages: usize) -> Result<Self> {
        let workspace = Self {
            pages: HugeMemory::new(pages)?,
            sources: HugeMemory::new(pages)?,
            next: 0,
            clock: Clock::new(),
        };
        Ok(workspace)
    }

    /// Whether huge pages back the memory.
    pub(crate) fn is_huge(&self) -> bool {
        self.pages.is_huge() && self.sources.is_huge()
    }

    /// Runs operations that are not counted, so that the operations after them pay only for their own dirty
    /// lines.
    pub(crate) fn warm_up(&mut self, way: Way, operation: Operation) {
        for _ in 0..WARM_UP {
            self.sample(way, operation, 0, TOUCHES[0]);
        }
    }

    /// Does one operation on the next page, and then the touch. Returns the nanoseconds of the operation and
    /// of the touch.
    pub(crate) fn sample(
        &mut self,
        way: Way,
        operation: Operation,
        offset: usize,
        bytes: usize,
    ) -> (f64, f64) {
        let index = self.next;
        self.next = (index + 1) % self.pages.pages();
        let (page, source) = (self.pages.page_mut(index), self.sources.page(index));
        let start = Instant::now();
        way.run(operation, page, source, offset);
        let ready = Instant::now();
        touch(touched(page, offset, bytes));
        let end = Instant::now();
        (self.clock.between_ns(start, ready), self.clock.between_ns(ready, end))
    }
}

/// The number of rounds, and the seed of the random order in each round.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rounds {
    pub rounds: usize,
    pub seed: u64,
}

impl Rounds {
    /// Number of operations on each CPU, for one operation under one load.
    pub(crate) fn operations(self, operation: Operation) -> u64 {
        let block = WARM_UP + Target::ALL.len() * TOUCHES.len();
        (self.rounds * Way::all(operation).len() * block) as u64
    }
}

/// The times of one way with one target and touch.
#[derive(Clone, Debug, Default)]
struct Samples {
    op_ns: Vec<f64>,
    touch_ns: Vec<f64>,
    total_ns: Vec<f64>,
}

/// Measures all ways, targets and touches of one operation under one load. `done` counts the operations of
/// the first CPU. Also returns whether huge pages back all memory.
pub(crate) fn measure(
    operation: Operation,
    load: Load,
    rounds: Rounds,
    done: &AtomicU64,
) -> Result<(Vec<Measurement>, bool)> {
    let ways = Way::all(operation);
    let cpus = load.measuring_cpus();
    let rendezvous = Rendezvous::new(cpus.len());
    let mut workspaces = cpus.iter().map(|_| Workspace::new(PAGES)).collect::<Result<Vec<_>>>()?;
    let is_huge = workspaces.iter().all(Workspace::is_huge);
    let samples = load.around(|| {
        thread::scope(|scope| {
            let workers: Vec<_> = std::iter::zip(&cpus, &mut workspaces)
                .enumerate()
                .map(|(number, (&cpu, workspace))| {
                    let (ways, member) = (&ways, rendezvous.enter());
                    let done = (number == 0).then_some(done);
                    scope.spawn(move || {
                        pin(cpu);
                        work(operation, ways, workspace, rounds, member, done)
                    })
                })
                .collect();
            workers.into_iter().map(|worker| worker.join().ok()).collect::<Option<Vec<_>>>()
        })
    });
    let samples = samples.context("a measuring thread has panicked")?;
    Ok((rows(operation, load, &ways, samples), is_huge))
}

/// Measures on one CPU. In each round, the ways come in a random order, which is the same on all CPUs.
fn work(
    operation: Operation,
    ways: &[Way],
    workspace: &mut Workspace,
    rounds: Rounds,
    member: Member<'_>,
    done: Option<&AtomicU64>,
) -> Vec<Samples> {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(rounds.seed);
    let cells = Target::ALL.len() * TOUCHES.len();
    let mut samples = vec![Samples::default(); ways.len() * cells];
    let mut order: Vec<_> = (0..ways.len()).collect();
    for _ in 0..rounds.rounds {
        order.shuffle(&mut random);
        for &index in &order {
            let way = ways[index];
            member.wait();
            workspace.warm_up(way, operation);
            // Begin with a random cell (a target with a touch), so that on average each cell is equally often
            // the first cell.
            let first = random.random_range(0..cells);
            for cell in (first..cells).chain(0..first) {
                let offset = Target::ALL[cell / TOUCHES.len()].offset(&mut random);
                let (op_ns, touch_ns) =
                    workspace.sample(way, operation, offset, TOUCHES[cell % TOUCHES.len()]);
                let samples = &mut samples[index * cells + cell];
                samples.op_ns.push(op_ns);
                samples.touch_ns.push(touch_ns);
                samples.total_ns.push(op_ns + touch_ns);
            }
            if let Some(done) = done {
                done.fetch_add((WARM_UP + cells) as u64, Relaxed);
            }
        }
    }
    samples
}

fn rows(operation: Operation, load: Load, ways: &[Way], cpus: Vec<Vec<Samples>>) -> Vec<Measurement> {
    let cells = Target::ALL.len() * TOUCHES.len();
    let mut rows = Vec::new();
    for index in 0..ways.len() * cells {
        let (way, cell) = (ways[index / cells], index % cells);
        let all = |times: fn(&Samples) -> &[f64]| -> Vec<f64> {
            cpus.iter().flat_map(|samples| times(&samples[index])).copied().collect()
        };
        let total_ns = all(|samples| &samples.total_ns);
        rows.push(Measurement {
            op: operation.name(),
            page_bytes: HUGE_PAGE_BYTES,
            order: way.order(),
            kernel: way.kernel(),
            target: Target::ALL[cell / TOUCHES.len()].name(),
            touch_bytes: TOUCHES[cell % TOUCHES.len()],
            load: load.name(),
            memory: "cold",
            samples: total_ns.len(),
            op_us: median(&all(|samples| &samples.op_ns)) / 1e3,
            touch_ns: median(&all(|samples| &samples.touch_ns)),
            total_us: median(&total_ns) / 1e3,
            total_us_low: tenth(&total_ns, 1) / 1e3,
            total_us_high: tenth(&total_ns, 9) / 1e3,
        });
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn touches_are_around_the_offset_and_inside() {
        let page = vec![0; HUGE_PAGE_BYTES];
        let at = |offset, bytes| touched(&page, offset, bytes).as_ptr().addr() - page.as_ptr().addr();
        assert_eq!(at(0, 4096), 0);
        assert_eq!(at(5000, 4096), 4096);
        assert_eq!(at(0, 65536), 0);
        assert_eq!(at(HUGE_PAGE_BYTES / 2, 16384), HUGE_PAGE_BYTES / 2 + 2048 - 8192);
        assert_eq!(at(HUGE_PAGE_BYTES - 1, 65536), HUGE_PAGE_BYTES - 65536);
    }

    #[test]
    fn every_cell_has_a_row_with_its_samples() {
        let done = AtomicU64::new(0);
        let rounds = Rounds { rounds: 1, seed: 1 };
        let (rows, _) = measure(Operation::Clear, Load::Alone, rounds, &done).unwrap();
        assert_eq!(rows.len(), Way::all(Operation::Clear).len() * 12);
        assert_eq!(done.into_inner(), rounds.operations(Operation::Clear));
        assert!(rows.iter().all(|row| row.samples == 1 && row.op_us > 0.0));
    }
}
