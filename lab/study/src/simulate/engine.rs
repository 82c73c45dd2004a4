//! Runs one simulation. Several threads may run simulations at the same time.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::{Context as _, Result, bail};
use pageset_replay::VmSettings;
use pageset_report::Cancelled;
use pageset_sim::{Builder, Simulation, SimulationError, SimulationOutcome, Span};

use super::result::RunResult;
use super::spec::{Resolved, RunSpec, recording};
use super::target::{Shared, VirtualTarget};
use crate::contest::AllocatorKind;
use crate::load::{Plan, Setup, Topology};

/// Length of the idle time after the run. After the idle time, the simulation counts the pages in page sets,
/// as published tables do. The length is a guess: if `high` falls to 7/8 each second, `high` falls to 2 % of
/// its former value in 30 seconds.
const IDLE_SECONDS: u64 = 30;

/// Runs a simulation. Equal specs give equal results, if the files that the spec names do not change.
///
/// # Errors
///
/// Fails, for example, if a name is not known, a value is out of range, a file cannot be read, or the
/// workload does not fit the machine.
pub fn simulate(spec: &RunSpec) -> Result<RunResult> {
    simulate_until(spec, &Arc::default())
}

/// Simulates like [`simulate`], but ends with [`Cancelled`] once `cancel` is set.
pub(super) fn simulate_until(spec: &RunSpec, cancel: &Arc<AtomicBool>) -> Result<RunResult> {
    let resolved = spec.resolve()?;
    let plan = plan(spec, &resolved)?;
    let Resolved { machine, allocator, vm, warmup_ms, duration_ms, .. } = &resolved;
    let simulation = with_allocator(with_vm(Simulation::builder(machine), vm), allocator)
        .seed(spec.seed)
        .warm_up(Span::from_ms(*warmup_ms))
        .duration(Span::from_ms(*duration_ms))
        .idle_after(Span::from_ms(1000 * IDLE_SECONDS))
        .cancel(Arc::clone(cancel))
        .build()?;
    let outcome = run_plan(simulation, plan).with_context(|| format!("workload {}", spec.workload))?;
    Ok(RunResult::new(&outcome, &resolved))
}

/// Checks the names and the values of a spec, and whether the workload fits the machine. `check` does not run
/// the simulation. If the workload is a recording (`trace:`), this function checks nothing, because a check
/// would have to read the recording.
///
/// # Errors
///
/// Fails if [`simulate`] would refuse the spec of a named workload.
pub fn check(spec: &RunSpec) -> Result<()> {
    if recording(&spec.workload).is_some() {
        return Ok(());
    }
    plan(spec, &spec.resolve()?).map(drop)
}

fn plan(spec: &RunSpec, resolved: &Resolved) -> Result<Plan> {
    let Resolved { machine, load, generation, cpus, settings, .. } = resolved;
    let nodes_of_cpus =
        (0..machine.cpus()).map(|cpu| machine.topology.node_of(pageset_core::CpuId(cpu))).collect();
    let topology = Topology { nodes_of_cpus };
    let setup = Setup { topology: &topology, cpus: *cpus, generation: *generation, settings };
    load.plan(&setup).with_context(|| format!("workload {}", spec.workload))
}

fn with_allocator<'m>(builder: Builder<'m>, allocator: &AllocatorKind) -> Builder<'m> {
    match allocator {
        AllocatorKind::Linux(policy) => builder.policy(**policy),
        AllocatorKind::OwnedBlocks => builder.owned_blocks(),
        AllocatorKind::OwnedBlocksStraight => builder.owned_blocks_straight(),
    }
}

/// Adds `vm.*` settings of the kernel to a builder.
fn with_vm<'m>(mut builder: Builder<'m>, vm: &VmSettings) -> Builder<'m> {
    let VmSettings {
        percpu_pagelist_high_fraction,
        min_free_kbytes,
        watermark_scale_factor,
        stat_interval_s,
    } = *vm;
    if let Some(fraction) = percpu_pagelist_high_fraction {
        builder = builder.high_fraction(fraction);
    }
    if let Some(kbytes) = min_free_kbytes {
        builder = builder.min_free_kbytes(kbytes);
    }
    if let Some(factor) = watermark_scale_factor {
        builder = builder.watermark_scale_factor(factor);
    }
    if let Some(seconds) = stat_interval_s {
        builder = builder.tick(Span::from_ms(1000 * u64::from(seconds)));
    }
    builder
}

/// Runs a plan's workers on a simulation's CPUs.
pub(crate) fn run_plan(mut simulation: Simulation, plan: Plan) -> Result<SimulationOutcome> {
    let shared = Shared::of(&plan);
    let lost_frees = Rc::new(Cell::new(0));
    if let Some(left) = &plan.free_pages {
        simulation.fill_memory(left);
    }
    for worker in plan.workers {
        let (shared, lost_frees) = (Rc::clone(&shared), Rc::clone(&lost_frees));
        simulation.spawn(worker.cpu, move |cpu| {
            let mut target = VirtualTarget::new(cpu, shared);
            (worker.body)(&mut target);
            lost_frees.set(lost_frees.get() + target.lost_frees());
        })?;
    }
    let outcome = simulation.run().map_err(|error| match error {
        SimulationError::Cancelled => Cancelled.into(),
        error => anyhow::Error::from(error),
    })?;
    if let Some(cpu) = outcome.stuck.first() {
        bail!("the worker on CPU {} waits for ever; this is a bug", cpu.0);
    }
    if lost_frees.get() > 0 || outcome.census.allocated > 0 {
        let (refused, left) = (lost_frees.get(), outcome.census.allocated);
        bail!("{refused} frees were refused and {left} pages are left; this is a bug");
    }
    Ok(outcome)
}

