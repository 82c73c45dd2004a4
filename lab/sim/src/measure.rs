//! The measured part of a run: from the end of the warm-up until the deadline. If all bodies end earlier, the
//! measured part ends with the last body.

use pageset_core::{CpuId, FrameUsage, Order};

use crate::cpu::World;
use crate::engine::{Engine, current};
use crate::lock::LockClass;
use crate::outcome::{MemoryUse, SharedCounts};
use crate::tally::Tally;
use crate::time::{Span, Time};

/// The time on a CPU's clock, and how long the CPU was idle until then.
type Clock = (u64, u64);

/// Measures a run from the begin to the end of its measured time. The scheduler calls `Measure` outside the
/// simulation, so that reading the allocator's state costs no virtual time.
#[derive(Debug)]
pub(crate) struct Measure {
    workers: Vec<CpuId>,
    begins: Time,
    ends: Time,
    began: Option<Vec<Clock>>,
    looks: Looks,
    result: Option<Measured>,
}

/// Number of samples of memory use in a run. The run has few samples, because the simulator needs as long for
/// one sample as for some thousand allocations.
const LOOKS: u64 = 20;

/// Samples of the use of memory during a run.
#[derive(Debug)]
struct Looks {
    next_ps: u64,
    every_ps: u64,
    count: u64,
    held_sum: u64,
    held_peak: u64,
    at_hand_sum: u64,
    /// `pages` is the number of pages that were free or held by CPUs when the run began. `available_least` is
    /// the smallest number of free pages, over all samples, that every CPU could take.
    pages: u64,
    available_least: u64,
    /// The allocator's counts at the moment when measuring began.
    counted_before: SharedCounts,
}

/// The values that were measured in a run.
#[derive(Debug)]
pub(crate) struct Measured {
    pub(crate) workers: Vec<CpuId>,
    pub(crate) span: Span,
    pub(crate) busy: Vec<Span>,
    pub(crate) idle: Vec<Span>,
    pub(crate) tally: Tally,
    pub(crate) memory: MemoryUse,
    pub(crate) digest: u64,
}

impl Measure {
    /// Makes a measurement, and adds the beginning and the end of the measured time to the agenda.
    pub(crate) fn new(world: &World, workers: Vec<CpuId>, begins: Time) -> Self {
        let ends = world.deadline;
        world.engine.enter_mark(begins);
        world.engine.enter_mark(ends);
        let every_ps = (ends.since(begins).0 / LOOKS).max(1);
        // Pages that are in use before the run do not count as the run's use of memory.
        let before = current::outside(|| usage(world));
        let pages = available(&before) + before.held;
        Self {
            workers,
            begins,
            ends,
            began: None,
            looks: Looks::new(begins.0 + every_ps, every_ps, pages),
            result: None,
        }
    }

    /// Begins the measuring at the first call, and ends the measuring at the second call.
    pub(crate) fn mark(&mut self, world: &World) {
        if self.began.is_none() {
            self.began = Some(self.clocks(&world.engine, self.begins));
            self.looks.counted_before = world.allocator.counted();
            world.engine.tally.borrow_mut().restart();
        } else {
            self.result = Some(self.sum_up(world, self.ends));
        }
    }

    /// Takes a sample of the use of memory if one is due. The scheduler calls `look` whenever a CPU
    /// continues.
    #[inline]
    pub(crate) fn look(&mut self, world: &World, cpu: u32) {
        let now_ps = world.engine.cpus[cpu as usize].clock.get();
        if now_ps >= self.looks.next_ps && now_ps < self.ends.0 {
            self.looks.look(world, now_ps);
        }
    }

    /// Returns the result. If the measured time is not over, it ends at the latest clock of a worker.
    pub(crate) fn finish(mut self, world: &World) -> Measured {
        let cpus = &world.engine.cpus;
        let last = self.workers.iter().map(|cpu| cpus[cpu.index()].clock.get()).max().unwrap_or(0);
        self.result.take().unwrap_or_else(|| self.sum_up(world, Time(last)))
    }

