//! From what was counted in slices of time to all of the time.
//!
//! Time is cut into periods, and each has one slice at a random place. A period's hits are its slice's, times its length over
//! the slice's. The spread is that between periods which follow each other (successive differences): it is rather too large,
//! because it has their trend too.

use pageset_trace::HitEstimate;

/// Fewer slices say nothing of their spread.
const SLICES_MIN: u64 = 8;
/// Bursts from which on their spread is known.
const FEW_BURSTS: u64 = 5;
/// How many standard errors the interval has on each side: Student's t at 95 % for [`SLICES_MIN`] slices. It is rather wide
/// for more, which pays for the tails that counts of bursts have.
const STANDARD_ERRORS: f64 = 2.4;

/// One period, of one tracepoint.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Period {
    /// Hits in its slice, on all CPUs.
    pub(crate) hits: u64,
    /// The slice, in nanoseconds: the mean of the CPUs.
    pub(crate) slice_ns: u64,
    /// The whole period.
    pub(crate) length_ns: u64,
}

/// The sum over periods.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sum {
    counted: u64,
    counted_ns: u64,
    total: f64,
    variance: f64,
    slices: u64,
    /// Slices with a hit.
    slices_with_hits: u64,
    before: Option<f64>,
    /// Time of which nothing was counted.
    unseen_ns: u64,
    seen_ns: u64,
}

impl Sum {
    pub(crate) fn add(&mut self, period: Period) {
        let Period { hits, slice_ns, length_ns } = period;
        self.counted += hits;
        if slice_ns == 0 {
            self.unseen_ns += length_ns;
            return;
        }
        let length_ns = length_ns.max(slice_ns);
        self.counted_ns += slice_ns;
        self.seen_ns += length_ns;
        if slice_ns == length_ns {
            self.total += hits as f64;
            return;
        }
        let share = slice_ns as f64 / length_ns as f64;
        let all = hits as f64 / share;
        self.total += all;
        self.slices += 1;
        self.slices_with_hits += u64::from(hits > 0);
        // A slice is compared with the one before, however long ago that was: what is in between makes them differ more.
        if let Some(before) = self.before {
            self.variance += (1.0 - share) * (all - before).powi(2) / 2.0;
        }
        self.before = Some(all);
    }

    pub(crate) const fn counted(&self) -> u64 {
        self.counted
    }

    pub(crate) const fn counted_ns(&self) -> u64 {
        self.counted_ns
    }

    /// Hits in all the time.
    pub(crate) fn estimate(&self) -> Option<HitEstimate> {
        if self.slices == 0 && self.unseen_ns == 0 {
            let hits = self.counted;
            return Some(HitEstimate { low: hits, hits, high: hits });
        }
        if self.slices < SLICES_MIN {
            return None;
        }
        // Unseen periods (a CPU that was late) are as the others.
        let scale = (self.seen_ns + self.unseen_ns) as f64 / self.seen_ns as f64;
        let error = STANDARD_ERRORS * (self.variance * self.slices as f64 / (self.slices - 1) as f64).sqrt();
        // Hits come in bursts. With none in n slices, there are fewer bursts than those of 3 slices (95 %). With a burst in few
        // slices, so many may have been missed.
        let mean_share = self.counted_ns as f64 / self.seen_ns as f64;
        let burst = self.counted as f64 / self.slices_with_hits.max(1) as f64;
        let missed = if self.slices_with_hits < FEW_BURSTS { 3.0 / mean_share * burst.max(1.0) } else { 0.0 };
        let error = error.max(missed);
        let at_least = self.counted as f64;
        let clamp = |value: f64| value.max(at_least).round() as u64;
        Some(HitEstimate {
            low: clamp((self.total - error) * scale),
            hits: clamp(self.total * scale),
            high: clamp((self.total + error) * scale),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sum(periods: impl IntoIterator<Item = (u64, u64, u64)>) -> Sum {
        let mut sum = Sum::default();
        for (hits, slice_ns, length_ns) in periods {
            sum.add(Period { hits, slice_ns, length_ns });
        }
        sum
    }

    #[test]
    fn what_was_switched_on_throughout_is_exact() {
        let estimate = sum([(5, 10, 10), (7, 10, 10)]).estimate().unwrap();
        assert_eq!(estimate, HitEstimate { low: 12, hits: 12, high: 12 });
        assert!(estimate.is_exact());
    }

    #[test]
    fn few_slices_say_nothing() {
        assert_eq!(sum([(5, 1, 10); 7]).estimate(), None);
        // Nor does time that nobody looked at.
        assert_eq!(sum([(5, 10, 10), (0, 0, 10)]).estimate(), None);
    }

    #[test]
    fn slices_stand_for_their_periods_whatever_their_length() {
        // Rates differ, and so do shares: 1000 and 10 hits a unit of time. A ratio of sums would be far too low.
        let busy = (0..50).map(|_| (1000, 1, 100));
        let idle = (0..50).map(|_| (10 * 50, 50, 100));
        let estimate = sum(busy.chain(idle)).estimate().unwrap();
        assert_eq!(estimate.hits, 50 * 100_000 + 50 * 1000);
        assert!(estimate.low < estimate.hits && estimate.hits < estimate.high);
    }

    #[test]
    fn no_hit_is_not_zero() {
        let estimate = sum([(0, 1, 10); 100]).estimate().unwrap();
        assert_eq!((estimate.low, estimate.hits, estimate.high), (0, 0, 30));
    }

    /// Of many runs with random bursts, about 95 % have their true number in the interval.
    #[test]
    fn the_interval_holds_the_truth() {
        let mut state = 7_u64;
        let mut random = move || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            state >> 33
        };
        let mut right = 0;
        for _ in 0..400 {
            let (mut all, mut periods) = (0, Vec::new());
            for _ in 0..60 {
                let ticks: Vec<u64> =
                    (0..20).map(|_| random() % 50 + 300 * u64::from(random() % 6 == 0)).collect();
                all += ticks.iter().sum::<u64>();
                let slice = (random() % 20) as usize;
                periods.push((ticks[slice], 1, 20));
            }
            let estimate = sum(periods).estimate().unwrap();
            right += u32::from((estimate.low..=estimate.high).contains(&all));
        }
        assert!((370..=400).contains(&right), "{right} of 400");
    }
}
