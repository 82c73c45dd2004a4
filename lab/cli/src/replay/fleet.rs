//! Replays many recordings of one load, and sums up each policy's rows.

use std::io::Write;

use anyhow::Result;
use pageset_replay::Outcome;
use pageset_report::{Cell, Column, Format, Provenance, Row, Spread, Table};
use serde::Serialize;

use super::finished;
use crate::fleet::{self, Fleet};
use crate::invocation::Invocation;
use crate::options::RowsFormat;
use crate::output;
use crate::replay::args::ReplayArgs;

const READING: &str = "`visits` are those under `base`, the first policy. `fewest` is the percentage that \
                       remains under the best other policy. The recordings with the most to gain come first. \
                       `*`: the replay of the recorded kernel differs much from what that kernel did.";
const READING_POLICIES: &str = "In percent of the visits under the base policy with the same recording. \
                                `certain` counts the recordings whose whole 80 % interval is below the base's \
                                visits. Visits are counted; their time is not measured.";

/// The printed values of one recording's replay.
struct Replayed {
    events: u64,
    is_far_off: bool,
    outcomes: Vec<Outcome>,
    counts: Table,
}

impl Replayed {
    /// Visits under the policy with index `at`, in percent of the visits under the base (the first policy).
    /// `None` if the base has no visits.
    fn percent(&self, at: usize) -> Option<f64> {
        let base = self.outcomes.first()?.visits();
        (base > 0).then(|| 100.0 * self.outcomes[at].visits() as f64 / base as f64)
    }

    /// The index of the policy with the fewest visits. The base, which has index 0, is not considered.
    fn best(&self) -> Option<usize> {
        (1..self.outcomes.len()).min_by_key(|at| self.outcomes[*at].visits())
    }

    /// Whether the policy certainly has fewer visits than the base: the upper end of the policy's interval is
    /// below the base's visits.
    fn is_certain(&self, at: usize) -> bool {
        let base = self.outcomes.first().map(Outcome::visits);
        let most = self.outcomes[at].interval.map(|interval| interval.visits.1);
        most.zip(base).is_some_and(|(most, base)| most < base)
    }
}

pub(super) fn run(args: &ReplayArgs, invocation: &Invocation) -> Result<()> {
    let format = args.output.format;
    let source = &args.source;
    let fleet = fleet::read((&source.recordings, &source.opening), |recording| {
        let finished = finished(args, (recording, &[]), invocation, false)?;
        let is_json = format == RowsFormat::Printed(Format::Json);
        let document = is_json.then(|| fleet::document(&finished.document())).transpose()?;
        let counts = finished.counts();
        let replay = finished.replay;
        let is_far_off = replay.is_far_off();
        Ok((Replayed { events: replay.events, is_far_off, outcomes: replay.outcomes, counts }, document))
    })?;
    let policies = policies(&fleet);
    let names = policies.iter().map(|policy| policy.policy.clone()).collect();
    let provenance = Provenance { policies: names, ..invocation.provenance() };
    output::write(&args.output.target, |out| write(&fleet, &policies, &provenance, format, out))?;
    fleet.finish()
}

/// Sums up one policy's rows in all recordings.
#[derive(Serialize)]
struct PolicySummary {
    policy: String,
    /// The number of recordings that were replayed under the policy.
    recordings: usize,
    /// The number of recordings whose visits under the policy are certainly fewer than under the base.
    certain: usize,
    /// Median, least and most of the visits, in percent of the base's visits.
    percent: Option<Spread>,
}

fn policies(fleet: &Fleet<Replayed>) -> Vec<PolicySummary> {
    let mut names: Vec<&str> = Vec::new();
    for outcome in fleet.known().flat_map(|replayed| &replayed.outcomes) {
        if !names.contains(&outcome.policy.as_str()) {
            names.push(&outcome.policy);
        }
    }
    let of = |name: &str| {
        let rows = || {
            fleet.known().filter_map(move |replayed| {
                let at = replayed.outcomes.iter().position(|outcome| outcome.policy == name)?;
                Some((replayed, at))
            })
        };
        PolicySummary {
            policy: name.to_owned(),
            recordings: rows().count(),
            certain: rows().filter(|(replayed, at)| replayed.is_certain(*at)).count(),
            percent: fleet::spread(rows().map(|(replayed, at)| replayed.percent(at))),
        }
    };
    names.into_iter().map(of).collect()
}

