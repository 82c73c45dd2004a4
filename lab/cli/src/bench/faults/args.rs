//! Options of `pageset bench faults`.

use clap::ValueHint;
use pageset_fault::Strategy;
use pageset_measure::pft::{Ahead, Regions, Zero};
use pageset_study::pft::{FaultHandler, PftSpec, RssLine};

use crate::choice::one_of;
use crate::options::OutputArgs;

const READING: &str = "\
How to read this:
  The first table has the columns of the program of 2005, with its meaning:
  Gb, Rep, Thr, CLine as asked for, User, System and Wall in seconds over
  everything (thread creation, mapping, faults, exit, teardown), and pages
  divided by these.

  The second has the phases that the totals hide, as medians:
  start     until every thread is ready and has its region
  touch     from then until the last thread has touched its last page, and the
            middle half of it over the repetitions (IQR)
  exit      until all threads are gone
  teardown  giving everything back, which the last thread does alone
  busy      CPUs busy on average, over everything
  imbalance the slowest thread's touching, as a multiple of the average
  computed, counted
            pages as computed from the size, and as counted; they must agree

  The third is about one page while touching: time and CPU time of one thread
  for it, how many times as much CPU time the kernel takes in the same run, and
  events on the way: pages prepared in vain, locks waited for.

  A strategy is one name of each axis, page table, areas, counters:
  P0 P0n P1 P2 P3, V0 V1 V2 V3 V7, R0 R1 R1b R1p R2 R3 R4. P1,V1,R1 is the
  page locking of 2005, P2,V1,R1 the atomic operations, P2,V1,R2 these with
  deltas, P1,V2,R4 Linux 6.12, P2,V7,R3 has no line that all threads write.

  After every run all pages, tables, references and counters are checked.

Examples:
  pageset bench faults --peer kernel --peer clear
  pageset bench faults --gib 1 --threads 2 --strategy all --zero skip
  pageset bench faults --machine altix-512 --gib 512 --threads 512
  pageset bench faults --regions interleaved --strategy P2,V1,R1";

/// Touch memory with many threads, through the fault engine or the kernel
///
/// The page fault test that has measured page-fault scalability since 2004, on this machine with real threads
/// and memory, or on a simulated one in virtual time.
#[derive(Clone, Debug, clap::Args)]
#[command(after_long_help = READING)]
pub(crate) struct FaultsArgs {
    /// Memory to touch, of all threads together [default: 0.25, with --machine 64]
    #[arg(long, value_name = "GIB", value_parser = gib)]
    pub(crate) gib: Option<f64>,
    /// Threads [default: one for each CPU]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub(crate) threads: Option<u32>,
    /// Repetitions [default: 10, with --machine 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) repetitions: Option<u32>,
    /// Cache lines to write in each page
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=64))]
    pub(crate) lines: u32,
    /// Strategies to compare, or `all`
    #[arg(long = "strategy", value_name = "P,V,R", num_args = 1.., value_parser = strategy_choice)]
    #[arg(default_values = ["P1,V1,R1", "P2,V1,R1", "P1,V2,R4", "P2,V7,R3"])]
    pub(crate) strategies: Vec<StrategyChoice>,
    /// How threads share the touched memory: regions of their own, slices, every N-th page, all the same
    /// pages
    #[arg(long, value_name = "MODE", default_value = Regions::Percore.name())]
    #[arg(value_parser = one_of(Regions::ALL.map(|regions| (regions.name(), regions))))]
    pub(crate) regions: Regions,
    /// Pages of 4 KiB (12) or 16 KiB (14) [default: 12, with --machine the machine's]
    #[arg(long, value_name = "BITS", value_parser = one_of([("12", 12_u32), ("14", 14)]))]
    pub(crate) page_shift: Option<u32>,
    /// Frames that a thread fetches with one call of the allocator, 0 for a call per fault [default: 16, with
    /// --machine 0]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(..=32))]
    pub(crate) magazine: Option<u32>,
    /// Map runs of pages for a thread whose faults come one after another, each run twice as long, up to
    /// 2^ORDER pages
    #[arg(long, value_name = "ORDER", default_value_t = 0, value_parser = clap::value_parser!(u8).range(..=5))]
    pub(crate) prefault: u8,
    /// Clear all pages before they are touched, outside the measured time
    #[arg(long)]
    pub(crate) prezero: bool,
    /// Clear pages, or skip that to see the engine alone
    #[arg(long, value_name = "HOW", default_value = "real")]
    #[arg(value_parser = one_of([("real", Zero::Real), ("skip", Zero::Skip)]))]
    pub(crate) zero: Zero,
    /// Also run the operating system's own faults, or only clear and touch memory without any faults
    #[arg(long = "peer", value_name = "PEER", value_delimiter = ',')]
    #[arg(value_parser = one_of(PEERS))]
    pub(crate) peers: Vec<FaultHandler>,
    /// Simulate instead: a bundled machine, or a machine file
    #[arg(short, long, value_name = "MACHINE", conflicts_with_all = ["peers", "zero"], value_hint = ValueHint::FilePath)]
    pub(crate) machine: Option<String>,
    /// Where a simulated machine has the counters of R1, R1b, R2 and R3: on the line of mmap_sem, or on their
    /// own
    #[arg(long, value_name = "LINE", default_value = RssLine::WithMmapLock.name(), requires = "machine")]
    #[arg(value_parser = one_of(RssLine::ALL.map(|line| (line.name(), line))))]
    pub(crate) rss_line: RssLine,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// One `--strategy`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StrategyChoice {
    All,
    One(Strategy),
}

