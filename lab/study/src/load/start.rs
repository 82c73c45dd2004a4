//! Start times of a workload's programs.
//!
//! If all programs start at once, CPUs reach their first contended lock in the order of their numbers, and a
//! fair lock keeps that order. As a result, the lock's cache lines always move between CPUs with adjacent
//! numbers, which are close to each other. So locks are faster than in programs that were started one by one.

use super::plan::Plan;
use super::setup::{Parameter, PlanError, Setup};

/// The time within which the programs of a workload start, at random. Every workload has this parameter.
pub const START_SPREAD_US: Parameter = Parameter {
    key: "start_spread_us",
    default: 0,
    min: 0,
    meaning: "programs start at random times within this much virtual time, in us, instead of all at once",
    source: "starting all at once is simplest; the parameters of published tables were fitted that way",
};

/// The longest time within which programs may start: a minute. A run ends only when its last program has
/// started and seen that the measured time is over.
const MAX_US: u64 = 60_000_000;

/// Lets the programs of a plan start as `setup` says.
pub(super) fn spread(plan: Plan, setup: &Setup<'_>) -> Result<Plan, PlanError> {
    let spread_ns = 1000 * setup.at_most(&START_SPREAD_US, MAX_US)?;
    if spread_ns == 0 {
        return Ok(plan);
    }
    let mut late = Plan { workers: Vec::new(), ..plan };
    for worker in plan.workers {
        late.work(worker.cpu, move |target| {
            let wait_ns = target.random() % spread_ns;
            target.sleep(wait_ns);
            (worker.body)(target);
        });
    }
    Ok(late)
}
