//! Prints the result of a replay: a row for each policy, figures computed from the rows, and notes.

use std::io::Write;

use anyhow::Result;
use pageset_replay::{
    FEW_VISITS, INTERVAL_COVERAGE, Interval, Intervals, KernelTotals, Outcome, Replay, Room, Unreplayed,
    Unseen, Window,
};
use pageset_report::{
    Cell, Column, Format, Provenance, Row, Table, command_line, json_document, relative_to_first,
};
use pageset_trace::{LostEvents, TraceReader as _};
use serde::Serialize;

use crate::layouts::LayoutOrigin;
use crate::options::RowsFormat;
use crate::origin::{self, TraceDocument};
use crate::paragraph;
use crate::source::{self, Source};

/// A replay, with the data that its notes need.
pub(super) struct Finished {
    pub(super) source: Source,
    pub(super) replay: Replay,
    pub(super) origin: LayoutOrigin,
    pub(super) provenance: Provenance,
    pub(super) columns: Columns,
    /// Number of CPUs in the replay, which share the recorded memory. `None` stands for the recorded number.
    pub(super) cpus: Option<u32>,
    /// Whether the user gave `-v`, so that all notes are printed. Without `-v`, only notes on trust and
    /// assumptions are printed.
    pub(super) is_verbose: bool,
    /// Number of further recordings of the same load.
    pub(super) repeats: usize,
}

/// Columns of the table for people.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Columns {
    /// The counts that a reader compares first.
    Brief,
    /// All counts, and a second table with the counts relative to the first row.
    Full,
    /// The columns that kernel developers post with patches, with values relative to the first row.
    Series,
}

/// Columns of the brief table. Each pair is the column's key in the counts, and the column's heading in the
/// brief table.
const BRIEF: [(&str, &str); 7] = [
    ("policy", "policy"),
    ("visits", "visits"),
    ("visits_interval", "80 % interval"),
    ("refilled_pages", "pages in"),
    ("drained_pages", "pages back"),
    ("pcp_pages_peak", "PCP pages, peak"),
    ("pcp_pages_idle", "PCP pages, idle"),
];

/// Columns of a series. Each pair is the column's key in the counts, and its heading in the tables of the
/// posted patches.
const LADDER: [(&str, &str); 6] = [
    ("free_high_drains", "free_high"),
    ("refilled_pages", "alloc_zone"),
    ("zone_lock_acquisitions", "zone lock"),
    ("pages_per_acquisition", "pages/lock"),
    ("pcp_pages_peak", "PCP peak"),
    ("pcp_pages_idle", "PCP idle"),
];

/// The note for a recording that does not describe its machine.
const MADE_UP: &str = "The recording does not describe its machine: the replay uses the CPUs and frames that occur in \
                       events, and Linux's default zones and watermarks. `pageset convert --to layout` prints \
                       this machine, and `--layout` replaces it.";

/// Columns of the second table, whose values are relative to the first row.
const RELATIVE: [&str; 11] = [
    "refills",
    "refilled_pages",
    "drains",
    "drained_pages",
    "free_high_drains",
    "visits",
    "zone_lock_acquisitions",
    "pages_per_acquisition",
    "pcp_pages_peak",
    "pcp_pages_end",
    "pcp_pages_idle",
];