/// Fault handlers that can be compared with the strategies, in the order of the result.
const PEERS: [(&str, FaultHandler); 2] = [("kernel", FaultHandler::Kernel), ("clear", FaultHandler::Clear)];

impl FaultsArgs {
    pub(super) fn spec(&self) -> PftSpec {
        let peers = PEERS.into_iter().map(|(_, peer)| peer).filter(|peer| self.peers.contains(peer));
        PftSpec {
            gib: self.gib,
            threads: self.threads,
            repetitions: self.repetitions,
            lines: self.lines,
            regions: self.regions,
            page_shift: self.page_shift,
            magazine: self.magazine,
            ahead: Ahead { prefault_order: self.prefault, prezero: self.prezero },
            zero: self.zero,
            contestants: peers.chain(self.chosen().into_iter().map(FaultHandler::Engine)).collect(),
            machine: self.machine.clone(),
            rss_line: self.rss_line,
        }
    }

    /// Every requested strategy, each once.
    fn chosen(&self) -> Vec<Strategy> {
        let mut chosen: Vec<Strategy> = Vec::new();
        for strategy_choice in &self.strategies {
            let more = match *strategy_choice {
                StrategyChoice::All => Strategy::all().collect(),
                StrategyChoice::One(strategy) => vec![strategy],
            };
            for strategy in more {
                if !chosen.contains(&strategy) {
                    chosen.push(strategy);
                }
            }
        }
        chosen
    }
}

fn strategy_choice(text: &str) -> Result<StrategyChoice, String> {
    if text == "all" {
        return Ok(StrategyChoice::All);
    }
    text.parse().map(StrategyChoice::One).map_err(|error: pageset_fault::StrategyError| error.to_string())
}

/// Maximum memory of a test, in GiB. A simulated machine may be large.
const GIB_MAX: f64 = 65536.0;

fn gib(text: &str) -> Result<f64, String> {
    let gib: f64 = text.parse().map_err(|_| format!("`{text}` is not a number"))?;
    if gib > 0.0 && gib <= GIB_MAX { Ok(gib) } else { Err(format!("use more than 0, at most {GIB_MAX} GiB")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_strategies_are_checked() {
        assert_eq!(gib("0.5"), Ok(0.5));
        for text in ["0", "-1", "NaN", "x", "1e9"] {
            assert!(gib(text).is_err(), "{text}");
        }
        assert_eq!(strategy_choice("all"), Ok(StrategyChoice::All));
        assert!(strategy_choice("P2,V3,R1").unwrap_err().contains("use V2 or V7"));
    }
}
