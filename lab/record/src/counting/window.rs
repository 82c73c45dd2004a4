//! Chooses the periods when the counters of a frequent tracepoint are open.
//!
//! An open counter makes each hit of its tracepoint some nanoseconds slower, even while the counter is
//! switched off. For allocations and frees, this delay is 1 % of the time of a page-fault loop. To save the
//! time of open counters, a draw decides after the first periods whether counters are open in a period. A
//! period that a draw has opened counts as one observation, because the draw opens the counters for all
//! segments of the period together.

use super::estimate::Segment;

/// Number of first periods with open counters (about 2 s), so that short recordings have enough segments.
const PERIODS_FIRST: u32 = 16;
/// The chance that counters are open in a later period.
const CHANCE: f64 = 0.1;

/// The state of one tracepoint.
#[derive(Clone, Copy, Debug)]
pub(super) struct Window {
    /// The chance that counters are open in the current period.
    chance: f64,
    is_open: bool,
    hits: u64,
    on_ns: u64,
}

impl Window {
    pub(super) const OPEN: Self = Self { chance: 1.0, is_open: true, hits: 0, on_ns: 0 };

    /// Decides whether counters are open in the period with number `period`. `draw` is a random number from 0
    /// to 1. If `share` is 1, the counters are open.
    pub(super) fn draw(&mut self, period: u32, share: f64, draw: f64) {
        self.chance = if share < 1.0 && period >= PERIODS_FIRST { CHANCE } else { 1.0 };
        self.is_open = draw < self.chance;
    }

    pub(super) const fn is_open(&self) -> bool {
        self.is_open
    }

    /// The chance that the tracepoint is on in a segment of this period. The tracepoint is then on for
    /// `share` of the whole time, unless `most` limits the chance.
    pub(super) fn share(&self, share: f64, most: f64) -> f64 {
        match (self.is_open, self.chance < 1.0) {
            (false, _) => 0.0,
            (true, true) => (share / self.chance).min(most),
            (true, false) => share,
        }
    }

    /// Adds the counts of a segment. Returns the segment if it is an observation on its own.
    pub(super) fn add(&mut self, segment: Segment) -> Option<Segment> {
        if self.chance >= 1.0 {
            return Some(segment);
        }
        self.hits += segment.hits;
        self.on_ns += segment.on_ns;
        None
    }

    /// Returns the period as one observation, if counters were on. `chance` is the chance that the tracepoint
    /// was on in a segment of the period.
    pub(super) fn end(&mut self, chance: f64) -> Option<Segment> {
        let (hits, on_ns) = (std::mem::take(&mut self.hits), std::mem::take(&mut self.on_ns));
        (on_ns > 0).then_some(Segment { hits, on_ns, chance: self.chance * chance })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counting::estimate::Sum;

    /// A generator of reproducible random numbers from 0 to 1.
    struct Random(u64);

    impl Random {
        fn next(&mut self) -> f64 {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (self.0 >> 33) as f64 / f64::from(1_u32 << 31)
        }
    }

    /// If bursts last longer than a period, segments of one period are alike. Tests that the interval still
    /// contains the true number in at least 88 % of simulated runs.
    #[test]
    fn periods_are_observations() {
        let (share, most, segments) = (0.05, 0.25, 16);
        for periods in [300, 1000] {
            let mut random = Random(11);
            let (mut right, mut off, mut open) = (0, 0.0, 0);
            for _ in 0..200 {
                let (mut all, mut sum, mut window) = (0, Sum::default(), Window::OPEN);
                let mut is_burst = false;
                for period in 0..periods {
                    is_burst = if is_burst { random.next() < 0.7 } else { random.next() < 0.2 };
                    window.draw(period, share, random.next());
                    let chance = window.share(share, most);
                    for _ in 0..segments {
                        let hits = (100.0 * random.next() + if is_burst { 200.0 } else { 0.0 }) as u64;
                        all += hits;
                        sum.add_drawn(1000);
                        if random.next() < chance
                            && let Some(segment) = window.add(Segment { hits, on_ns: 1000, chance })
                        {
                            sum.add(segment);
                        }
                    }
                    open += u32::from(window.is_open());
                    if let Some(segment) = window.end(chance) {
                        sum.add(segment);
                    }
                }
                let estimate = sum.estimate().expect("there are enough");
                right += u32::from((estimate.low..=estimate.high).contains(&all));
                off += estimate.hits as f64 / all as f64 - 1.0;
            }
            assert!((176..=200).contains(&right), "{periods} periods: {right} of 200");
            assert!((off / 200.0).abs() < 0.03, "{periods} periods: off by {}", off / 200.0);
            assert!(open < 200 * (PERIODS_FIRST + periods / 7), "{open}");
        }
    }

    #[test]
    fn what_is_on_throughout_is_always_open() {
        let mut window = Window::OPEN;
        window.draw(PERIODS_FIRST + 1, 1.0, 0.99);
        assert!(window.is_open() && window.share(1.0, 0.25) == 1.0);
        window.draw(PERIODS_FIRST + 1, 0.05, 0.99);
        assert!(!window.is_open() && window.share(0.05, 0.25) == 0.0);
    }
}
