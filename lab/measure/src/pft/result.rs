//! The result of a page fault test.

use pageset_fault::{Census, Stats};

/// One repetition. All times are in seconds; CPU times are of all threads together.
#[derive(Clone, Copy, Debug, Default)]
pub struct Run {
    /// Time from the beginning until every thread has its region. In the time until then, threads are created
    /// and memory is mapped.
    pub start_s: f64,
    /// Time from the end of `start_s` until the last thread has touched its last page.
    pub touch_s: f64,
    /// Time from the end of `touch_s` until the last thread has ended.
    pub exit_s: f64,
    /// Time of the teardown: one thread gives all memory back, as the last thread of a process does.
    pub teardown_s: f64,
    /// CPU time in the program, of all threads together.
    pub user_s: f64,
    /// CPU time in the kernel, of all threads together.
    pub system_s: f64,
    /// CPU time of the touches alone.
    pub touch_cpu_s: f64,
    /// The time that the slowest thread takes to touch its pages, divided by the average time of all threads.
    pub imbalance: f64,
    /// Pages present at the end, computed from the requested size.
    pub pages_computed: u64,
    /// Pages present at the end, counted by the engine or kernel that handled the faults.
    pub pages_counted: u64,
    /// Pages present at the end that no thread has touched, because they were mapped ahead.
    pub pages_untouched: u64,
    /// The engine's counters; `None` without the engine.
    pub stats: Option<Stats>,
    /// The result of the check of invariants at the end; `None` without the engine.
    pub census: Option<Census>,
}

impl Run {
    /// Time of all phases together, as the program of 2005 measured it.
    pub fn wall_s(&self) -> f64 {
        self.start_s + self.touch_s + self.exit_s + self.teardown_s
    }

    /// CPU time of all phases.
    pub fn cpu_s(&self) -> f64 {
        self.user_s + self.system_s
    }

    /// Average number of busy CPUs over all phases.
    pub fn busy_cpus(&self) -> f64 {
        self.cpu_s() / self.wall_s()
    }

    /// Average time that a thread needs to touch a page.
    pub fn touch_ns_per_page(&self, threads: u32) -> f64 {
        self.touch_s * 1e9 * f64::from(threads) / self.pages_computed as f64
    }

    /// CPU time to touch one page. CPU time does not include sleep, or waits for a CPU that other programs
    /// use.
    pub fn touch_cpu_ns_per_page(&self) -> f64 {
        self.touch_cpu_s * 1e9 / self.pages_computed as f64
    }

    /// Pages that all threads together touch per second, from the first touch to the last.
    pub fn touch_pages_per_s(&self) -> f64 {
        self.pages_computed as f64 / self.touch_s
    }

    /// Pages given back per second, during the teardown.
    pub fn teardown_pages_per_s(&self) -> f64 {
        self.pages_computed as f64 / self.teardown_s
    }

    /// Touched pages per second of CPU time over all phases. The program of 2005 calls this number faults per
    /// second.
    pub fn faults_per_cpu_s(&self) -> f64 {
        self.pages_computed as f64 / self.cpu_s()
    }

    /// Touched pages per second of wall time over all phases. The program of 2005 calls this number faults
    /// per second.
    pub fn faults_per_wall_s(&self) -> f64 {
        self.pages_computed as f64 / self.wall_s()
    }
}

/// Several repetitions of a test with one strategy or one peer.
#[derive(Clone, Debug)]
pub struct Series {
    /// Name of the strategy or of the peer, such as "P1,V1,R1" or "kernel".
    pub name: String,
    /// The repetitions of the test.
    pub runs: Vec<Run>,
}

impl Series {
    /// Sums over all repetitions, as the program of 2005 adds them up.
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

/// Median and quartiles of a set of values.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Quartiles {
    pub first: f64,
    pub median: f64,
    pub third: f64,
}

impl Quartiles {
    /// Computes the quartiles. A quartile that lies between two values is interpolated.
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

    /// Distance from the first to the third quartile.
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
        // The values are the first row of the 64 GB table of 2005. The number of faults is 64 GiB / 16 KiB x
        // 3.
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
