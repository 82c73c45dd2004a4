//! Narrows the bounds of the kernel's count of a page set. A decision is *undetermined* if the policy decides
//! differently for different counts between the bounds. An undetermined decision narrows the bounds to the
//! counts that fit the kernel's decision. If the policy then agrees with the kernel, the decision does not
//! count as exact.

use pageset_core::Order;
use pageset_core::pcp::Pressure;

use super::doubt::Doubt;
use super::engine::Engine;
use super::numbers::Place;
use super::page_set::{Home, Scalars};

impl Engine {
    /// Whether the policy drains after this free for some counts between the bounds, and does not drain for
    /// other counts between the bounds. If the policy's decision depends on the count in this way, narrows
    /// the bounds to the counts that fit the kernel's decision.
    pub(super) fn narrow_at_free(
        &mut self,
        (home, order): (Home, Order),
        flags: Pressure,
        is_drained: bool,
    ) -> bool {
        if self.sets[home.set].doubt.is_known() {
            return false;
        }
        let before = self.sets[home.set].scalars();
        let (low, high) = self.sets[home.set].bounds();
        let mut drains = |count| self.retry((home, order), Scalars { count, ..before }, flags).is_some();
        let undetermined = !drains(low) && drains(high);
        let first = if undetermined { first_where((low, high), drains) } else { high };
        let set = &mut self.sets[home.set];
        set.set_scalars(before);
        if undetermined && is_drained {
            set.narrow(first, high);
        } else if undetermined {
            set.narrow(low, first - 1);
        }
        undetermined
    }

    /// Corrects the model's count after a tick drained pages, or drained no page although `excess` pages were
    /// due. A tick drains the pages above `high`, so the number of drained pages shows the count. If a tick
    /// drained no page, the kernel's count is at most `high`.
    pub(super) fn learn_from_tick(&mut self, set: usize, excess: i32, observed: &[(Place, Order)]) {
        let set = &mut self.sets[set];
        if observed.is_empty() {
            set.pcp.count = set.pcp.count.min(set.pcp.high);
            set.doubt = Doubt::AT_MOST;
        } else if observed.iter().all(|(_, order)| *order == Order::ZERO) {
            set.pcp.count += observed.len() as i32 - excess;
            set.doubt = Doubt::default();
        }
    }
}

/// Returns the smallest number above `low` that makes `is_so` true. `is_so` must be true for `high`, and for
/// all numbers from the returned number to `high`.
fn first_where((low, high): (i32, i32), mut is_so: impl FnMut(i32) -> bool) -> i32 {
    let (mut low, mut high) = (low, high);
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if is_so(middle) { high = middle } else { low = middle }
    }
    high
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_number_is_found() {
        for first in 4..=9 {
            assert_eq!(first_where((3, 9), |at| at >= first), first);
        }
    }
}