/// A column that shows an interval to people. The parts are the key of the interval's lower end in the
/// counts, the column's key, its heading, and the function that returns the interval.
type IntervalColumn = (&'static str, &'static str, &'static str, fn(&Intervals) -> Interval);

impl Finished {
    pub(super) fn write(&self, format: RowsFormat, out: &mut dyn Write) -> Result<()> {
        match format {
            RowsFormat::Columnar(format) => {
                format.write_table(&self.counts().with_provenance(self.provenance.clone()), out)
            }
            RowsFormat::Printed(format) => self.print(format, out),
        }
    }

    fn print(&self, format: Format, out: &mut dyn Write) -> Result<()> {
        let exporter = format.exporter();
        let is_text = matches!(format, Format::Table | Format::Markdown);
        for warning in self.replay.warnings.iter().filter(|_| is_text) {
            paragraph::write(out, 0, warning)?;
            writeln!(out)?;
        }
        match format {
            Format::Json => json_document(&self.document(), out)?,
            Format::Csv => exporter.export(&self.counts().with_provenance(self.provenance.clone()), out)?,
            Format::Table | Format::Markdown if self.columns == Columns::Series => {
                let mut table = self.ladder();
                table.note(self.base());
                exporter.export(&self.with_notes(table), out)?;
            }
            Format::Table | Format::Markdown if self.columns == Columns::Brief => {
                exporter.export(&self.with_notes(self.brief()), out)?;
            }
            Format::Table | Format::Markdown => {
                exporter.export(&self.counts_with_intervals(), out)?;
                writeln!(out)?;
                let last = if self.replay.outcomes.len() > 1 {
                    self.relative()
                } else {
                    Table::new("There is one policy, so there is nothing to compare.", Vec::new())
                };
                exporter.export(&self.with_notes(last), out)?;
            }
        }
        Ok(())
    }

    fn title(&self) -> String {
        let info = self.source.info();
        let mut title = format!("Replay of {}: {} events", source::title(info), self.replay.events);
        if let Some(seconds) = self.source.seconds() {
            title += &format!(" in {seconds:.1} s");
        }
        if !info.command.is_empty() {
            title += &format!(", `{}`", command_line(&info.command));
        }
        title
    }

    /// All counts, with one row for each policy.
    pub(super) fn counts(&self) -> Table {
        let columns = vec![
            Column::label("policy", "policy"),
            Column::count("allocs", "allocations"),
            Column::count("frees", "frees"),
            Column::ratio("hit_percent", "PCP hits").with_unit("%"),
            Column::count("refills", "refills"),
            Column::count("refilled_pages", "refilled pages"),
            Column::count("drains", "drains"),
            Column::count("drained_pages", "drained pages"),
            Column::count("free_high_drains", "drains by free_high"),
            Column::count("visits", "visits"),
            Column::count("visits_low", "visits, from"),
            Column::count("visits_high", "visits, to"),
            Column::count("zone_lock_acquisitions", "zone lock acquisitions"),
            Column::count("zone_lock_acquisitions_low", "zone locks, from"),
            Column::count("zone_lock_acquisitions_high", "zone locks, to"),
            Column::ratio("pages_per_acquisition", "pages per acquisition"),
            Column::count("pcp_pages_peak", "PCP pages, peak"),
            Column::count("pcp_pages_end", "PCP pages, end"),
            Column::count("pcp_pages_idle", "PCP pages, idle"),
        ];
        let mut table = Table::new(self.title(), columns);
        for outcome in &self.replay.outcomes {
            table.push(row(outcome));
        }
        table
    }

    /// All counts for people: both ends of an interval are in one column.
    fn counts_with_intervals(&self) -> Table {
        let visits: IntervalColumn =
            ("visits_low", "visits_interval", "visits, 80 % interval", |of| of.visits);
        let locks: IntervalColumn =
            ("zone_lock_acquisitions_low", "zone_lock_interval", "acquisitions, 80 % interval", |of| {
                of.zone_lock_acquisitions
            });
        self.with_interval(&self.with_interval(&self.counts(), visits), locks)
    }

    fn with_interval(&self, counts: &Table, (low_key, key, heading, interval): IntervalColumn) -> Table {
        let at = counts.column_index(low_key).expect("the counts have a column for each end of an interval");
        let mut columns = counts.columns().to_vec();
        columns.splice(at..at + 2, [Column::ratio(key, heading)]);
        let mut table = Table::new(self.title(), columns);
        for (row, outcome) in counts.rows().iter().zip(&self.replay.outcomes) {
            let ends = outcome.interval.map(|of| interval(&of));
            let ends = ends.map(|Interval(low, high)| format!("{low} to {high}"));
            let mut cells = row.cells.clone();
            cells.splice(at..at + 2, [ends.into()]);
            table.push(Row::new(cells));
        }
        table
    }

    /// The brief table of 80 columns, with the counts that a reader compares first.
    fn brief(&self) -> Table {
        let counts = self.counts_with_intervals();
        let at = BRIEF.map(|(key, _)| {
            counts.column_index(key).expect("the counts have every column of the brief table")
        });
        let heading = |(at, (_, heading)): (usize, (&str, &str))| {
            counts.columns()[at].clone().with_heading(heading).with_unit("")
        };
        let mut table = Table::new(self.title(), at.into_iter().zip(BRIEF).map(heading).collect());
        for row in counts.rows() {
            table.push(Row::new(at.map(|at| row.cells[at].clone())));
        }
        table
    }

    /// Adds the notes below a table: all notes with `-v`, and only notes on trust and assumptions without
    /// `-v`.
    fn with_notes(&self, mut table: Table) -> Table {
        if self.is_verbose {
            self.notes().into_iter().for_each(|note| table.note(note));
            return table.with_provenance(self.provenance.clone());
        }
        self.trust().into_iter().for_each(|note| table.note(note));
        self.assumed().into_iter().for_each(|note| table.note(note));
        table.note(
            "Visits are counted; their time is not measured. A visit is a refill or a drain. `-v` shows what was left out, and the command line; `--all` shows all columns.",
        );
        table
    }

    /// Returns sentences on lost events, and on facts that were assumed.
    fn assumed(&self) -> Vec<String> {
        let lost = if self.replay.lost == LostEvents::default() {
            Vec::new()
        } else {
            origin::lost_notes(&self.replay.lost)
        };
        let made_up = (self.origin == LayoutOrigin::Guessed).then(|| MADE_UP.to_owned());
        lost.into_iter()
            .chain(self.source.info().assumptions(Some(&self.replay.machine)))
            .chain(made_up)
            .collect()
    }

    /// The second table: counts that depend on the policy, relative to the first row, which is 100.
    fn relative(&self) -> Table {
        let relative = relative_to_first(&self.counts(), &RELATIVE);
        let keys = std::iter::once("policy").chain(RELATIVE);
        let kept: Vec<_> = keys.filter_map(|key| relative.column_index(key)).collect();
        // The title contains the unit, so the unit and the notes of the full table are removed.
        let plain = |index: &usize| relative.columns()[*index].clone().with_unit("");
        let title =
            format!("The counts relative to {} (= 100; `-` if the count of that row is 0)", self.base_name());
        let mut table = Table::new(title, kept.iter().map(plain).collect());
        for row in relative.rows() {
            table.push(Row::new(kept.iter().map(|index| row.cells[*index].clone())));
        }
        table
    }

    /// The table of a series: the columns that its posted patches have, with the first row as 100.
    fn ladder(&self) -> Table {
        let keys = LADDER.map(|(key, _)| key);
        let relative = relative_to_first(&self.counts(), &keys);
        let column =
            |key: &str| relative.column_index(key).expect("the counts have every column of a series");
        let columns = LADDER.map(|(key, heading)| Column::ratio(key, heading));
        let interval = Column::ratio("zone_lock_interval", "zone lock, 80 %");
        let columns =
            std::iter::once(Column::label("policy", "policy")).chain(columns).chain([interval]).collect();
        let title = format!("{}; {} = 100", self.title(), self.base_name());
        let mut table = Table::new(title, columns);
        let base = self.replay.outcomes.first().map_or(0, |base| base.zone_lock_acquisitions);
        for (row, outcome) in relative.rows().iter().zip(&self.replay.outcomes) {
            let cells = std::iter::once("policy").chain(keys).map(|key| row.cells[column(key)].clone());
            let interval = outcome.interval.map(|interval| range(interval.zone_lock_acquisitions, base));
            table.push(Row::new(cells.chain([interval.into()])));
        }
        table
    }

    /// A sentence with the values of the base row, which the table shows as 100.
    fn base(&self) -> String {
        self.replay.outcomes.first().map_or_else(String::new, |base| {
            format!(
                "{} itself: {} drains by free_high, {} pages from the zone, {} zone locks of {:.1} pages, {} pages \
                 held at most, {} after a minute idle.",
                base.policy,
                base.free_high_drains,
                base.refilled_pages,
                base.zone_lock_acquisitions,
                base.pages_per_acquisition().unwrap_or(0.0),
                base.pcp_pages_peak,
                base.pcp_pages_idle,
            )
        })
    }

    fn base_name(&self) -> &str {
        self.replay.outcomes.first().map_or("the first row", |outcome| &outcome.policy)
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = self.trust();
        let Unseen { unmatched_frees, allocations, stack_pages, diverted_frees } = self.replay.unseen;
        notes.push(format!(
            "Frees of pages whose allocation the recording does not show: {unmatched_frees}, of which {allocations} \
             free a page that is free already according to the recording, so the kernel allocated the page \
             without an event. Frees that bypassed a page set because its lock was busy: {diverted_frees}."
        ));
        if stack_pages > 0 {
            notes.push(format!(
                "The recording has no events of bulk allocations, so the replay adds {stack_pages} pages for the stacks of forked tasks."
            ));
        }
        notes.extend(self.replay.tick_interval_s.map(|seconds| {
            format!(
                "The recording has no ticks (starts of `vmstat_update`), so in the replay every CPU ticks once in {seconds} s."
            )
        }));
        notes.extend(origin::lost_notes(&self.replay.lost));
        notes.extend(self.source.info().assumptions(Some(&self.replay.machine)));
        let Unreplayed { failed_in_recording, foreign_frames, impossible, allocated_twice } =
            self.replay.unreplayed;
        for (count, what) in [
            (failed_in_recording, "allocations that failed in the recording already"),
            (foreign_frames, "events about frames outside the machine's zones"),
            (impossible, "events with an order or CPU that the machine does not have"),
            (allocated_twice, "allocations of frames that were in use, so the event of their free was lost"),
        ] {
            if count > 0 {
                notes.push(format!("Not replayed: {count} {what}."));
            }
        }
        if self.origin == LayoutOrigin::Guessed {
            notes.push(MADE_UP.to_owned());
        }
        if let Some(cpus) = self.cpus {
            notes.push(format!(
                "What if: {cpus} CPUs share the memory. The recording is from a machine with fewer CPUs; the \
                 added CPUs are idle in the replay."
            ));
        }
        notes.push(room(self.replay.room));
        if self.repeats > 0 {
            notes.push(format!(
                "Counts are from the first recording. Intervals are from {} recordings of the load.",
                self.repeats + 1
            ));
        }
        notes.push(format!(
            "Under the recorded kernel's policy, page sets begin with the pages that the kernel's page sets \
             held; under every other policy they begin in a steady state. Events stay in the recorded order. \
             {INTERVAL_COVERAGE} `pageset replay --help` says more."
        ));
        notes
    }

    /// Notes on how far the rows can be trusted. The notes compare the recorded kernel's own counts with the
    /// own row. The notes also report few zone visits, wide intervals, a window shorter than the recording,
    /// and unknown contents of page sets at the beginning.
    fn trust(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if let Some(kernel) = self.kernel().filter(|kernel| kernel.visits() != Some(0)) {
            let part = |count: Option<u64>, pages: Option<u64>, what: &str| match (count, pages) {
                (Some(count), Some(pages)) => format!("{count} {what} of {pages} pages"),
                _ => format!("an unknown number of {what}"),
            };
            notes.push(format!(
                "The recorded kernel itself: {}, {}, by its events.",
                part(kernel.refills, kernel.refilled_pages, "refills"),
                part(kernel.drains, kernel.drained_pages, "drains")
            ));
            let own = self.replay.own.as_ref().zip(self.replay.own_beside());
            notes.extend(
                own.map(|(own, beside)| format!("{} is the recorded kernel: replayed {beside}.", own.policy)),
            );
            let base = self.replay.own.as_ref().zip(self.replay.steady_base());
            notes.extend(base.map(|(own, visits)| {
                format!(
                    "Begun in a steady state like the other rows, {} makes {visits} visits, not {}.",
                    own.policy,
                    own.visits()
                )
            }));
            if let Some(visits) = kernel.visits().filter(|visits| *visits < FEW_VISITS) {
                notes.push(format!(
                    "The recorded kernel went to its zones only {visits} times, so this number depends much on chance. Record longer."
                ));
            }
        }
        let is_wide = |row: &&Outcome| row.interval.is_some_and(|interval| interval.visits.is_wide());
        let wide: Vec<&str> =
            self.replay.outcomes.iter().filter(is_wide).map(|row| row.policy.as_str()).collect();
        if !wide.is_empty() {
            let rows = match wide.len() {
                1..=3 => wide.join(", "),
                count => format!("{count} of the {} rows", self.replay.outcomes.len()),
            };
            notes.push(format!(
                "This recording does not say how often zones would be visited under {rows}, only how often at most: the ends of \
                 the interval are more than a factor of 10 apart. Several recordings of the load say more.",
            ));
        }
        let Window { share, is_start_known, .. } = self.replay.window;
        if share < 1.0 {
            notes.push(format!(
                "Counted: the last {:.0} % of the recording. Before that, not every page set that matters was refilled or drained.",
                100.0 * share
            ));
        } else if !is_start_known {
            notes.push(
                "The contents of page sets at the beginning are not known, and too few of them were refilled \
                 or drained to find out: record longer, or with snapshots of /proc/zoneinfo."
                    .to_owned(),
            );
        }
        notes
    }

    /// The recorded kernel's own counts. `None` if neither refills nor drains were recorded.
    fn kernel(&self) -> Option<KernelTotals> {
        let kernel = self.replay.kernel_itself;
        Some(kernel).filter(|kernel| kernel.refills.or(kernel.drains).is_some())
    }

    pub(super) fn document(&self) -> ReplayDocument<'_> {
        let replay = &self.replay;
        let machine = (replay.machine.clone(), self.origin);
        let seconds = self.source.seconds();
        let info = self.source.info();
        ReplayDocument {
            trace: TraceOfReplay {
                trace: TraceDocument::new(info, replay.events, seconds, replay.lost, Some(&machine)),
                unreplayed: replay.unreplayed,
                tick_interval_s: replay.tick_interval_s,
                kernel_itself: self.kernel(),
                unseen: replay.unseen,
            },
            window: replay.window,
            rows: replay.outcomes.iter().map(RowDocument::new).collect(),
            warnings: &replay.warnings,
            notes: self.notes(),
            provenance: &self.provenance,
        }
    }
}

