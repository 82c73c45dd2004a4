//! `pageset contest`: a recording's blocks on whole allocators, one row each.

use std::io::Write;
use std::path::PathBuf;

use anyhow::Result;
use clap::ValueHint;
use pageset_core::Policy;
use pageset_core::policy::{LINUX_6_12, LINUX_6_18, LINUX_6_19};
use pageset_report::{Cell, Column, Format, Provenance, Row, Table, json_document};
use pageset_trace::{Layout, TraceReader as _};
use pageset_workload::contest::{Entrant, Script, Standing};
use serde::Serialize;

use crate::args::policy;
use crate::hint;
use crate::invocation::Invocation;
use crate::layouts::{self, LayoutOrigin, LayoutSummary};
use crate::options::{OutputArgs, SourceArgs};
use crate::origin::TraceDocument;
use crate::output;
use crate::progress::Progress;
use crate::source::{self, Source};

const READING_CONTEST: &str = "\
How to read this:
  visits            how often a CPU took a zone's lock, or changed what all CPUs of
                    a zone share, or a cache line that another CPU had changed
  fallbacks         requests that got memory meant for another type
  held, mean, peak  pages that a CPU kept for itself: others cannot use them
  held, idle        the same, two idle seconds after the last event
  at hand           free pages in pageblocks that a CPU allocates from; other CPUs
                    take them if they find no others
  whole, end        pageblocks (2 MiB) that are free as a whole after the last event
  whole, gone       the same when everything is freed, and two idle seconds later

  The last two rows are an allocator of our own, in which CPUs own pageblocks and a
  free sets a bit. owned-blocks keeps pages that belong to other CPUs' pageblocks
  for its own requests; owned-blocks-at-once gives them back at once.

  Memory is empty at first, and nothing is reclaimed. Each block is freed by the
  CPU that freed it in the recording. Bulk allocations are left out, since the
  recording does not name their pages. A contest counts; it does not measure time.

Examples:
  pageset contest
  pageset contest my.pgtrace -p linux-6.18
  pageset contest my.pgtrace --format csv -o contest.csv";

/// Compare whole allocators on a trace: Linux's, and one of our own
///
/// Plays every block of a trace on the page allocator of each policy, and on an allocator that is made otherwise. Counts how
/// often CPUs meet, what memory they keep, and how much stays free in large blocks.
#[derive(Debug, clap::Args)]
#[command(after_long_help = READING_CONTEST)]
pub(crate) struct ContestArgs {
    #[command(flatten)]
    source: SourceArgs,
    /// Policy of Linux's allocator. May be repeated, or be a list with commas [default: the last three]
    #[arg(short, long = "policy", value_name = "NAME", value_delimiter = ',', hide_possible_values = true)]
    #[arg(value_parser = policy())]
    policies: Vec<&'static Policy>,
    /// Machine to use, instead of the recorded one: a file as `pageset layout` prints it, or a copy of /proc/zoneinfo
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    layout: Option<PathBuf>,
    #[command(flatten)]
    output: OutputArgs,
}

impl ContestArgs {
    fn entrants(&self) -> Vec<Entrant> {
        let named: Vec<Policy> = self.policies.iter().map(|policy| **policy).collect();
        let policies = if named.is_empty() { vec![LINUX_6_12, LINUX_6_18, LINUX_6_19] } else { named };
        let linux = policies.into_iter().map(|policy| Entrant::Linux(Box::new(policy)));
        linux.chain(Entrant::ours()).collect()
    }
}

pub(crate) fn run(args: &ContestArgs, invocation: &Invocation) -> Result<()> {
    let mut source = Source::open(&args.source)?;
    let (machine, origin) = layouts::find(&source, &args.source, args.layout.as_deref())?;
    let mut reading = Progress::new("reading", "events", source.info().events);
    let script = Script::read(&mut source, |events| reading.show(events)).map_err(hint::of_trace)?;
    drop(reading);
    let entrants = args.entrants();
    let mut playing = Progress::new("playing", "allocators", Some(entrants.len() as u64));
    let mut standings = Vec::new();
    for entrant in &entrants {
        standings.push(script.play(&machine, entrant)?);
        playing.show(standings.len() as u64);
    }
    drop(playing);
    let provenance =
        Provenance { machine: LayoutSummary::new(&machine, origin).line(), ..invocation.provenance() };
    let result = Contest { source, machine: (machine, origin), script, standings, provenance };
    output::write(&args.output.target, |out| result.write(args.output.format(), out))
}

struct Contest {
    source: Source,
    machine: (Layout, LayoutOrigin),
    script: Script,
    standings: Vec<Standing>,
    provenance: Provenance,
}

/// The result in JSON.
#[derive(Serialize)]
struct ContestDocument<'a> {
    provenance: &'a Provenance,
    trace: TraceDocument,
    events: usize,
    unmatched_frees: u64,
    lost_events: u64,
    standings: &'a [Standing],
}

impl Contest {
    fn write(&self, format: Format, out: &mut dyn Write) -> Result<()> {
        if format == Format::Json {
            return json_document(&self.document(), out).map_err(Into::into);
        }
        format.exporter().export(&self.table().with_provenance(self.provenance.clone()), out)?;
        Ok(())
    }

    fn document(&self) -> ContestDocument<'_> {
        ContestDocument {
            provenance: &self.provenance,
            trace: TraceDocument::new(
                self.source.info(),
                self.source.info().events.unwrap_or_default(),
                self.source.seconds(),
                self.source.lost(),
                Some(&self.machine),
            ),
            events: self.script.events(),
            unmatched_frees: self.script.unmatched_frees,
            lost_events: self.script.lost_events,
            standings: &self.standings,
        }
    }

    fn table(&self) -> Table {
        let columns = vec![
            Column::label("entrant", "allocator"),
            Column::count("shared_visits", "visits"),
            Column::count("fallbacks", "fallbacks"),
            Column::count("held_mean", "held, mean"),
            Column::count("held_peak", "held, peak"),
            Column::count("held_idle", "held, idle"),
            Column::count("at_hand_mean", "at hand"),
            Column::count("whole_at_end", "whole, end"),
            Column::count("whole_when_gone", "whole, gone"),
        ];
        let title =
            format!("{}: {} allocations and frees", source::title(self.source.info()), self.script.events());
        let mut table = Table::new(title, columns);
        for standing in &self.standings {
            table.push(Row::new([
                standing.entrant.as_str().into(),
                standing.shared_visits.into(),
                standing.fallbacks.into(),
                (standing.held_mean.round() as u64).into(),
                standing.held_peak.into(),
                standing.held_idle.into(),
                (standing.at_hand_mean.round() as u64).into(),
                standing.whole_at_end.into(),
                Cell::from(standing.whole_when_gone),
            ]));
        }
        let mut left_out = format!("Left out: {} frees of unknown blocks.", self.script.unmatched_frees);
        if self.script.lost_events > 0 {
            left_out += &format!(" The recording lacks {} events.", self.script.lost_events);
        }
        table.note(left_out);
        let failures: u64 = self.standings.iter().map(|standing| standing.failures).sum();
        if failures > 0 {
            table.note(format!("{failures} requests found no memory: --format json says whose."));
        }
        table
    }
}
