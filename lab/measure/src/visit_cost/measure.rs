//! Runs the fault loop under a small and a large limit of page sets, alternately. The cost of a visit is the
//! difference of the times, divided by the difference of the numbers of visits.

use std::thread;
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow, bail};
use pageset_report::Progress;
use pageset_trace::{CostRange, Decision, Decisions, TraceReader, VisitCost};

use super::fault_loop::FaultLoop;
use super::store::date;
use crate::host::{self, Settings};

/// The setting that differs between the two runs of a pair.
const SETTING: &str = "vm.percpu_pagelist_high_fraction";
/// The value of the setting that makes page sets as small as possible. The kernel's smallest limit is four
/// batches.
const SMALL: u32 = 100_000;
/// The value of the setting that makes page sets as large as possible.
const LARGE: u32 = 8;
/// Number of pairs of runs. The range of the cost goes from the smallest to the largest difference within a
/// pair.
const ROUNDS: u32 = 7;
/// Number of parts of each run. The parts of the two runs of a pair alternate, so that other work on the
/// machine affects both runs.
const PARTS: u32 = 8;
/// Number of passes in a part. The passes of a part together take less than 0.1 s.
const PASSES: u32 = 8;
/// Number of passes of the run that counts visits.
const PASSES_COUNTED: u32 = 8;
/// Under the small limit, a pass must make at least this many visits more than under the large limit. A
/// smaller difference in visits is too small to divide by.
const VISITS_MIN: f64 = 20.0;

/// The settings and the recorder that the caller provides.
#[expect(missing_debug_implementations, reason = "a closure has no Debug")]
pub struct Measuring<'a> {
    /// The kernel's settings.
    pub settings: &'a Settings,
    /// Name of this command. If another process finds the settings changed, the other process prints this
    /// name.
    pub command: &'a str,
    /// Records this machine while the given work runs.
    pub record: &'a mut dyn FnMut(Work) -> Result<Box<dyn TraceReader>>,
}

/// Work that runs on a thread of its own, while a recorder records.
pub type Work = Box<dyn FnOnce() -> Result<()> + Send>;

/// Average number of visits in a pass, and of pages that these visits moved.
#[derive(Clone, Copy, Debug)]
struct Visits {
    visits: f64,
    pages: f64,
}

/// Measures the cost of a visit on this machine. Puts the settings back before it returns.
///
/// # Errors
/// An error if the setting cannot be changed, the machine cannot be recorded, the setting makes no
/// difference, other work hides the cost, or `progress` cancels.
pub fn measure(measuring: Measuring<'_>, progress: &mut dyn Progress) -> Result<VisitCost> {
    let Measuring { settings, command, record } = measuring;
    settings.check(&assignment(SMALL))?;
    let under = |fraction: u32| -> Result<_> {
        // Only one change is made at a time, so the value that is put back is always the original value.
        let mut changes = settings.begin(command)?;
        changes.set(&assignment(fraction))?;
        Ok(changes)
    };
    let time = |fraction: u32, passes: &mut Vec<Duration>| -> Result<()> {
        let _changes = under(fraction)?;
        passes.extend(on_thread(|| FaultLoop::new().run(PASSES))?);
        Ok(())
    };
    progress.begin("measuring visits", "rounds", Some(u64::from(ROUNDS)));
    progress.update(0)?;
    let mut differences_ns = Vec::new();
    for round in 0..ROUNDS {
        let (mut small, mut large) = (Vec::new(), Vec::new());
        for part in 0..PARTS {
            if (round + part) % 2 == 0 {
                time(SMALL, &mut small)?;
                time(LARGE, &mut large)?;
            } else {
                time(LARGE, &mut large)?;
                time(SMALL, &mut small)?;
            }
            progress.update(u64::from(round))?;
        }
        differences_ns.push(median_ns(small) - median_ns(large));
        progress.update(u64::from(round) + 1)?;
    }
    let mut count = |fraction: u32| -> Result<Visits> {
        let _changes = under(fraction)?;
        count(record)
    };
    let (small, large) = (count(SMALL)?, count(LARGE)?);
    let (visits, pages) = (small.visits - large.visits, small.pages - large.pages);
    if visits < VISITS_MIN || pages < VISITS_MIN {
        bail!(
            "{SETTING}={SMALL} and {LARGE} differ by {visits:.0} visits in a pass of the fault loop: too few to say what one \
             costs; try again when the machine does less"
        );
    }
    let range = |by: f64| CostRange::of(&mut differences_ns.iter().map(|ns| ns / by).collect::<Vec<_>>());
    let (visit_ns, page_ns) = range(visits).zip(range(pages)).context("there were rounds")?;
    let cost = VisitCost {
        visit_ns,
        page_ns,
        pages_per_visit: pages / visits,
        rounds: ROUNDS,
        cpu: host::cpu_model().context("/proc/cpuinfo does not name this CPU")?,
        kernel: host::kernel().context("the kernel does not name its release")?,
        date: date(),
    };
    if !cost.is_sound() {
        bail!(
            "a visit took {:.0} ns ({:.0} to {:.0}): other work hides it; try again when the machine does less",
            visit_ns.median,
            visit_ns.min,
            visit_ns.max
        );
    }
    Ok(cost)
}

/// Time of the median pass. Passes that other work has disturbed hardly affect the median.
fn median_ns(mut passes: Vec<Duration>) -> f64 {
    passes.sort();
    passes.get(passes.len() / 2).map_or(0.0, |pass| pass.as_secs_f64() * 1e9)
}

fn assignment(fraction: u32) -> String {
    format!("{SETTING}={fraction}")
}

/// Runs the work on another thread. The work binds its thread to a CPU, and the caller's thread must not be
/// bound.
fn on_thread<T: Send>(work: impl FnOnce() -> Result<T> + Send) -> Result<T> {
    thread::scope(|scope| scope.spawn(work).join()).map_err(|_| anyhow!("the fault loop panicked"))?
}

/// Counts the visits that the loop's own thread makes in a pass. The count needs a recording, but a recording
/// would change the times. Therefore the run that counts is separate from the timed runs.
fn count(record: &mut dyn FnMut(Work) -> Result<Box<dyn TraceReader>>) -> Result<Visits> {
    let (sender, receiver) = std::sync::mpsc::channel();
    let mut reader = record(Box::new(move || {
        FaultLoop::new().run(PASSES_COUNTED)?;
        let thread = rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs();
        sender.send(thread).context("nobody asks for the thread")
    }))?;
    let thread = receiver.recv().context("the fault loop did not run")?;
    let passes = f64::from(PASSES_COUNTED + super::fault_loop::PASSES_WARM);
    let (mut events, mut decisions) = (Vec::new(), Decisions::default());
    let mut made: Vec<Decision> = Vec::new();
    while reader.read_block(&mut events)? > 0 {
        let its = events.iter().filter(|event| event.pid == thread);
        made.extend(its.filter_map(|event| decisions.record(event)));
    }
    if reader.lost().missing() > 0 {
        bail!("events were lost while visits were counted; try again when the machine does less");
    }
    made.extend(decisions.finish().map(|(_, decision)| decision));
    let pages: u64 = made.iter().map(|decision| decision.pages).sum();
    Ok(Visits { visits: made.len() as f64 / passes, pages: pages as f64 / passes })
}
