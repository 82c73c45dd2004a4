//! `pageset simulate`: a workload on a simulated machine, one row for each policy.
//!
//! `spec` says what is run, `target` lets workloads run on virtual CPUs, `engine` runs, `result` is what came out,
//! `played` says what was left out of a recording, `list` names machines and workloads, `table` prints.

mod engine;
mod list;
mod played;
mod result;
mod spec;
mod table;
mod target;

use anyhow::{Result, bail};

use crate::args::SimulateArgs;
use crate::invocation::Invocation;
use crate::progress::Progress;
use crate::{jobs, output};
pub(crate) use engine::{run, run_plan};
pub(crate) use result::RunResult;
pub(crate) use spec::{RunSpec, machine_text, recording};

/// The subcommand.
pub(crate) fn execute(args: &SimulateArgs, invocation: &Invocation) -> Result<()> {
    if args.list {
        return list::print(&args.output);
    }
    let specs = specs(args);
    let results = run_all(&specs, jobs::count(args.jobs))?;
    if args.check {
        let again = run_all(&specs, jobs::count(args.jobs))?;
        for (spec, (first, second)) in specs.iter().zip(results.iter().zip(&again)) {
            if first != second {
                let (policy, one, other) = (&spec.policy, &first.digest, &second.digest);
                bail!("{policy}: two runs with one seed differ ({one}, {other}); this is a bug");
            }
        }
    }
    let table = table::table(args, invocation.provenance(), &specs, &results);
    output::write(&args.output.target, |out| Ok(args.output.format().exporter().export(&table, out)?))
}

/// One run for each policy.
fn specs(args: &SimulateArgs) -> Vec<RunSpec> {
    let spec = |policy: &String| RunSpec {
        machine: args.machine.clone(),
        workload: args.workload.clone(),
        policy: policy.clone(),
        cpus: args.cpus,
        batch: None,
        high: None,
        // One kernel surrounds all policies that are compared: the base's.
        kernel_of: args.policies.first().cloned(),
        seed: args.seed,
        warmup_ms: args.warmup_ms,
        duration_ms: args.duration_ms,
        settings: args.set.iter().cloned().collect(),
    };
    args.policies.iter().map(spec).collect()
}

/// Runs all, several at once; the results are in the order of the runs.
fn run_all(specs: &[RunSpec], jobs: usize) -> Result<Vec<RunResult>> {
    let mut progress = Progress::new("simulating", "runs", Some(specs.len() as u64));
    let mut results: Vec<Option<RunResult>> = specs.iter().map(|_| None).collect();
    let mut done = 0;
    jobs::each(specs, jobs, run, |index, result: Result<RunResult>| {
        results[index] = Some(result?);
        done += 1;
        progress.update(done);
        Ok::<_, anyhow::Error>(())
    })?;
    Ok(results.into_iter().flatten().collect())
}