#[cfg(test)]
mod tests {
    use crate::load::Workload;

    use super::*;

    /// Tests that `percpu_pagelist_high_fraction` limits page sets: with a small limit, CPUs visit the zone
    /// more often.
    #[test]
    fn settings_of_the_kernel_reach_the_allocator() {
        let mut spec = RunSpec::new("epyc-2", "page_fault1", "linux-6.12");
        (spec.cpus, spec.warmup_ms, spec.duration_ms) = (Some(2), Some(1), Some(10));
        let generous = simulate(&spec).unwrap();
        spec.settings.insert("vm.percpu_pagelist_high_fraction".into(), 1_000_000);
        let tight = simulate(&spec).unwrap();
        assert!(tight.pcp_pages_peak < generous.pcp_pages_peak, "{} pages", tight.pcp_pages_peak);
        assert!(tight.zone_lock_acquisitions > generous.zone_lock_acquisitions);
    }

    /// Tests that programs start at random times. A program that starts after the measured time does nothing.
    #[test]
    fn programs_start_within_the_time_that_is_set() {
        let mut spec = RunSpec::new("epyc-2", "page_fault1", "linux-6.12");
        (spec.cpus, spec.warmup_ms, spec.duration_ms) = (Some(2), Some(0), Some(1));
        let at_once = simulate(&spec).unwrap();
        let mut set = |spread_us| {
            spec.settings.insert("start_spread_us".into(), spread_us);
            simulate(&spec)
        };
        assert_eq!(set(0).unwrap().score_per_s, at_once.score_per_s);
        let during = set(1000).unwrap().score_per_s;
        assert!(0.0 < during && during < at_once.score_per_s, "{during} for {}", at_once.score_per_s);
        assert_eq!(set(60_000_000).unwrap().score_per_s, 0.0);
        assert!(format!("{:#}", set(60_000_001).unwrap_err()).contains("use 0 to 60000000"));
    }

    fn outcome_of_full_memory() -> SimulationOutcome {
        let mut spec = RunSpec::new("westmere-ep", "lru-file-mmap-read", "linux-4.18");
        (spec.warmup_ms, spec.duration_ms) = (Some(5), Some(10));
        spec.settings.insert("cache_pages".into(), 1024);
        let resolved = spec.resolve().unwrap();
        let simulation = Simulation::builder(&resolved.machine)
            .policy(pageset_core::policy::LINUX_4_18)
            .warm_up(Span::from_ms(5))
            .duration(Span::from_ms(10))
            .build()
            .unwrap();
        run_plan(simulation, plan(&spec, &resolved).unwrap()).unwrap()
    }

    /// Tests that readers of files larger than memory wake the reclaimer, reclaim memory themselves, and
    /// drain page sets.
    #[test]
    fn readers_of_files_larger_than_memory_meet_the_watermarks() {
        let counts = outcome_of_full_memory().counts;
        assert!(counts.kswapd_wakes > 0 && counts.direct_reclaims > 0, "{counts:?}");
        assert!(counts.drains_because(pageset_core::DrainReason::Demand) > 0, "{counts:?}");
        assert_eq!(counts.failures, 0);
    }

    /// Tests patch 8 of the 2023 series. With patch 8, page sets hold fewer pages while the free memory of
    /// their zone is below the high watermark. If memory is not short, patch 8 changes nothing. The readers
    /// of this test are so slow that the reclaimer keeps up with them.
    #[test]
    fn patch_8_keeps_page_sets_smaller_where_memory_is_short() {
        let run = |policy: &str, workload: &str| {
            let mut spec = RunSpec::new("westmere-ep", workload, policy);
            (spec.warmup_ms, spec.duration_ms) = (Some(20), Some(40));
            if workload == "lru-file-mmap-read" {
                spec.settings.insert("cache_pages".into(), 1024);
                spec.settings.insert("read_page_ns".into(), 20_000);
            }
            simulate(&spec).unwrap()
        };
        assert_eq!(run("patch7", "page_fault1").digest, run("patch8", "page_fault1").digest);
        let held = |policy| run(policy, "lru-file-mmap-read").shared.held_mean;
        let (before, after) = (held("patch7"), held("patch8"));
        assert!(after < 0.9 * before, "{before} pages without patch 8, {after} pages with it");
    }

    /// Runs each workload with this project's own allocator. `simulate` fails if pages are left in use, or if
    /// the allocator's state is wrong.
    #[test]
    fn every_workload_runs_on_owned_pageblocks() {
        for workload in Workload::ALL {
            let mut spec = RunSpec::new("epyc-2", workload.name, "owned-blocks");
            (spec.warmup_ms, spec.duration_ms) = (Some(1), Some(3));
            let result = simulate(&spec).unwrap();
            assert_eq!((result.failures, result.zone_lock_acquisitions), (0, 0), "{}", workload.name);
            assert_eq!(result.shared.held_after_two_ticks, 0, "{}", workload.name);
        }
    }

    /// Tests that a run can be cancelled. The run that the test cancels would take minutes.
    #[test]
    fn a_cancelled_simulation_ends_without_a_result() {
        let spec =
            RunSpec { duration_ms: Some(600_000), ..RunSpec::new("epyc-2", "page_fault1", "linux-6.12") };
        let cancel = Arc::new(AtomicBool::new(true));
        let error = simulate_until(&spec, &cancel).unwrap_err();
        assert!(error.is::<Cancelled>(), "{error:#}");
    }
}
