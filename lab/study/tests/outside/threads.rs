//! Tests that workloads on real threads end, free all of their memory, and do work. The tests check no times.

use std::time::Duration;

use pageset_core::policy::LINUX_6_12;
use pageset_study::load::{Generation, Settings, Setup, Topology, Workload};
use pageset_study::{ThreadError, ThreadOptions, ThreadOutcome, run_on_threads};

const OPTIONS: ThreadOptions = ThreadOptions {
    policy: LINUX_6_12,
    pages: 1 << 17,
    warm_up: Duration::from_millis(2),
    duration: Duration::from_millis(30),
    seed: 1,
};

fn plan(workload: &Workload, cpus: u32) -> pageset_study::load::Plan {
    let topology = Topology::even(cpus, 1);
    let settings = Settings::default();
    let setup = Setup { topology: &topology, cpus, generation: Generation::V6_6, settings: &settings };
    workload.plan(&setup).expect("a valid plan")
}

/// Runs a workload for longer and longer times until it does some work. On a busy machine, a short run may
/// end before its threads begin.
fn run_until_done(workload: &Workload) -> Result<ThreadOutcome, ThreadError> {
    let mut options = OPTIONS;
    loop {
        let outcome = run_on_threads(plan(workload, 2), &options)?;
        if outcome.score > 0 || options.duration > Duration::from_secs(30) {
            return Ok(outcome);
        }
        options.duration *= 4;
    }
}

#[test]
fn every_workload_runs_on_two_threads() {
    for workload in Workload::ALL {
        match run_until_done(workload) {
            Ok(outcome) => {
                assert!(outcome.score > 0, "{}: nothing was done", workload.name);
                assert_eq!(outcome.failures, 0, "{}", workload.name);
            }
            // A machine with one CPU cannot run workloads that need two CPUs.
            Err(error) => assert!(matches!(error, ThreadError::Cpus { wanted: 2, present: 1 }), "{error}"),
        }
    }
}

#[test]
fn too_many_workers_are_refused() {
    let workload = Workload::named("malloc2").expect("a known workload");
    let error = run_on_threads(plan(workload, 4096), &OPTIONS).expect_err("no machine has so many CPUs");
    assert!(error.to_string().starts_with("the workload needs 4096 CPUs, but"), "{error}");
}
