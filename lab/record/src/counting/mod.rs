//! Counts the hits of tracepoints in the kernel instead of recording each hit. Counting costs little, and
//! counts suffice for a verdict.
//!
//! A rare tracepoint is always on. A frequent tracepoint that is always on would slow the load too much.
//! Therefore a frequent tracepoint is on only in random segments of time, and only in some periods
//! (`window`). `plan` chooses the share of time. `estimate` computes the total from the segments. `counters`
//! are the kernel's counters.
//!
//! The number of moved blocks does not show the number of zone visits. `visits` finds the number of visits in
//! separate segments. In the segments for visits, the kernel keeps each hit with its time, task and call
//! chain (`by_task`, `by_site`). `waits` measures the times of waits for zone locks.

mod by_site;
mod by_task;
#[cfg(not(feature = "perf"))]
#[path = "absent.rs"]
mod counters;
#[cfg(feature = "perf")]
mod counters;
mod estimate;
mod plan;
#[cfg(feature = "perf")]
mod visits;
mod waits;
mod window;

use std::{
    collections::HashMap,
    fs,
    hash::{BuildHasher as _, RandomState},
    io::Write,
    process::Child,
    thread,
    time::{Duration, Instant},
};

use pageset_trace::{Counts, LostEvents, NativeWriter, TraceInfo, TracepointCount, Vmstat, WriteOptions};

use crate::clock::now_ns;
use crate::cost::{busy, busy_ns_since};
use crate::cpus::CpuList;
use crate::error::RecordError;
use crate::machine;
use crate::options::Options;
use crate::reader::{ending, start};
use crate::session::{Ending, Going, Recording, Status, describe, note_newcomers};
use crate::task_watch::{Numbers, TaskWatch};
use by_site::VisitsBySite;
use by_task::{TaskNumbers, VisitsByTask};
use counters::Counters;
use estimate::{Segment, Sum};
use waits::Waits;
use window::Window;

/// The counted tracepoints: group and name, as paths below tracefs' `events`.
pub(crate) const TRACEPOINTS: [&str; TRACEPOINT_COUNT] = [
    "kmem/mm_page_alloc",
    "kmem/mm_page_free",
    "kmem/mm_page_free_batched",
    TracepointCount::ZONE_LOCKED,
    TracepointCount::PCPU_DRAIN,
    PCPU_REFILL,
    "kmem/mm_page_alloc_extfrag",
    TracepointCount::CONTENTION,
    TracepointCount::KSWAPD_WAKE,
    TracepointCount::DIRECT_RECLAIM,
];
const TRACEPOINT_COUNT: usize = 10;
/// Number of tracepoints at the beginning of the list that are as frequent as allocations and frees.
const FREQUENT: usize = 3;
/// A tracepoint that was posted in 2026, and that Linux 7.3.4 does not have. If a kernel has the tracepoint,
/// only its number of hits is reported.
const PCPU_REFILL: &str = "kmem/mm_page_pcpu_refill";

/// Mean length of a segment. A frequent tracepoint is on or off for a whole segment.
const SEGMENT: Duration = Duration::from_millis(5);
/// Additional length of a segment per CPU, because switching a tracepoint takes a call for each CPU.
const SEGMENT_OF_CPU: Duration = Duration::from_millis(1);
/// Number of segments in a period. After each period, the shares of time are chosen again.
const SEGMENTS: u32 = 16;
/// Waits are read once in this many periods, because a reading takes a millisecond.
const PERIODS_OF_WAITS: u32 = 4;
/// Rates are averaged over about this many periods.
const PERIODS_OF_MEAN: f64 = 8.0;
/// If a tracepoint was too frequent to be always on, the tracepoint is switched on and off for at least this
/// number of further periods. With fewer periods of switching on and off, the spread of the estimate is
/// unknown.
const PERIODS_IN_SLICES: u32 = 16;

