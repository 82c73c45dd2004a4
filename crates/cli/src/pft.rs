//! `pageset pft`: the page fault test, through the fault engine on threads or in virtual time, and through the kernel.
//!
//! `args` says what can be typed, `shape` what is touched, `result` what was found, `table` prints it. On this machine:
//! `threads` runs the phases, `engine` is the fault engine over the memory of `arena`, `kernel` the operating system. In
//! virtual time: `virtual_run` over `virtual_world`.

mod arena;
mod args;
mod engine;
mod kernel;
mod result;
mod shape;
mod table;
mod threads;
mod virtual_run;
mod virtual_world;

use anyhow::{Result, bail};
use pageset_fault::{Geometry, Strategy};
use pageset_report::{Format, json_document};
use pageset_sim::Machine;

use crate::invocation::Invocation;
use crate::output;
use crate::progress::Progress;
pub(crate) use args::PftArgs;
use engine::Zero;
pub(crate) use result::{Run, Series};
pub(crate) use shape::{Regions, Shape};
pub(crate) use virtual_run::{AreaCache, VirtualSpec, run as run_virtual};
pub(crate) use virtual_world::RssLine;

/// The subcommand.
pub(crate) fn execute(args: &PftArgs, invocation: &Invocation) -> Result<()> {
    let test = Test::new(args)?;
    let series = test.run()?;
    let document = table::Document::new(invocation.provenance(), &test, &series);
    let format = args.output.format();
    output::write(&args.output.target, |out| match format {
        Format::Json => Ok(json_document(&document, out)?),
        Format::Csv => Ok(format.exporter().export(&document.runs, out)?),
        Format::Table | Format::Markdown => {
            for table in document.for_people() {
                format.exporter().export(table, out)?;
                writeln!(out)?;
            }
            Ok(())
        }
    })
}

/// Who touches the pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Contestant {
    Kernel,
    /// Nobody handles faults: pages are cleared and touched.
    Clear,
    Engine(Strategy),
}

impl Contestant {
    fn name(self) -> String {
        match self {
            Self::Kernel => "kernel".to_owned(),
            Self::Clear => "clear".to_owned(),
            Self::Engine(strategy) => strategy.to_string(),
        }
    }
}

/// What is run, resolved.
#[derive(Debug)]
struct Test {
    shape: Shape,
    repetitions: u32,
    zero: Zero,
    contestants: Vec<Contestant>,
    machine: Option<Machine>,
    rss_line: RssLine,
}

/// Most pages of one thread in a simulation, and of all threads. Guess: enough for a steady state of some thousand
/// faults, few enough for seconds.
const SIMULATED_THREAD_PAGES: (u64, u64) = (1024, 16384);
const SIMULATED_PAGES: u64 = 1 << 18;

/// Frames that a real thread fetches at once. Measured: more than 16 gain nothing (`pageset-fault`'s example `speed`).
const MAGAZINE: u32 = 16;

