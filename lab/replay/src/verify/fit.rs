//! Compares how well several policies fit a recorded kernel.

use serde::Serialize;

use super::Verification;

/// The number of a policy's decisions that agree with the kernel's decisions, and the number of all
/// decisions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Fit {
    /// The policy's name.
    pub policy: String,
    /// The number of decisions that agree. A refill, drain or tick agrees if it has the same number of pages
    /// under the policy and in the kernel.
    pub right: u64,
    /// The number of all decisions. For refills and for drains, the larger of the kernel's number and the
    /// policy's number. For ticks, the kernel's number.
    pub decisions: u64,
}

impl Verification {
    /// Returns how well the policy of this verification fits.
    #[must_use]
    pub fn fit(&self) -> Fit {
        let Verification { refills, drains, decay, .. } = self;
        Fit {
            policy: self.policy.clone(),
            right: refills.exact + drains.exact + decay.exact,
            decisions: refills.observed.max(refills.predicted)
                + drains.observed.max(drains.predicted)
                + decay.observed,
        }
    }
}

/// The number of wrong decisions that a policy may have by chance, beyond twice the wrong decisions of
/// another policy. Wrong decisions by chance come from the first refills of lists, and from interrupts
/// between an action and its event.
const CHANCE: u64 = 4;

impl Fit {
    /// The number of the policy's decisions that differ from the kernel's decisions.
    #[must_use]
    pub const fn wrong(&self) -> u64 {
        self.decisions.saturating_sub(self.right)
    }

    /// Whether the policy of `other` fits the same recording better, and not only by chance. The result is
    /// true if `self` has more wrong decisions than twice the wrong decisions of `other` plus `CHANCE`.
    #[must_use]
    pub const fn is_worse_than(&self, other: &Self) -> bool {
        self.wrong() > 2 * other.wrong() + CHANCE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fit(right: u64) -> Fit {
        Fit { policy: String::new(), right, decisions: 100 }
    }

    #[test]
    fn a_few_decisions_more_decide_nothing() {
        assert!(!fit(96).is_worse_than(&fit(100)));
        assert!(fit(95).is_worse_than(&fit(100)));
        assert!(!fit(80).is_worse_than(&fit(90)));
        assert!(fit(75).is_worse_than(&fit(90)));
        assert!(!fit(100).is_worse_than(&fit(100)));
    }
}
