//! Makes the table of a simulation: for people with a row for each policy, for programs with a row for each
//! run.

use std::path::Path;

use pageset_core::Policy;
use pageset_replay::{names_policy_file, read_policy};
use pageset_report::{Cell, Column, Format, Kind, Provenance, Row, Seeds, Spread, Table};
use pageset_study::simulate::{RunResult, RunSpec};

use super::played;
use crate::simulate::args::SimulateArgs;

/// A figure of a run: its column, the number of its decimals, and the function that returns its value.
type Figure = (Column, u8, fn(&RunResult) -> f64);

/// Returns the figures that the table shows of each run. Runs of an allocator without locks and page sets
/// have further figures.
fn figures(specs: &[RunSpec]) -> Vec<Figure> {
    let mut figures = of_linux().to_vec();
    if has_ours(specs) {
        figures.splice(3..3, of_ours());
    }
    figures
}

/// Whether one of the runs simulates the project's own allocator.
fn has_ours(specs: &[RunSpec]) -> bool {
    specs.iter().any(|spec| Policy::named(&spec.policy).is_none() && !names_policy_file(&spec.policy))
}

fn of_ours() -> [Figure; 4] {
    [
        (Column::count("visits", "visits"), 0, |result| result.shared.visits as f64),
        (Column::ratio("line_percent", "lines").with_unit("%"), 2, |result| result.shared.line_percent),
        (Column::ratio("held_mean", "held, mean").with_unit("pages"), 0, |result| result.shared.held_mean),
        (Column::count("whole_at_end", "whole, end"), 0, |result| result.shared.whole_at_end as f64),
    ]
}

fn of_linux() -> [Figure; 11] {
    [
        (Column::measure("score_per_s", "score").with_unit("1/s"), 0, |result| result.score_per_s),
        (Column::ratio("zone_lock_percent", "zone lock").with_unit("%"), 1, |result| {
            result.zone_lock_percent
        }),
        (Column::ratio("lru_lock_percent", "LRU lock").with_unit("%"), 1, |result| result.lru_lock_percent),
        (Column::count("free_high", "free_high"), 0, |result| result.free_high as f64),
        (Column::count("alloc_zone", "alloc_zone").with_unit("pages"), 0, |result| result.alloc_zone as f64),
        (Column::count("pcp_pages_peak", "PCP pages, peak"), 0, |result| result.pcp_pages_peak as f64),
        (Column::count("pcp_pages_idle", "PCP pages, idle"), 0, |result| result.pcp_pages_idle as f64),
        (Column::measure("alloc_p50_ns", "alloc p50").with_unit("ns"), 0, |result| result.alloc_p50_ns),
        (Column::measure("alloc_p99_ns", "p99").with_unit("ns"), 0, |result| result.alloc_p99_ns),
        (Column::measure("alloc_p999_ns", "p99.9").with_unit("ns"), 0, |result| result.alloc_p999_ns),
        (Column::measure("alloc_behind_drains_ns", "behind drains").with_unit("ns"), 0, |result| {
            result.alloc_behind_drains_ns
        }),
    ]
}

/// `specs` and `results` begin with all runs of the first policy, one for each seed. All runs of the second
/// policy follow, and so on.
pub(super) fn table(
    args: &SimulateArgs,
    of_command: Provenance,
    specs: &[RunSpec],
    results: &[RunResult],
) -> Table {
    // With several seeds, the table for people has means instead of all runs. If a recording was played, a
    // note below the table has the counts of played requests.
    let is_for_programs = matches!(args.output.format(), Format::Json | Format::Csv);
    let mut table = if args.seeds > 1 && !is_for_programs {
        means(args, specs, results)
    } else {
        runs(args, specs, results, is_for_programs)
    };
    let unit = results.first().map_or("units", |result| result.unit.as_str());
    table.note(format!(
        "Simulated: our allocator on a modelled machine, in virtual time. Score: {unit} per second."
    ));
    let workers = results.first().map_or(0, |result| result.workers);
    if let Some(asked) = args.cpus.filter(|asked| !asked.is_multiple_of(2) && workers + 1 == *asked) {
        table.note(format!("{} uses pairs of CPUs: {workers} of {asked} CPUs.", args.workload));
    }
    if has_ours(specs) {
        table.note(
            "`visits`: how often a CPU took a zone's lock or, in an allocator without locks, changed data that all CPUs of a zone \
             share, or a pageblock that another CPU had changed less than 10 us before. `lines`: share of the CPUs' busy time \
             in which they waited for cache lines from other CPUs.",
        );
    }
    if let Some(failures) =
        results.iter().map(|result| result.failures).max().filter(|failures| *failures > 0)
    {
        table.note(format!(
            "Memory is short: up to {failures} allocations failed. Use a larger machine or fewer CPUs."
        ));
    }
    if let Some(played) = results.first().and_then(|result| result.played) {
        table.note(played::note(&played));
        table.note(
            "Each copy of the recording keeps the recorded time between events, so waits for locks are not \
             realistic: compare counts.",
        );
    }
    if args.check {
        table.note("Run twice; the results are equal.");
    }
    table.with_provenance(provenance(args, of_command))
}