/// Writes a recording of counts to `out`. Calls `tell` with the progress at the end of each segment of time.
///
/// # Errors
/// An error if the kernel refuses to count, if the command cannot be started, or if `out` cannot be written.
pub fn count(
    options: &Options,
    out: impl Write,
    tell: &mut dyn FnMut(&Status) -> Going,
) -> Result<Recording, RecordError> {
    let cpus = options.cpus.clone().unwrap_or_else(CpuList::online);
    let counters = Counters::open(&cpus)?;
    let mut not_recorded = absent(&counters);
    if counters.can_sample() && !counters.has_chains() {
        not_recorded.push(
            "call sites of visits: the kernel keeps no call chains, or hides its functions' addresses"
                .to_owned(),
        );
    }
    let waits = Waits::begin(&mut not_recorded);
    let mut head = describe(options, &cpus, Vec::new(), not_recorded)?;
    let mut counting = Counting::new(counters, waits, &cpus);
    counting.tasks = watch_tasks(options, &mut head);
    let (on, busy_before) = (Instant::now(), busy());
    head.t_on_ns = Some(now_ns());
    head.t_start_ns = head.t_on_ns;
    counting.load.look();
    counting.begin_segment()?;
    let mut child = match options.command.split_first() {
        Some((program, arguments)) => Some(start(program, arguments)?),
        None => None,
    };
    if let (Some(tasks), Some(child)) = (&mut counting.tasks, &child) {
        tasks.set_command(child.id());
    }
    let ending = counting.follow(options, child.as_mut(), on, tell)?;
    let elapsed = on.elapsed();
    head.busy_ns = busy_ns_since(busy_before);
    head.t_end_ns = Some(now_ns());
    head.t_off_ns = head.t_end_ns;
    machine::note_end(&mut head, machine::snapshot()?);
    if options.cpus.is_none() {
        note_newcomers(&mut head, &cpus);
    }
    head.not_recorded.extend(counting.waits.missing());
    if let Some(tasks) = &mut counting.tasks {
        tasks.look_last();
    }
    head.counts = Some(counting.counts(elapsed, &cpus));
    if let Some((tasks, missed)) = counting.tasks.take().map(TaskWatch::end)
        && options.with_names
    {
        head.tasks = Some(tasks);
        head.not_recorded.extend(missed);
    }
    let lost = LostEvents::default();
    let is_over = matches!(ending, Ending::Command(_));
    let still_running = child.filter(|_| !is_over).map(|child| child.id());
    // If writing fails, nothing can be recovered, because a file of counts has no block of events.
    let failed = |source| RecordError::Output { source, bytes: 0, still_running };
    let writer = NativeWriter::new(out, &head, WriteOptions::new()).map_err(failed)?;
    let (_, bytes) = writer.finish(lost).map_err(failed)?;
    Ok(Recording { info: head, events: 0, bytes, lost, duration: elapsed, ending, still_running })
}

/// Follows tasks if their names are wanted, or if the command's tasks must be distinguished from other tasks.
fn watch_tasks(options: &Options, head: &mut TraceInfo) -> Option<TaskWatch> {
    if !options.with_names && options.command.is_empty() {
        return None;
    }
    let numbers = Numbers::of_this_process();
    if options.with_names && numbers == Numbers::Others {
        let why =
            "this process is in a PID namespace, as in a container, and does not know the numbers of tasks";
        head.not_recorded.push(format!("names of tasks: {why}"));
    }
    if numbers == Numbers::Others {
        return None;
    }
    match TaskWatch::begin(numbers) {
        Ok(watch) => Some(watch),
        Err(error) => {
            head.not_recorded.push(format!("which tasks are the command's, and names of tasks: {error}"));
            None
        }
    }
}

/// Sentences about the tracepoints that this kernel does not have.
fn absent(counters: &Counters) -> Vec<String> {
    let absent = TRACEPOINTS.iter().enumerate();
    let absent = absent.filter(|(index, name)| !counters.has(*index) && **name != PCPU_REFILL);
    absent.map(|(_, name)| format!("{name}: this kernel does not have it")).collect()
}

