//! Builds and runs a simulation.

use std::fmt;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use pageset_core::{
    Config, ConfigError, CpuId, FrameAllocator, NodeChoice, NodeId, Order, Pfn, Policy, Request, Violation,
    ZoneConfig, ZoneId,
};
use thiserror::Error;

use crate::allocator::{Allocator, Choice};
use crate::cpu::{VirtualCpu, World};
use crate::engine::{CpuCoroutine, Engine, Next, Processor, current};
use crate::footprint::Footprint;
use crate::lines::Lines;
use crate::lock::{LockModel, LockTable};
use crate::machine::Machine;
use crate::measure::{Measure, Measured};
use crate::outcome::{MemoryUse, SimulationOutcome};
use crate::prices::Prices;
use crate::time::{Span, Time};
use crate::variation::Variation;

/// The reason why a simulation cannot be built or run.
#[derive(Debug, Error)]
pub enum SimulationError {
    /// The builder asked for more CPUs than the machine has, or for no CPU.
    #[error("cannot use {wanted} CPUs of {machine}: it has {present}")]
    Cpus {
        /// Number of CPUs that the builder asked for.
        wanted: u32,
        /// The machine's name.
        machine: String,
        /// Number of CPUs that the machine has.
        present: u32,
    },
    /// The CPU does not exist, or already has a body.
    #[error("CPU {0} cannot run this body: the CPU does not exist, or it already has a body")]
    Body(u32),
    /// The allocator cannot be built for the machine.
    #[error("the allocator refuses the machine: {0}")]
    Allocator(#[from] ConfigError),
    /// The system has no memory for a CPU's stack.
    #[error(
        "no memory for the stacks of {0} virtual CPUs: use fewer CPUs, or raise the limit on memory maps"
    )]
    Stack(u32, #[source] std::io::Error),
    /// CPUs wait for locks that will never be released, which is a bug of the bodies or of the allocator.
    #[error("deadlock: these CPUs wait for each other's locks: {0:?}")]
    Deadlock(Vec<CpuId>),
    /// The run was [cancelled](Builder::cancel).
    #[error("cancelled")]
    Cancelled,
    /// The allocator lost frames, or handed out a frame twice, which is a bug.
    #[error("the allocator's state is wrong after the run, which is a bug: {0}")]
    Violation(#[from] Violation),
}

/// Settings of a run.
#[derive(Clone, Debug)]
pub struct Builder<'m> {
    machine: &'m Machine,
    cpus: u32,
    choice: Choice,
    seed: u64,
    warm_up: Span,
    duration: Span,
    idle_after: Span,
    tick: Span,
    model: LockModel,
    high_fraction: u32,
    min_free_kbytes: Option<u64>,
    watermark_scale_factor: Option<u32>,
    cancel: Arc<AtomicBool>,
}

/// A simulated computer with an allocator, and the code (*bodies*) that its CPUs run.
pub struct Simulation {
    world: Rc<World>,
    bodies: Vec<Option<Body>>,
    labels: Labels,
    /// Blocks that [`fill_memory`](Self::fill_memory) allocated. Blocks of `filled` stay in use during the
    /// whole run.
    filled: Vec<(Pfn, Order)>,
}

type Body = Box<dyn FnOnce(&VirtualCpu)>;

#[derive(Debug)]
struct Labels {
    machine: String,
    allocator: &'static str,
    warm_up: Time,
    idle_after: Span,
}