fn title(args: &SimulateArgs, results: &[RunResult]) -> String {
    let workers = results.first().map_or(0, |result| result.workers);
    format!("{} on {}, {workers} CPUs (simulated)", args.workload, args.machine)
}

/// The name of a row. The row of a policy file has the name of the policy in the file, as in `replay`.
fn row_name(policy: &str) -> String {
    let of_file = names_policy_file(policy).then(|| read_policy(Path::new(policy)).ok()).flatten();
    of_file.map_or_else(|| policy.to_owned(), |of_file| of_file.name.to_owned())
}

/// The table for programs, with a row for each run.
fn runs(args: &SimulateArgs, specs: &[RunSpec], results: &[RunResult], is_for_programs: bool) -> Table {
    let played = results.first().and_then(|result| result.played).filter(|_| is_for_programs);
    let counts = played.map_or_else(Vec::new, |played| played::counts(&played));
    let figures = figures(specs);
    let mut columns = vec![Column::label("policy", "policy")];
    columns.extend(is_for_programs.then(|| Column::count("seed", "seed")));
    columns.extend(figures.iter().map(|(column, ..)| column.clone()));
    columns.push(Column::label("digest", "digest"));
    columns.extend(counts.iter().map(|(key, _)| Column::count(key, key)));
    let mut table = Table::new(title(args, results), columns);
    for (spec, result) in specs.iter().zip(results) {
        let mut cells = vec![Cell::from(row_name(&spec.policy))];
        cells.extend(is_for_programs.then(|| spec.seed.into()));
        cells.extend(figures.iter().map(|(column, decimals, value)| match column.kind {
            Kind::Count => (value(result) as u64).into(),
            _ => Cell::real(value(result), *decimals),
        }));
        cells.push(result.digest.as_str().into());
        cells.extend(counts.iter().map(|(_, count)| Cell::from(*count)));
        table.push(Row::new(cells));
    }
    table
}

/// The table for people, with a row for each policy: the mean of its runs, and their standard deviation.
fn means(args: &SimulateArgs, specs: &[RunSpec], results: &[RunResult]) -> Table {
    let figures = figures(specs);
    let with_spread = |(column, ..): &Figure| {
        let key = format!("{}_stddev", column.key);
        [column.clone(), Column::measure(&key, "+/-").with_unit(&column.unit)]
    };
    let columns =
        std::iter::once(Column::label("policy", "policy")).chain(figures.iter().flat_map(with_spread));
    let mut table = Table::new(title(args, results), columns.collect());
    let per_policy = seeds(args).iter().count();
    for (specs, results) in specs.chunks(per_policy).zip(results.chunks(per_policy)) {
        let values = |(_, decimals, value): &Figure| {
            let spread = Spread::of(&results.iter().map(value).collect::<Vec<_>>());
            let cell = |part: fn(&Spread) -> f64| {
                spread.as_ref().map_or(Cell::Absent, |spread| Cell::real(part(spread), *decimals))
            };
            [cell(|spread| spread.mean), cell(|spread| spread.stddev)]
        };
        let policy = Cell::from(row_name(&specs[0].policy));
        table.push(Row::new(std::iter::once(policy).chain(figures.iter().flat_map(values))));
    }
    table.note(format!(
        "Means of {per_policy} seeds; +/-: standard deviation. A smaller difference than the standard \
         deviation means nothing."
    ));
    table
}

fn provenance(args: &SimulateArgs, of_command: Provenance) -> Provenance {
    Provenance {
        machine: args.machine.clone(),
        policies: args.policies.clone(),
        seeds: Some(seeds(args)),
        ..of_command
    }
}

/// The seeds for the runs of each policy.
pub(super) fn seeds(args: &SimulateArgs) -> Seeds {
    Seeds { first: args.seed, count: args.seeds }
}
