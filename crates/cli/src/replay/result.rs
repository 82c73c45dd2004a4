//! What is printed of a replay: the rows, what follows from them, and what has to be said about them.

use std::io::Write;

use anyhow::Result;
use pageset_report::{Cell, Column, Format, Provenance, Row, Table, json_document, relative_to_first};
use pageset_trace::TraceReader as _;
use pageset_workload::{Kernel, Outcome, Replay, Unreplayed};
use serde::Serialize;

use crate::layouts::LayoutOrigin;
use crate::origin::{self, TraceDocument};
use crate::source::{self, Source};

/// A replay with all that has to be said about it.
pub(super) struct Finished {
    pub(super) source: Source,
    pub(super) replay: Replay,
    /// What the recorded kernel itself did.
    pub(super) kernel: Kernel,
    pub(super) origin: LayoutOrigin,
    pub(super) provenance: Provenance,
    pub(super) columns: Columns,
    /// CPUs that share the memory, if others than recorded.
    pub(super) cpus: Option<u32>,
}

/// What is printed for people.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Columns {
    /// All counts, and the same relative to the first row.
    Full,
    /// The columns that patches are posted with, relative to the first row.
    Ladder,
}

/// Columns of a ladder, and what they are called in the tables that patches are posted with.
const LADDER: [(&str, &str); 6] = [
    ("free_high_drains", "free_high"),
    ("refilled_pages", "alloc_zone"),
    ("zone_lock_acquisitions", "zone lock"),
    ("pages_per_acquisition", "pages/lock"),
    ("pcp_pages_peak", "PCP peak"),
    ("pcp_pages_idle", "PCP idle"),
];

/// Columns of the second table.
const RELATIVE: [&str; 10] = [
    "refills",
    "refilled_pages",
    "drains",
    "drained_pages",
    "free_high_drains",
    "zone_lock_acquisitions",
    "pages_per_acquisition",
    "pcp_pages_peak",
    "pcp_pages_end",
    "pcp_pages_idle",
];

impl Finished {
    pub(super) fn write(&self, format: Format, out: &mut dyn Write) -> Result<()> {
        let exporter = format.exporter();
        match format {
            Format::Json => json_document(&self.document(), out)?,
            Format::Csv => exporter.export(&self.counts().with_provenance(self.provenance.clone()), out)?,
            Format::Table | Format::Markdown if self.columns == Columns::Ladder => {
                let mut table = self.ladder();
                table.note(self.base());
                self.notes().into_iter().for_each(|note| table.note(note));
                exporter.export(&table.with_provenance(self.provenance.clone()), out)?;
            }
            Format::Table | Format::Markdown => {
                exporter.export(&self.counts(), out)?;
                writeln!(out)?;
                let mut last = if self.replay.outcomes.len() > 1 {
                    self.relative()
                } else {
                    Table::new("One policy, so there is nothing to compare.", Vec::new())
                };
                self.notes().into_iter().for_each(|note| last.note(note));
                exporter.export(&last.with_provenance(self.provenance.clone()), out)?;
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
            title += &format!(", `{}`", info.command.join(" "));
        }
        title
    }

    /// One row for each policy.
    fn counts(&self) -> Table {
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
            Column::count("zone_lock_acquisitions", "zone lock acquisitions"),
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

    /// The columns that differ between policies, with the first row as 100.
    fn relative(&self) -> Table {
        let relative = relative_to_first(&self.counts(), &RELATIVE);
        let keys = std::iter::once("policy").chain(RELATIVE);
        let kept: Vec<_> = keys.filter_map(|key| relative.column_index(key)).collect();
        // The title says what the unit and the notes of the full table would say.
        let plain = |index: &usize| relative.columns()[*index].clone().with_unit("");
        let title = format!("The same relative to {} (= 100; a `-` where that has 0)", self.base_name());
        let mut table = Table::new(title, kept.iter().map(plain).collect());
        for row in relative.rows() {
            table.push(Row::new(kept.iter().map(|index| row.cells[*index].clone())));
        }
        table
    }

    /// The columns that patches are posted with, with the first row as 100.
    fn ladder(&self) -> Table {
        let keys = LADDER.map(|(key, _)| key);
        let relative = relative_to_first(&self.counts(), &keys);
        let column = |key: &str| relative.column_index(key).expect("the counts have the columns of a ladder");
        let columns = LADDER.map(|(key, heading)| Column::ratio(key, heading));
        let columns = std::iter::once(Column::label("policy", "policy")).chain(columns).collect();
        let title = format!("{}; {} = 100", self.title(), self.base_name());
        let mut table = Table::new(title, columns);
        for row in relative.rows() {
            let cells = std::iter::once("policy").chain(keys).map(|key| row.cells[column(key)].clone());
            table.push(Row::new(cells));
        }
        table
    }

    /// What 100 stands for.
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
        self.replay.outcomes.first().map_or("the first row", |outcome| outcome.policy)
    }

    fn notes(&self) -> Vec<String> {
        let Some(first) = self.replay.outcomes.first() else { return Vec::new() };
        let mut notes = Vec::new();
        if let Some(KernelDocument { refills, refilled_pages, drains, drained_pages }) = self.kernel() {
            notes.push(format!(
                "The recorded kernel itself: {refills} refills of {refilled_pages} pages, {drains} drains of \
                 {drained_pages} pages, by its events."
            ));
        }
        notes.push(format!(
            "Frees of pages whose allocation the recording does not show: {} of {}.",
            first.unmatched_frees, first.frees
        ));
        notes.extend(self.replay.tick_interval_s.map(|seconds| {
            format!(
                "The recording has no ticks of its own (starts of `vmstat_update`), so every CPU ticks once in \
                 {seconds} s."
            )
        }));
        notes.extend(origin::lost_notes(&self.replay.lost));
        let Unreplayed { failed_in_recording, foreign_frames, impossible, allocated_twice } =
            self.replay.unreplayed;
        for (count, what) in [
            (failed_in_recording, "allocations that failed in the recording already"),
            (foreign_frames, "events about frames outside the machine's zones"),
            (impossible, "events with an order or CPU that the machine does not have"),
            (allocated_twice, "allocations of frames that were in use: their free is lost"),
        ] {
            if count > 0 {
                notes.push(format!("Not replayed: {count} {what}."));
            }
        }
        for outcome in self.replay.outcomes.iter().filter(|outcome| outcome.failed_allocs > 0) {
            let (policy, failed) = (outcome.policy, outcome.failed_allocs);
            notes
                .push(format!("{policy}: {failed} allocations failed here that succeeded in the recording."));
        }
        if self.origin == LayoutOrigin::Guessed {
            notes.push(
                "The trace does not describe its machine: CPUs and frames are those that occur in it, zones and \
                 watermarks are Linux's defaults. `pageset layout` prints them, `--layout` replaces them."
                    .to_owned(),
            );
        }
        if let Some(cpus) = self.cpus {
            notes.push(format!(
                "What if: {cpus} CPUs share the memory. The recording shows what CPUs did on a smaller machine; the \
                 others are idle here."
            ));
        }
        notes.push(
            "Page sets start empty, and the recorded order of events is kept under every policy: a replay has no \
             timing feedback. `pageset replay --help` says what follows."
                .to_owned(),
        );
        notes
    }

    /// The kernel's own counts, if they were recorded.
    fn kernel(&self) -> Option<KernelDocument> {
        let (refills, drains) = (&self.kernel.refills, &self.kernel.drains);
        (refills.total() + drains.total() > 0).then(|| KernelDocument {
            refills: refills.total(),
            refilled_pages: refills.sum,
            drains: drains.total(),
            drained_pages: drains.sum,
        })
    }

    fn document(&self) -> ReplayDocument<'_> {
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
            },
            rows: replay.outcomes.iter().map(RowDocument::new).collect(),
            notes: self.notes(),
            provenance: &self.provenance,
        }
    }
}

