//! The side of a measurement that starts children: rounds over all targets, each in a process of its own.

use std::os::unix::process::ExitStatusExt as _;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::Context as _;

use crate::child::Report;
use crate::effort::Effort;
use crate::row::Job;
use crate::target::{Side, TargetInfo};

/// Children that sleep at the same time.
const SLEEPERS: usize = 6;

/// The results of all rounds of one job for one target.
#[derive(Debug)]
pub(crate) struct Measured {
    /// The target.
    pub(crate) target: &'static TargetInfo,
    /// The values of each row of the job, one for each round.
    pub(crate) values: Vec<Vec<f64>>,
    /// The reason if there are no values, or if a round is missing.
    pub(crate) absent: Option<String>,
    /// The version that the running target names.
    pub(crate) version: Option<String>,
}

/// The results of one job.
#[derive(Debug)]
pub(crate) struct JobOutcome {
    /// The job.
    pub(crate) job: &'static Job,
    /// The results for each target, in the order of the list of targets.
    pub(crate) measured: Vec<Measured>,
}

/// Does all jobs, each in `rounds` rounds over all targets. Every round begins with a different target.
pub(crate) fn run(
    jobs: &[&'static Job],
    targets: &[&'static TargetInfo],
    effort: Effort,
    rounds: u32,
) -> anyhow::Result<Vec<JobOutcome>> {
    let program = std::env::current_exe().context("the program does not know where it is")?;
    let mut outcome = Vec::new();
    for job in jobs.iter().copied().filter(|job| !(effort.is_quick && job.is_long)) {
        let start = Instant::now();
        eprint!("{} ", job.name);
        let mut measured: Vec<_> = targets.iter().map(|target| Measured::new(target, job, &effort)).collect();
        for round in 0..job.rounds(rounds) as usize {
            let effort = Effort { seed: round as u64, ..effort };
            eprint!(".");
            let first = round % measured.len().max(1);
            measured.rotate_left(first);
            let together = if job.sleeps { SLEEPERS } else { 1 };
            for group in measured.chunks_mut(together) {
                run_group(&program, job, effort, group);
            }
            measured.rotate_right(first);
        }
        eprintln!(" {:.1} s", start.elapsed().as_secs_f64());
        outcome.push(JobOutcome { job, measured });
    }
    Ok(outcome)
}

/// Measures some targets at once. They start one after the other, so that their bursts do not overlap.
fn run_group(program: &std::path::Path, job: &Job, effort: Effort, group: &mut [Measured]) {
    let apart = if effort.is_quick { Duration::from_millis(60) } else { Duration::from_millis(700) };
    std::thread::scope(|scope| {
        for (index, measured) in group.iter_mut().filter(|measured| !measured.is_hopeless()).enumerate() {
            scope.spawn(move || {
                std::thread::sleep(apart * index as u32);
                measured.add(measure(program, job, measured.target, effort));
            });
        }
    });
}

/// Runs one child.
fn measure(program: &std::path::Path, job: &Job, target: &TargetInfo, effort: Effort) -> Report {
    let mut command = Command::new(program);
    command.args(["--child", job.name, target.name, "--seed", &effort.seed.to_string()]).stdin(Stdio::null());
    if effort.is_quick {
        command.arg("--quick");
    }
    match command.output() {
        Err(error) => absent(error.to_string()),
        Ok(output) if output.status.success() => {
            serde_json::from_slice(&output.stdout).unwrap_or_else(|error| absent(error.to_string()))
        }
        Ok(output) => {
            let how = match output.status.signal() {
                Some(libc::SIGALRM) => "took too long".to_owned(),
                Some(signal) => format!("died of signal {signal}"),
                None => "failed".to_owned(),
            };
            absent(format!("{how}: {}", told(&String::from_utf8_lossy(&output.stderr))))
        }
    }
}

fn absent(reason: String) -> Report {
    Report { absent: Some(reason), ..Report::default() }
}

/// The first line of an error text that tells the error. Lines before it may be empty, or name the thread.
fn told(text: &str) -> &str {
    let is_message =
        |line: &&str| !line.is_empty() && !line.starts_with("thread ") && !line.starts_with("note:");
    text.lines().map(str::trim).find(is_message).unwrap_or("without a word")
}

impl Measured {
    fn new(target: &'static TargetInfo, job: &Job, effort: &Effort) -> Self {
        let absent = match target.side {
            Side::Kernel => job.without_kernel(effort),
            Side::Floor => job.without_floor(),
            Side::Pageset | Side::Part | Side::Peer => None,
        };
        let absent = absent.map(str::to_owned);
        Self { target, values: vec![Vec::new(); job.rows.len()], absent, version: None }
    }

    /// Whether the target does not take part, or its first round failed. Further rounds would fail too.
    fn is_hopeless(&self) -> bool {
        self.absent.is_some() && self.values.iter().all(Vec::is_empty)
    }

    fn add(&mut self, report: Report) {
        for (values, value) in self.values.iter_mut().zip(report.values) {
            values.extend(value);
        }
        self.absent = self.absent.take().or(report.absent);
        self.version = self.version.take().or(report.version);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_message_of_a_panic_is_found() {
        let text = "\nthread 'main' (7) panicked at src/a.rs:1:1:\nthe target has a block\nnote: run with\n";
        assert_eq!(told(text), "the target has a block");
        assert_eq!(told(""), "without a word");
    }

    #[test]
    fn a_round_that_fails_keeps_the_others() {
        let (job, target) = (&crate::row::JOBS[0], &crate::target::TARGETS[0]);
        let mut measured = Measured::new(target, job, &Effort::QUICK);
        measured.add(Report { values: vec![Some(2.0)], ..Report::default() });
        measured.add(absent("died of signal 11: without a word".to_owned()));
        assert!(!measured.is_hopeless());
        assert_eq!(measured.values, [[2.0]]);
        assert!(measured.absent.is_some());
    }
}
