//! Chooses the share of time when each tracepoint is on.

/// The part of a CPU's time that counting should take at most. If a CPU hits tracepoints millions of times
/// per second, counting takes more, because no share is below [`SHARE_MIN`].
const BUDGET: f64 = 0.01;
/// The assumed cost of one counted hit. The cost is chosen as about three times the measured 25 to 50 ns per
/// hit. The measurement was a page-fault loop on a busy 2-CPU guest, with allocations and frees always
/// counted, in 9 and 25 rounds. The factor of three allows for the cost of switching tracepoints.
const HIT_NS: f64 = 150.0;
/// Minimum share of time of a tracepoint. If a tracepoint had a smaller share, too few of its segments would
/// be on.
pub(crate) const SHARE_MIN: f64 = 0.02;
/// Maximum share of time of a tracepoint that is not always on, because each switch takes a call for each
/// CPU.
pub(crate) const SHARE_MAX: f64 = 0.25;

/// Number of hits that a CPU should keep per second. To keep a hit takes about 0.5 us, so 5000 hits per
/// second take a quarter of a percent of the CPU's time.
const SAMPLES_PER_SECOND: f64 = 5000.0;

/// Returns the share of time for each tracepoint. `rates` has the hits per second of each tracepoint on the
/// busiest CPU. The budget is divided evenly. Frequent tracepoints also get the part of the budget that rare
/// tracepoints do not use.
pub(crate) fn shares<const N: usize>(rates: [f64; N]) -> [f64; N] {
    let mut order: [usize; N] = std::array::from_fn(|index| index);
    order.sort_by(|a, b| rates[*a].total_cmp(&rates[*b]));
    let (mut left, mut shares) = (BUDGET, [1.0; N]);
    for (done, index) in order.into_iter().enumerate() {
        let whole = rates[index] * HIT_NS / 1e9;
        let part = left / (N - done) as f64;
        if whole > part {
            let share = (part / whole).max(SHARE_MIN);
            shares[index] = if share > SHARE_MAX { SHARE_MAX } else { share };
        }
        left = (left - whole * shares[index]).max(0.0);
    }
    shares
}

/// Returns the share of time for keeping hits. `rate` is the number of hits per second on the busiest CPU.
pub(crate) fn sample_share(rate: f64) -> f64 {
    (SAMPLES_PER_SECOND / rate.max(1.0)).clamp(SHARE_MIN, SHARE_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rare_tracepoints_are_counted_throughout_and_leave_their_part() {
        let [rare, frequent] = shares([100.0, 1e6]);
        assert_eq!(rare, 1.0);
        assert!((0.05..0.2).contains(&frequent), "{frequent}");
    }

    #[test]
    fn the_cost_stays_within_the_budget() {
        for rates in [[0.0; 3], [1e4, 2e4, 3e4], [2e5, 2e5, 2e5], [1e6, 0.0, 1e5]] {
            let shares = shares(rates);
            let cost: f64 = rates.iter().zip(shares).map(|(rate, share)| rate * share * HIT_NS / 1e9).sum();
            assert!(cost <= BUDGET * 1.0001, "{rates:?} {shares:?} {cost}");
        }
    }

    #[test]
    fn more_hits_are_kept_for_a_smaller_part_of_the_time() {
        assert_eq!(sample_share(0.0), SHARE_MAX);
        assert_eq!(sample_share(5e4), 0.1);
        assert_eq!(sample_share(1e9), SHARE_MIN);
    }
}