    fn sum_up(&self, world: &World, end: Time) -> Measured {
        let engine = &world.engine;
        let ends = self.clocks(engine, end);
        let began = self.began.as_deref().unwrap_or(&ends);
        let spent = began.iter().zip(&ends).map(|(began, end)| {
            let idle = Span(end.1 - began.1);
            (Span(end.0.saturating_sub(began.0)) - idle, idle)
        });
        let (busy, idle) = spent.unzip();
        let mut tally = engine.tally.borrow().clone();
        let (counted, before) = (world.allocator.counted(), self.looks.counted_before);
        let zone_locks = tally.locks[LockClass::Zone as usize].acquisitions;
        tally.counts.shared = SharedCounts {
            shared_visits: zone_locks + counted.shared_visits - before.shared_visits,
            line_transfers: counted.line_transfers - before.line_transfers,
            contended_lines: counted.contended_lines - before.contended_lines,
            fallbacks: tally.counts.shared.fallbacks + counted.fallbacks - before.fallbacks,
        };
        let memory = self.looks.memory(world);
        let span = end.since(self.begins.min(end));
        let (workers, digest) = (self.workers.clone(), engine.digest());
        Measured { workers, span, busy, idle, tally, memory, digest }
    }

    /// Returns the clock of each worker at `now`. If a worker's clock is earlier than `now`, this function
    /// adds the missing time, because the clock of a waiting worker does not move.
    fn clocks(&self, engine: &Engine, now: Time) -> Vec<Clock> {
        let of = |cpu: &CpuId| {
            let cpu = &engine.cpus[cpu.index()];
            let behind = now.0.saturating_sub(cpu.clock.get());
            let idle = if cpu.is_busy() { 0 } else { behind };
            (cpu.clock.get() + behind, cpu.idle_ps.get() + idle)
        };
        self.workers.iter().map(of).collect()
    }
}

impl Looks {
    fn new(first_ps: u64, every_ps: u64, pages: u64) -> Self {
        let (count, held_sum, held_peak, at_hand_sum) = (0, 0, 0, 0);
        let counted_before = SharedCounts::default();
        Self {
            next_ps: first_ps,
            every_ps,
            count,
            held_sum,
            held_peak,
            at_hand_sum,
            pages,
            available_least: pages,
            counted_before,
        }
    }

    fn look(&mut self, world: &World, now_ps: u64) {
        let usage = usage(world);
        self.count += 1;
        self.held_sum += usage.held;
        self.held_peak = self.held_peak.max(usage.held);
        self.at_hand_sum += usage.at_hand;
        self.available_least = self.available_least.min(available(&usage));
        self.next_ps += (1 + (now_ps - self.next_ps) / self.every_ps) * self.every_ps;
    }

    /// Returns the use of memory over all samples, and over a last sample that this function takes.
    fn memory(&self, world: &World) -> MemoryUse {
        let usage = usage(world);
        let mean = |sum: u64, last: u64| (sum + last) as f64 / (self.count + 1) as f64;
        MemoryUse {
            held_mean: mean(self.held_sum, usage.held),
            held_peak: self.held_peak.max(usage.held),
            held_at_end: usage.held,
            used_peak: self.pages.saturating_sub(self.available_least.min(available(&usage))),
            at_hand_mean: mean(self.at_hand_sum, usage.at_hand),
            whole_at_end: usage.whole_pageblocks,
            apart_at_end: (usage.free + usage.held + usage.at_hand)
                .saturating_sub(usage.whole_pageblocks * u64::from(Order::PAGEBLOCK.frames())),
            ..MemoryUse::default()
        }
    }
}

/// The number of free pages that every CPU could take. Pages that are reserved for one CPU count too, because
/// other CPUs take reserved pages if they find no other pages.
fn available(usage: &FrameUsage) -> u64 {
    usage.free + usage.at_hand
}

fn usage(world: &World) -> FrameUsage {
    let cached = world.engine.tally.borrow().cached.max(0);
    world.allocator.usage_now(cached as u64)
}