struct Counting {
    counters: Counters,
    waits: Waits,
    load: AllPages,
    shares: [f64; TRACEPOINT_COUNT],
    rates: [f64; TRACEPOINT_COUNT],
    sums: [Sum; TRACEPOINT_COUNT],
    is_on: [bool; TRACEPOINT_COUNT],
    /// Number of further periods when the tracepoint must be switched on and off, even if it is rare now.
    in_slices: [u32; TRACEPOINT_COUNT],
    /// Sum of the rates of the busiest CPU in this period's segments, in hits per second, and the number of
    /// these segments.
    seen: [(f64, u32); TRACEPOINT_COUNT],
    sample_share: f64,
    is_sampling: bool,
    visits: Sum,
    visits_by_task: VisitsByTask,
    visits_by_site: VisitsBySite,
    tasks: Option<TaskWatch>,
    /// Whether the frequent tracepoints have open counters in this period.
    windows: [Window; FREQUENT],
    periods: u32,
    segment: Duration,
    random: u64,
}

impl Counting {
    fn new(counters: Counters, waits: Waits, cpus: &CpuList) -> Self {
        Self {
            counters,
            waits,
            load: AllPages { before: None },
            // Rare tracepoints are always on. The rates of frequent tracepoints are known after the first
            // period.
            shares: [1.0; TRACEPOINT_COUNT],
            rates: [0.0; TRACEPOINT_COUNT],
            sums: [Sum::default(); TRACEPOINT_COUNT],
            is_on: [false; TRACEPOINT_COUNT],
            in_slices: [0; TRACEPOINT_COUNT],
            seen: [(0.0, 0); TRACEPOINT_COUNT],
            sample_share: plan::SHARE_MIN,
            is_sampling: false,
            visits: Sum::default(),
            visits_by_task: VisitsByTask::default(),
            visits_by_site: VisitsBySite::default(),
            tasks: None,
            windows: [Window::OPEN; FREQUENT],
            periods: 0,
            segment: SEGMENT + SEGMENT_OF_CPU * cpus.len() as u32,
            // Segments are random so that they do not follow the rhythm of a load. Simple random numbers
            // suffice for segments.
            random: RandomState::new().hash_one(now_ns()) | 1,
        }
    }

    /// Counts until the end, segment by segment.
    fn follow(
        &mut self,
        options: &Options,
        mut child: Option<&mut Child>,
        on: Instant,
        tell: &mut dyn FnMut(&Status) -> Going,
    ) -> Result<Ending, RecordError> {
        // Segments follow each other without a gap. The first segment has begun.
        let (mut begun, mut segments) = (on, 0_u32);
        loop {
            let left = options.duration.map(|duration| duration.saturating_sub(on.elapsed()));
            let pause = self.segment.mul_f64(0.5 + self.random()).saturating_sub(begun.elapsed());
            thread::sleep(left.map_or(pause, |left| pause.min(left)));
            let elapsed = on.elapsed();
            let status = Status { elapsed, events: 0, lost: 0, bytes: 0, fill: 0.0 };
            let ending = ending(options, child.as_deref_mut(), &status, tell)?;
            let end = Instant::now();
            self.end_segment((end - begun).as_nanos() as u64)?;
            begun = end;
            segments += 1;
            if let Some(tasks) = &mut self.tasks {
                tasks.look();
            }
            if segments.is_multiple_of(SEGMENTS) || ending.is_some() {
                self.end_period();
            }
            if segments.is_multiple_of(SEGMENTS * PERIODS_OF_WAITS) || ending.is_some() {
                let contended = TRACEPOINTS
                    .iter()
                    .zip(self.rates)
                    .find(|(name, _)| **name == TracepointCount::CONTENTION);
                self.waits.look(contended.map_or(0.0, |(_, rate)| rate));
            }
            if let Some(ending) = ending {
                return Ok(ending);
            }
            self.begin_segment()?;
        }
    }

    /// Draws which tracepoints are on in the next segment.
    fn begin_segment(&mut self) -> Result<(), RecordError> {
        let draw = self.random();
        for tracepoint in 0..TRACEPOINT_COUNT {
            if self.counters.has(tracepoint) && !self.is_on[tracepoint] && draw < self.chance(tracepoint) {
                self.counters.switch(tracepoint, true)?;
                self.is_on[tracepoint] = true;
            }
        }
        // Do not sample in segments that are counted, because sampling takes time and would slow the counted
        // load.
        if self.counters.can_sample() && 1.0 - draw < self.sample_share {
            self.counters.switch_samples(true)?;
            self.is_sampling = true;
        }
        Ok(())
    }

