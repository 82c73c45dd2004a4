//! Runs workloads on this machine and on a simulation of this machine, and compares the results.

use std::time::{Duration, Instant};

use anyhow::Result;
use pageset_measure::host::process_cpu;
use pageset_report::{Cell, Column, Row, Table};
use pageset_sim::{Machine, Simulation, Span};

use super::lines;
use super::rig::fixed;
use crate::load::{Generation, Settings, Setup, Topology, Workload};
use crate::simulate::run_plan;
use crate::{ThreadOptions, run_on_threads};

/// Pages of memory on threads and in the simulation: 1 GiB in one zone.
const PAGES: u64 = 1 << 18;
const WARM_UP_MS: u64 = 100;
/// Measured time of each run on threads. A simulation is shorter than a run on threads, because results of a
/// simulation vary less.
const THREADS_MS: u64 = 500;
/// Number of times that each case runs on threads. Only the fastest run is compared with the simulation.
const THREADS_RUNS: u32 = 3;
const SIMULATED_MS: u64 = 200;
/// Largest accepted error of a prediction, as a fraction of the measured value.
const TOLERANCE: f64 = 0.25;

/// Smallest part of the time that the threads of a run must have had their CPUs. If threads had their CPUs
/// for a smaller part, other programs disturbed the run.
const CPU_SHARE_MIN: f64 = 0.9;

/// A workload that runs on threads and in the simulation, so that the results can be compared.
struct Case {
    workload: &'static str,
    cpus: u32,
    batch: i32,
    settings: &'static [(&'static str, u64)],
    what: &'static str,
}

/// The cases that run on threads and in the simulation. Some cases leave out the work outside the allocator,
/// so that the allocator takes most of the time.
const CASES: &[Case] = &[
    Case { workload: "page_fault1", cpus: 1, batch: 63, settings: &[], what: "one CPU" },
    Case { workload: "page_fault1", cpus: 2, batch: 63, settings: &[], what: "as published" },
    Case {
        workload: "page_fault1",
        cpus: 2,
        batch: 63,
        settings: &[("fault_ns", 0), ("unmap_page_ns", 0), ("lru_page_ns", 0)],
        what: "the allocator alone",
    },
    Case {
        workload: "page_fault1",
        cpus: 2,
        batch: 7,
        settings: &[("fault_ns", 0), ("unmap_page_ns", 0), ("lru_page_ns", 0)],
        what: "the same, small batch",
    },
    Case { workload: "af-unix", cpus: 2, batch: 63, settings: &[], what: "producer, consumer" },
    Case {
        workload: "af-unix",
        cpus: 2,
        batch: 63,
        settings: &[("send_ns", 0), ("receive_ns", 0), ("copy_kib_ns", 0)],
        what: "the same, nothing else",
    },
];

/// Whether the checked machine file was measured just now on this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measured {
    /// The file was measured on this machine just now. Before each row, the check measures the cost of moving
    /// a cache line once more.
    Now,
    /// The file was measured earlier, or on another machine.
    Before,
}

/// Runs workloads on threads of this machine and on virtual CPUs of `machine`, and compares the results.
///
/// # Errors
///
/// Fails if the system gives no threads or memory.
pub fn compare(mut machine: Machine, measured: Measured) -> Result<Table> {
    machine.memory = pageset_sim::machine::ZoneLayout::single(PAGES);
    let columns = vec![
        Column::label("workload", "workload"),
        Column::label("case", "case"),
        Column::count("cpus", "CPUs"),
        Column::count("batch", "batch"),
        Column::measure("threads_per_s", "threads").with_unit("1/s"),
        Column::measure("simulated_per_s", "simulated").with_unit("1/s"),
        Column::ratio("ratio", "ratio"),
        Column::count("cpu_percent", "CPU %"),
        Column::label("verdict", "within 25 %"),
    ];
    let mut table = Table::new("This machine, and a simulation of it", columns);
    let cpus = machine.cpus();
    for case in CASES.iter().filter(|case| case.cpus <= cpus) {
        if measured == Measured::Now {
            measure_line_again(&mut machine);
        }
        let (real, cpu_share) = on_threads(case)?;
        let simulated = in_simulation(case, &machine)?;
        let ratio = simulated / real;
        let verdict = match (ratio - 1.0).abs() <= TOLERANCE {
            true => "yes",
            false if cpu_share < CPU_SHARE_MIN => "disturbed",
            false => "NO",
        };
        table.push(Row::new([
            case.workload.into(),
            case.what.into(),
            u64::from(case.cpus).into(),
            u64::from(case.batch.unsigned_abs()).into(),
            Cell::real(real, 0),
            Cell::real(simulated, 0),
            Cell::real(ratio, 2),
            ((100.0 * cpu_share).round() as u64).into(),
            verdict.into(),
        ]));
    }
    table.note("CPU %: the part of the time that the threads had their CPUs. Below 90 %, other programs disturbed the \
     run.");
    table.note("Threads: the fastest of three runs, because other programs can only slow a run down.");
    if measured == Measured::Now {
        table.note("The host may move a guest's CPUs, so the cost of moving a line is measured again before each row.");
    }
    Ok(table)
}

/// Measures the cost of moving a cache line once more. In a virtual machine, the host may have moved the
/// guest's CPUs to cores that are nearer to each other or farther apart than before.
fn measure_line_again(machine: &mut Machine) {
    let Some(turn) = lines::turn() else { return };
    let costs = &mut machine.costs;
    let line = (turn - costs.atomic.ns).max(0.0);
    for cost in [&mut costs.line_from_sibling, &mut costs.line_from_cache, &mut costs.line_from_node] {
        cost.ns = line;
    }
}

fn settings(case: &Case) -> Settings {
    let mut settings = Settings::default();
    case.settings.iter().for_each(|(key, value)| settings.set(key, *value));
    settings
}

fn plan(case: &Case) -> Result<crate::load::Plan> {
    let workload = Workload::named(case.workload).expect("the cases name workloads that exist");
    let topology = Topology::even(case.cpus, 1);
    let settings = settings(case);
    let generation = Generation::V4_18;
    Ok(workload.plan(&Setup { topology: &topology, cpus: case.cpus, generation, settings: &settings })?)
}

/// Runs a case on threads several times. Returns the fastest run's units of work per second, and the fastest
/// run's CPU time divided by its elapsed time and by its number of threads.
fn on_threads(case: &Case) -> Result<(f64, f64)> {
    let options = ThreadOptions {
        policy: fixed(case.batch),
        pages: PAGES,
        warm_up: Duration::from_millis(WARM_UP_MS),
        duration: Duration::from_millis(THREADS_MS),
        seed: 1,
    };
    let mut best = (0.0, 0.0);
    for _ in 0..THREADS_RUNS {
        let plan = plan(case)?;
        let (began, cpu_began) = (Instant::now(), process_cpu());
        let score = run_on_threads(plan, &options)?.score_per_second();
        let cpu_s = (process_cpu() - cpu_began).as_secs_f64();
        let share = cpu_s / (began.elapsed().as_secs_f64() * f64::from(case.cpus));
        if score > best.0 {
            best = (score, share.min(1.0));
        }
    }
    Ok(best)
}

fn in_simulation(case: &Case, machine: &Machine) -> Result<f64> {
    let simulation = Simulation::builder(machine)
        .cpus(case.cpus)
        .policy(fixed(case.batch))
        .seed(1)
        .warm_up(Span::from_ms(WARM_UP_MS))
        .duration(Span::from_ms(SIMULATED_MS))
        .build()?;
    Ok(run_plan(simulation, plan(case)?)?.score_per_second())
}
