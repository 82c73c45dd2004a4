//! Phase one: the locks that page_fault1 waits for, with twenty batches on nine machines.

use anyhow::Result;
use pageset_report::comparison::Quantity;
use pageset_sim::Machine;

use super::{MACHINES, POLICY};
use crate::load::Workload;
use crate::reproduce::published::published;
use crate::reproduce::simulated::{Borrowed, Case, Experiment, Figure, Fit, Metric};
use crate::simulate::RunSpec;

const WORKLOAD: &str = "page_fault1";
/// Batches of a quick run.
const QUICK: [&str; 5] = ["31", "63", "127", "255", "511"];
/// Least measured time of all CPUs together: a second of eight CPUs.
const CPU_MS: u64 = 8000;
/// Rounds of maps and unmaps on each CPU before measuring begins, at the published speed. Free lists scatter
/// meanwhile. After one round the zone's lock of the 2-socket Skylake is held for a fifth less than after
/// three; more rounds change little.
const WARMUP_ROUNDS: f64 = 3.0;
/// Pages of one round.
const MAPPING_PAGES: u64 = 32768;
/// Column of the score.
const SCORE: usize = 0;
/// Column of the LRU lock's share. A parameter is fitted on this column.
const LRU: usize = 2;
/// Column of the share of both locks together. A parameter is fitted on this column.
const TOTAL: usize = 3;

/// The name of a machine's table.
pub(super) fn id(machine: &str) -> String {
    format!("phase1-{machine}")
}

/// Makes one table for each machine.
pub(in crate::reproduce) fn experiments(is_quick: bool) -> Result<Vec<Experiment>> {
    let table = published!("batch-size/phase1.csv")?;
    let mut experiments = Vec::new();
    for (name, _, machine) in MACHINES {
        let mut cases: Vec<Case> = Vec::new();
        let mut machine_run = None;
        for row in table.rows_with("machine", name) {
            let batch = row.text("batch")?;
            if is_quick && !QUICK.contains(&batch) {
                continue;
            }
            let published = ["score", "zone_contention_pct", "lru_contention_pct", "total_contention_pct"];
            let published = published.map(|column| row.number(column));
            let published: Vec<_> = published.into_iter().collect::<Result<_>>()?;
            // All rows of a machine have the same warm-up.
            let run = machine_run.get_or_insert_with(|| run_at(machine, POLICY, published[SCORE]));
            let run = RunSpec { batch: Some(batch.parse()?), ..run.clone() };
            cases.push(Case {
                name: batch.to_owned(),
                base: (!cases.is_empty()).then_some(0),
                run,
                published,
                variation_percent: None,
            });
        }
        experiments.push(Experiment {
            id: id(machine),
            title: format!("will-it-scale page_fault1 on {name}, by batch"),
            columns: columns(),
            fits: fits(&cases),
            borrowed: Vec::new(),
            cases,
        });
    }
    Ok(experiments)
}

/// Makes a run of the benchmark on all CPUs of a machine. `score_per_s` is the machine's published score.
pub(in crate::reproduce) fn run_at(machine: &str, policy: &str, score_per_s: Option<f64>) -> RunSpec {
    RunSpec {
        warmup_ms: warmup_ms(machine, MAPPING_PAGES, score_per_s),
        duration_ms: Machine::named(machine).map(|machine| duration_ms(machine.cpus())),
        ..RunSpec::new(machine, WORKLOAD, policy)
    }
}

/// Time that all CPUs of a machine take for the rounds of a warm-up, with mappings of this many pages and
/// this score of all CPUs.
pub(super) fn warmup_ms(machine: &str, mapping_pages: u64, score_per_s: Option<f64>) -> Option<u64> {
    let cpus = f64::from(Machine::named(machine)?.cpus());
    Some((1000.0 * WARMUP_ROUNDS * mapping_pages as f64 * cpus / score_per_s?).round() as u64)
}

/// Measured time of a run. Each CPU maps and unmaps in turn, and it is a matter of chance when CPUs meet. So
/// a run on few CPUs is longer: all CPUs together measure at least [`CPU_MS`].
fn duration_ms(cpus: u32) -> u64 {
    let own = Workload::named(WORKLOAD).map_or(0, |workload| workload.duration_ms.1);
    (CPU_MS / u64::from(cpus)).max(own)
}

fn columns() -> Vec<(Quantity, Metric)> {
    let share = Quantity::share;
    let zone: Figure = |result| result.zone_wait_percent;
    let lru: Figure = |result| result.lru_wait_percent;
    vec![
        (Quantity::relative("score", "score", "", 0), Metric::SCORE),
        (share("zone_contention_percent", "zone", 0), Metric::Result(zone)),
        (share("lru_contention_percent", "LRU", 0), Metric::Result(lru)),
        (share("total_contention_percent", "total", 0), Metric::Sum(zone, lru)),
    ]
}

/// Parameters that a row takes from batch 31 of the same machine.
pub(in crate::reproduce) fn borrowed(machine: &str, case: usize) -> impl Iterator<Item = Borrowed> {
    let (table, row) = (id(machine), "31".to_owned());
    let parameters = ["fault_ns", "lru_page_ns"].into_iter();
    parameters.map(move |parameter| Borrowed { case, parameter, table: table.clone(), row: row.clone() })
}

/// Chooses the work per fault and the time under the LRU lock on the row of batch 31, where both show
/// contention. The work per fault decides how long the CPUs wait in all. The time under the lock decides at
/// which of the two locks they wait.
fn fits(cases: &[Case]) -> Vec<Fit> {
    let shows = |column: usize| {
        let base = cases.first().and_then(|case| case.published.get(column).copied().flatten());
        base.is_some_and(|share| share > 0.0)
    };
    let work = Fit { case: 0, parameter: "fault_ns", range: (100, 20_000), column: TOTAL, rises: false };
    let hold = Fit { case: 0, parameter: "lru_page_ns", range: (5, 1000), column: LRU, rises: true };
    [work, hold].into_iter().filter(|fit| shows(fit.column)).collect()
}