    /// Switches off all tracepoints that are not always on, and adds their counts.
    fn end_segment(&mut self, length_ns: u64) -> Result<(), RecordError> {
        for tracepoint in 0..TRACEPOINT_COUNT {
            let chance = self.chance(tracepoint);
            if chance >= 1.0 || !self.counters.has(tracepoint) {
                continue;
            }
            self.sums[tracepoint].add_drawn(length_ns);
            if self.is_on[tracepoint] {
                self.counters.switch(tracepoint, false)?;
                self.is_on[tracepoint] = false;
                self.add(tracepoint, chance);
            }
        }
        if self.counters.can_sample() {
            self.visits.add_drawn(length_ns);
            if self.is_sampling {
                self.counters.switch_samples(false)?;
                self.is_sampling = false;
                let Seen { slice, by_task, by_site } = self.counters.take_samples();
                self.visits_by_task.add(by_task, self.sample_share);
                self.visits_by_site.add(by_site, self.sample_share);
                self.visits.add(Segment {
                    hits: slice.hits,
                    on_ns: slice.mean_ns,
                    chance: self.sample_share,
                });
            }
        }
        Ok(())
    }

    /// The chance that the tracepoint is on in a segment of this period.
    fn chance(&self, tracepoint: usize) -> f64 {
        let share = self.shares[tracepoint];
        self.windows.get(tracepoint).map_or(share, |window| window.share(share, plan::SHARE_MAX))
    }

    /// Draws which frequent tracepoints have counters in the next period.
    fn begin_period(&mut self) {
        let draw = self.random();
        for tracepoint in 0..FREQUENT {
            let window = &mut self.windows[tracepoint];
            window.draw(self.periods, self.shares[tracepoint], draw);
            if window.is_open() {
                // If a counter cannot be opened, hits of the tracepoint are not seen in this period.
                drop(self.counters.attach(tracepoint));
            } else {
                self.counters.detach(tracepoint);
            }
        }
        self.periods = self.periods.saturating_add(1);
    }

    fn add(&mut self, tracepoint: usize, chance: f64) {
        let slice = self.counters.take(tracepoint);
        let segment = Segment { hits: slice.hits, on_ns: slice.mean_ns, chance };
        let window = self.windows.get_mut(tracepoint);
        if let Some(segment) = window.map_or(Some(segment), |window| window.add(segment)) {
            self.sums[tracepoint].add(segment);
        }
        let (sum, slices) = &mut self.seen[tracepoint];
        *sum += slice.busiest_per_second;
        *slices += 1;
    }

    /// Adds the period's counts of the tracepoints that are always on, and of the frequent tracepoints whose
    /// periods are observations. Chooses the shares of time for the next period.
    fn end_period(&mut self) {
        for tracepoint in 0..FREQUENT {
            let chance = self.chance(tracepoint);
            let seen = self.windows[tracepoint].end(chance);
            seen.into_iter().for_each(|segment| self.sums[tracepoint].add(segment));
        }
        let load = self.load.look();
        for tracepoint in 0..TRACEPOINT_COUNT {
            if self.is_on[tracepoint] {
                self.add(tracepoint, 1.0);
            }
            let (sum, slices) = std::mem::take(&mut self.seen[tracepoint]);
            let seen = if slices > 0 { Some(sum / f64::from(slices)) } else { None };
            // The cost of counting depends on the mean rate, because a burst costs only its own hits.
            let before = self.rates[tracepoint];
            if let Some(rate) = load.filter(|_| tracepoint < FREQUENT).or(seen) {
                let part = if before > 0.0 { PERIODS_OF_MEAN } else { 1.0 };
                self.rates[tracepoint] = before + (rate - before) / part;
            }
        }
        let mut moves = 0.0;
        for (name, rate) in TRACEPOINTS.iter().zip(self.rates) {
            if [TracepointCount::ZONE_LOCKED, TracepointCount::PCPU_DRAIN].contains(name) {
                moves += rate;
            }
        }
        self.sample_share = plan::sample_share(moves);
        self.shares = plan::shares(self.rates);
        for (share, left) in self.shares.iter_mut().zip(&mut self.in_slices) {
            if *share < 1.0 {
                *left = PERIODS_IN_SLICES;
            } else if *left > 0 {
                *left -= 1;
                *share = plan::SHARE_MAX;
            }
        }
        for tracepoint in 0..TRACEPOINT_COUNT {
            // In the next period, a draw decides whether the tracepoint is on. A tracepoint that cannot be
            // switched off continues to count. The counts of a tracepoint that stays on are correct, but
            // counting slows the load.
            if self.is_on[tracepoint] && self.shares[tracepoint] < 1.0 {
                drop(self.counters.switch(tracepoint, false));
                self.is_on[tracepoint] = false;
                self.add_rest(tracepoint);
            }
        }
        self.begin_period();
    }

