//! Counts the hits of tracepoints in the kernel instead of recording each: it costs little, and is enough for a verdict.
//!
//! A tracepoint that is rare is switched on throughout. One that is frequent would cost the load too much, and is switched on
//! for slices of time at random places: `plan` says for what share, `estimate` what the slices say of the whole. `counters`
//! are the kernel's.

#[cfg(not(feature = "perf"))]
#[path = "absent.rs"]
mod counters;
#[cfg(feature = "perf")]
mod counters;
mod estimate;
mod plan;

use std::{
    hash::{BuildHasher as _, RandomState},
    io::Write,
    process::Child,
    thread,
    time::{Duration, Instant},
};

use pageset_trace::{Counts, LostEvents, NativeWriter, TracepointCount, WriteOptions};

use crate::clock::now_ns;
use crate::cpus::CpuList;
use crate::error::RecordError;
use crate::machine;
use crate::options::Options;
use crate::reader::start;
use crate::session::{Ending, Going, Recording, Status, describe, note_newcomers};
use counters::Counters;
use estimate::{Period, Sum};

/// What is counted: group and name, as paths below tracefs' `events`.
pub(crate) const TRACEPOINTS: [&str; TRACEPOINT_COUNT] = [
    "kmem/mm_page_alloc",
    "kmem/mm_page_free",
    "kmem/mm_page_free_batched",
    "kmem/mm_page_alloc_zone_locked",
    "kmem/mm_page_pcpu_drain",
    "kmem/mm_page_pcpu_refill",
    "kmem/mm_page_alloc_extfrag",
    CONTENTION,
];
const TRACEPOINT_COUNT: usize = 8;
/// Of the contended locks only those that spin are counted.
pub(crate) const CONTENTION: &str = "lock/contention_begin";

/// A period has one slice of each tracepoint that is frequent. Guess: a load of a second then has some twenty.
const PERIOD: Duration = Duration::from_millis(50);
/// To switch a tracepoint takes a call for each CPU, so machines with many CPUs have longer periods.
const PERIOD_OF_CPU: Duration = Duration::from_millis(1);
/// Between looks at the command and the clock.
const PAUSE: Duration = Duration::from_millis(10);

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
    let mut head = describe(options, &cpus, Vec::new(), absent(&counters))?;
    let mut counting = Counting::new(counters, &cpus);
    let on = Instant::now();
    head.t_on_ns = Some(now_ns());
    head.t_start_ns = head.t_on_ns;
    let mut child = match options.command.split_first() {
        Some((program, arguments)) => Some(start(program, arguments)?),
        None => None,
    };
    let ending = counting.follow(options, child.as_mut(), on, tell)?;
    let elapsed = on.elapsed();
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
    let absent = TRACEPOINTS.iter().enumerate().filter(|(index, _)| !counters.has(*index));
    absent.map(|(_, name)| format!("{name}: this kernel does not have it")).collect()
}

struct Counting {
    counters: Counters,
    shares: [f64; TRACEPOINT_COUNT],
    rates: [f64; TRACEPOINT_COUNT],
    sums: [Sum; TRACEPOINT_COUNT],
    is_on: [bool; TRACEPOINT_COUNT],
    period: Duration,
    random: u64,
}

/// When a tracepoint is switched in a period.
#[derive(Clone, Copy, Debug)]
struct Switch {
    at: Duration,
    tracepoint: usize,
    is_on: bool,
}

impl Counting {
    fn new(counters: Counters, cpus: &CpuList) -> Self {
        Self {
            counters,
            shares: [plan::SHARE_FIRST; TRACEPOINT_COUNT],
            rates: [0.0; TRACEPOINT_COUNT],
            sums: [Sum::default(); TRACEPOINT_COUNT],
            is_on: [false; TRACEPOINT_COUNT],
            period: PERIOD + PERIOD_OF_CPU * cpus.len() as u32,
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
        loop {
            let begun = Instant::now();
            let mut switches = self.plan();
            let ending = loop {
                let now = begun.elapsed();
                while let Some(switch) = switches.pop_if(|switch| switch.at <= now) {
                    self.switch(switch.tracepoint, switch.is_on)?;
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
                (0..TRACEPOINT_COUNT).try_for_each(|tracepoint| self.switch(tracepoint, false))?;
            }
            self.end_period(begun.elapsed());
            if let Some(ending) = ending {
                return Ok(ending);
            }
        }
    }

    /// The switches of a period, the first one last.
    fn plan(&mut self) -> Vec<Switch> {
        let place = self.random();
        let mut switches = Vec::new();
        for (tracepoint, share) in self.shares.into_iter().enumerate() {
            if !self.counters.has(tracepoint) {
                continue;
            }
            let at = self.period.mul_f64((1.0 - share) * place);
            switches.push(Switch { at, tracepoint, is_on: true });
            if share < 1.0 {
                let end = at + self.period.mul_f64(share);
                switches.push(Switch { at: end, tracepoint, is_on: false });
            }
        }
        switches.sort_by_key(|switch| std::cmp::Reverse(switch.at));
        switches
    }

    fn switch(&mut self, tracepoint: usize, is_on: bool) -> Result<(), RecordError> {
        if self.is_on[tracepoint] != is_on {
            self.counters.switch(tracepoint, is_on)?;
            self.is_on[tracepoint] = is_on;
        }
        Ok(())
    }

    /// Adds what was counted, and decides the shares of the next period.
    fn end_period(&mut self, length: Duration) {
        let length_ns = length.as_nanos() as u64;
        for tracepoint in 0..TRACEPOINT_COUNT {
            if !self.counters.has(tracepoint) {
                continue;
            }
            let slice = self.counters.take(tracepoint);
            let is_whole = self.shares[tracepoint] >= 1.0;
            // One that is switched on throughout was so all the time, but for the microseconds of the calls at its ends.
            let length_ns = if is_whole { slice.mean_ns } else { length_ns };
            let period = Period { hits: slice.hits, slice_ns: slice.mean_ns, length_ns };
            self.sums[tracepoint].add(period);
            // A burst may come back.
            self.rates[tracepoint] = slice.busiest_per_second.max(self.rates[tracepoint] / 2.0);
        }
        self.shares = plan::shares(self.rates);
        // The next slice begins where the plan says.
        for tracepoint in 0..TRACEPOINT_COUNT {
            if self.is_on[tracepoint] && self.shares[tracepoint] < 1.0 {
                // If it cannot be switched off it counts on, which costs time and no truth.
                drop(self.switch(tracepoint, false));
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
