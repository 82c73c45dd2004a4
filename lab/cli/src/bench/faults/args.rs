//! Options of `pageset bench faults`.

use clap::ValueHint;
use pageset_fault::Strategy;
use pageset_measure::pft::{Ahead, Regions, Zero};
use pageset_study::pft::{FaultHandler, PftSpec, RssLine};

use crate::choice::one_of;
use crate::options::OutputArgs;

const READING: &str = "\
How to read this:
  The first table has the columns that the page fault test of 2005 printed. Gb,
  Rep, Thr and CLine are the options. User, System and Wall are in seconds, for
  the whole run: thread creation, mapping, faults, exit, teardown. The other
  columns are the number of pages divided by one of these times.

  The second table has the medians of the phases of a run:
  start     until every thread is ready and has its region
  touch     from then until the last thread has touched its last page, and the
            middle half of it over the repetitions (IQR)
  exit      until all threads are gone
  teardown  freeing all memory, which the last thread does alone
  busy      CPUs that were busy on average, over the whole run
  imbalance the touch time of the slowest thread, divided by the average
  computed, counted
            pages as computed from the size, and as counted; they must be equal

  The third table is about one page during the touch phase: the time and the CPU
  time that a thread takes for the page, the CPU time of the kernel's own faults
  divided by the thread's CPU time, and two counts: pages prepared in vain, and
  waits for locks.

  A strategy consists of three names, for page table, areas and counters:
  P0 P0n P1 P2 P3, V0 V1 V2 V3 V7, R0 R1 R1b R1p R2 R3 R4. P1,V1,R1 has
  the page locking of 2005. P2,V1,R1 has the atomic operations of that year, and
  P2,V1,R2 adds counters that each thread keeps. P1,V2,R4 is Linux 6.12. With
  P2,V7,R3 no fault writes to a cache line that all threads write.

  After every run, all pages, tables, references and counters are checked.

Examples:
  pageset bench faults --peer kernel --peer clear
  pageset bench faults --gib 1 --threads 2 --strategy all --zero skip
  pageset bench faults --machine altix-512 --gib 512 --threads 512
  pageset bench faults --regions interleaved --strategy P2,V1,R1";

/// Touch memory with many threads, through the fault engine or the kernel
///
/// Runs the page fault test that Linux developers have used since 2004 to measure how page faults scale. The
/// test runs on this machine with real threads and memory, or on a simulated machine in virtual time.
#[derive(Clone, Debug, clap::Args)]
#[command(after_long_help = READING)]
pub(crate) struct FaultsArgs {
    /// Memory that all threads together touch [default: 0.25, with --machine 64]
    #[arg(long, value_name = "GIB", value_parser = gib)]
    pub(crate) gib: Option<f64>,
    /// Number of threads [default: one for each CPU]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub(crate) threads: Option<u32>,
    /// Number of repetitions [default: 10, with --machine 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) repetitions: Option<u32>,
    /// Number of cache lines to write in each page
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=64))]
    pub(crate) lines: u32,
    /// Strategies to compare, or `all`
    #[arg(long = "strategy", value_name = "P,V,R", num_args = 1.., value_parser = strategy_choice)]
    #[arg(default_values = ["P1,V1,R1", "P2,V1,R1", "P1,V2,R4", "P2,V7,R3"])]
    pub(crate) strategies: Vec<StrategyChoice>,
    /// Which pages each thread touches: a separate region, a slice of one region, every N-th page, or the
    /// same pages as all other threads
    #[arg(long, value_name = "MODE", default_value = Regions::Percore.name())]
    #[arg(value_parser = one_of(Regions::ALL.map(|regions| (regions.name(), regions))))]
    pub(crate) regions: Regions,
    /// Page size: 4 KiB (12) or 16 KiB (14) [default: 12, with --machine the machine's]
    #[arg(long, value_name = "BITS", value_parser = one_of([("12", 12_u32), ("14", 14)]))]
    pub(crate) page_shift: Option<u32>,
    /// Number of frames that a thread fetches with one call of the allocator; with 0, a thread calls the
    /// allocator at each fault [default: 16, with --machine 0]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(..=32))]
    pub(crate) magazine: Option<u32>,
    /// If a thread's faults are at consecutive pages, map several pages at each fault: twice as many each
    /// time, up to 2^ORDER
    #[arg(long, value_name = "ORDER", default_value_t = 0, value_parser = clap::value_parser!(u8).range(..=5))]
    pub(crate) prefault: u8,
    /// Clear all pages before the measured time begins
    #[arg(long)]
    pub(crate) prezero: bool,
    /// Clear each page at its fault, or skip the clearing, to measure the engine alone
    #[arg(long, value_name = "HOW", default_value = "real")]
    #[arg(value_parser = one_of([("real", Zero::Real), ("skip", Zero::Skip)]))]
    pub(crate) zero: Zero,
    /// Also measure the operating system's own faults (kernel), or clearing and touching memory without
    /// faults (clear)
    #[arg(long = "peer", value_name = "PEER", value_delimiter = ',')]
    #[arg(value_parser = one_of(PEERS))]
    pub(crate) peers: Vec<FaultHandler>,
    /// Simulate the test on this machine, instead of running it here: a bundled machine, or a machine file
    #[arg(short, long, value_name = "MACHINE", conflicts_with_all = ["peers", "zero"], value_hint = ValueHint::FilePath)]
    pub(crate) machine: Option<String>,
    /// Where a simulated machine has the counters of R1, R1b, R2 and R3: on the cache line of mmap_sem, or on
    /// a separate line
    #[arg(long, value_name = "LINE", default_value = RssLine::WithMmapLock.name(), requires = "machine")]
    #[arg(value_parser = one_of(RssLine::ALL.map(|line| (line.name(), line))))]
    pub(crate) rss_line: RssLine,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// A value of the option `--strategy`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StrategyChoice {
    All,
    One(Strategy),
}

/// Fault handlers that the strategies can be compared with. The rows of the result have the same order as
/// this list.
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

    /// The strategies that the user named, each once.
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

/// Maximum memory of a test, in GiB: large, because a simulated machine may be large.
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