impl Simulation {
    /// Makes settings for a simulation of `machine`. The defaults are all CPUs of the machine, the policy of
    /// Linux 6.12, seed 0, 10 ms without warm-up, a tick every second, and no idle time after the run.
    #[must_use]
    pub fn builder(machine: &Machine) -> Builder<'_> {
        Builder {
            machine,
            cpus: machine.cpus(),
            choice: Choice::Linux(pageset_core::policy::LINUX_6_12),
            seed: 0,
            warm_up: Span::ZERO,
            duration: Span::from_ms(10),
            idle_after: Span::ZERO,
            tick: Span::from_ms(1000),
            model: LockModel::Queued,
            high_fraction: 0,
            min_free_kbytes: None,
            watermark_scale_factor: None,
            cancel: Arc::default(),
        }
    }

    /// Gives a CPU its body: the ordinary code that the CPU runs. The body should return once
    /// [`VirtualCpu::running`] is false.
    ///
    /// # Errors
    /// Fails if the CPU does not exist, or already has a body.
    pub fn spawn(
        &mut self,
        cpu: CpuId,
        body: impl FnOnce(&VirtualCpu) + 'static,
    ) -> Result<(), SimulationError> {
        match self.bodies.get_mut(cpu.index()) {
            Some(slot @ None) => *slot = Some(Box::new(body)),
            _ => return Err(SimulationError::Body(cpu.0)),
        }
        Ok(())
    }

    /// Returns the allocator, so that the caller can allocate and free before the run, for example to fill
    /// memory. The caller may use the number of any CPU of the simulation. Operations before the run cost no
    /// virtual time.
    #[must_use]
    pub fn allocator(&self) -> &dyn FrameAllocator {
        self.world.allocator.frames()
    }

    /// Allocates memory before the run, and frees it after all bodies have ended. Each zone keeps at least as
    /// many free pages as its high watermark. For each node in `left`, the node's highest zone keeps the
    /// number of further free pages that `left` gives. `fill_memory` does nothing if the allocator has no
    /// watermarks.
    pub fn fill_memory(&mut self, left: &[(NodeId, u64)]) {
        let Allocator::Linux(allocator) = &self.world.allocator else { return };
        for zone in allocator.zones() {
            let is_main = self.world.main_zones.contains(&zone.id);
            let left =
                left.iter().find(|(node, _)| is_main && *node == zone.node).map_or(0, |(_, left)| *left);
            let request =
                Request::new(Order::MAX).movable().on(NodeChoice::Only(zone.node)).in_zone(zone.kind);
            let is_above = || {
                let memory = allocator.zone_memory(zone.id).expect("the zone belongs to this machine");
                memory.free > memory.watermarks.high + left + u64::from(Order::MAX.frames())
            };
            while is_above() {
                let Ok(pfn) = allocator.alloc(CpuId(0), &request) else { break };
                self.filled.push((pfn, Order::MAX));
            }
        }
    }

    /// Runs all bodies to their end.
    ///
    /// # Errors
    /// Fails if there is no memory for stacks, or if the run was cancelled. Fails after a bug too: if CPUs
    /// wait for locks that will never be released, or if the allocator's state is wrong after the run.
    ///
    /// # Panics
    /// Panics if a body panics.
    pub fn run(self) -> Result<SimulationOutcome, SimulationError> {
        let world = Rc::clone(&self.world);
        current::enter(&world.engine, || self.run_inside())?.finish(&world)
    }

    fn run_inside(self) -> Result<Finished, SimulationError> {
        let Self { world, bodies, labels, filled } = self;
        let engine = &world.engine;
        let cpus = bodies.len() as u32;
        let has_body = |(cpu, body): (u32, &Option<Body>)| body.as_ref().map(|_| CpuId(cpu));
        let workers: Vec<_> = (0..).zip(&bodies).filter_map(has_body).collect();
        slow_down_siblings(engine, &workers);
        let mut measure = Measure::new(&world, workers.clone(), labels.warm_up);
        let coroutines = (0..).zip(bodies).map(|(index, body)| {
            body.map(|body| coroutine(Rc::clone(&world), CpuId(index), body)).transpose()
        });
        let coroutines: Result<Vec<_>, _> = coroutines.collect();
        let mut coroutines = coroutines.map_err(|error| SimulationError::Stack(cpus, error))?;
        workers.iter().for_each(|cpu| engine.start(cpu.0));
        let mut left = workers.len();
        while left > 0 && !engine.is_stalled() {
            let cpu = match engine.next() {
                None => break,
                Some(Next::Mark) => {
                    current::outside(|| measure.mark(&world));
                    continue;
                }
                Some(Next::Cpu(cpu)) => cpu,
            };
            current::outside(|| measure.look(&world, cpu));
            let coroutine =
                coroutines[cpu as usize].as_mut().expect("only CPUs with bodies are on the agenda");
            if coroutine.resume() {
                left -= 1;
                engine.ended(cpu);
            }
        }
        if world.cancel.load(Relaxed) {
            return Err(SimulationError::Cancelled);
        }
        let ended = |cpu: &CpuId| coroutines[cpu.index()].as_ref().is_none_or(CpuCoroutine::has_ended);
        let stuck: Vec<_> = workers.iter().copied().filter(|cpu| !ended(cpu)).collect();
        if stuck.iter().any(|cpu| engine.cpus[cpu.index()].is_spinning.get()) {
            return Err(SimulationError::Deadlock(stuck));
        }
        let measured = current::outside(|| measure.finish(&world));
        Ok(Finished { labels, stuck, measured, filled })
    }
}

/// For each CPU with a body, sets the slowdown if another CPU of its core has a body too.
fn slow_down_siblings(engine: &Engine, workers: &[CpuId]) {
    for worker in workers {
        let cpu = &engine.cpus[worker.index()];
        let is_sibling = |other: &&CpuId| *other != worker && engine.cpus[other.index()].core == cpu.core;
        if workers.iter().any(|other| is_sibling(&other)) {
            cpu.slowdown.set(engine.prices.slowdown);
        }
    }
}

