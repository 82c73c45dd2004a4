//! The bounds of the kernel's count of a page set. After a mismatch, the model's count is wrong, and often
//! only one bound of the kernel's count is known.

/// A distance of this number of pages from the model's count means that the kernel's count has no bound.
const UNBOUNDED: i32 = i32::MAX / 4;

/// How many pages the kernel's count may lie below the model's count (`below`), or above the model's count
/// (`above`). Both numbers are 0 if the kernel's count is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Doubt {
    below: i32,
    above: i32,
}

impl Doubt {
    /// The kernel's count is at most the model's count.
    pub(super) const AT_MOST: Self = Self { below: UNBOUNDED, above: 0 };

    /// The kernel's count is at least the model's count, and at most `above` pages larger than the model's
    /// count. If `above` is `None` or negative, the kernel's count has no upper bound.
    pub(super) fn at_least(above: Option<i32>) -> Self {
        Self { below: 0, above: above.filter(|above| *above >= 0).unwrap_or(UNBOUNDED) }
    }

    pub(super) const fn is_known(self) -> bool {
        self.below == 0 && self.above == 0
    }

    /// Returns the smallest and the largest count that the kernel may have, if the model's count is `count`.
    pub(super) fn bounds(self, count: i32) -> (i32, i32) {
        ((count - self.below).max(count.min(0)), count + self.above)
    }

    /// Returns the `Doubt` of a kernel's count from `low` to `high`, if the model's count is `count`.
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
