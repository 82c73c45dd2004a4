//! Computes the limits of a zone's page sets: `batch`, `high_min` and `high_max`.

use crate::pcp::Limits;

/// The rule for `batch`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case", deny_unknown_fields))]
pub enum BatchRule {
    /// A 4096th of the zone, but at most a quarter of `cap_bytes`. The batch is rounded to the form 2^n − 1
    /// (spec §2.2).
    ZoneShare {
        /// Four times the largest batch, in bytes: 1 MiB since Linux 4.19, 512 KiB before.
        cap_bytes: u32,
    },
    /// The batch is the given number of pages in every zone.
    Fixed(i32),
}

impl BatchRule {
    /// The batch of a zone with `managed` frames, by the rule `self`. The computed batch may be 0, but page
    /// sets use a batch of at least 1.
    pub(crate) fn raw(self, managed: u64, page_bytes: u32) -> i32 {
        match self {
            Self::ZoneShare { cap_bytes } => zone_batch(managed, page_bytes, cap_bytes),
            Self::Fixed(pages) => pages.clamp(1, MOST_PAGES),
        }
    }
}

/// The rule for the limits of `count`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case", deny_unknown_fields))]
pub enum HighRule {
    /// One limit: the zone's low watermark divided among the CPUs, but at least four batches. If the sysctl
    /// `percpu_pagelist_high_fraction` is n and not 0, 1/n of the zone replaces the watermark.
    Share,
    /// Two limits. The lower limit is the limit of `Share`. The upper limit is an eighth of the zone divided
    /// among the CPUs, but at least four batches. If the sysctl `percpu_pagelist_high_fraction` is not 0,
    /// both limits are the limit of `Share`.
    ShareToEighth,
    /// One limit: a number of batches. In a zone that is too small for a batch, page sets hold nothing (spec
    /// §4).
    Batches(i32),
    /// One limit: the same number of pages in every zone, but at least one batch.
    Fixed(i32),
}

/// The inputs of the limits.
#[derive(Clone, Copy, Debug)]
pub struct LimitInputs {
    /// Number of frames that the zone manages.
    pub managed: u64,
    /// The zone's low watermark in frames, including the boost.
    pub low_watermark: u64,
    /// Number of online CPUs of the zone's node, or of all online CPUs if the node has no online CPU. A CPU
    /// that is just coming online counts as an online CPU.
    pub sharers: u32,
    /// The sysctl `percpu_pagelist_high_fraction`, or 0 if the sysctl is not set.
    pub fraction: u32,
    /// Bytes per frame.
    pub page_bytes: u32,
}

/// The largest limit of a page set, in pages. Chosen: far above any real limit, and so low that sums of a few
/// limits do not overflow.
const MOST_PAGES: i32 = i32::MAX / 4;

/// The smallest nonzero value of `percpu_pagelist_high_fraction`. If the sysctl is not set, `high_max` is
/// computed from an eighth of the zone. Source: spec §0.2.
pub(crate) const MIN_HIGH_FRACTION: u32 = 8;

impl HighRule {
    /// The limits of a zone's page sets (spec §2.2, §2.3, vectors `highsize.csv`).
    #[must_use]
    pub fn limits(self, batch: BatchRule, zone: &LimitInputs) -> Limits {
        let raw = batch.raw(zone.managed, zone.page_bytes);
        let batch = raw.max(1);
        let equal = |high| Limits { batch, high_min: high, high_max: high };
        match self {
            Self::Batches(times) => return equal(raw.saturating_mul(times).clamp(0, MOST_PAGES)),
            Self::Fixed(pages) => return equal(pages.clamp(batch, MOST_PAGES)),
            Self::Share | Self::ShareToEighth => {}
        }
        let share = |total| high_share(total, zone.sharers, batch);
        let fraction_of = |fraction: u32| zone.managed / u64::from(fraction);
        let high_min = match zone.fraction {
            0 => share(zone.low_watermark),
            fraction => share(fraction_of(fraction)),
        };
        let high_max = match (self, zone.fraction) {
            (Self::ShareToEighth, 0) => share(fraction_of(MIN_HIGH_FRACTION)),
            _ => high_min,
        };
        Limits { batch, high_min, high_max }
    }
}

