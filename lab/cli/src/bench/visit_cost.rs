//! Measures the cost of a visit to a zone on this machine, and saves the cost for later recordings. The
//! measurement needs root.

use std::fs::File;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread;

use anyhow::{Result, anyhow};
use pageset_measure::host::Settings;
use pageset_measure::visit_cost::{self, Measuring, Work};
use pageset_record::{Going, Options, Session};
use pageset_report::Cancelled;
use pageset_trace::{CostRange, TraceReader, VisitCost};

use crate::invocation::Invocation;
use crate::left;
use crate::options::SourceArgs;
use crate::output::say;
use crate::progress::Progress;
use crate::signals::Signals;
use crate::source::Source;

/// Measures the cost of a visit to a zone, and saves the cost for later recordings.
pub(super) fn run(invocation: &Invocation) -> Result<()> {
    let settings = Settings::of_this_machine();
    settings.check("vm.percpu_pagelist_high_fraction=8")?;
    left::offer(&settings)?;
    let signals = Signals::watch()?;
    say(
        "The measurement takes about a minute of page faults, under two values of vm.percpu_pagelist_high_fraction in turn. The old value is put back at the end.",
    );
    let measured = measured(&settings, &invocation.provenance().command, &signals);
    // `measured` has restored the settings, so a signal may end the process now.
    signals.pass_on()?;
    let cost = measured?;
    let path = visit_cost::path().ok_or_else(|| anyhow!("neither XDG_STATE_HOME nor HOME is set"))?;
    visit_cost::keep(&cost, &path)?;
    if cost.visit_ns.is_wide() {
        say(
            "The range is wide, because other programs disturbed the measurement. Run this command again when the machine is quiet.",
        );
    }
    say(&format!("{} Saved in {}. New recordings include this cost.", told(&cost), path.display()));
    Ok(())
}

fn measured(settings: &Settings, command: &str, signals: &Signals) -> Result<VisitCost> {
    let mut record = |work: Work| record(work, signals);
    let mut progress = UntilSignal { shown: Progress::on_terminal(), signals };
    visit_cost::measure(Measuring { settings, command, record: &mut record }, &mut progress)
}

/// A sentence with the cost of a visit to a zone.
fn told(cost: &VisitCost) -> String {
    let ns = |range: CostRange| format!("{:.0} ns ({:.0} to {:.0})", range.median, range.min, range.max);
    format!(
        "A visit to a zone costs {}, or {} for each of its {:.0} pages: {} pairs of runs.",
        ns(cost.visit_ns),
        ns(cost.page_ns),
        cost.pages_per_visit,
        cost.rounds
    )
}

/// Records this machine while it does `work`.
fn record(work: Work, signals: &Signals) -> Result<Box<dyn TraceReader>> {
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("visits.pgtrace");
    let session = Session::prepare(Options::default())?;
    let (mut work, mut worker) = (Some(work), None);
    session.run(File::create(&path)?, &mut |_| {
        // Start the work only now, because recording is now switched on.
        if let Some(work) = work.take() {
            worker = Some(thread::spawn(work));
        }
        let is_over = worker.as_ref().is_none_or(thread::JoinHandle::is_finished);
        if is_over || signals.has_come() { Going::End } else { Going::On }
    })?;
    signals.check()?;
    let worker = worker.ok_or_else(|| anyhow!("nothing was recorded"))?;
    worker.join().map_err(|_| anyhow!("the fault loop panicked"))??;
    let opening = crate::options::OpeningArgs::default();
    Ok(Box::new(Source::open(&SourceArgs { recording: Some(path), opening })?))
}

/// Shows progress, and cancels the work after a signal.
struct UntilSignal<'a, P> {
    shown: P,
    signals: &'a Signals,
}

impl<P: pageset_report::Progress> pageset_report::Progress for UntilSignal<'_, P> {
    fn begin(&mut self, what: &'static str, unit: &'static str, total: Option<u64>) {
        self.shown.begin(what, unit, total);
    }

    fn update(&mut self, done: u64) -> Result<(), Cancelled> {
        self.signals.check().map_err(|_| Cancelled)?;
        self.shown.update(done)
    }

    fn cancel(&self) -> Arc<AtomicBool> {
        self.shown.cancel()
    }
}