/// A sentence on the memory that a replay took.
fn room(Room { acts_bytes, file_bytes, plays_at_once }: Room) -> String {
    let mib = |bytes: u64| format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20));
    let mut said = format!("The load takes {} of memory during the replay", mib(acts_bytes));
    if file_bytes > 0 {
        let directory = std::env::temp_dir();
        said += &format!("; {} of the load are in a file below {}", mib(file_bytes), directory.display());
    }
    if let Some(plays) = plays_at_once {
        said += &format!("; memory is short, so the number of replays at the same time is {plays}");
    }
    said + "."
}

/// Writes both ends of an interval in percent of the base row's value: `0.6 to 12`. Returns an empty text if
/// the base's value is 0.
fn range(Interval(low, high): Interval, base: u64) -> String {
    if base == 0 {
        return String::new();
    }
    let end = |value: u64| {
        let percent = 100.0 * value as f64 / base as f64;
        let decimals = usize::from(value > 0 && percent < 9.95);
        format!("{percent:.decimals$}")
    };
    format!("{} to {}", end(low), end(high))
}

fn row(outcome: &Outcome) -> Row {
    let ends = outcome.interval.map(|interval| interval.zone_lock_acquisitions);
    let visits = outcome.interval.map(|interval| interval.visits);
    Row::new([
        outcome.policy.as_str().into(),
        outcome.allocs.into(),
        outcome.frees.into(),
        Cell::real(outcome.hit_percent(), 2),
        outcome.refills.into(),
        outcome.refilled_pages.into(),
        outcome.drains.into(),
        outcome.drained_pages.into(),
        outcome.free_high_drains.into(),
        outcome.visits().into(),
        visits.map(|ends| ends.0).into(),
        visits.map(|ends| ends.1).into(),
        outcome.zone_lock_acquisitions.into(),
        ends.map(|ends| ends.0).into(),
        ends.map(|ends| ends.1).into(),
        Cell::real(outcome.pages_per_acquisition(), 2),
        outcome.pcp_pages_peak.into(),
        outcome.pcp_pages_end.into(),
        outcome.pcp_pages_idle.into(),
    ])
}

