//! Counts the hits of tracepoints in the kernel instead of recording each: it costs little, and is enough for a verdict.
//!
//! A tracepoint that is rare is switched on throughout. One that is frequent would cost the load too much, and is switched on
//! for slices of time at random places: `plan` says for what share, `estimate` what the slices say of the whole. `counters`
//! are the kernel's. A count of pages does not say in how many visits to the zones they were moved: `visits` finds that in
//! other slices, of which the kernel keeps each hit with its time. `waits` has how long zone locks were waited for.

#[cfg(not(feature = "perf"))]
#[path = "absent.rs"]
mod counters;
#[cfg(feature = "perf")]
mod counters;
mod estimate;
mod plan;
mod visits;
mod waits;

use std::{
    hash::{BuildHasher as _, RandomState},
    io::Write,
    process::Child,
    thread,
    time::{Duration, Instant},
};

use pageset_trace::{Counts, LostEvents, NativeWriter, TracepointCount, WriteOptions};

use crate::clock::now_ns;
use crate::cost::busy;
use crate::cpus::CpuList;
use crate::error::RecordError;
use crate::machine;
use crate::options::Options;
use crate::reader::start;
use crate::session::{Ending, Going, Recording, Status, describe, note_newcomers};
use counters::Counters;
use estimate::{Period, Sum};
use waits::Waits;

/// What is counted: group and name, as paths below tracefs' `events`.
pub(crate) const TRACEPOINTS: [&str; TRACEPOINT_COUNT] = [
    "kmem/mm_page_alloc",
    "kmem/mm_page_free",
    "kmem/mm_page_free_batched",
    ZONE_LOCKED,
    PCPU_DRAIN,
    PCPU_REFILL,
    "kmem/mm_page_alloc_extfrag",
    CONTENTION,
    "vmscan/mm_vmscan_kswapd_wake",
    "vmscan/mm_vmscan_direct_reclaim_begin",
];
const TRACEPOINT_COUNT: usize = 10;
/// The first ones are as frequent as allocations and frees.
const FREQUENT: usize = 3;
pub(crate) const ZONE_LOCKED: &str = "kmem/mm_page_alloc_zone_locked";
pub(crate) const PCPU_DRAIN: &str = "kmem/mm_page_pcpu_drain";
/// Kernels from 2026 on have it. Nothing else is made from it.
const PCPU_REFILL: &str = "kmem/mm_page_pcpu_refill";
/// Of the contended locks only those that spin are counted.
pub(crate) const CONTENTION: &str = "lock/contention_begin";

/// Mean of the periods, each of which has one slice of each tracepoint that is frequent. Guess: a load of a second then has some twenty.
const PERIOD: Duration = Duration::from_millis(50);
/// To switch a tracepoint takes a call for each CPU, so machines with many CPUs have longer periods.
const PERIOD_OF_CPU: Duration = Duration::from_millis(1);
/// Between looks at the command and the clock.
const PAUSE: Duration = Duration::from_millis(10);
/// A tracepoint that was frequent is counted in slices for so many periods at least: fewer say nothing of their spread.
const PERIODS_IN_SLICES: u32 = 8;

/// Counts into `out`: a recording without events. `tell` is called with its progress, a hundred times a second.
///
/// # Errors
/// The kernel refuses to count, the command cannot be started, or `out` refuses.
pub fn count(
    options: &Options,
    out: impl Write,
    tell: &mut dyn FnMut(&Status) -> Going,
) -> Result<Recording, RecordError> {
    let cpus = options.cpus.clone().unwrap_or_else(CpuList::online);
    let counters = Counters::open(&cpus)?;
    let mut not_recorded = absent(&counters);
    let waits = Waits::begin(&mut not_recorded);
    let mut head = describe(options, &cpus, Vec::new(), not_recorded)?;
    let mut counting = Counting::new(counters, waits, &cpus);
    let (on, busy_before) = (Instant::now(), busy());
    head.t_on_ns = Some(now_ns());
    head.t_start_ns = head.t_on_ns;
    let mut child = match options.command.split_first() {
        Some((program, arguments)) => Some(start(program, arguments)?),
        None => None,
    };
    let ending = counting.follow(options, child.as_mut(), on, tell)?;
    let elapsed = on.elapsed();
    head.busy_ns = u64::try_from(busy().saturating_sub(busy_before).as_nanos()).ok().filter(|ns| *ns > 0);
    head.t_end_ns = Some(now_ns());
    head.t_off_ns = head.t_end_ns;
    let after = machine::snapshot()?;
    if let Some(before) = &head.before {
        head.pgalloc_delta = Some(machine::allocated(&before.vmstat, &after.vmstat));
        head.pgfree_delta = machine::freed(&before.vmstat, &after.vmstat);
    }
    head.after = Some(after);
    if options.cpus.is_none() {
        note_newcomers(&mut head, &cpus);
    }
    head.not_recorded.extend(counting.waits.missing());
    head.counts = Some(counting.counts(elapsed, &cpus));
    let lost = LostEvents::default();
    let writer = NativeWriter::new(out, &head, WriteOptions::new()).map_err(RecordError::Output)?;
    let (_, bytes) = writer.finish(lost).map_err(RecordError::Output)?;
    let is_over = matches!(ending, Ending::Command(_));
    let still_running = child.filter(|_| !is_over).map(|child| child.id());
    Ok(Recording { info: head, events: 0, bytes, lost, duration: elapsed, ending, still_running })
}

