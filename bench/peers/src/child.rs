//! The child of a measurement: a process that does one job with one target.

use anyhow::{Context as _, bail};
use serde::{Deserialize, Serialize};

use crate::effort::Effort;
use crate::memory;
use crate::row::{self, JOBS, Job};
use crate::target::{self, Target, Visit};

/// The kernel ends a child that takes longer.
const SECONDS_MAX: u32 = 20;

/// One measurement.
#[derive(Debug)]
pub(crate) struct Order {
    job: &'static Job,
    target: String,
    effort: Effort,
}

/// The output of a child. It is printed as one line of JSON.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Report {
    /// One value for each row of the job, if the target can do the job. A value is null if it was not
    /// measured.
    pub(crate) values: Vec<Option<f64>>,
    /// The reason if the target cannot do the job.
    pub(crate) absent: Option<String>,
    /// Version of the target, if only the running process knows it.
    pub(crate) version: Option<String>,
}

impl Order {
    /// A measurement by the names of job and target.
    pub(crate) fn new(job: &str, target: &str, effort: Effort) -> anyhow::Result<Self> {
        let job = JOBS.iter().find(|known| known.name == job).with_context(|| format!("no job `{job}`"))?;
        Ok(Self { job, target: target.to_owned(), effort })
    }
}

impl Visit for &Order {
    type Output = Report;

    fn visit<T: Target>(self) -> Report {
        let before = memory::anonymous();
        let open = if self.job.pins() { T::open_pinned } else { T::open };
        let run = |target| row::run(&target, self.job, before, &self.effort);
        match open(self.job.pages(&self.effort)).and_then(run) {
            Err(reason) => Report { absent: Some(reason), ..Report::default() },
            Ok(values) => {
                let values = values.into_iter().map(|value| value.is_finite().then_some(value)).collect();
                Report { values, absent: None, version: T::version() }
            }
        }
    }
}

/// Does the work and prints the report.
pub(crate) fn run(order: &Order) -> anyhow::Result<()> {
    // SAFETY: the call only sets a timer, and no handler is installed.
    unsafe { libc::alarm(SECONDS_MAX) };
    let Some(report) = target::visit(&order.target, order) else { bail!("no allocator `{}`", order.target) };
    println!("{}", serde_json::to_string(&report).context("a report is plain values")?);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(job: &Job, name: &str) {
        let order = Order::new(job.name, name, Effort::TINY).expect("the job exists");
        let report = target::visit(name, &order).expect("the target exists");
        if let Some(reason) = &report.absent {
            let may_be_absent = job.pins() && reason.starts_with(row::NOT_HERE);
            assert!(may_be_absent && report.values.is_empty(), "{}: {report:?}", job.name);
            return;
        }
        assert_eq!(report.values.len(), job.rows.len(), "{}", job.name);
        assert!(report.values.iter().flatten().all(|value| *value >= 0.0), "{}: {report:?}", job.name);
    }

    #[test]
    fn every_job_runs_on_glibc() {
        JOBS.iter().filter(|job| !job.is_long).for_each(|job| check(job, "glibc"));
    }

    #[test]
    fn a_ring_takes_the_memory_of_every_target_that_has_some() {
        for job in JOBS.iter().filter(|job| job.pins()) {
            for name in [
                "pageset",
                "pageset-blocks",
                "pageset-blocks-arrays",
                "pageset-core",
                "buddy-alloc",
                "buddy_system_allocator",
                "free-list",
            ] {
                check(job, name);
            }
        }
    }

    #[test]
    fn a_report_survives_the_pipe() {
        let report = Report { values: vec![Some(1.5), None], absent: None, version: Some("2".to_owned()) };
        let text = serde_json::to_string(&report).expect("plain values");
        let back: Report = serde_json::from_str(&text).expect("what was written");
        assert_eq!((back.values, back.version), (report.values, report.version));
    }
}