fn coroutine(world: Rc<World>, id: CpuId, body: Body) -> std::io::Result<CpuCoroutine> {
    CpuCoroutine::new(move |yielder| {
        let cpu = VirtualCpu { world: Rc::clone(&world), id };
        world.engine.cpus[id.index()].way_back.during(yielder, || body(&cpu));
    })
}

/// A run whose bodies have ended or are stuck.
struct Finished {
    labels: Labels,
    stuck: Vec<CpuId>,
    measured: Measured,
    filled: Vec<(Pfn, Order)>,
}

impl Finished {
    /// Simulates the idle time after the run, checks the allocator, and makes the outcome.
    fn finish(self, world: &World) -> Result<SimulationOutcome, SimulationError> {
        world.allocator.frames().free_batch(CpuId(0), &self.filled).expect("these blocks are in use");
        let held_after_two_ticks = self.rest(world);
        let Measured { workers, span, busy, idle, tally, memory, digest } = self.measured;
        let usage = world.allocator.frames().usage();
        let memory = MemoryUse { held_after_two_ticks, whole_when_gone: usage.whole_pageblocks, ..memory };
        // If the allocator reports no events, the numbers of held pages come from samples of its state.
        let (cached_peak, cached_at_end) = if world.allocator.has_events() {
            (tally.cached_peak.max(0) as u64, tally.cached.max(0) as u64)
        } else {
            (memory.held_peak, memory.held_at_end)
        };
        Ok(SimulationOutcome {
            machine: self.labels.machine,
            policy: self.labels.allocator,
            cpus: world.engine.cpus.len() as u32,
            workers: workers.len() as u32,
            seed: world.seed,
            digest,
            measured: span,
            busy,
            idle,
            counts: tally.counts,
            locks: tally.locks,
            user: Span(tally.user_ps),
            drain_locks: tally.drains,
            caches: tally.caches,
            lines: tally.lines,
            memory,
            alloc: tally.alloc,
            behind_drains: tally.behind_drains,
            free: tally.free,
            cached_peak,
            cached_at_end,
            cached_after_idle: usage.held,
            census: world.allocator.frames().validate()?,
            stuck: self.stuck,
        })
    }

    /// Does the periodic work of all CPUs during the idle time. `rest` calls the allocator directly, because
    /// no body runs any more. Returns the number of pages that CPUs hold after two ticks.
    fn rest(&self, world: &World) -> u64 {
        let allocator = world.allocator.frames();
        let tick = |()| {
            let mut cpus = (0..world.engine.cpus.len() as u32).map(CpuId);
            cpus.try_for_each(|cpu| allocator.tick(cpu).map(drop)).expect("CPUs of this machine");
        };
        let ticks = self.labels.idle_after.0 / world.tick.0.max(1);
        (0..ticks.min(2)).map(|_| ()).for_each(tick);
        let held = allocator.usage().held;
        (2..ticks).map(|_| ()).for_each(tick);
        held
    }
}

