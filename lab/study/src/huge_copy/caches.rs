//! Models caches while the kernel copies or clears huge pages, and while processes write these pages
//! afterwards. The model shows how much of a huge page stays in a cache, depending on the order of the
//! kernel's visits to base pages (4 KiB). The model also shows the cost of misses if all processes wait for
//! the same memory. The model has no TLBs, no memory of a second socket, and no latencies of single lines.
//! The model knows prefetching only as a cost ([`Chip::jump_ns`]).
//!
//! A cache has either all or nothing of a base page. For each huge page of a process, the kernel copies or
//! clears the huge page in the given order, and then the process writes each base page once. The processes
//! share the last-level cache and its path to memory. So processes evict each other's pages, and a miss waits
//! until memory has served earlier misses.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use pageset_core::CpuId;
use pageset_pageops::{Store, VisitOrder};
use pageset_sim::{Stream, stream};
use rand::RngExt as _;

use super::chip::{Chip, PAGES, PageOperation, Walk};

/// Number of huge pages of each process that count in the results, after the warm-up. Chosen.
const COUNTED: u64 = 24;
/// Longest pause of a process after a huge page, as a fraction of the time to move a huge page between the
/// process and memory three times. Chosen. Without pauses, all processes would soon wait for memory at the
/// same time. The times in [`Played`] do not include the pauses.
const PAUSE: f64 = 0.1;
/// Number of equal parts of the writes to a huge page, from the first write to the last. The model counts the
/// hits of each part.
pub const PARTS: usize = 8;

/// The results of the model. Times are means over all counted huge pages.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Played {
    /// Time that the kernel needs for one huge page.
    pub system_us: f64,
    /// Time that the program needs for one huge page.
    pub user_us: f64,
    /// Fraction of base pages that a cache still had when the process wrote the base pages, for each of the
    /// [`PARTS`].
    pub hits: [f64; PARTS],
    /// Fraction of the source's base pages that a cache already had, for example because another process had
    /// read them.
    pub source_hits: f64,
}

impl Played {
    /// Returns the time that the kernel and the program together need for one huge page.
    #[must_use]
    pub fn page_us(&self) -> f64 {
        self.system_us + self.user_us
    }

    /// Fraction of all base pages that a cache still had when the process wrote the base pages.
    #[must_use]
    pub fn hit_share(&self) -> f64 {
        self.hits.iter().sum::<f64>() / PARTS as f64
    }
}

/// The kernel's visit to one base page, to copy or clear the page.
struct Visit {
    page: usize,
    store: Store,
    lost_ns: f64,
}

/// Runs the model with `order`. `target` is the base page that the program writes first, or `None` if the
/// kernel does not know which base page that is.
#[must_use]
pub fn play(
    chip: &Chip,
    operation: PageOperation,
    order: VisitOrder,
    target: Option<usize>,
    walk: Walk,
) -> Played {
    // The library's own order keeps the base pages around the target in the cache: a sixteenth of the
    // second-level cache.
    let radius = chip.own_kib / 16 / 4 / 2;
    let mut visits = Vec::with_capacity(PAGES);
    for step in order.steps(PAGES, target, radius) {
        for page in step.pages.clone() {
            let follows = visits.last().is_some_and(|last: &Visit| last.page + 1 == page);
            let jump_ns = if follows { 0.0 } else { chip.jump_ns };
            let call_ns = if page == step.pages.start { chip.call_ns } else { 0.0 };
            visits.push(Visit { page, store: step.store, lost_ns: jump_ns + call_ns });
        }
    }
    let model = Model {
        chip,
        operation,
        walk: walk.pages(),
        visits,
        own: (0..chip.processes).map(|_| Cache::new(chip.own_kib / 4)).collect(),
        shared: Cache::new(chip.shared_kib / 4),
        random: stream(1, "huge-copy", CpuId(0)),
        // The results begin to count when the processes have touched about twice as many pages as the caches
        // hold.
        warm: 2 + (chip.shared_kib / chip.processes + chip.own_kib) as u64 / 1024,
        memory_free_ns: 0.0,
        total: Played::default(),
    };
    model.run()
}

struct Model<'a> {
    chip: &'a Chip,
    operation: PageOperation,
    walk: Vec<usize>,
    visits: Vec<Visit>,
    own: Vec<Cache>,
    shared: Cache,
    random: Stream,
    warm: u64,
    /// Time at which the path to memory is free again.
    memory_free_ns: f64,
    total: Played,
}