/// The result in JSON. Keys are stable.
#[derive(Serialize)]
pub(super) struct ReplayDocument<'a> {
    trace: TraceOfReplay,
    /// The part of the recording that is counted, in the rows and in `kernel_itself`.
    window: Window,
    rows: Vec<RowDocument<'a>>,
    /// Warnings about facts that the recording lacks, and about a replay that differs much from the kernel's
    /// own counts.
    warnings: &'a [String],
    notes: Vec<String>,
    provenance: &'a Provenance,
}

#[derive(Serialize)]
struct TraceOfReplay {
    #[serde(flatten)]
    trace: TraceDocument,
    unreplayed: Unreplayed,
    /// Time between two ticks of a CPU, in seconds, that the replay assumes. `None` if the recording has
    /// ticks.
    tick_interval_s: Option<u32>,
    /// The recorded kernel's own counts in the window, which is the part of the recording that is counted.
    /// `None` if neither refills nor drains were recorded.
    kernel_itself: Option<KernelTotals>,
    unseen: Unseen,
}

/// One policy's row: the counts, and figures computed from the counts.
#[derive(Serialize)]
struct RowDocument<'a> {
    #[serde(flatten)]
    outcome: &'a Outcome,
    visits: u64,
    hit_percent: Option<f64>,
    pages_per_acquisition: Option<f64>,
}

impl<'a> RowDocument<'a> {
    fn new(outcome: &'a Outcome) -> Self {
        let (hit_percent, pages_per_acquisition) = (outcome.hit_percent(), outcome.pages_per_acquisition());
        Self { outcome, visits: outcome.visits(), hit_percent, pages_per_acquisition }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_replay_took_is_said() {
        let acts_bytes = 3 << 20;
        assert_eq!(
            room(Room { acts_bytes, ..Room::default() }),
            "The load takes 3.0 MiB of memory during the replay."
        );
        let short = Room { acts_bytes, file_bytes: 2 << 20, plays_at_once: Some(1) };
        assert!(room(short).contains("; 2.0 MiB of the load are in a file below "), "{}", room(short));
        assert!(room(short).ends_with("so the number of replays at the same time is 1."), "{}", room(short));
    }

    #[test]
    fn an_error_of_a_factor_is_a_range() {
        assert_eq!(range(Interval(6, 120), 1000), "0.6 to 12");
        assert_eq!(range(Interval(0, 2000), 1000), "0 to 200");
        assert_eq!(range(Interval(918, 1090), 1000), "92 to 109");
        assert_eq!(range(Interval(1, 2), 0), "");
    }
}
