//! A page fault test: its description, its fault handlers, and the run.

use anyhow::{Result, bail};
use pageset_fault::{Geometry, Strategy, StrategyError};
use pageset_measure::host::{Meminfo, usable_cpus};
use pageset_measure::pft::{Ahead, Regions, Run, Series, Shape, Zero, run_clear, run_engine, run_kernel};
use pageset_report::Progress;
use pageset_sim::Machine;
use serde::{Deserialize, Serialize};

use super::virtual_run::{AreaCache, VirtualSpec, run as run_virtual};
use super::virtual_world::RssLine;
use crate::jobs::Stage;
use crate::simulate::{machine_text, parse_machine};

/// The code that handles the page faults. In JSON, a fault handler is written as its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum FaultHandler {
    /// The kernel of this machine handles the faults.
    Kernel,
    /// A baseline without faults: threads only clear and touch pages.
    Clear,
    /// The fault engine handles the faults, with the named strategy.
    Engine(Strategy),
}

impl FaultHandler {
    /// Returns "kernel", "clear", or the strategy's name.
    #[must_use]
    pub fn name(self) -> String {
        match self {
            Self::Kernel => "kernel".to_owned(),
            Self::Clear => "clear".to_owned(),
            Self::Engine(strategy) => strategy.to_string(),
        }
    }
}

impl From<FaultHandler> for String {
    fn from(handler: FaultHandler) -> Self {
        handler.name()
    }
}

impl TryFrom<String> for FaultHandler {
    type Error = StrategyError;

    fn try_from(name: String) -> Result<Self, StrategyError> {
        match name.as_str() {
            "kernel" => Ok(Self::Kernel),
            "clear" => Ok(Self::Clear),
            strategy => strategy.parse().map(Self::Engine),
        }
    }
}

/// The description of a test. If a field is `None`, the test uses the field's default.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PftSpec {
    /// Memory that all threads together touch, in GiB. Default: 0.25, or 64 on a simulated machine.
    pub gib: Option<f64>,
    /// Number of threads. Default: one thread for each CPU.
    pub threads: Option<u32>,
    /// Number of repetitions of the test. Default: 10 repetitions, or one repetition in a simulation.
    pub repetitions: Option<u32>,
    /// Number of cache lines that a thread writes in each page.
    pub lines: u32,
    /// Whether threads touch separate regions of memory or share one region.
    pub regions: Regions,
    /// The binary logarithm of the page size: 12 (4 KiB) or 14 (16 KiB). Default: 12, or the value of the
    /// simulated machine.
    pub page_shift: Option<u32>,
    /// Number of frames that a thread fetches with one call of the allocator. Default: 16, or 0 on a
    /// simulated machine.
    pub magazine: Option<u32>,
    /// Work ahead of the first touch of a page: mapping neighbouring pages, or clearing pages.
    pub ahead: Ahead,
    /// Whether pages are cleared.
    pub zero: Zero,
    /// The fault handlers to test, in the order of the result's rows.
    pub contestants: Vec<FaultHandler>,
    /// A bundled machine or a machine file to simulate. Default: this machine.
    pub machine: Option<String>,
    /// The cache line that holds a simulated process's counters of resident pages.
    pub rss_line: RssLine,
}

/// A test whose description was checked.
#[derive(Debug)]
pub struct Test {
    /// The memory that the threads touch.
    pub shape: Shape,
    /// Number of repetitions.
    pub repetitions: u32,
    /// Work ahead of the first touch of a page: mapping neighbouring pages, or clearing pages.
    pub ahead: Ahead,
    /// Whether pages are cleared.
    pub zero: Zero,
    /// The fault handlers to test.
    pub contestants: Vec<FaultHandler>,
    /// The simulated machine. `None` if the test runs on this machine.
    pub machine: Option<Machine>,
    /// The cache line that holds a simulated process's counters of resident pages.
    pub rss_line: RssLine,
}

/// Limits of the number of pages that a simulation touches, in one thread (`SIMULATED_THREAD_PAGES`) and in
/// all threads together. Guess: the limits allow some thousand faults in a steady state, and a run takes only
/// seconds.
const SIMULATED_THREAD_PAGES: (u64, u64) = (1024, 16384);
const SIMULATED_PAGES: u64 = 1 << 18;

/// Number of frames that a thread of this machine fetches at once. In measurements with `pageset-fault`'s
/// example `speed`, a larger number of frames gained nothing.
const MAGAZINE: u32 = 16;