impl Model<'_> {
    /// Runs the process with the earliest clock for one base page, again and again, until all processes have
    /// finished.
    fn run(mut self) -> Played {
        // Processes begin at different times within their first huge page, because a parent forks them one by
        // one.
        let page_ns = 3.0 * PAGES as f64 * 4096.0 / self.chip.process_gb_per_s;
        let mut agenda = BinaryHeap::new();
        for process in 0..self.chip.processes {
            agenda.push(Reverse((self.random.random_range(0..=(page_ns * 1000.0) as u64), process, 0_u64)));
        }
        while let Some(Reverse((now_ps, process, done))) = agenda.pop() {
            let mut spent_ns = self.step(now_ps as f64 / 1000.0, process, done);
            let done = done + 1;
            if done % (2 * PAGES as u64) == 0 {
                spent_ns += self.random.random_range(0.0..PAUSE * page_ns);
            }
            if done < (self.warm + COUNTED) * 2 * PAGES as u64 {
                agenda.push(Reverse((now_ps + (spent_ns * 1000.0) as u64, process, done)));
            }
        }
        let pages = COUNTED as f64 * self.chip.processes as f64;
        let part = pages * (PAGES / PARTS) as f64;
        self.total.hits = self.total.hits.map(|hits| hits / part);
        self.total.source_hits /= pages * PAGES as f64;
        self.total.system_us /= pages * 1000.0;
        self.total.user_us /= pages * 1000.0;
        self.total
    }

    /// Copies, clears or writes one base page. Returns the time for this base page, in nanoseconds.
    fn step(&mut self, now_ns: f64, process: usize, done: u64) -> f64 {
        let (huge, at) = (done / (2 * PAGES as u64), done as usize % (2 * PAGES));
        let counts = f64::from(u8::from(huge >= self.warm));
        let first = huge * PAGES as u64;
        let own = first + ((process as u64 + 1) << 32);
        let source = if self.chip.shares_source { first } else { own + (1 << 60) };
        let cached_ns = 512.0 * self.chip.word_ns;
        let memory_ns = 4096.0 / self.chip.process_gb_per_s;
        if let Some(Visit { page, store, lost_ns }) = self.visits.get(at) {
            let (page, store, lost_ns) = (*page as u64, *store, *lost_ns);
            let (mut spent_ns, mut moved) = (memory_ns + lost_ns, 0);
            if self.operation == PageOperation::Copy {
                let (is_hit, written) = self.touch(process, source + page, false);
                // Chosen: a cache is twice as fast as memory for a process that runs alone.
                spent_ns += if is_hit { memory_ns / 2.0 } else { memory_ns };
                moved += written + u64::from(!is_hit);
                self.total.source_hits += counts * f64::from(u8::from(is_hit));
            }
            // The kernel stores whole lines, so the processor does not read a line before the store.
            moved += match store {
                Store::Cached => self.touch(process, own + page, true).1,
                Store::Stream => 1,
            };
            let spent_ns = self.wait(now_ns, spent_ns, moved);
            self.total.system_us += counts * spent_ns;
            return spent_ns;
        }
        let nth = at - PAGES;
        let (is_hit, written) = self.touch(process, own + self.walk[nth] as u64, true);
        self.total.hits[nth * PARTS / PAGES] += counts * f64::from(u8::from(is_hit));
        let spent_ns = if is_hit { cached_ns } else { memory_ns.max(cached_ns) };
        let spent_ns = self.wait(now_ns, spent_ns, written + u64::from(!is_hit));
        self.total.user_us += counts * spent_ns;
        spent_ns
    }

    /// Returns `spent_ns`, or a longer time if the process has to wait for the path to memory. The path moves
    /// one base page after another.
    fn wait(&mut self, now_ns: f64, spent_ns: f64, moved: u64) -> f64 {
        if moved == 0 {
            return spent_ns;
        }
        let moving_ns = moved as f64 * 4096.0 / self.chip.memory_gb_per_s;
        self.memory_free_ns = self.memory_free_ns.max(now_ns) + moving_ns;
        spent_ns.max(self.memory_free_ns - now_ns)
    }

    /// Brings a base page into the process's own cache. Returns whether a cache had the page, and the number
    /// of base pages that were evicted to memory.
    fn touch(&mut self, process: usize, page: u64, is_written: bool) -> (bool, u64) {
        let found = self.own[process].take(page).or_else(|| self.shared.take(page));
        let is_dirty = is_written || found.is_some_and(|found| found);
        let mut written = 0;
        if let Some((page, is_dirty)) = self.own[process].put(page, is_dirty, 8, &mut self.random)
            && let Some((_, true)) = self.shared.put(page, is_dirty, self.chip.ways, &mut self.random)
        {
            written = 1;
        }
        (found.is_some(), written)
    }
}

/// A cache of base pages. To make room, the cache chooses some base pages at random, and evicts the chosen
/// base page that was used longest ago. A real set-associative cache with hashed addresses evicts nearly by
/// the same rule, because hashing makes the pages of a set a random choice.
struct Cache {
    room: usize,
    /// The base pages in the cache, each with the time of its last use and whether the page was written.
    held: Vec<(u64, u64, bool)>,
    place: HashMap<u64, usize>,
    uses: u64,
}

