//! `pageset simulate` runs a workload on a simulated machine, and prints a table.
//!
//! `recording` plays a recording on complete allocators. `played` has the numbers of a recording's requests
//! that a workload `trace:FILE` played or left out. `list` names machines and workloads, and `table` prints
//! results.

pub(crate) mod args;
mod list;
mod played;
mod recording;
mod table;

use anyhow::{Result, bail};
use pageset_study::simulate::{RunResult, RunSpec, simulate_all};

use crate::invocation::Invocation;
use crate::options::jobs;
use crate::progress::Progress;
use crate::simulate::args::SimulateArgs;
use crate::{hint, output, page};

/// Runs `pageset simulate`.
pub(crate) fn execute(args: &SimulateArgs, invocation: &Invocation) -> Result<()> {
    if args.list {
        return list::print(&args.output);
    }
    if let Some(recording) = &args.recording {
        if args.page.is_asked_for() {
            bail!("--html makes a page of simulated runs; `pageset report FILE` makes a page of a recording");
        }
        return recording::run(args, recording.as_deref(), invocation);
    }
    let specs = specs(args);
    let results = run_all(&specs, args.jobs)?;
    if args.check {
        let again = run_all(&specs, args.jobs)?;
        for (spec, (first, second)) in specs.iter().zip(results.iter().zip(&again)) {
            if first != second {
                let (policy, one, other) = (&spec.policy, &first.digest, &second.digest);
                bail!(
                    "{policy}: two runs with the same seed ({}) differ ({one}, {other}); this is a bug",
                    spec.seed
                );
            }
        }
    }
    let table = table::table(args, invocation.provenance(), &specs, &results);
    args.page.write(args.output.target.existing(), || {
        let origin = table.provenance().map(page::origin);
        let sections = [page::multiples(&table), page::tables([table.clone()])];
        Ok(page::page(table.title(), sections.into_iter().chain(origin)))
    })?;
    output::write(&args.output.target, |out| Ok(args.output.format().exporter().export(&table, out)?))
}

/// The runs to make: one for each policy and seed.
fn specs(args: &SimulateArgs) -> Vec<RunSpec> {
    let spec = |policy: &String, seed: u64| RunSpec {
        machine: args.machine.clone(),
        workload: args.workload.clone(),
        policy: policy.clone(),
        cpus: args.cpus,
        batch: None,
        high: None,
        // The runs of all policies simulate the sockets and slabs of one kernel, which is the kernel of the
        // first policy.
        kernel_of: policies(args).first().cloned(),
        tick_phase: None,
        seed,
        warmup_ms: args.warmup_ms,
        duration_ms: args.duration_ms,
        settings: args.set.iter().cloned().collect(),
    };
    let of_policy = |policy| table::seeds(args).iter().map(move |seed| spec(policy, seed));
    policies(args).iter().flat_map(of_policy).collect()
}

/// The policies that the user named. By default, returns the policies of two kernels: one before and one
/// after the 2023 series that made page sets tune themselves.
pub(super) fn policies(args: &SimulateArgs) -> Vec<String> {
    match args.policies.is_empty() {
        true => ["linux-6.6", "linux-6.12"].map(str::to_owned).to_vec(),
        false => args.policies.clone(),
    }
}

/// Makes all runs, several at the same time. Returns the results in the order of `specs`.
fn run_all(specs: &[RunSpec], asked: Option<u16>) -> Result<Vec<RunResult>> {
    simulate_all(specs, jobs(asked), &mut Progress::on_terminal()).map_err(hint::of_conversion)
}