fn write(
    fleet: &Fleet<Replayed>,
    policies: &[PolicySummary],
    provenance: &Provenance,
    format: RowsFormat,
    out: &mut dyn Write,
) -> Result<()> {
    let Some(format) = format.write_rows(|| counts(fleet), provenance, out)? else { return Ok(()) };
    match format {
        Format::Json => {
            #[derive(Serialize)]
            struct Summary<'a> {
                recordings: usize,
                unread: usize,
                policies: &'a [PolicySummary],
            }
            let summary = Summary { recordings: fleet.members.len(), unread: fleet.unread(), policies };
            fleet.write_json(summary, provenance, out)
        }
        Format::Csv => {
            Ok(format.exporter().export(&counts(fleet).with_provenance(provenance.clone()), out)?)
        }
        Format::Table | Format::Markdown => {
            format.exporter().export(&lines(fleet), out)?;
            writeln!(out)?;
            Ok(format.exporter().export(&by_policy(policies).with_provenance(provenance.clone()), out)?)
        }
    }
}

/// All counts, with a row for each recording and policy. A recording that could not be read has a row with
/// its error.
fn counts(fleet: &Fleet<Replayed>) -> Table {
    let read = fleet.known().next();
    let mut columns = vec![Column::label("recording", "recording")];
    columns.extend(read.iter().flat_map(|replayed| replayed.counts.columns()).cloned());
    columns.push(Column::label("error", "error"));
    let width = columns.len();
    let mut table = Table::new(fleet.title(), columns);
    for (at, member) in fleet.members.iter().enumerate() {
        let name = Cell::from(fleet.name(at));
        match &member.read {
            Ok(replayed) => {
                for row in replayed.counts.rows() {
                    let cells = [name.clone()].into_iter().chain(row.cells.iter().cloned());
                    table.push(Row::new(cells.chain([Cell::Absent])));
                }
            }
            Err(problem) => {
                let mut cells = vec![Cell::Absent; width];
                (cells[0], cells[width - 1]) = (name, problem.as_str().into());
                table.push(Row::new(cells));
            }
        }
    }
    table
}

fn lines(fleet: &Fleet<Replayed>) -> Table {
    let columns = vec![
        Column::label("recording", "recording"),
        Column::count("events", "events"),
        Column::label("base", "base"),
        Column::count("visits", "visits"),
        Column::ratio("fewest", "fewest").with_unit("%"),
        Column::label("under", "under"),
    ];
    let mut table = Table::new(fleet.title(), columns);
    let mut order: Vec<usize> = (0..fleet.members.len()).collect();
    let left = |at: usize| match &fleet.members[at].read {
        Ok(replayed) => replayed.best().and_then(|best| replayed.percent(best)).unwrap_or(f64::MAX),
        Err(_) => f64::INFINITY,
    };
    order.sort_by(|one, other| left(*one).total_cmp(&left(*other)));
    for at in order {
        let name = fleet.name(at);
        let cells: [Cell; 6] = match &fleet.members[at].read {
            Err(_) => [name.into(), Cell::Absent, "error".into(), Cell::Absent, Cell::Absent, Cell::Absent],
            Ok(replayed) => {
                let best = replayed.best();
                let name = format!("{name}{}", if replayed.is_far_off { "*" } else { "" });
                let percent = best.and_then(|best| replayed.percent(best));
                let base = replayed.outcomes.first();
                [
                    name.into(),
                    replayed.events.into(),
                    base.map(|base| base.policy.clone()).into(),
                    base.map(Outcome::visits).into(),
                    Cell::real(percent, 0),
                    best.map(|best| replayed.outcomes[best].policy.clone()).into(),
                ]
            }
        };
        table.push(Row::new(cells));
    }
    table.note(READING);
    fleet.note_unread(&mut table);
    table
}

fn by_policy(policies: &[PolicySummary]) -> Table {
    let columns = vec![
        Column::label("policy", "policy"),
        Column::count("recordings", "recordings"),
        Column::count("certain", "certain"),
        Column::ratio("least", "least").with_unit("%"),
        Column::ratio("median", "median").with_unit("%"),
        Column::ratio("most", "most").with_unit("%"),
    ];
    let mut table = Table::new("Visits under each policy, over all recordings", columns);
    for PolicySummary { policy, recordings, certain, percent } in policies {
        table.push(Row::new([
            policy.as_str().into(),
            (*recordings as u64).into(),
            (*certain as u64).into(),
            Cell::real(percent.map(|of| of.min), 0),
            Cell::real(percent.map(|of| of.median), 0),
            Cell::real(percent.map(|of| of.max), 0),
        ]));
    }
    table.note(READING_POLICIES);
    table
}