impl Cache {
    fn new(room: usize) -> Self {
        Self { room, held: Vec::with_capacity(room), place: HashMap::with_capacity(room), uses: 0 }
    }

    /// Removes a base page from the cache. Returns whether the page had been written. Returns `None` if the
    /// cache does not have the page.
    fn take(&mut self, page: u64) -> Option<bool> {
        let at = self.place.remove(&page)?;
        let (_, _, is_dirty) = self.held.swap_remove(at);
        if let Some((moved, ..)) = self.held.get(at) {
            self.place.insert(*moved, at);
        }
        Some(is_dirty)
    }

    /// Puts a base page into the cache. Returns the base page that the cache evicted, if the cache was full.
    fn put(&mut self, page: u64, is_dirty: bool, ways: usize, random: &mut Stream) -> Option<(u64, bool)> {
        if self.room == 0 {
            return Some((page, is_dirty));
        }
        self.uses += 1;
        let mut evicted = None;
        if self.held.len() == self.room {
            let choices = (0..ways).map(|_| random.random_range(0..self.room));
            let (oldest, ..) = self.held[choices.min_by_key(|at| self.held[*at].1).unwrap_or(0)];
            evicted = self.take(oldest).map(|is_dirty| (oldest, is_dirty));
        }
        self.place.insert(page, self.held.len());
        self.held.push((page, self.uses, is_dirty));
        evicted
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use VisitOrder::{Converge2018, PageByPage, StreamTargetLast};

    /// Returns a chip with four processes and `mib` MiB of last-level cache for each of them. The cache
    /// evicts the oldest of 64 base pages.
    fn chip(mib: usize) -> Chip {
        Chip {
            processes: 4,
            own_kib: 0,
            shared_kib: 4 * mib * 1024,
            ways: 64,
            word_ns: 0.5,
            memory_gb_per_s: 10.0,
            process_gb_per_s: 10.0,
            jump_ns: 0.0,
            call_ns: 0.0,
            shares_source: true,
        }
    }

    fn cleared(chip: &Chip, order: VisitOrder) -> Played {
        play(chip, PageOperation::Clear, order, Some(0), Walk::Up)
    }

    #[test]
    fn which_order_wins_depends_on_the_pages_that_a_process_has_in_the_cache() {
        let hits = |mib, order| cleared(&chip(mib), order).hit_share();
        assert!(hits(1, PageByPage) < 0.2, "the first base pages of a huge page are evicted");
        assert!(
            hits(1, Converge2018) > hits(1, PageByPage) + 0.3,
            "the base pages near the target stay in the cache"
        );
        assert!(hits(3, Converge2018) < hits(3, PageByPage), "converge-2018 keeps less if a huge page fits");
        assert!(hits(8, Converge2018) == 1.0 && hits(8, PageByPage) == 1.0, "both stay");
    }

    #[test]
    fn the_target_stays_whatever_the_cache_and_the_first_written_are_hits() {
        let converged = cleared(&chip(1), Converge2018);
        assert!(converged.hits[0] > 0.99 && converged.hits[PARTS - 1] < 0.1, "{converged:?}");
        let mixed =
            play(&chip(1), PageOperation::Clear, Converge2018, Some(Walk::Mixed.pages()[0]), Walk::Mixed);
        assert!(
            mixed.hit_share() < converged.hit_share(),
            "converge-2018 helps less if the writes are in a mixed order"
        );
    }

    #[test]
    fn misses_take_user_time_and_calls_and_jumps_take_system_time() {
        let (base, converged) = (cleared(&chip(1), PageByPage), cleared(&chip(1), Converge2018));
        assert!(converged.user_us < base.user_us);
        let alone = Chip { processes: 1, ..chip(32) };
        let lost = |chip: &Chip, order| cleared(chip, order).system_us - cleared(&alone, order).system_us;
        let jumps = Chip { jump_ns: 100.0, ..alone.clone() };
        assert!((lost(&jumps, Converge2018) - 51.2).abs() < 0.1 && lost(&jumps, PageByPage) < 0.2);
        let calls = Chip { call_ns: 100.0, ..alone.clone() };
        assert!((lost(&calls, PageByPage) - 51.2).abs() < 0.1 && lost(&calls, VisitOrder::Sequential) < 0.2);
    }

    #[test]
    fn a_stream_leaves_nothing_and_a_shared_source_is_read_once() {
        assert!(cleared(&chip(8), StreamTargetLast).hit_share() < 0.01);
        let copied = |chip: &Chip| play(chip, PageOperation::Copy, PageByPage, Some(0), Walk::Up).source_hits;
        assert!(copied(&chip(8)) > 0.7);
        assert!(copied(&Chip { shares_source: false, ..chip(8) }) < 0.01);
    }
}
