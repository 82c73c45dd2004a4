//! Differences of counters and gauges between two readings.

/// Nanoseconds in a second.
const NS_PER_S: f64 = 1e9;

/// The increase of a kernel counter between two readings. `None` if the counter fell and no wrap explains it.
///
/// Counters are as wide as a machine word, so the counters of 32-bit kernels wrap at 2^32. A counter that
/// fell counts as wrapped if it has then increased by less than half of its range.
pub(crate) fn increase(earlier: u64, later: u64) -> Option<u64> {
    if later >= earlier {
        return Some(later - earlier);
    }
    match (u32::try_from(earlier), u32::try_from(later)) {
        (Ok(earlier), Ok(later)) => {
            let wrapped = later.wrapping_sub(earlier);
            (wrapped < 1 << 31).then_some(u64::from(wrapped))
        }
        _ => {
            let wrapped = later.wrapping_sub(earlier);
            (wrapped < 1 << 63).then_some(wrapped)
        }
    }
}

/// Returns `later - earlier` for two values of a gauge.
pub(crate) fn change(earlier: u64, later: u64) -> i64 {
    let distance = i64::try_from(later.abs_diff(earlier)).unwrap_or(i64::MAX);
    if later >= earlier { distance } else { -distance }
}

/// Returns `count` per second over `interval_ns`, or `None` if no time has passed.
pub(crate) fn per_s(count: u64, interval_ns: u64) -> Option<f64> {
    (interval_ns > 0).then(|| count as f64 * NS_PER_S / interval_ns as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_of_both_widths_wrap() {
        assert_eq!(increase(7, 9), Some(2));
        assert_eq!(increase(u64::from(u32::MAX), 4), Some(5));
        assert_eq!(increase(u64::MAX - 1, 3), Some(5));
    }

    #[test]
    fn a_counter_that_fell_says_nothing() {
        assert_eq!(increase(100, 90), None);
        assert_eq!(increase(1 << 40, 1 << 39), None);
    }

    #[test]
    fn gauges_move_both_ways_and_never_overflow() {
        assert_eq!((change(5, 3), change(3, 5)), (-2, 2));
        assert_eq!((change(u64::MAX, 0), change(0, u64::MAX)), (-i64::MAX, i64::MAX));
    }

    #[test]
    fn no_time_has_no_rate() {
        assert_eq!(per_s(3, 0), None);
        assert_eq!(per_s(3, 500_000_000), Some(6.0));
    }
}
