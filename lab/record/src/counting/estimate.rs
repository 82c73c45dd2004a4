//! Estimates the number of hits in the whole time from counts in some segments of time.
//!
//! Time is cut into segments. In each segment, a random draw with a known chance decides whether a tracepoint
//! is on. The draw does not depend on the segment's length, so late wake-ups of the recorder cause no bias.
//! The rate comes from the segments with the tracepoint on, and each segment has the inverse of its chance as
//! weight (Hajek's estimator). The spread comes from the deviations of the segments from the rate.

use pageset_trace::HitEstimate;

/// Smallest number of segments for an estimate of the spread.
const SEGMENTS_MIN: u64 = 5;
/// Student's t at 95 %, for up to this many segments. Counts of bursts have long tails, so the values for
/// many segments are larger than Student's.
const STANDARD_ERRORS: [(u64, f64); 4] = [(5, 2.8), (8, 2.4), (15, 2.2), (u64::MAX, 2.1)];
/// If fewer segments than this number have hits, the spread is unreliable.
const FEW_BURSTS: u64 = 5;

/// A segment with the tracepoint switched on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Segment {
    /// Number of hits on all CPUs.
    pub(crate) hits: u64,
    /// How long the tracepoint was on in the segment, in nanoseconds, averaged over the CPUs.
    pub(crate) on_ns: u64,
    /// The chance that the tracepoint was on in the segment: above 0, up to 1.
    pub(crate) chance: f64,
}

/// Sums over the segments of one tracepoint.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sum {
    counted: u64,
    counted_ns: u64,
    /// Number of hits in segments with chance 1.
    whole: u64,
    /// Length of all segments with a chance below 1, whether the tracepoint was on or off.
    drawn_ns: u64,
    /// Number of segments with a chance below 1 and the tracepoint on. `segments_with_hits` of these segments
    /// have hits, and `hits_drawn` is the number of hits.
    segments: u64,
    segments_with_hits: u64,
    hits_drawn: u64,
    on_ns: u64,
    /// Sum of the hits of segments, each divided by the chance of its segment. The field `ns` is the same sum
    /// for the times that the tracepoint was on.
    hits: f64,
    ns: f64,
    /// Weighted sums of squares and products, for the variance.
    hits_hits: f64,
    hits_ns: f64,
    ns_ns: f64,
}

impl Sum {
    /// Adds a segment with the tracepoint switched on.
    pub(crate) fn add(&mut self, segment: Segment) {
        let Segment { hits, on_ns, chance } = segment;
        self.counted += hits;
        self.counted_ns += on_ns;
        if chance >= 1.0 {
            self.whole += hits;
            return;
        }
        self.segments += 1;
        self.segments_with_hits += u64::from(hits > 0);
        self.hits_drawn += hits;
        self.on_ns += on_ns;
        let weight = (1.0 - chance) / chance.powi(2);
        let (hits, ns) = (hits as f64, on_ns as f64);
        self.hits += hits / chance;
        self.ns += ns / chance;
        self.hits_hits += weight * hits * hits;
        self.hits_ns += weight * hits * ns;
        self.ns_ns += weight * ns * ns;
    }

    /// Adds the length of a segment with a chance below 1.
    pub(crate) const fn add_drawn(&mut self, length_ns: u64) {
        self.drawn_ns += length_ns;
    }

    pub(crate) const fn counted(&self) -> u64 {
        self.counted
    }

    pub(crate) const fn counted_ns(&self) -> u64 {
        self.counted_ns
    }

