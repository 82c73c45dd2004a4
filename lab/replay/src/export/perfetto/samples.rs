//! Compares samples of page sets with page counts that were computed from events, and corrects the counts.
//!
//! A sample shows the number of pages in a page set at an unknown moment between two times. A count from
//! events can be wrong. For example, a free past a busy page set looks like a free into that page set. A
//! count is corrected if the sampled number is smaller or larger than every value of the count between the
//! two times.

use std::collections::BTreeMap;

use pageset_trace::{Sample, TraceInfo, ZoneSample};

/// How well page counts that were computed from events agree with samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SampledSets {
    /// Number of comparisons: one for each page set in each sample, if the page set had a count before the
    /// sample.
    pub taken: u64,
    /// Number of comparisons with an error: the sampled number is smaller or larger than every value of the
    /// computed count during the sample.
    pub off: u64,
    /// Sum of the errors of all comparisons, in pages.
    pub off_pages: u64,
}

/// The samples of each CPU, in reverse order, so that the next sample is the last entry.
pub(super) struct Samples {
    waiting: BTreeMap<u32, Vec<Sample>>,
    /// For each CPU with a sample that has begun, the page sets of the CPU by zone. For each page set, the
    /// smallest and the largest number of pages since the sample began.
    begun: BTreeMap<u32, Vec<(usize, i64, i64)>>,
}

/// A finished sample, and for each zone the smallest and the largest number of pages in the page set during
/// the sample.
pub(super) type Finished = (Sample, Vec<(usize, i64, i64)>);

impl Samples {
    pub(super) fn new(info: &TraceInfo) -> Self {
        let mut waiting: BTreeMap<u32, Vec<Sample>> = BTreeMap::new();
        for sample in &info.samples {
            waiting.entry(sample.cpu).or_default().push(sample.clone());
        }
        for samples in waiting.values_mut() {
            samples.sort_by_key(|sample| std::cmp::Reverse(sample.t0_ns));
        }
        Self { waiting, begun: BTreeMap::new() }
    }

    /// Whether a sample of the CPU begins or ends by `now_ns`.
    #[inline]
    pub(super) fn is_due(&self, cpu: u32, now_ns: u64) -> bool {
        let next = self.waiting.get(&cpu).and_then(|samples| samples.last());
        next.is_some_and(|next| next.t0_ns <= now_ns)
    }

    /// Returns a sample of the CPU that has ended by `now_ns`. `counts` has the page counts of the CPU's page
    /// sets, by zone.
    pub(super) fn take(
        &mut self,
        cpu: u32,
        now_ns: u64,
        counts: impl FnOnce() -> Vec<(usize, i64)>,
    ) -> Option<Finished> {
        let samples = self.waiting.get_mut(&cpu)?;
        let next = samples.last().filter(|next| next.t0_ns <= now_ns)?;
        let is_over = next.t1_ns <= now_ns;
        let begun = self
            .begun
            .entry(cpu)
            .or_insert_with(|| counts().into_iter().map(|(zone, count)| (zone, count, count)).collect());
        if !is_over {
            return None;
        }
        let ranges = std::mem::take(begun);
        self.begun.remove(&cpu);
        Some((samples.pop()?, ranges))
    }

    /// Records the new number of pages in a page set.
    #[inline]
    pub(super) fn note(&mut self, cpu: u32, zone: usize, count: i64) {
        let Some(begun) = self.begun.get_mut(&cpu) else { return };
        match begun.iter_mut().find(|(other, ..)| *other == zone) {
            Some((_, least, most)) => (*least, *most) = (count.min(*least), count.max(*most)),
            None => begun.push((zone, count, count)),
        }
    }

    /// Returns the CPUs with samples.
    pub(super) fn cpus(&self) -> Vec<u32> {
        self.waiting.keys().copied().collect()
    }
}

impl SampledSets {
    /// Records a comparison. According to events, the page set has `before` pages. After the correction, the
    /// page set has `after` pages.
    pub(super) fn note(&mut self, before: Option<i64>, after: i64) {
        let Some(before) = before else { return };
        self.taken += 1;
        self.off += u64::from(before != after);
        self.off_pages += before.abs_diff(after);
    }
}

/// Returns the number of pages in a page set after a sample. If the sampled number lies in `range`, `count`
/// is right and stays. If the sampled number lies outside `range`, `count` changes by the distance from the
/// nearer end of `range` to the sampled number.
pub(super) fn corrected(count: Option<i64>, range: Option<(i64, i64)>, sampled: &ZoneSample) -> i64 {
    let sampled = i64::from(sampled.count);
    match count.zip(range) {
        Some((count, (least, most))) => (count + sampled - sampled.clamp(least, most)).max(0),
        None => sampled,
    }
}

#[cfg(test)]
mod tests {
    use pageset_core::ZoneKind;

    use super::*;

    fn zone(count: u32) -> ZoneSample {
        ZoneSample {
            node: 0,
            kind: ZoneKind::Normal,
            free: 9,
            count,
            high: 7,
            batch: 1,
            high_min: None,
            high_max: None,
        }
    }

    #[test]
    fn a_count_is_right_if_it_was_the_sampled_one_meanwhile() {
        assert_eq!(corrected(Some(20), Some((10, 20)), &zone(12)), 20);
        assert_eq!(corrected(Some(20), Some((10, 20)), &zone(25)), 25);
        assert_eq!(corrected(Some(20), Some((10, 20)), &zone(7)), 17);
        assert_eq!(corrected(None, None, &zone(7)), 7);
    }

    #[test]
    fn a_sample_is_taken_when_it_is_over() {
        let sample = Sample { t0_ns: 10, t1_ns: 20, cpu: 1, zones: vec![zone(5)] };
        let mut samples = Samples::new(&TraceInfo { samples: vec![sample], ..TraceInfo::default() });
        assert!(!samples.is_due(1, 9) && samples.is_due(1, 10) && !samples.is_due(0, 99));
        assert!(samples.take(1, 10, || vec![(0, 3)]).is_none(), "it begins");
        samples.note(1, 0, 6);
        let (_, ranges) = samples.take(1, 25, || panic!("it began")).unwrap();
        assert_eq!(ranges, [(0, 3, 6)]);
        assert!(!samples.is_due(1, 99));
    }
}
