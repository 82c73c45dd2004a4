//! The result of a page fault test.

use pageset_fault::{Census, Stats};

/// One repetition. All times are in seconds; CPU times are of all threads together.
#[derive(Clone, Copy, Debug, Default)]
pub struct Run {
    /// From the beginning until every thread had its region: thread creation and mapping.
    pub start_s: f64,
    /// From then until the last thread had touched its last page.
    pub touch_s: f64,
    /// From then until the last thread was gone.
    pub exit_s: f64,
    /// Giving everything back, by one thread, as the last thread of a process does it.
    pub teardown_s: f64,
    /// CPU time in the program.
    pub user_s: f64,
    /// CPU time in the kernel.
    pub system_s: f64,
    /// CPU time of the touching alone.
    pub touch_cpu_s: f64,
    /// Time of the slowest thread's touching as a multiple of the average thread's.
    pub imbalance: f64,
    /// Pages there in the end, from the size that was asked for.
    pub pages_computed: u64,
    /// The same, counted by the engine or kernel that handled the faults.
    pub pages_counted: u64,
    /// Pages mapped in the end that no thread touched: the price of mapping ahead.
    pub pages_untouched: u64,
    /// The engine's counters; `None` without the engine.
    pub stats: Option<Stats>,
    /// The result of the check of invariants at the end; `None` without the engine.
    pub census: Option<Census>,
}

impl Run {
    /// Everything, as the original timed it.
    pub fn wall_s(&self) -> f64 {
        self.start_s + self.touch_s + self.exit_s + self.teardown_s
    }

    /// CPU time of everything.
    pub fn cpu_s(&self) -> f64 {
        self.user_s + self.system_s
    }

    /// CPUs that were busy on average, over everything.
    pub fn busy_cpus(&self) -> f64 {
        self.cpu_s() / self.wall_s()
    }

    /// Time that one thread needs for one page.
    pub fn touch_ns_per_page(&self, threads: u32) -> f64 {
        self.touch_s * 1e9 * f64::from(threads) / self.pages_computed as f64
    }

    /// CPU time of touching one page. Time asleep, or waiting for a CPU that other programs use, is not in
    /// it.
    pub fn touch_cpu_ns_per_page(&self) -> f64 {
        self.touch_cpu_s * 1e9 / self.pages_computed as f64
    }

    /// Pages touched per second of the touching alone.
    pub fn touch_pages_per_s(&self) -> f64 {
        self.pages_computed as f64 / self.touch_s
    }

    /// Pages given back per second of the teardown.
    pub fn teardown_pages_per_s(&self) -> f64 {
        self.pages_computed as f64 / self.teardown_s
    }

    /// As the original computes it, with the time of everything.
    pub fn faults_per_cpu_s(&self) -> f64 {
        self.pages_computed as f64 / self.cpu_s()
    }

    /// As the original computes it, with the time of everything.
    pub fn faults_per_wall_s(&self) -> f64 {
        self.pages_computed as f64 / self.wall_s()
    }
}

/// Several repetitions of one test by one contestant.
#[derive(Clone, Debug)]
pub struct Series {
    /// "P1,V1,R1", "kernel", …
    pub name: String,
    /// Its repetitions.
    pub runs: Vec<Run>,
}

impl Series {
    /// All repetitions as one, as the original adds them up.
    pub fn total(&self) -> Run {
        let mut total = Run::default();
        for run in &self.runs {
            total.start_s += run.start_s;
            total.touch_s += run.touch_s;
            total.exit_s += run.exit_s;
            total.teardown_s += run.teardown_s;
            total.user_s += run.user_s;
            total.system_s += run.system_s;
            total.touch_cpu_s += run.touch_cpu_s;
            total.pages_computed += run.pages_computed;
            total.pages_counted += run.pages_counted;
            total.pages_untouched += run.pages_untouched;
        }
        total
    }

    /// Quartiles of one figure over all repetitions.
    pub fn quartiles(&self, figure: impl Fn(&Run) -> f64) -> Quartiles {
        Quartiles::of(self.runs.iter().map(figure).collect())
    }
}

/// The middle of a set of values, and the middle half of them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Quartiles {
    pub first: f64,
    pub median: f64,
    pub third: f64,
}

impl Quartiles {
    /// Quartiles between values are in proportion.
    fn of(mut values: Vec<f64>) -> Self {
        values.sort_by(f64::total_cmp);
        let at = |share: f64| {
            let place = share * values.len().saturating_sub(1) as f64;
            let (below, above) = (place.floor() as usize, place.ceil() as usize);
            match (values.get(below), values.get(above)) {
                (Some(low), Some(high)) => low + (high - low) * place.fract(),
                _ => 0.0,
            }
        };
        Self { first: at(0.25), median: at(0.5), third: at(0.75) }
    }

    /// Length of the middle half.
    pub fn range(&self) -> f64 {
        self.third - self.first
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quartiles_are_in_proportion() {
        let quartiles = Quartiles::of(vec![4.0, 1.0, 3.0, 2.0]);
        assert_eq!((quartiles.first, quartiles.median, quartiles.third), (1.75, 2.5, 3.25));
        assert_eq!(quartiles.range(), 1.5);
        assert_eq!(Quartiles::of(vec![]), Quartiles::default());
    }

    #[test]
    fn derived_columns_are_the_originals() {
        // The first row of the 64 GB table: F = 64 GiB / 16 KiB x 3.
        let run = Run {
            touch_s: 222.40,
            user_s: 2.58,
            system_s: 219.51,
            pages_computed: 12_582_912,
            ..Run::default()
        };
        assert!((run.faults_per_cpu_s() / 56655.284 - 1.0).abs() < 1e-4);
        assert!((run.faults_per_wall_s() / 56576.495 - 1.0).abs() < 1e-4);
    }
}
