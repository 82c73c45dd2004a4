//! Start times of a workload's programs, all at once or at random times.
//!
//! If all programs start at once, the simulated locks are too fast. CPUs reach their first contended lock in
//! the order of their numbers, and a fair lock keeps this order. So the lock's cache lines always move
//! between CPUs with adjacent numbers, which are near each other.

use super::plan::Plan;
use super::setup::{Parameter, PlanError, Setup};

/// The programs of a workload start at random times in an interval of this length. Every workload has this
/// parameter.
pub const START_SPREAD_US: Parameter = Parameter {
    key: "start_spread_us",
    default: 0,
    min: 0,
    meaning: "programs start at random times within this much virtual time, in us, instead of all at once",
    source: "starting all at once is simplest; the parameters of published tables were fitted that way",
};

/// Largest value of `start_spread_us`: a minute, in microseconds. The limit is needed because a run ends only
/// after its last program has started.
const MAX_US: u64 = 60_000_000;

/// Delays the start of each program by a random time, if `setup` asks for random start times.
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