    /// Adds the hits that came after the counter was read, but before the tracepoint was switched off.
    fn add_rest(&mut self, tracepoint: usize) {
        let slice = self.counters.take(tracepoint);
        self.sums[tracepoint].add(Segment { hits: slice.hits, on_ns: slice.mean_ns, chance: 1.0 });
    }

    /// A random number from 0 to 1 (xorshift).
    fn random(&mut self) -> f64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        (self.random >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn counts(&mut self, elapsed: Duration, cpus: &CpuList) -> Counts {
        let visits = self.counters.can_sample().then(|| self.visits.estimate()).flatten();
        let by_task = std::mem::take(&mut self.visits_by_task);
        let tasks = by_task.list(visits, self.waits.by_task(), self.tasks.as_ref());
        let named = self.waits.by_name();
        let (waits_by_site, locks) = named.map(|named| (named.sites, named.locks)).unzip();
        let by_site = std::mem::take(&mut self.visits_by_site);
        let sites = by_site.list(visits, |site| self.counters.site_name(site), waits_by_site);
        let count = |(index, sum): (usize, &Sum)| {
            self.counters.has(index).then(|| TracepointCount {
                name: TRACEPOINTS[index].to_owned(),
                counted: sum.counted(),
                counted_ns: sum.counted_ns(),
                hits: sum.estimate(),
            })
        };
        Counts {
            elapsed_ns: elapsed.as_nanos() as u64,
            cpus: cpus.len() as u32,
            tracepoints: self.sums.iter().enumerate().filter_map(count).collect(),
            visits,
            visits_counted: self.visits.counted(),
            visits_counted_ns: self.visits.counted_ns(),
            zone_waits: self.waits.counts(),
            tasks,
            sites,
            locks: locks.map(by_site::locks),
            is_command_known: self.tasks.as_ref().is_some_and(TaskWatch::knows_command),
        }
    }
}

/// The machine's page allocations, from `/proc/vmstat`. The number of page allocations determines the share
/// of time of a frequent tracepoint. If the hits seen in segments determined the share, the share would
/// depend on the random draw of segments. With such a share, estimates would be too low after each observed
/// burst.
struct AllPages {
    before: Option<(Vmstat, Instant)>,
}

impl AllPages {
    /// Pages allocated per second since the last call, as if one CPU had allocated all of them. `None` if the
    /// number is unknown.
    fn look(&mut self) -> Option<f64> {
        let state = Vmstat::parse(&fs::read_to_string("/proc/vmstat").ok()?).ok()?;
        let (before, now) = (self.before.take(), Instant::now());
        let (state, _) = self.before.insert((state, now));
        let (before, then) = before?;
        let seconds = (now - then).as_secs_f64();
        (seconds > 0.0).then(|| machine::allocated(&before, state) as f64 / seconds)
    }
}

/// Visits since the last reading.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    slice: Slice,
    /// Visits of each task.
    by_task: HashMap<TaskNumbers, f64>,
    /// Visits of each call site. The map is empty if the kernel keeps no call chains.
    by_site: HashMap<Option<u32>, f64>,
}

/// Hits of a tracepoint since the last reading.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Slice {
    /// Number of hits on all CPUs.
    hits: u64,
    /// How long the tracepoint was on, in nanoseconds, averaged over the CPUs.
    mean_ns: u64,
    /// The rate of the CPU with the highest rate, in hits per second.
    busiest_per_second: f64,
}
