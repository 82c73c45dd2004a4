//! Computes the time of a kernel build from the figures of a simulated build.
//!
//! In the simulated build, all CPUs compile all the time. A real build also has steps that run on one CPU at
//! a time, such as linking, extracting symbols and compressing. The steps on one CPU never wait for locks. So
//! a better allocator shortens compiling by a larger percentage than the whole build.

use pageset_study::simulate::{RunResult, RunSpec};

/// The part of a build's CPU time during which only one CPU works. 0.011 is the median of five published
/// builds of Linux (0.7, 1.0, 1.1, 1.6 and 2.0 %). The part of a build's CPU time during which only one CPU
/// works is `(elapsed x CPUs - CPU time) / (CPUs - 1) / CPU time`, if all other work runs on all CPUs:
///
/// | CPUs | elapsed, s | CPU time, s | published at |
/// |---|---|---|---|
/// | 8, Xeon W3520 | 178.25 | 1362.9 | `gist.github.com/rn/45606e8963d52cb60e04f5bde6a9917a` |
/// | 48, 2 x Xeon E5-2650 v4 | 63.4 | 2082.5 | the same |
/// | 24, Ryzen 3900X | 93.5 | 1788.0 | `gist.github.com/mcgrof/94dbf0185f0d69f7879639939e795806` |
/// | 16, AMD | 98.12 | 1269.7 | `perf.mvermeulen.com/workloads/phoronix/build-linux-kernel` |
/// | 8, Intel | 160.12 | 1120.3 | the same |
///
/// If a published build waited for a disk, the formula counts the waiting as work of one CPU.
const SERIAL_SHARE: f64 = 0.011;

/// The workload's parameter for the number of builds that share the CPUs.
const BUILDS: &str = "cgroups";

/// Returns the time of a build divided by the number of pages that it allocates, in milliseconds. Several
/// builds of one run share the CPUs evenly. The unit of work is a page and not a process, because only few
/// large compiler processes end in a short run.
pub(super) fn build_time(run: &RunSpec, result: &RunResult) -> f64 {
    let builds = run.settings.get(BUILDS).copied().unwrap_or(1);
    let busy = result.busy_ms / result.allocated_pages as f64;
    let waits_percent = result.zone_wait_percent + result.lru_wait_percent + result.mmap_wait_percent;
    // In the serial part of a build, only one CPU works, so this CPU does not wait for locks.
    let serial = SERIAL_SHARE * busy * (1.0 - waits_percent / 100.0);
    serial + (busy - serial) * builds as f64 / f64::from(result.workers)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the time of a build on `workers` CPUs, if `builds` builds share the CPUs and CPUs wait for
    /// zone locks for `zone_wait_percent` of their busy time.
    fn time(builds: u64, workers: u32, zone_wait_percent: f64) -> f64 {
        let mut run = RunSpec::new("epyc-2", "kbuild", "linux-6.6");
        if builds > 1 {
            run.settings.insert(BUILDS.to_owned(), builds);
        }
        let result = RunResult {
            workers,
            zone_wait_percent,
            busy_ms: 1000.0,
            allocated_pages: 1000,
            ..RunResult::default()
        };
        build_time(&run, &result)
    }

    #[test]
    fn the_serial_share_is_the_median_of_what_was_published() {
        let builds = [
            (8.0, 178.25, 1362.9),
            (48.0, 63.4, 2082.5),
            (24.0, 93.5, 1788.0),
            (16.0, 98.12, 1269.7),
            (8.0, 160.12, 1120.3),
        ];
        let share = |(cpus, elapsed, busy): (f64, f64, f64)| (elapsed * cpus - busy) / (cpus - 1.0) / busy;
        let mut shares = builds.map(share);
        shares.sort_by(f64::total_cmp);
        assert!((shares[2] - SERIAL_SHARE).abs() < 0.0005, "{shares:?}");
    }

    #[test]
    fn one_cpu_does_all_and_many_wait_for_the_serial_part() {
        assert!((time(1, 1, 0.0) - 1.0).abs() < 1e-9);
        let many = time(1, 1_000_000, 0.0);
        assert!((many - SERIAL_SHARE).abs() < 1e-5, "{many}");
        // The CPUs wait for locks during half of their busy time. The serial part of the build does not wait
        // for locks.
        let half = time(1, 1_000_000, 50.0);
        assert!((half - SERIAL_SHARE / 2.0).abs() < 1e-5, "{half}");
    }

    #[test]
    fn builds_that_share_the_cpus_have_as_many_fewer() {
        assert!((time(8, 224, 10.0) - time(1, 28, 10.0)).abs() < 1e-12);
    }
}
