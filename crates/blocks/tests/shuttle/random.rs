//! Random schedules.

use shuttle::scheduler::RandomScheduler;

use crate::world::check_with;

/// How many schedules.
pub(crate) fn iterations() -> usize {
    std::env::var("SHUTTLE_ITERATIONS").ok().and_then(|text| text.parse().ok()).unwrap_or(2000)
}

/// Runs many random schedules.
pub(crate) fn check(body: impl Fn() + Send + Sync + 'static) {
    check_with(RandomScheduler::new(iterations()), body);
}