impl Builder<'_> {
    /// Sets the number of simulated CPUs, counted from the machine's first CPU. All nodes keep their memory,
    /// even nodes without CPUs.
    #[must_use]
    pub fn cpus(mut self, cpus: u32) -> Self {
        self.cpus = cpus;
        self
    }

    /// Simulates Linux's allocator under `policy`.
    #[must_use]
    pub fn policy(mut self, policy: Policy) -> Self {
        self.choice = Choice::Linux(policy);
        self
    }

    /// Simulates this project's own allocator instead of Linux's allocator. Each CPU has an array of free
    /// blocks above the allocator, as in a kernel.
    #[must_use]
    pub fn owned_blocks(mut self) -> Self {
        self.choice = Choice::OwnedBlocks;
        self
    }

    /// Simulates this project's own allocator without arrays: bodies call the allocator directly.
    #[must_use]
    pub fn owned_blocks_straight(mut self) -> Self {
        self.choice = Choice::OwnedBlocksStraight;
        self
    }

    /// Sets the seed of all random numbers.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Sets the virtual time before measuring begins.
    #[must_use]
    pub fn warm_up(mut self, warm_up: Span) -> Self {
        self.warm_up = warm_up;
        self
    }

    /// Sets the virtual time from the end of the warm-up until bodies should end.
    #[must_use]
    pub fn duration(mut self, duration: Span) -> Self {
        self.duration = duration;
        self
    }

    /// Sets the length of the idle time after the last body ended. CPUs do their periodic work in the idle
    /// time too.
    #[must_use]
    pub fn idle_after(mut self, idle: Span) -> Self {
        self.idle_after = idle;
        self
    }

    /// Sets the time between two ticks of a CPU. Linux ticks once a second. In a simulation shorter than a
    /// second, not every CPU ticks, unless the simulation sets a shorter time.
    #[must_use]
    pub fn tick(mut self, tick: Span) -> Self {
        self.tick = tick;
        self
    }

    /// Sets how CPUs wait for spin locks.
    #[must_use]
    pub fn lock_model(mut self, model: LockModel) -> Self {
        self.model = model;
        self
    }

    /// Sets Linux's `percpu_pagelist_high_fraction`; 0 lets the policy decide.
    #[must_use]
    pub fn high_fraction(mut self, fraction: u32) -> Self {
        self.high_fraction = fraction;
        self
    }

    /// Sets `min_free_kbytes`. Default: the value that Linux chooses for the machine's amount of memory.
    #[must_use]
    pub fn min_free_kbytes(mut self, kbytes: u64) -> Self {
        self.min_free_kbytes = Some(kbytes);
        self
    }

    /// Sets `watermark_scale_factor`, in 10 000ths of a zone. Default: Linux's value.
    #[must_use]
    pub fn watermark_scale_factor(mut self, factor: u32) -> Self {
        self.watermark_scale_factor = Some(factor);
        self
    }

    /// Sets a flag that can end the run: [`VirtualCpu::running`] is false as soon as the flag is true.
    #[must_use]
    pub fn cancel(mut self, cancel: Arc<AtomicBool>) -> Self {
        self.cancel = cancel;
        self
    }

    /// Builds the machine with all its memory free.
    ///
    /// # Errors
    /// Fails if the settings ask for no CPU or for more CPUs than the machine has, or if the allocator
    /// refuses the settings.
    pub fn build(self) -> Result<Simulation, SimulationError> {
        let Self { machine, cpus, .. } = self;
        if cpus == 0 || cpus > machine.cpus() {
            return Err(SimulationError::Cpus {
                wanted: cpus,
                machine: machine.name.clone(),
                present: machine.cpus(),
            });
        }
        let (allocator, locks, lines) = self.allocator()?;
        let topology = &machine.topology;
        let processors = (0..cpus).map(CpuId).map(|cpu| {
            let first_tick = machine.tick_phase.first(self.tick, cpu.0, cpus);
            Processor::new(topology.node_of(cpu).0, topology.core_of(cpu), topology.cache_of(cpu), first_tick)
        });
        let variation = Variation::new(machine.costs.lines_vary, self.seed);
        let (prices, footprint) = (Prices::of(machine), Footprint::of(machine, cpus));
        let engine =
            Engine::new(processors.collect(), (locks, lines), self.model, prices, footprint, variation);
        let nodes = (0..topology.nodes).map(|node| NodeId(node as u16));
        let last_of = |node| machine.memory.zones.iter().rposition(|(_, other, _)| *other == node);
        let main_zones = nodes.filter_map(|node| Some(ZoneId(last_of(node)? as u16))).collect();
        let world = World {
            engine,
            allocator,
            seed: self.seed,
            page_bytes: machine.page_bytes.into(),
            main_zones,
            deadline: Time::ZERO + self.warm_up + self.duration,
            tick: self.tick,
            cancel: self.cancel,
        };
        let labels = Labels {
            machine: machine.name.clone(),
            allocator: self.choice.name(),
            warm_up: Time::ZERO + self.warm_up,
            idle_after: self.idle_after,
        };
        Ok(Simulation {
            world: Rc::new(world),
            bodies: (0..cpus).map(|_| None).collect(),
            labels,
            filled: Vec::new(),
        })
    }

    fn allocator(&self) -> Result<(Allocator, LockTable, Lines), ConfigError> {
        let Self { machine, cpus, .. } = *self;
        let regions: Vec<_> = machine.memory.zones.iter().map(|(_, _, frames)| [frames.clone()]).collect();
        let zones: Vec<_> = machine
            .memory
            .zones
            .iter()
            .zip(&regions)
            .map(|((kind, node, span), regions)| ZoneConfig {
                kind: *kind,
                node: *node,
                span: span.clone(),
                regions,
            })
            .collect();
        let nodes: Vec<NodeId> = (0..cpus).map(|cpu| machine.topology.node_of(CpuId(cpu))).collect();
        let mut config = Config::new(&zones, &nodes);
        config.distances = Some(&machine.topology.distances);
        config.page_bytes = machine.page_bytes;
        config.percpu_pagelist_high_fraction = self.high_fraction;
        config.min_free_kbytes = self.min_free_kbytes.or(config.min_free_kbytes);
        config.watermark_scale_factor = self.watermark_scale_factor.unwrap_or(config.watermark_scale_factor);
        self.choice.build(&config, machine)
    }
}

impl fmt::Debug for Simulation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Simulation").field("labels", &self.labels).finish_non_exhaustive()
    }
}