/// Tracepoints that this kernel does not have, in sentences.
fn absent(counters: &Counters) -> Vec<String> {
    let absent = TRACEPOINTS.iter().enumerate();
    let absent = absent.filter(|(index, name)| !counters.has(*index) && **name != PCPU_REFILL);
    absent.map(|(_, name)| format!("{name}: this kernel does not have it")).collect()
}

struct Counting {
    counters: Counters,
    waits: Waits,
    shares: [f64; TRACEPOINT_COUNT],
    rates: [f64; TRACEPOINT_COUNT],
    sums: [Sum; TRACEPOINT_COUNT],
    is_on: [bool; TRACEPOINT_COUNT],
    /// For how many periods more it has slices.
    in_slices: [u32; TRACEPOINT_COUNT],
    sample_share: f64,
    is_sampling: bool,
    visits: Sum,
    period_mean: Duration,
    period: Duration,
    random: u64,
}

/// When a tracepoint is switched in a period.
#[derive(Clone, Copy, Debug)]
struct Switch {
    at: Duration,
    what: Switched,
    is_on: bool,
}

#[derive(Clone, Copy, Debug)]
enum Switched {
    Tracepoint(usize),
    /// The samples.
    Samples,
}

impl Counting {
    fn new(counters: Counters, waits: Waits, cpus: &CpuList) -> Self {
        Self {
            counters,
            waits,
            // Rare ones have no slice at all.
            shares: std::array::from_fn(|index| if index < FREQUENT { plan::SHARE_FIRST } else { 1.0 }),
            rates: [0.0; TRACEPOINT_COUNT],
            sums: [Sum::default(); TRACEPOINT_COUNT],
            is_on: [false; TRACEPOINT_COUNT],
            in_slices: [0; TRACEPOINT_COUNT],
            sample_share: plan::SHARE_FIRST,
            is_sampling: false,
            visits: Sum::default(),
            period_mean: PERIOD + PERIOD_OF_CPU * cpus.len() as u32,
            period: PERIOD,
            // Slices must not follow the beat of a load, and need no better numbers.
            random: RandomState::new().hash_one(now_ns()) | 1,
        }
    }

    /// Counts until the end, period by period.
    fn follow(
        &mut self,
        options: &Options,
        mut child: Option<&mut Child>,
        on: Instant,
        tell: &mut dyn FnMut(&Status) -> Going,
    ) -> Result<Ending, RecordError> {
        // No moment lies between two periods.
        let mut begun = on;
        loop {
            let mut switches = self.plan();
            let ending = loop {
                let now = begun.elapsed();
                while let Some(switch) = switches.pop_if(|switch| switch.at <= now) {
                    self.switch(switch.what, switch.is_on)?;
                }
                if now >= self.period {
                    break None;
                }
                if let Some(child) = child.as_mut()
                    && let Some(status) = child.try_wait().map_err(|source| RecordError::Command {
                        program: options.command[0].to_string_lossy().into_owned(),
                        source,
                    })?
                {
                    break Some(Ending::Command(status));
                }
                let elapsed = on.elapsed();
                let left = options.duration.map(|duration| duration.saturating_sub(elapsed));
                if left == Some(Duration::ZERO) {
                    break Some(Ending::Time);
                }
                let status = Status { elapsed, events: 0, lost: 0, bytes: 0, fill: 0.0 };
                if tell(&status) == Going::End {
                    break Some(Ending::Asked);
                }
                let next = switches.last().map_or(self.period, |switch| switch.at.min(self.period));
                let pause = next.saturating_sub(begun.elapsed()).min(PAUSE);
                thread::sleep(left.map_or(pause, |left| pause.min(left)));
            };
            if ending.is_some() {
                let all = (0..TRACEPOINT_COUNT).map(Switched::Tracepoint);
                { all }.try_for_each(|tracepoint| self.switch(tracepoint, false))?;
                self.switch(Switched::Samples, false)?;
            }
            let end = Instant::now();
            self.end_period(end - begun);
            begun = end;
            if let Some(ending) = ending {
                return Ok(ending);
            }
        }
    }

