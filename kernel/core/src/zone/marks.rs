//! Watermarks: the amount of a zone that must stay free, depending on the request.

use crate::ZoneKind;
use crate::count::Count;

/// A zone's watermarks in frames, without boost. The watermarks that the allocator computes are equally
/// spaced. If a setting is so large that a watermark would overflow, the watermark is the largest number,
/// which no zone reaches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Watermarks {
    /// If a request would leave at most `min` free frames, the request succeeds only if the request may use
    /// reserves.
    pub min: u64,
    /// If a request would leave at most `low` free frames in each of its zones, the request wakes the
    /// reclaimer.
    pub low: u64,
    /// The number of free frames above which the reclaimer should stop.
    pub high: u64,
}

/// One of a zone's three watermarks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Watermark {
    /// The watermark of attempts after the reclaimer was woken.
    Min,
    /// The watermark of an ordinary first attempt.
    Low,
    /// The watermark above which enough memory is free.
    High,
}

/// The numbers of one zone that the calculation of its watermarks needs.
#[derive(Clone, Copy, Debug)]
pub struct WatermarkInputs {
    /// The kind of the zone's addresses.
    pub kind: ZoneKind,
    /// Number of frames that the zone manages.
    pub managed: u64,
}

/// The numbers that the calculation of watermarks needs for every zone.
#[derive(Clone, Copy, Debug)]
pub struct WatermarkSettings {
    /// The setting `min_free_kbytes`, in frames.
    pub pages_min: u64,
    /// `watermark_scale_factor`, in 10 000ths of the zone.
    pub scale_factor: u32,
    /// Number of managed frames of all zones except those of kind `HighMem` or `Movable`.
    pub lowmem: u64,
}

impl WatermarkSettings {
    /// The watermarks of one zone (spec §1.9, vectors `watermarks.csv`).
    #[must_use]
    pub fn watermarks(&self, zone: WatermarkInputs) -> Watermarks {
        let share = mul_frac(self.pages_min, zone.managed, self.lowmem.max(1));
        let min = match zone.kind {
            ZoneKind::HighMem | ZoneKind::Movable => (zone.managed / 1024).clamp(32, 128),
            _ => share,
        };
        let step = (share / 4).max(mul_frac(zone.managed, u64::from(self.scale_factor), 10_000));
        let above = |mark: u64| mark.saturating_add(step);
        let (low, high) = (above(min), above(above(min)));
        Watermarks { min, low, high }
    }
}

/// Linux's default `min_free_kbytes` for `free_kbytes` of memory: 4 · √(free), 128 to 262 144 (spec §1.9).
#[must_use]
pub fn default_min_free_kbytes(free_kbytes: u64) -> u64 {
    // Compute the square root by bisection, because `isqrt` would add 560 bytes to a kernel that links this
    // code.
    let (square, mut low, mut high) = (free_kbytes.saturating_mul(16), 128, 262_144);
    while low < high {
        let middle = u64::div_ceil(low + high, 2);
        if middle * middle <= square { low = middle } else { high = middle - 1 }
    }
    low
}

/// A zone's watermarks and boost. CPUs read the watermarks and the boost without the zone's lock.
#[derive(Debug)]
pub(crate) struct Marks {
    min: Count,
    low: Count,
    high: Count,
    boost: Count,
}

impl Marks {
    pub(super) const fn new() -> Self {
        Self { min: Count::new(), low: Count::new(), high: Count::new(), boost: Count::new() }
    }

    /// Sets all watermarks and ends the boost.
    pub(crate) fn set(&self, marks: Watermarks) {
        self.min.set(marks.min);
        self.low.set(marks.low);
        self.high.set(marks.high);
        self.boost.set(0);
    }

    pub(crate) fn all(&self) -> Watermarks {
        Watermarks { min: self.min.get(), low: self.low.get(), high: self.high.get() }
    }

    pub(crate) fn boost(&self) -> u64 {
        self.boost.get()
    }

    pub(crate) fn set_boost(&self, boost: u64) {
        self.boost.set(boost);
    }

    pub(crate) fn unboosted(&self, mark: Watermark) -> u64 {
        match mark {
            Watermark::Min => self.min.get(),
            Watermark::Low => self.low.get(),
            Watermark::High => self.high.get(),
        }
    }

    #[inline]
    pub(crate) fn boosted(&self, mark: Watermark) -> u64 {
        self.unboosted(mark).saturating_add(self.boost.get())
    }
}

/// `value · numerator / denominator` without overflow (spec §0.1 *mulfrac*). This function avoids a division
/// of 128 bits, which would add 200 bytes to a kernel that links this code.
pub(super) fn mul_frac(value: u64, numerator: u64, denominator: u64) -> u64 {
    (value / denominator)
        .saturating_mul(numerator)
        .saturating_add((value % denominator).saturating_mul(numerator) / denominator)
}

#[cfg(test)]
mod tests {
    use std::string::ToString;
    use std::vec::Vec;

    use super::*;

    #[test]
    fn watermarks_equal_the_vectors() {
        let table = include_str!("../../tests/vectors/watermarks.csv");
        let rows: Vec<Vec<&str>> = table.lines().skip(1).map(|line| line.split(',').collect()).collect();
        assert!(rows.len() > 8);
        let number = |text: &str| text.parse::<u64>().unwrap();
        for row in &rows {
            let same_machine = rows.iter().filter(|other| other[0] == row[0]);
            let lowmem = same_machine.filter(|other| other[3] == "0").map(|other| number(other[2])).sum();
            let settings = WatermarkSettings {
                pages_min: number(row[4]) / 4,
                scale_factor: row[5].parse().unwrap(),
                lowmem,
            };
            let kind = if row[3] == "1" { ZoneKind::Movable } else { ZoneKind::Normal };
            let marks = settings.watermarks(WatermarkInputs { kind, managed: number(row[2]) });
            let ours = [marks.min, marks.low, marks.high].map(|mark| mark.to_string());
            assert_eq!(ours[..], row[6..9], "{row:?}");
        }
    }

    #[test]
    fn example_e18_default_min_free() {
        assert_eq!(default_min_free_kbytes(1024 * 1024), 4096);
        assert_eq!(default_min_free_kbytes(256 * 1024), 2048);
        assert_eq!(default_min_free_kbytes(16 * 1024 * 1024), 16_384);
        assert_eq!(default_min_free_kbytes(0), 128);
        assert_eq!(default_min_free_kbytes(u64::MAX), 262_144);
    }
}