impl Test {
    fn new(args: &PftArgs) -> Result<Self> {
        let machine = args.machine.as_deref().map(machine).transpose()?;
        let shift = match (args.page_shift.as_deref(), &machine) {
            (Some(shift), _) => shift.parse()?,
            (None, Some(machine)) => machine.page_bytes.ilog2(),
            (None, None) => 12,
        };
        let geometry = if shift == 14 { Geometry::PAGES_16K } else { Geometry::PAGES_4K };
        let cpus = match &machine {
            Some(machine) => machine.cpus(),
            None => threads::cpus().len() as u32,
        };
        let threads = args.threads.unwrap_or(cpus).max(1);
        if let Some(machine) = machine.as_ref().filter(|machine| machine.cpus() < threads) {
            bail!("{} has {} CPUs; use -f {} or less", machine.name, machine.cpus(), machine.cpus());
        }
        let default_gib = if machine.is_some() { 64.0 } else { 0.25 };
        let bytes = args.gib.unwrap_or(default_gib) * (1u64 << 30) as f64;
        let thread_pages = (bytes / geometry.page_bytes() as f64) as u64 / u64::from(threads);
        if thread_pages == 0 {
            bail!("there is less than a page for each of {threads} threads; use a larger -g");
        }
        let regions = Regions::named(&args.regions).unwrap_or(Regions::Percore);
        let magazine = args.magazine.unwrap_or(if machine.is_some() { 0 } else { MAGAZINE });
        let shape = Shape { threads, thread_pages, regions, geometry, lines: args.lines, magazine };
        if machine.is_none() {
            check_memory(&shape)?;
        }
        let peer = |name: &str| args.peers.iter().any(|peer| peer == name);
        let peers = [(Contestant::Kernel, peer("kernel")), (Contestant::Clear, peer("clear"))];
        let peers = peers.into_iter().filter_map(|(contestant, is_wanted)| is_wanted.then_some(contestant));
        Ok(Self {
            shape,
            repetitions: args.repetitions.unwrap_or(if machine.is_some() { 1 } else { 10 }),
            zero: if args.zero == "skip" { Zero::Skip } else { Zero::Real },
            contestants: peers.chain(args.chosen().into_iter().map(Contestant::Engine)).collect(),
            machine,
            rss_line: RssLine::named(&args.rss_line).unwrap_or_default(),
        })
    }

    /// Every contestant, turn by turn, so that what disturbs one disturbs all.
    fn run(&self) -> Result<Vec<Series>> {
        let all = u64::from(self.repetitions) * self.contestants.len() as u64;
        let mut progress = Progress::new("touching", "runs", Some(all));
        let mut series: Vec<_> = self
            .contestants
            .iter()
            .map(|contestant| Series { name: contestant.name(), runs: Vec::new() })
            .collect();
        let mut done = 0;
        for repetition in 0..self.repetitions {
            for (contestant, series) in self.contestants.iter().zip(&mut series) {
                let run = match (&self.machine, series.runs.first()) {
                    // A simulation gives the same again.
                    (Some(_), Some(first)) if repetition > 0 => *first,
                    _ => self.run_once(*contestant)?,
                };
                series.runs.push(run);
                done += 1;
                progress.update(done);
            }
        }
        Ok(series)
    }

    fn run_once(&self, contestant: Contestant) -> Result<Run> {
        match (contestant, &self.machine) {
            (Contestant::Engine(strategy), Some(machine)) => {
                let (least, most) = SIMULATED_THREAD_PAGES;
                let spec = VirtualSpec {
                    shape: self.shape,
                    strategy,
                    rss_line: self.rss_line,
                    area_cache: AreaCache::Task,
                    fault_ns: machine.costs.fault.ns,
                    thread_pages_max: (SIMULATED_PAGES / u64::from(self.shape.threads)).clamp(least, most),
                };
                run_virtual(machine, &spec)
            }
            (Contestant::Engine(strategy), None) => engine::run(&self.shape, strategy, self.zero),
            (Contestant::Kernel, _) => kernel::run(&self.shape),
            (Contestant::Clear, _) => engine::run_clear(&self.shape),
        }
    }
}

/// A bundled machine, or one in a file.
fn machine(name: &str) -> Result<Machine> {
    match Machine::named(name) {
        Some(machine) => Ok(machine),
        None if std::path::Path::new(name).exists() => Ok(Machine::read(name.as_ref())?),
        None => bail!(
            "{name}: neither a bundled machine nor a file; `pageset simulate --list` names the machines"
        ),
    }
}

/// Refuses what would make the system run out of memory.
fn check_memory(shape: &Shape) -> Result<()> {
    let meminfo = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let available = meminfo
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:")?.trim().strip_suffix(" kB")?.parse::<u64>().ok());
    let needed_kib = ((shape.pages() * shape.geometry.page_bytes()) >> 10) / 4 * 5;
    match available {
        Some(available) if needed_kib > available => {
            bail!(
                "{} MiB are needed and {} are available; use a smaller -g",
                needed_kib >> 10,
                available >> 10
            )
        }
        _ => Ok(()),
    }
}
