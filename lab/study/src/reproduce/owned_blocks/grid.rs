//! The simulated workloads, machines and allocators, and the results in order.

use anyhow::Result;
use pageset_report::Progress;
use pageset_report::Seeds;

use crate::load::START_SPREAD_US;
use crate::reproduce::study::Options;
use crate::simulate::{RunResult, RunSpec, simulate_all};

/// Linux's policies. The second one sets the goals.
pub(super) const LINUX: [&str; 4] = ["linux-6.12", BASE, "linux-6.19", "pcp-buddy-rfc"];
/// The policy that sets the goals.
pub(super) const BASE: &str = "linux-6.18";
/// Our allocator with arrays, and without.
pub(super) const OURS: [&str; 2] = [OWNED_BLOCKS, "owned-blocks-straight"];
/// Our allocator with arrays.
pub(super) const OWNED_BLOCKS: &str = "owned-blocks";

/// The RFC's own cases, then the cases of the studies in which the page allocator has work to do.
const WORKLOADS: [(&str, (u64, u64)); 8] = [
    ("producer-consumer", SHORT_MS),
    ("mass-exit", LONG_MS),
    ("purger", MS),
    ("page_fault1", MS),
    ("page_fault1-threads", MS),
    ("kbuild", LONGEST_MS),
    ("stress-vm", MS),
    ("af-unix", SHORT_MS),
];
const QUICK_WORKLOADS: usize = 3;
const MACHINES: [(&str, u32); 4] =
    [("xeon-36", 36), ("sapphire-rapids", 112), ("zen-316", 316), ("epyc-768", 768)];
const QUICK_MACHINES: usize = 1;

/// Time before measuring, and measured, in milliseconds. Guess: page sets fill within the time before
/// measuring on each machine.
const MS: (u64, u64) = (10, 20);
/// The times of [`MS`] for workloads whose pages live for microseconds.
const SHORT_MS: (u64, u64) = (5, 10);
/// The times of [`MS`] for workloads whose processes all end together.
const LONG_MS: (u64, u64) = (50, 100);
/// The times of [`MS`] for workloads whose unit of work is a process, some of them long.
const LONGEST_MS: (u64, u64) = (100, 200);
const QUICK_MS: (u64, u64) = (5, 10);
/// Programs start within this time. If all started at once, they would queue in the order of their CPUs'
/// numbers, and the results would depend on which allocator keeps that order. Guess: less than each warm-up,
/// and longer than a lap of the longest queue.
const SPREAD_US: u64 = 2000;

/// A workload on a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) workload: &'static str,
    pub(super) machine: &'static str,
    pub(super) cpus: u32,
    ms: (u64, u64),
}

/// The results at one place. Each allocator has one result for each seed.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) place: Place,
    by_policy: Vec<(&'static str, Vec<RunResult>)>,
}

impl Place {
    fn policies() -> impl Iterator<Item = &'static str> {
        LINUX.into_iter().chain(OURS)
    }
}

impl Found {
    /// The allocators that are simulated at this place, in the order of tables.
    pub(super) fn policies(&self) -> impl Iterator<Item = &'static str> {
        self.by_policy.iter().map(|(policy, _)| *policy)
    }

    /// The results of one policy, one for each seed.
    pub(super) fn of(&self, policy: &str) -> &[RunResult] {
        self.by_policy.iter().find(|(name, _)| *name == policy).map_or(&[], |(_, results)| results)
    }
}

/// Simulates everything, the longest runs first.
pub(super) fn run(options: &Options, progress: &mut dyn Progress) -> Result<Vec<Found>> {
    let places = places(options.is_quick);
    let seeds = options.seeds();
    let specs: Vec<_> =
        places.iter().rev().flat_map(|place| specs(*place, seeds, options.is_quick)).collect();
    let mut results = simulate_all(&specs, options.jobs, progress)?.into_iter();
    let mut found: Vec<_> = places
        .into_iter()
        .rev()
        .map(|place| {
            let by_policy = Place::policies()
                .map(|policy| (policy, results.by_ref().take(seeds.count as usize).collect()));
            Found { place, by_policy: by_policy.collect() }
        })
        .collect();
    found.reverse();
    Ok(found)
}

/// Makes all places, ordered by machine, since a reader looks at one size after the other.
fn places(is_quick: bool) -> Vec<Place> {
    let (machines, workloads) =
        if is_quick { (QUICK_MACHINES, QUICK_WORKLOADS) } else { (MACHINES.len(), WORKLOADS.len()) };
    let on = |(machine, cpus): (&'static str, u32)| {
        WORKLOADS[..workloads].iter().map(move |(workload, ms)| Place { workload, machine, cpus, ms: *ms })
    };
    MACHINES[..machines].iter().copied().flat_map(on).collect()
}

fn specs(place: Place, seeds: Seeds, is_quick: bool) -> impl Iterator<Item = RunSpec> {
    let (warmup_ms, duration_ms) = if is_quick { QUICK_MS } else { place.ms };
    let spec = move |policy: &str, seed| RunSpec {
        cpus: Some(place.cpus),
        seed,
        kernel_of: Some(BASE.to_owned()),
        warmup_ms: Some(warmup_ms),
        duration_ms: Some(duration_ms),
        settings: [(START_SPREAD_US.key.to_owned(), SPREAD_US)].into(),
        ..RunSpec::new(place.machine, place.workload, policy)
    };
    Place::policies().flat_map(move |policy| seeds.iter().map(move |seed| spec(policy, seed)))
}

#[cfg(test)]
pub(super) mod tests {
    use pageset_sim::Machine;

    use super::*;
    use crate::contest::AllocatorKind;
    use crate::load::Workload;

    /// Makes up a result at a place: each allocator's result is `result(policy)`.
    pub(crate) fn found(workload: &'static str, result: impl Fn(&str) -> RunResult) -> Found {
        let place = Place { workload, machine: "xeon-36", cpus: 36, ms: QUICK_MS };
        let by_policy = Place::policies().map(|policy| (policy, vec![result(policy)])).collect();
        Found { place, by_policy }
    }

    #[test]
    fn every_run_is_of_something_that_there_is() {
        for place in places(false) {
            let machine = Machine::named(place.machine).unwrap();
            assert!(place.cpus <= machine.cpus() && Workload::named(place.workload).is_some(), "{place:?}");
        }
        assert!(LINUX.into_iter().chain(OURS).all(|policy| AllocatorKind::named(policy).is_some()));
        assert_eq!((places(false).len(), places(true).len()), (32, 3));
    }
}