fn row(outcome: &Outcome) -> Row {
    let real = |value: Option<f64>, digits| value.map_or(Cell::Absent, |value| Cell::real(value, digits));
    Row::new([
        outcome.policy.into(),
        outcome.allocs.into(),
        outcome.frees.into(),
        real(outcome.hit_percent(), 2),
        outcome.refills.into(),
        outcome.refilled_pages.into(),
        outcome.drains.into(),
        outcome.drained_pages.into(),
        outcome.free_high_drains.into(),
        outcome.zone_lock_acquisitions.into(),
        real(outcome.pages_per_acquisition(), 2),
        outcome.pcp_pages_peak.into(),
        outcome.pcp_pages_end.into(),
        outcome.pcp_pages_idle.into(),
    ])
}

/// The result in JSON. Keys are stable.
#[derive(Serialize)]
struct ReplayDocument<'a> {
    trace: TraceOfReplay,
    rows: Vec<RowDocument<'a>>,
    notes: Vec<String>,
    provenance: &'a Provenance,
}

#[derive(Serialize)]
struct TraceOfReplay {
    #[serde(flatten)]
    trace: TraceDocument,
    unreplayed: Unreplayed,
    /// None if the recording has ticks of its own.
    tick_interval_s: Option<u32>,
    kernel_itself: Option<KernelDocument>,
}

/// What the recorded kernel did, as far as its events show.
#[derive(Serialize)]
struct KernelDocument {
    refills: u64,
    refilled_pages: u64,
    drains: u64,
    drained_pages: u64,
}

/// One policy's row: the counts, and what follows from them.
#[derive(Serialize)]
struct RowDocument<'a> {
    #[serde(flatten)]
    outcome: &'a Outcome,
    hit_percent: Option<f64>,
    pages_per_acquisition: Option<f64>,
}

impl<'a> RowDocument<'a> {
    fn new(outcome: &'a Outcome) -> Self {
        let (hit_percent, pages_per_acquisition) = (outcome.hit_percent(), outcome.pages_per_acquisition());
        Self { outcome, hit_percent, pages_per_acquisition }
    }
}