    /// Estimates the hits in the whole time. The number is exact if all segments had chance 1. `None` if the
    /// tracepoint was on in fewer than [`SEGMENTS_MIN`] segments with a chance below 1.
    pub(crate) fn estimate(&self) -> Option<HitEstimate> {
        if self.drawn_ns == 0 {
            let hits = self.counted;
            return Some(HitEstimate::exact(hits));
        }
        if self.segments < SEGMENTS_MIN || self.ns <= 0.0 {
            return None;
        }
        let rate = self.hits / self.ns;
        let all_ns = self.drawn_ns as f64;
        let squares = rate.mul_add(rate * self.ns_ns, -2.0 * rate * self.hits_ns) + self.hits_hits;
        let count = self.segments as f64;
        let standard_error = (squares.max(0.0) * count / (count - 1.0)).sqrt() / self.ns * all_ns;
        let errors = STANDARD_ERRORS
            .iter()
            .find(|(most, _)| self.segments <= *most)
            .map_or(2.1, |(_, errors)| *errors);
        // Hits come in bursts. If n segments have no hits, there are with 95 % confidence fewer than 3 bursts
        // per n segments. If only few segments have hits, up to 3 bursts per n segments may have been missed.
        let burst = self.hits_drawn as f64 / self.segments_with_hits.max(1) as f64;
        let chance = self.on_ns as f64 / self.ns;
        // Segments with a chance below 1 must not count as quieter than segments with chance 1 only because
        // no hit was seen in them.
        let whole_ns = self.counted_ns.saturating_sub(self.on_ns).max(1) as f64;
        let as_the_rest = 3.0 * self.whole as f64 / whole_ns * all_ns;
        let missed = (3.0 / chance * burst.max(1.0)).max(as_the_rest);
        let missed = if self.segments_with_hits < FEW_BURSTS { missed } else { 0.0 };
        let (drawn, error) = (rate * all_ns, (errors * standard_error).max(missed));
        let at_least = self.counted as f64;
        let clamp = |value: f64| (self.whole as f64 + value).max(at_least).round() as u64;
        Some(HitEstimate { low: clamp(drawn - error), hits: clamp(drawn), high: clamp(drawn + error) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A generator of reproducible random numbers from 0 to 1.
    struct Random(u64);

    impl Random {
        fn next(&mut self) -> f64 {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (self.0 >> 33) as f64 / f64::from(1_u32 << 31)
        }
    }

    fn sum(segments: &[(u64, u64, f64)], drawn_ns: u64) -> Sum {
        let mut sum = Sum::default();
        for (hits, on_ns, chance) in segments {
            sum.add(Segment { hits: *hits, on_ns: *on_ns, chance: *chance });
        }
        sum.add_drawn(drawn_ns);
        sum
    }

    #[test]
    fn what_was_on_throughout_is_exact() {
        let estimate = sum(&[(5, 10, 1.0), (7, 10, 1.0)], 0).estimate().unwrap();
        assert_eq!(estimate, HitEstimate { low: 12, hits: 12, high: 12 });
        assert!(estimate.is_exact());
    }

    #[test]
    fn few_segments_say_nothing() {
        assert_eq!(sum(&[(5, 1, 0.1); 4], 40).estimate(), None);
        // There is no estimate for time that was never observed.
        assert_eq!(sum(&[(5, 10, 1.0)], 10).estimate(), None);
    }

    #[test]
    fn segments_stand_for_all_the_time_and_what_was_exact_is_added() {
        let mut segments = vec![(10, 5, 0.1); 50];
        segments.push((1000, 5, 1.0));
        let estimate = sum(&segments, 2500).estimate().unwrap();
        assert_eq!(estimate, HitEstimate { low: 6000, hits: 6000, high: 6000 }, "an even rate has no spread");
    }

    #[test]
    fn a_segment_counts_by_its_chance() {
        // The tracepoint is on less often in busy segments, so a sum without weights would be too low.
        let busy = vec![(1000, 10, 0.01); 10];
        let idle = vec![(10, 10, 0.1); 100];
        let estimate = sum(&[busy, idle].concat(), 20_000).estimate().unwrap();
        assert_eq!(estimate.hits, 1000 * 1000 + 1000 * 10);
    }

    #[test]
    fn no_hit_is_not_zero() {
        let estimate = sum(&[(0, 1, 0.1); 100], 1000).estimate().unwrap();
        assert_eq!((estimate.low, estimate.hits), (0, 0));
        assert!((25..=35).contains(&estimate.high), "{estimate:?}");
    }

    /// In about 95 % of many simulated runs with bursts, the interval contains the true number, although
    /// segments get longer when more hits come.
    #[test]
    fn the_interval_holds_the_truth() {
        for (chance, segments) in [(0.02, 3000), (0.1, 1000), (0.25, 300)] {
            let mut random = Random(7);
            let (mut right, mut off) = (0, 0.0);
            for _ in 0..400 {
                let (mut all, mut sum) = (0, Sum::default());
                let mut is_burst = false;
                for _ in 0..segments {
                    // A burst lasts for several segments.
                    is_burst = if is_burst { random.next() < 0.7 } else { random.next() < 0.05 };
                    let rate = 50.0 * random.next() + if is_burst { 300.0 } else { 0.0 };
                    let length = 1.0 + random.next() + if is_burst { 4.0 * random.next() } else { 0.0 };
                    let hits = (rate * length) as u64;
                    all += hits;
                    let ns = (length * 1000.0) as u64;
                    sum.add_drawn(ns);
                    if random.next() < chance {
                        sum.add(Segment { hits, on_ns: ns, chance });
                    }
                }
                let estimate = sum.estimate().unwrap();
                right += u32::from((estimate.low..=estimate.high).contains(&all));
                off += estimate.hits as f64 / all as f64 - 1.0;
            }
            assert!((368..=396).contains(&right), "chance {chance}: {right} of 400");
            assert!((off / 400.0).abs() < 0.03, "chance {chance}: off by {}", off / 400.0);
        }
    }
}
