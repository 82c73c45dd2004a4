//! Tests the specification's predictions T1 to T5 (spec fault.md §1.8), which were written before any
//! measurement.

use anyhow::Result;
use pageset_fault::Strategy;
use pageset_measure::pft::Run;

use super::runs::{Key, Runs, Sharing};

/// Returns the numbers of threads in the tests of the predictions.
fn counts(is_quick: bool) -> &'static [u32] {
    if is_quick { &[4, 64] } else { &[4, 64, 512] }
}

/// Number of pages of each thread. The pages fit into the memory of the thread's node.
const THREAD_PAGES: u64 = 256;

fn strategy(name: &str) -> Strategy {
    name.parse().expect("these names are strategies")
}

fn key(name: &str, threads: u32, sharing: Sharing) -> Key {
    Key { sharing, ..Key::new(strategy(name), threads, THREAD_PAGES) }
}

const T1: [&str; 2] = ["P1,V1,R1", "P2,V1,R1"];
const T2: [&str; 3] = ["P1,V7,R3", "P2,V7,R3", "P3,V7,R3"];
const T3: [&str; 2] = ["P1,V1,R4", "P1,V2,R4"];
const T4: [&str; 6] = ["P2,V7,R1", "P2,V7,R1b", "P2,V7,R1p", "P2,V7,R2", "P2,V7,R3", "P2,V7,R4"];
const T5: [&str; 2] = ["P1,V1,R1", "P2,V7,R3"];

/// Returns the simulations that the tests need.
pub(super) fn keys(is_quick: bool) -> Vec<Key> {
    let mut keys = Vec::new();
    for &threads in counts(is_quick) {
        let mut add =
            |names: &[&str], sharing| keys.extend(names.iter().map(|name| key(name, threads, sharing)));
        add(&T1, Sharing::Apart);
        add(&T2, Sharing::Apart);
        add(&T2, Sharing::Interleaved);
        add(&T3, Sharing::Apart);
        add(&T3, Sharing::Sliced);
        add(&T4, Sharing::Apart);
        add(&T5, Sharing::Apart);
    }
    keys
}

/// Returns a sentence for each prediction that says whether the prediction came true.
pub(super) fn sentences(runs: &Runs, is_quick: bool) -> Result<Vec<String>> {
    let look = Look { runs, most: counts(is_quick).last().copied().unwrap_or(1) };
    Ok(vec![look.t1(counts(is_quick))?, look.t2()?, look.t3()?, look.t4()?, look.t5()?])
}

struct Look<'a> {
    runs: &'a Runs,
    /// The largest number of threads.
    most: u32,
}

/// Returns the beginning of a sentence: the name of a prediction, and whether the prediction came true.
fn verdict(name: &str, is_so: bool) -> String {
    format!("{name} is {}:", if is_so { "confirmed" } else { "refuted" })
}

impl Look<'_> {
    /// Returns the number of pages touched per second.
    fn rate(&self, name: &str, threads: u32, sharing: Sharing) -> Result<f64> {
        Ok(self.runs.get(&key(name, threads, sharing))?.touch_pages_per_s())
    }

    fn t1(&self, counts: &[u32]) -> Result<String> {
        let mut most: f64 = 0.0;
        for &threads in counts {
            let [locks, atomics] = T1.map(|name| self.rate(name, threads, Sharing::Apart));
            most = most.max((locks? / atomics? - 1.0).abs());
        }
        let verdict = verdict(
            "T1 (with memory of its own for each thread, a lock per table is as fast as compare-exchange)",
            most < 0.05,
        );
        Ok(format!(
            "{verdict} the two rates differ by at most {:.1} % up to {} threads; in the published text by \
             2.1 %.",
            most * 100.0,
            self.most
        ))
    }

    fn t2(&self) -> Result<String> {
        let loss = |name| {
            let apart = self.rate(name, self.most, Sharing::Apart)?;
            anyhow::Ok(apart / self.rate(name, self.most, Sharing::Interleaved)?)
        };
        let [p1, p2, p3] = T2.map(loss);
        let (p1, p2, p3) = (p1?, p2?, p3?);
        let verdict = verdict(
            "T2 (interleaved pages make P1 slower than P2, and limit P3)",
            p1 > 1.5 * p2 && p3 > 1.5 * p2,
        );
        Ok(format!(
            "{verdict} at {} threads, with V7 and R3, interleaving makes P1 {p1:.1}, P2 {p2:.1} and P3 {p3:.1} times \
             slower.",
            self.most
        ))
    }

    fn t3(&self) -> Result<String> {
        let gain = |sharing| {
            let [mmap_sem, per_area] = T3.map(|name| self.rate(name, self.most, sharing));
            anyhow::Ok(per_area? / mmap_sem?)
        };
        let (one, own) = (gain(Sharing::Sliced)?, gain(Sharing::Apart)?);
        let verdict =
            verdict("T3 (a lock per area does not help a test with one area)", (one - 1.0).abs() < 0.1);
        Ok(format!(
            "{verdict} at {} threads, V2 is {one:.2} times as fast as V1 if all threads share one area, \
             and {own:.1} times as fast if each thread has an area.",
            self.most
        ))
    }

    fn t4(&self) -> Result<String> {
        let rates: Vec<_> =
            T4.iter().map(|name| self.rate(name, self.most, Sharing::Apart)).collect::<Result<_>>()?;
        let best = rates.iter().copied().fold(0.0, f64::max);
        let least = rates.iter().copied().fold(f64::INFINITY, f64::min);
        let each = T4.iter().zip(&rates).map(|(name, rate)| {
            format!("{} {:.0} %", name.rsplit(',').next().unwrap_or(name), rate / best * 100.0)
        });
        let verdict =
            verdict("T4 (with V7, only the counters make a visible difference)", best > 1.5 * least);
        Ok(format!(
            "{verdict} rates at {} threads, in percent of the best: {}.",
            self.most,
            each.collect::<Vec<_>>().join(", ")
        ))
    }

    fn t5(&self) -> Result<String> {
        let [old, new] = T5.map(|name| self.runs.get(&key(name, self.most, Sharing::Apart)));
        let (old, new) = (old?, new?);
        let touch = new.touch_pages_per_s() / old.touch_pages_per_s();
        // The rate leaves out the time to start the threads, because creating a thread takes longer than
        // touching the few pages of a thread in these runs.
        let rate = |run: &Run| run.pages_computed as f64 / (run.wall_s() - run.start_s);
        let wall = rate(new) / rate(old);
        let of_teardown = rate(new) / new.teardown_pages_per_s();
        let verdict = verdict("T5 (the time of teardown hides differences in wall time)", of_teardown > 0.75);
        Ok(format!(
            "{verdict} at {} threads P2,V7,R3 touches {touch:.1} times as fast as P1,V1,R1 and has {wall:.1} times its \
             fault/wsec (start left out), which is {:.0} % of the {:.2} million pages a second that one thread tears down.",
            self.most,
            of_teardown * 100.0,
            new.teardown_pages_per_s() / 1e6
        ))
    }
}
