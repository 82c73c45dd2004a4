//! Bounds of a page set's count, after a decision has shown that the model's count is wrong.

/// A bound this far away is no bound.
const UNBOUNDED: i32 = i32::MAX / 4;

/// The largest difference of the kernel's count from the model's count, downwards and upwards. Both are 0 if
/// the count is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Doubt {
    below: i32,
    above: i32,
}

impl Doubt {
    /// The kernel's count is at most the model's count.
    pub(super) const AT_MOST: Self = Self { below: UNBOUNDED, above: 0 };

    /// The kernel's count is at least the model's count, and lies at most `above` over it.
    pub(super) fn at_least(above: Option<i32>) -> Self {
        Self { below: 0, above: above.filter(|above| *above >= 0).unwrap_or(UNBOUNDED) }
    }

    pub(super) const fn is_known(self) -> bool {
        self.below == 0 && self.above == 0
    }

    /// The smallest and the largest count that the kernel may have, if the model's count is `count`.
    pub(super) fn bounds(self, count: i32) -> (i32, i32) {
        ((count - self.below).max(count.min(0)), count + self.above)
    }

    /// The bounds `low` and `high`, around the model's count.
    pub(super) const fn around(count: i32, (low, high): (i32, i32)) -> Self {
        Self { below: count - low, above: high - count }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_is_never_below_zero() {
        assert_eq!(Doubt::AT_MOST.bounds(70), (0, 70));
        assert_eq!(Doubt::at_least(None).bounds(70), (70, 70 + UNBOUNDED));
        assert_eq!(Doubt::at_least(Some(-1)), Doubt::at_least(None), "a bound that contradicts is no bound");
        assert!(Doubt::at_least(Some(0)).is_known());
        assert_eq!(Doubt::default().bounds(-3), (-3, -3), "the model's own count may be below 0");
        assert!(Doubt::default().is_known() && !Doubt::AT_MOST.is_known());
    }
}
