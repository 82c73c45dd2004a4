//! Runs one simulation. It may be called from several threads at once.

use std::cell::Cell;
use std::rc::Rc;

use anyhow::{Context as _, Result, bail};
use pageset_sim::{Outcome, Simulation, Span};
use pageset_workload::load::{Plan, Setup, Topology};

use super::result::RunResult;
use super::spec::{Resolved, RunSpec};
use super::target::{Shared, VirtualTarget};

/// How long the machine is idle afterwards: the published tables say what page sets hold then. Guess: half a minute,
/// after which `high` has fallen to 2 % of what it was (7/8 a second).
const IDLE_SECONDS: u64 = 30;

/// Runs a simulation; equal specs give equal results.
///
/// # Errors
///
/// A name that is not known, a value that is out of range, a file that cannot be read, or a workload that does not fit
/// the machine.
pub fn simulate(spec: &RunSpec) -> Result<RunResult> {
    let resolved = spec.resolve()?;
    let Resolved { machine, load, policy, generation, cpus, settings, warmup_ms, duration_ms } = &resolved;
    let nodes_of_cpus =
        (0..machine.cpus()).map(|cpu| machine.topology.node_of(pageset_core::CpuId(cpu))).collect();
    let topology = Topology { nodes_of_cpus };
    let setup = Setup { topology: &topology, cpus: *cpus, generation: *generation, settings };
    let plan = load.plan(&setup).with_context(|| format!("workload {}", spec.workload))?;
    let simulation = Simulation::builder(machine)
        .policy(*policy)
        .seed(spec.seed)
        .warm_up(Span::from_ms(*warmup_ms))
        .duration(Span::from_ms(*duration_ms))
        .idle_after(Span::from_ms(1000 * IDLE_SECONDS))
        .build()?;
    let outcome = run_plan(simulation, plan).with_context(|| format!("workload {}", spec.workload))?;
    Ok(RunResult::new(&outcome, &resolved))
}

/// Runs a plan's workers on a simulation's CPUs.
pub(crate) fn run_plan(mut simulation: Simulation, plan: Plan) -> Result<Outcome> {
    let shared = Shared::of(&plan);
    let lost_frees = Rc::new(Cell::new(0));
    for worker in plan.workers {
        let (shared, lost_frees) = (Rc::clone(&shared), Rc::clone(&lost_frees));
        simulation.spawn(worker.cpu, move |cpu| {
            let mut target = VirtualTarget::new(cpu, shared);
            (worker.body)(&mut target);
            lost_frees.set(lost_frees.get() + target.lost_frees());
        })?;
    }
    let outcome = simulation.run()?;
    if let Some(cpu) = outcome.stuck.first() {
        bail!("the worker on CPU {} waits for ever; this is a bug", cpu.0);
    }
    if lost_frees.get() > 0 || outcome.census.allocated > 0 {
        let (refused, left) = (lost_frees.get(), outcome.census.allocated);
        bail!("{refused} frees refused, {left} pages left; this is a bug");
    }
    Ok(outcome)
}
