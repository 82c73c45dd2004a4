//! A page cache under the load of YCSB's workload A: half of the operations read a record, half write one,
//! and a few records get most of them.

use std::time::Instant;

use super::EXHAUSTED;
use super::latency::Times;
use crate::effort::Effort;
use crate::memory;
use crate::shuffle::Random;
use crate::target::{Held as _, Line, PAGE, Target};
use crate::team;

/// The number of records without a page in the cache, for each record with one.
const MISSING: usize = 3;

/// Records, one page each. `held` has those in the cache, and `places` each record's place there.
struct Cache<'t, T: Target> {
    target: &'t T,
    cpu: usize,
    random: Random,
    most: usize,
    held: Vec<(usize, T::Block)>,
    places: Vec<u32>,
}

/// The place of a record that is not in the cache.
const NOWHERE: u32 = u32::MAX;

impl<T: Target> Cache<'_, T> {
    /// A read touches the record's page. A write puts a new page in its place, as a copy on write does. If
    /// the record has no page, a read or a write fills a new page.
    fn use_record(&mut self, record: usize, is_write: bool) {
        match self.places[record] {
            NOWHERE => {
                if self.held.len() == self.most {
                    self.evict();
                }
                let page = self.filled();
                self.places[record] = self.held.len() as u32;
                self.held.push((record, page));
            }
            place if is_write => {
                let page = self.filled();
                let before = std::mem::replace(&mut self.held[place as usize].1, page);
                self.target.free(self.cpu, before, 0);
            }
            place => self.held[place as usize].1.touch(0, Line::First),
        }
    }

    fn filled(&self) -> T::Block {
        let mut page = self.target.alloc(self.cpu, 0).expect(EXHAUSTED);
        page.fill();
        page
    }

    /// Frees the page of a random record.
    fn evict(&mut self) {
        let place = self.random.below(self.held.len());
        let (record, page) = self.held.swap_remove(place);
        self.target.free(self.cpu, page, 0);
        self.places[record] = NOWHERE;
        if let Some((moved, _)) = self.held.get(place) {
            self.places[*moved] = place as u32;
        }
    }
}

/// Nanoseconds for each operation; the 99.9th percentile of single operations; and MiB for each GiB of the
/// cache that are still resident a second after it has given up 90 % of its pages.
pub(super) fn run<T: Target>(target: &T, before: u64, effort: &Effort) -> Vec<f64> {
    let most = effort.burst / PAGE / 4;
    team::run(1, |member| {
        target.attach(member.cpu);
        let records = most * (1 + MISSING);
        let mut cache = Cache {
            target,
            cpu: member.cpu,
            random: Random::new(7 + effort.seed),
            most,
            held: Vec::with_capacity(most),
            places: vec![NOWHERE; records],
        };
        let popular = Popularity::new(records);
        let mut choose = Random::new(8 + effort.seed);
        let operations: Vec<_> =
            (0..effort.samples).map(|_| (popular.record(&mut choose), choose.below(2) == 0)).collect();
        // The first pass fills the cache and is not timed.
        operations.iter().for_each(|(record, is_write)| cache.use_record(*record, *is_write));
        let begin = Instant::now();
        operations.iter().for_each(|(record, is_write)| cache.use_record(*record, *is_write));
        let cost = begin.elapsed().as_nanos() as f64 / operations.len() as f64;
        let mut times = Times::with_capacity(operations.len());
        operations.iter().for_each(|(record, is_write)| times.note(|| cache.use_record(*record, *is_write)));
        let [slow] = times.at([0.999]);
        drop((operations, popular));
        while cache.held.len() > most / 10 {
            cache.evict();
        }
        std::thread::sleep(effort.waits[1].unwrap_or_default());
        let left = memory::anonymous().saturating_sub(before + 4 * records as u64);
        let resident = memory::mib_per_gib(left, most * PAGE);
        while !cache.held.is_empty() {
            cache.evict();
        }
        target.detach(member.cpu);
        vec![cost, slow, resident]
    })
    .swap_remove(0)
}

/// How often each record is used: Zipf's law with exponent 0.99, as in YCSB, over records in random order.
struct Popularity {
    /// For each rank, the sum of the weights up to it.
    sums: Vec<f64>,
    records: Vec<u32>,
}

impl Popularity {
    fn new(count: usize) -> Self {
        let mut sum = 0.0;
        let weights = (1..=count).map(|rank| (rank as f64).powf(-0.99));
        let sums = weights
            .map(|weight| {
                sum += weight;
                sum
            })
            .collect();
        let mut records: Vec<_> = (0..count as u32).collect();
        Random::new(9).shuffle(&mut records);
        Self { sums, records }
    }

    fn record(&self, random: &mut Random) -> usize {
        let all = self.sums.last().copied().unwrap_or(0.0);
        let at = random.below(1 << 53) as f64 / (1_u64 << 53) as f64 * all;
        self.records[self.sums.partition_point(|sum| *sum <= at).min(self.records.len() - 1)] as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_record_is_used_most_and_all_are_used() {
        let popular = Popularity::new(100);
        let mut random = Random::new(1);
        let mut uses = [0; 100];
        (0..100_000).for_each(|_| uses[popular.record(&mut random)] += 1);
        let first = uses[popular.records[0] as usize];
        assert_eq!(uses.iter().max(), Some(&first));
        assert!(first > 15_000 && uses.iter().all(|uses| *uses > 0), "{uses:?}");
    }
}
