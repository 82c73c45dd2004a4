//! Computes shares in percent.

use pageset_core::{COSTLY_ORDER, THP_ORDER};
use pageset_replay::Survey;
use pageset_replay::recorded::needs;

/// A share in percent; `None` if the whole is 0.
pub(super) fn percent(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64 * 100.0)
}

/// Percentage of allocations that the recorded kernel's page sets served without a refill. Only allocations
/// of orders that page sets hold since Linux 5.14 are counted. `None` if the recording has no refills.
pub(super) fn kernel_hit_percent(survey: &Survey) -> Option<f64> {
    let refills = survey.kernel.refills.total();
    let blocks = |order: usize| survey.orders.allocated[order].iter().sum::<u64>();
    let held: u64 = (0..=COSTLY_ORDER).chain([THP_ORDER]).map(blocks).sum();
    let is_known = refills > 0 && survey.recorded.has(needs::REFILLS);
    percent(held.saturating_sub(refills), held).filter(|_| is_known)
}
