//! One row for each policy.

use pageset_lab::simulate::{RunResult, RunSpec};
use pageset_report::{Cell, Column, Format, Provenance, Row, Table};

use super::played;
use crate::args::SimulateArgs;

pub(super) fn table(
    args: &SimulateArgs,
    of_command: Provenance,
    specs: &[RunSpec],
    results: &[RunResult],
) -> Table {
    let workers = results.first().map_or(0, |result| result.workers);
    let title = format!("{} on {}, {workers} CPUs (simulated)", args.workload, args.machine);
    let unit = results.first().map_or("units", |result| result.unit.as_str());
    let played = results.first().and_then(|result| result.played);
    // People read them in a note.
    let is_for_programs = matches!(args.output.format(), Format::Json | Format::Csv);
    let counts = played.filter(|_| is_for_programs).map_or_else(Vec::new, |played| played::counts(&played));
    let mut columns = vec![
        Column::label("policy", "policy"),
        Column::measure("score_per_s", "score").with_unit("1/s"),
        Column::ratio("zone_lock_percent", "zone lock").with_unit("%"),
        Column::ratio("lru_lock_percent", "LRU lock").with_unit("%"),
        Column::count("free_high", "free_high"),
        Column::count("alloc_zone", "alloc_zone").with_unit("pages"),
        Column::count("pcp_pages_peak", "PCP pages, peak"),
        Column::count("pcp_pages_idle", "PCP pages, idle"),
        Column::measure("alloc_p50_ns", "alloc p50").with_unit("ns"),
        Column::measure("alloc_p99_ns", "p99").with_unit("ns"),
        Column::measure("alloc_p999_ns", "p99.9").with_unit("ns"),
        Column::measure("alloc_behind_drains_ns", "behind drains").with_unit("ns"),
        Column::label("digest", "digest"),
    ];
    columns.extend(counts.iter().map(|(key, _)| Column::count(key, key)));
    let mut table = Table::new(title, columns);
    for (spec, result) in specs.iter().zip(results) {
        let figures = [
            Cell::from(spec.policy.as_str()),
            Cell::real(result.score_per_s, 0),
            Cell::real(result.zone_lock_percent, 1),
            Cell::real(result.lru_lock_percent, 1),
            result.free_high.into(),
            result.alloc_zone.into(),
            result.pcp_pages_peak.into(),
            result.pcp_pages_idle.into(),
            Cell::real(result.alloc_p50_ns, 0),
            Cell::real(result.alloc_p99_ns, 0),
            Cell::real(result.alloc_p999_ns, 0),
            Cell::real(result.alloc_behind_drains_ns, 0),
            result.digest.as_str().into(),
        ];
        table.push(Row::new(figures.into_iter().chain(counts.iter().map(|(_, count)| (*count).into()))));
    }
    table.note(format!(
        "Simulated: our allocator on a modelled machine, in virtual time. Score: {unit} per second."
    ));
    if let Some(failures) =
        results.iter().map(|result| result.failures).max().filter(|failures| *failures > 0)
    {
        table.note(format!(
            "Memory is short: up to {failures} allocations failed. Use a larger machine or fewer CPUs."
        ));
    }
    if let Some(played) = played {
        table.note(played::note(&played));
    }
    if args.check {
        table.note("Run twice; the results are equal.");
    }
    table.with_provenance(provenance(args, of_command))
}

fn provenance(args: &SimulateArgs, of_command: Provenance) -> Provenance {
    Provenance {
        machine: args.machine.clone(),
        policies: args.policies.clone(),
        seed: Some(args.seed),
        ..of_command
    }
}
