//! The measured part of a run: from the end of the warm-up until the deadline, or until the last body ends.

use pageset_core::CpuId;

use crate::engine::Engine;
use crate::tally::Tally;
use crate::time::{Span, Time};

/// A CPU's clock, and how long it was idle until then.
type Clock = (u64, u64);

/// Begins and ends the measuring.
#[derive(Debug)]
pub(crate) struct Measure {
    workers: Vec<CpuId>,
    begins: Time,
    ends: Time,
    began: Option<Vec<Clock>>,
    result: Option<Measured>,
}

/// What was measured.
#[derive(Debug)]
pub(crate) struct Measured {
    pub(crate) workers: Vec<CpuId>,
    pub(crate) span: Span,
    pub(crate) busy: Vec<Span>,
    pub(crate) idle: Vec<Span>,
    pub(crate) tally: Tally,
    pub(crate) digest: u64,
}

impl Measure {
    /// Enters the beginning and the end in the agenda.
    pub(crate) fn new(engine: &Engine, workers: Vec<CpuId>, begins: Time, ends: Time) -> Self {
        engine.enter_mark(begins);
        engine.enter_mark(ends);
        Self { workers, begins, ends, began: None, result: None }
    }

    /// It is the time of the beginning, or of the end.
    pub(crate) fn mark(&mut self, engine: &Engine) {
        if self.began.is_none() {
            self.began = Some(self.clocks(engine, self.begins));
            engine.tally.borrow_mut().restart();
        } else {
            self.result = Some(self.sum_up(engine, self.ends));
        }
    }

    /// The result, whether or not the time is over.
    pub(crate) fn finish(mut self, engine: &Engine) -> Measured {
        let last = self.workers.iter().map(|cpu| engine.cpus[cpu.index()].clock.get()).max().unwrap_or(0);
        self.result.take().unwrap_or_else(|| self.sum_up(engine, Time(last)))
    }

    fn sum_up(&self, engine: &Engine, end: Time) -> Measured {
        let ends = self.clocks(engine, end);
        let began = self.began.as_deref().unwrap_or(&ends);
        let spent = began.iter().zip(&ends).map(|(began, end)| {
            let idle = Span(end.1 - began.1);
            (Span(end.0.saturating_sub(began.0)) - idle, idle)
        });
        let (busy, idle) = spent.unzip();
        let tally = engine.tally.borrow().clone();
        let span = end.since(self.begins.min(end));
        Measured { workers: self.workers.clone(), span, busy, idle, tally, digest: engine.digest() }
    }

    /// Each worker's clock at `now`; those that wait have one that stands.
    fn clocks(&self, engine: &Engine, now: Time) -> Vec<Clock> {
        let of = |cpu: &CpuId| {
            let cpu = &engine.cpus[cpu.index()];
            let behind = now.0.saturating_sub(cpu.clock.get());
            let idle = if cpu.is_busy() { 0 } else { behind };
            (cpu.clock.get() + behind, cpu.idle_ps.get() + idle)
        };
        self.workers.iter().map(of).collect()
    }
}
