//! Prints the result of a contest: a row for each allocator, and notes. In a contest, several allocators play
//! one recording.

use std::io::Write;

use anyhow::Result;
use pageset_report::{Cell, Column, Format, Provenance, Row, Table, command_line, json_document};
use pageset_study::contest::{ContestRow, LeftOut, Recording};
use pageset_trace::{Layout, TraceReader as _};
use serde::Serialize;

use crate::layouts::LayoutOrigin;
use crate::origin::{self, TraceDocument};
use crate::source::{self, Source};

/// A contest, with the data that its notes need.
pub(super) struct Finished {
    pub(super) source: Source,
    pub(super) machine: Layout,
    pub(super) origin: LayoutOrigin,
    pub(super) recording: Recording,
    pub(super) rows: Vec<ContestRow>,
    pub(super) provenance: Provenance,
}

impl Finished {
    pub(super) fn write(&self, format: Format, out: &mut dyn Write) -> Result<()> {
        if format == Format::Json {
            json_document(&self.document(), out)?;
            return Ok(());
        }
        let mut table = self.table();
        self.notes().into_iter().for_each(|note| table.note(note));
        Ok(format.exporter().export(&table.with_provenance(self.provenance.clone()), out)?)
    }

    fn title(&self) -> String {
        let info = self.source.info();
        let mut title =
            format!("Contest on {}: {} allocations and frees", source::title(info), self.recording.events());
        if let Some(seconds) = self.source.seconds() {
            title += &format!(" in {seconds:.1} s");
        }
        if !info.command.is_empty() {
            title += &format!(", `{}`", command_line(&info.command));
        }
        title
    }

    fn table(&self) -> Table {
        let columns = vec![
            Column::label("allocator", "allocator"),
            Column::count("visits", "visits"),
            Column::count("contended_lines", "lines"),
            Column::count("line_transfers", "passed"),
            Column::count("fallbacks", "fallbacks"),
            Column::ratio("held_mean", "held, mean"),
            Column::count("held_peak", "held, peak"),
            Column::count("held_idle", "held, idle"),
            Column::ratio("at_hand_mean", "at hand, mean"),
            Column::count("whole_at_end", "whole, end"),
            Column::count("whole_when_gone", "whole, gone"),
            Column::count("allocs", "allocations"),
            Column::count("failures", "failed"),
        ];
        let mut table = Table::new(self.title(), columns);
        self.rows.iter().for_each(|found| table.push(row(found)));
        table
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = vec![
            "`visits`: how often a CPU took a zone's lock, or changed data that all CPUs of a zone share. \
             `lines`: the part of these visits that changed a pageblock, or a page set, that another CPU had \
             changed less than 10 us before. `passed`: changes of a pageblock, or a page set, that another CPU had \
             changed last, at any time before."
                .to_owned(),
            "`held`: free pages that a CPU keeps back from all others; `idle` is two seconds after the last \
             event. `at hand`: free pages that are meant for one CPU, but that other CPUs take if they find no \
             other pages."
                .to_owned(),
            "`whole`: pageblocks that are completely free after the last event, and when all pages of the load \
             are freed. Pageblocks at hand are included."
                .to_owned(),
        ];
        if self.rows.iter().any(|row| row.failures > 0) {
            notes.push(
                "`failed`: requests that found no memory. The simulation reclaims nothing, so the other \
                 numbers of such a row are of a smaller load."
                    .to_owned(),
            );
        }
        let LeftOut { unmatched_frees, .. } = self.recording.left_out;
        notes.push(format!(
            "Not played: bulk allocations, whose pages the recording does not name; {unmatched_frees} frees of pages \
             whose allocation the recording does not show."
        ));
        notes.extend(self.oddities());
        notes.extend(origin::lost_notes(&self.source.lost()));
        notes.extend(self.source.info().assumptions(Some(&self.machine)));
        if self.origin == LayoutOrigin::Guessed {
            notes.push(
                "The recording does not describe its machine, so pageset guesses one, with Linux's defaults. \
                 `pageset convert --to layout` prints the guess, and `--layout` replaces it."
                    .to_owned(),
            );
        }
        notes.push(
            "Memory is empty at first, the recorded order of events is kept, and no time is modelled. `pageset simulate --recording \
             --help` says more."
                .to_owned(),
        );
        notes
    }

    /// Sentences on the requests of the recording that the contest changed or left out.
    fn oddities(&self) -> Vec<String> {
        let LeftOut { failed_in_recording, impossible, allocated_twice, .. } = self.recording.left_out;
        let counts = [
            (failed_in_recording, "Not played: ", "allocations that failed in the recording already"),
            (impossible, "Not played: ", "allocations of an order that no block has"),
            (allocated_twice, "Freed without an event: ", "blocks, whose frames were allocated again"),
        ];
        let counted = counts.iter().filter(|(count, ..)| *count > 0);
        let mut oddities: Vec<_> =
            counted.map(|(count, how, what)| format!("{how}{count} {what}.")).collect();
        if self.recording.cpus > self.machine.cpus {
            oddities.push(format!(
                "The recording names {} CPUs, but the machine has {}: a CPU of the machine may play the events of \
                 several recorded CPUs.",
                self.recording.cpus, self.machine.cpus
            ));
        }
        oddities
    }

    fn document(&self) -> ContestDocument<'_> {
        let machine = (self.machine.clone(), self.origin);
        let info = self.source.info();
        let events = self.recording.events() as u64;
        ContestDocument {
            trace: TraceDocument::new(
                info,
                events,
                self.source.seconds(),
                self.source.lost(),
                Some(&machine),
            ),
            left_out: self.recording.left_out,
            rows: self.rows.iter().map(RowDocument::new).collect(),
            notes: self.notes(),
            provenance: &self.provenance,
        }
    }
}

fn row(found: &ContestRow) -> Row {
    Row::new([
        found.allocator.as_str().into(),
        found.visits().into(),
        found.shared.contended_lines.into(),
        found.shared.line_transfers.into(),
        found.shared.fallbacks.into(),
        Cell::real(found.held_mean, 0),
        found.held_peak.into(),
        found.held_idle.into(),
        Cell::real(found.at_hand_mean, 0),
        found.whole_at_end.into(),
        found.whole_when_gone.into(),
        found.allocs.into(),
        found.failures.into(),
    ])
}

/// The result in JSON. Keys are stable.
#[derive(Serialize)]
struct ContestDocument<'a> {
    /// The recording. `events` is the number of played events.
    trace: TraceDocument,
    left_out: LeftOut,
    rows: Vec<RowDocument<'a>>,
    notes: Vec<String>,
    provenance: &'a Provenance,
}

/// One allocator's row.
#[derive(Serialize)]
struct RowDocument<'a> {
    #[serde(flatten)]
    row: &'a ContestRow,
    visits: u64,
}

impl<'a> RowDocument<'a> {
    fn new(row: &'a ContestRow) -> Self {
        Self { row, visits: row.visits() }
    }
}