    /// The switches of a period, the first one last.
    fn plan(&mut self) -> Vec<Switch> {
        let place = self.random();
        // A load that repeats itself must not meet the same place again and again.
        self.period = self.period_mean.mul_f64(0.5 + self.random());
        let period = self.period;
        let mut switches = Vec::new();
        // Each moment is as likely as any other: a slice that would go beyond the end goes on at the beginning.
        let mut add = |what, share: f64, place: f64| {
            let mut switch = |at: f64, is_on| switches.push(Switch { at: period.mul_f64(at), what, is_on });
            if share >= 1.0 {
                switch(0.0, true);
            } else if place + share <= 1.0 {
                switch(place, true);
                switch(place + share, false);
            } else {
                switch(0.0, true);
                switch(place + share - 1.0, false);
                switch(place, true);
                // The period's end switches it off.
            }
        };
        for (tracepoint, share) in self.shares.into_iter().enumerate() {
            if self.counters.has(tracepoint) {
                add(Switched::Tracepoint(tracepoint), share, place);
            }
        }
        if self.counters.can_sample() {
            // Elsewhere: samples cost time, and would slow down what the other slices count.
            let place = (place + 0.5).fract();
            add(Switched::Samples, self.sample_share, place);
        }
        switches.sort_by_key(|switch| std::cmp::Reverse(switch.at));
        switches
    }

    fn switch(&mut self, what: Switched, is_on: bool) -> Result<(), RecordError> {
        match what {
            Switched::Tracepoint(tracepoint) if self.is_on[tracepoint] != is_on => {
                self.counters.switch(tracepoint, is_on)?;
                self.is_on[tracepoint] = is_on;
            }
            Switched::Samples if self.is_sampling != is_on => {
                self.counters.switch_samples(is_on)?;
                self.is_sampling = is_on;
            }
            _ => {}
        }
        Ok(())
    }

    /// Adds what was counted in a period of this length, and decides the shares of the next period.
    fn end_period(&mut self, length: Duration) {
        let length_ns = length.as_nanos() as u64;
        for tracepoint in 0..TRACEPOINT_COUNT {
            if !self.counters.has(tracepoint) {
                continue;
            }
            let is_whole = self.shares[tracepoint] >= 1.0;
            if !is_whole {
                // If it cannot be switched off it counts on, which costs time and no truth.
                drop(self.switch(Switched::Tracepoint(tracepoint), false));
            }
            let slice = self.counters.take(tracepoint);
            // One that is switched on throughout was so all the time, but for the microseconds of the calls at its ends.
            let length_ns = if is_whole { slice.mean_ns } else { length_ns };
            let period = Period { hits: slice.hits, slice_ns: slice.mean_ns, length_ns };
            self.sums[tracepoint].add(period);
            // A burst may come back.
            self.rates[tracepoint] = slice.busiest_per_second.max(self.rates[tracepoint] / 2.0);
        }
        if self.counters.can_sample() {
            // A slice may be cut off by the end of its period.
            if self.switch(Switched::Samples, false).is_ok() {
                let slice = self.counters.take_samples();
                self.visits.add(Period { hits: slice.hits, slice_ns: slice.mean_ns, length_ns });
            }
            let moves = TRACEPOINTS
                .iter()
                .zip(self.rates)
                .filter(|(name, _)| [ZONE_LOCKED, PCPU_DRAIN].contains(name));
            let rate = moves.map(|(_, rate)| rate).sum();
            self.sample_share = plan::sample_share(rate, self.period);
        }
        let contended = TRACEPOINTS.iter().position(|name| *name == CONTENTION);
        self.waits.look(contended.map_or(0.0, |index| self.rates[index]));
        self.shares = plan::shares(self.rates);
        for (share, left) in self.shares.iter_mut().zip(&mut self.in_slices) {
            if *share < 1.0 {
                *left = PERIODS_IN_SLICES;
            } else if *left > 0 {
                *left -= 1;
                *share = plan::SHARE_MAX;
            }
        }
        // The next slice begins where the plan says.
        for tracepoint in 0..TRACEPOINT_COUNT {
            if self.is_on[tracepoint] && self.shares[tracepoint] < 1.0 {
                // If it cannot be switched off it counts on, which costs time and no truth.
                drop(self.switch(Switched::Tracepoint(tracepoint), false));
                // What it counted since is no slice's.
                self.counters.take(tracepoint);
            }
        }
    }

    /// From 0 to 1 (xorshift).
    fn random(&mut self) -> f64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        (self.random >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn counts(&self, elapsed: Duration, cpus: &CpuList) -> Counts {
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
            visits: self.counters.can_sample().then(|| self.visits.estimate()).flatten(),
            visits_counted: self.visits.counted(),
            visits_counted_ns: self.visits.counted_ns(),
            zone_waits: self.waits.counts(),
        }
    }
}

/// What was counted since the look before.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Slice {
    /// On all CPUs.
    hits: u64,
    /// For how long it was switched on: the mean of the CPUs.
    mean_ns: u64,
    /// The highest rate of a CPU.
    busiest_per_second: f64,
}