impl Test {
    /// Makes a test from its description.
    ///
    /// # Errors
    ///
    /// Fails if the machine to simulate is unknown or has too few CPUs, if there is less than a page for each
    /// thread, or if the machine that runs the test has too little memory.
    pub fn new(spec: &PftSpec) -> Result<Self> {
        let machine = spec.machine.as_deref().map(machine).transpose()?;
        let shift = match (spec.page_shift, &machine) {
            (Some(shift), _) => shift,
            (None, Some(machine)) => machine.page_bytes.ilog2(),
            (None, None) => 12,
        };
        let geometry = if shift == 14 { Geometry::PAGES_16K } else { Geometry::PAGES_4K };
        let cpus = match &machine {
            Some(machine) => machine.cpus(),
            None => usable_cpus().len() as u32,
        };
        let threads = spec.threads.unwrap_or(cpus).max(1);
        if let Some(machine) = machine.as_ref().filter(|machine| machine.cpus() < threads) {
            bail!("{} has {} CPUs; use --threads {} or less", machine.name, machine.cpus(), machine.cpus());
        }
        let default_gib = if machine.is_some() { 64.0 } else { 0.25 };
        let bytes = spec.gib.unwrap_or(default_gib) * (1u64 << 30) as f64;
        let thread_pages = (bytes / geometry.page_bytes() as f64) as u64 / u64::from(threads);
        if thread_pages == 0 {
            bail!("there is less than a page for each of {threads} threads; use a larger --gib");
        }
        let magazine = spec.magazine.unwrap_or(if machine.is_some() { 0 } else { MAGAZINE });
        let (regions, lines) = (spec.regions, spec.lines);
        let shape = Shape { threads, thread_pages, regions, geometry, lines, magazine, skipped: 0 };
        if machine.is_none() {
            check_memory(&shape)?;
        }
        Ok(Self {
            shape,
            repetitions: spec.repetitions.unwrap_or(if machine.is_some() { 1 } else { 10 }),
            ahead: spec.ahead,
            zero: spec.zero,
            contestants: spec.contestants.clone(),
            machine,
            rss_line: spec.rss_line,
        })
    }

    /// Runs the test with one handler after another, and repeats the whole sequence. So a long disturbance of
    /// the machine affects all handlers, not only one.
    ///
    /// # Errors
    ///
    /// Fails if the system gives no threads or memory, or with [`Cancelled`](pageset_report::Cancelled).
    pub fn run(&self, progress: &mut dyn Progress) -> Result<Vec<Series>> {
        let all = self.repetitions as usize * self.contestants.len();
        let mut stage = Stage::begin(progress, "touching", "runs", all);
        let mut series: Vec<_> = self
            .contestants
            .iter()
            .map(|handler| Series { name: handler.name(), runs: Vec::new() })
            .collect();
        for repetition in 0..self.repetitions {
            for (handler, series) in self.contestants.iter().zip(&mut series) {
                let run = match (&self.machine, series.runs.first()) {
                    // A repetition of a simulation would give an equal result, so `run` simulates only once.
                    (Some(_), Some(first)) if repetition > 0 => *first,
                    _ => self.run_once(*handler)?,
                };
                series.runs.push(run);
                stage.step()?;
            }
        }
        Ok(series)
    }

    fn run_once(&self, handler: FaultHandler) -> Result<Run> {
        match (handler, &self.machine) {
            (FaultHandler::Engine(strategy), Some(machine)) => {
                let (least, most) = SIMULATED_THREAD_PAGES;
                let spec = VirtualSpec {
                    shape: self.shape,
                    strategy,
                    ahead: self.ahead,
                    rss_line: self.rss_line,
                    area_cache: AreaCache::Task,
                    fault_ns: machine.costs.fault.ns,
                    thread_pages_max: (SIMULATED_PAGES / u64::from(self.shape.threads)).clamp(least, most),
                };
                run_virtual(machine, &spec)
            }
            (FaultHandler::Engine(strategy), None) => {
                run_engine(&self.shape, strategy, self.ahead, self.zero)
            }
            (FaultHandler::Kernel, _) => run_kernel(&self.shape),
            (FaultHandler::Clear, _) => run_clear(&self.shape),
        }
    }
}

/// Finds a bundled machine, or reads a machine file.
fn machine(name: &str) -> Result<Machine> {
    parse_machine(&machine_text(name)?, name)
}

/// Refuses a test that needs more memory than the system has available.
fn check_memory(shape: &Shape) -> Result<()> {
    let needed_kib = ((shape.pages() * shape.geometry.page_bytes()) >> 10) / 4 * 5;
    match Meminfo::read().available_bytes.map(|bytes| bytes >> 10) {
        Some(available) if needed_kib > available => {
            bail!(
                "{} MiB are needed and {} are available; use a smaller --gib",
                needed_kib >> 10,
                available >> 10
            )
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spec_comes_back_as_it_was_written_with_names_of_results() {
        let engines: Vec<_> = Strategy::all().map(FaultHandler::Engine).collect();
        for (regions, rss_line) in Regions::ALL.into_iter().zip(RssLine::ALL.into_iter().cycle()) {
            let spec = PftSpec {
                gib: Some(0.1),
                threads: None,
                repetitions: Some(3),
                lines: 1,
                regions,
                page_shift: Some(14),
                magazine: Some(0),
                ahead: Ahead { prefault_order: 3, prezero: true },
                zero: Zero::Skip,
                contestants: [FaultHandler::Kernel, FaultHandler::Clear]
                    .into_iter()
                    .chain(engines.clone())
                    .collect(),
                machine: Some("epyc".to_owned()),
                rss_line,
            };
            let written = serde_json::to_value(&spec).unwrap();
            assert_eq!(written["regions"], regions.name());
            assert_eq!(written["rss_line"], rss_line.name());
            assert_eq!(written["contestants"][2], spec.contestants[2].name());
            assert_eq!(serde_json::from_value::<PftSpec>(written).unwrap(), spec);
        }
    }

    #[test]
    fn a_handler_that_does_not_exist_is_refused() {
        let refused = serde_json::from_str::<FaultHandler>(r#""P9,V1,R1""#).unwrap_err();
        assert!(refused.to_string().starts_with(&StrategyError::UnknownSync.to_string()), "{refused}");
    }
}