/// A zone's batch in pages. The batch has the form 2^n − 1, and is 0 for zones with fewer than 8192 pages
/// (spec §2.2, vectors `batchsize.csv`).
#[must_use]
pub fn zone_batch(managed: u64, page_bytes: u32, cap_bytes: u32) -> i32 {
    let cap = u64::from(cap_bytes / page_bytes.max(1));
    let quarter = ((managed >> 10).min(cap) / 4).max(1);
    let sum = quarter + quarter / 2;
    let power = 1_u64 << sum.ilog2();
    i32::try_from(power - 1).unwrap_or(i32::MAX)
}

/// One CPU's share of `total` pages, but at least four batches (spec §2.3).
#[must_use]
pub fn high_share(total: u64, sharers: u32, batch: i32) -> i32 {
    let share = total / u64::from(sharers.max(1));
    i32::try_from(share).unwrap_or(MOST_PAGES).min(MOST_PAGES).max(batch.saturating_mul(4))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vectors;

    #[test]
    fn batches_equal_the_vectors() {
        let rows = vectors::rows(include_str!("../../tests/vectors/batchsize.csv"));
        assert!(rows.len() > 150);
        for row in rows {
            let raw = zone_batch(row[0] as u64, row[1] as u32, row[2] as u32);
            assert_eq!(i64::from(raw), row[3], "raw batch of {row:?}");
            assert_eq!(i64::from(raw.max(1)), row[4], "batch of {row:?}");
        }
    }

    #[test]
    fn limits_equal_the_vectors() {
        let rows = vectors::rows(include_str!("../../tests/vectors/highsize.csv"));
        assert!(rows.len() > 300);
        for row in rows {
            let [managed, low, on_node, coming, online, fraction, batch, high_min, high_max] = row[..] else {
                panic!("nine columns: {row:?}")
            };
            let sharers = match on_node + coming {
                0 => online,
                sharers => sharers,
            };
            let inputs = LimitInputs {
                managed: managed as u64,
                low_watermark: low as u64,
                sharers: sharers as u32,
                fraction: fraction as u32,
                page_bytes: 4096,
            };
            let limits = HighRule::ShareToEighth.limits(BatchRule::ZoneShare { cap_bytes: 1 << 20 }, &inputs);
            let of_batch = |total: u64| i64::from(high_share(total, sharers as u32, batch as i32));
            let (min, max) = if fraction == 0 {
                (of_batch(low as u64), of_batch(managed as u64 / 8))
            } else {
                (of_batch((managed / fraction) as u64), of_batch((managed / fraction) as u64))
            };
            assert_eq!((min, max), (high_min, high_max), "{row:?}");
            if i64::from(limits.batch) == batch {
                assert_eq!((i64::from(limits.high_min), i64::from(limits.high_max)), (high_min, high_max));
            }
        }
    }

    /// Tests worked example E1 of the specification: its first three rows, and its values of the sysctl.
    #[test]
    fn example_e1_limits_of_two_cpus() {
        #[track_caller]
        fn check(managed: u64, low: u64, fraction: u32, batch: i32, high_min: i32, high_max: i32) {
            let inputs = LimitInputs { managed, low_watermark: low, sharers: 2, fraction, page_bytes: 4096 };
            let limits = HighRule::ShareToEighth.limits(BatchRule::ZoneShare { cap_bytes: 1 << 20 }, &inputs);
            assert_eq!(limits, Limits { batch, high_min, high_max });
        }
        check(1_441_792, 13_725, 0, 63, 6862, 90_112);
        check(772_915, 15_231, 0, 63, 7615, 48_307);
        check(3_840, 75, 0, 1, 37, 240);
        check(1_441_792, 13_725, 8, 63, 90_112, 90_112);
        check(1_441_792, 13_725, 100, 63, 7208, 7208);
        check(1_441_792, 13_725, 100_000, 63, 252, 252);
    }

    #[test]
    fn extreme_zones_do_not_overflow() {
        assert_eq!(zone_batch(u64::MAX, 1, u32::MAX), 1_073_741_823);
        assert_eq!(high_share(u64::MAX, 0, 1), MOST_PAGES);
    }
}
