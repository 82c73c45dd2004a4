//! Reads a kernel's description of its events, as `trace-cmd` and `perf` store it. The description consists
//! of copies of tracefs' files, with their sizes.
//!
//! Source: trace-cmd.dat.v6(5), from "HEADER INFO FORMAT" to "PROCESS INFORMATION".

use std::{
    io::{self, BufRead},
    path::Path,
};

use super::bytes::{Bytes, quoted};
use crate::{
    error::TraceError,
    event::EventKind,
    raw::{Decoder, EventFormat, Need, PROBES, PageLayout, Symbols, TRACEPOINTS, Tracepoint},
};

/// The parts of a description that were read so far.
#[derive(Default)]
pub(super) struct TracingData {
    layout: Option<PageLayout>,
    events: Vec<(Tracepoint, EventFormat)>,
    /// Whether the descriptions of all events were read.
    has_events: bool,
    symbols: Symbols,
}

impl TracingData {
    /// Reads all parts in order. The last part has the names of tasks; old files do not have this part. After
    /// an error in a part, the parts before the error stay.
    pub(super) fn read<R: BufRead>(
        &mut self,
        bytes: &mut Bytes<R>,
        has_tasks: bool,
    ) -> Result<(), TraceError> {
        self.read_header(bytes)?;
        self.pass_ftrace_events(bytes)?;
        self.read_events(bytes)?;
        self.read_symbols(bytes)?;
        let printk_bytes = bytes.u32()?;
        bytes.skip(printk_bytes.into())?;
        if has_tasks {
            let task_bytes = bytes.u64()?;
            bytes.skip(task_bytes)?;
        }
        Ok(())
    }

    /// Reads the layout of a ring's pages.
    pub(super) fn read_header<R: BufRead>(&mut self, bytes: &mut Bytes<R>) -> Result<(), TraceError> {
        bytes.expect(b"header_page\0")?;
        let page_bytes = bytes.u64()?;
        let page = bytes.text(page_bytes)?;
        bytes.expect(b"header_event\0")?;
        let event_bytes = bytes.u64()?;
        let event = bytes.text(event_bytes)?;
        self.layout = Some(PageLayout::parse(&page, &event).map_err(|problem| bytes.error(problem))?);
        Ok(())
    }

    fn pass_ftrace_events<R: BufRead>(&mut self, bytes: &mut Bytes<R>) -> Result<(), TraceError> {
        for _ in 0..bytes.u32()? {
            let format_bytes = bytes.u64()?;
            bytes.skip(format_bytes)?;
        }
        Ok(())
    }

    /// Reads the descriptions of the events in all groups of tracepoints. Keeps only the events that a trace
    /// can hold.
    pub(super) fn read_events<R: BufRead>(&mut self, bytes: &mut Bytes<R>) -> Result<(), TraceError> {
        for _ in 0..bytes.u32()? {
            let system = bytes.name()?;
            for _ in 0..bytes.u32()? {
                let format_bytes = bytes.u64()?;
                let text = bytes.text(format_bytes)?;
                self.note(&system, &text)
                    .map_err(|problem| bytes.error(format!("an event of {}: {problem}", quoted(&system))))?;
            }
        }
        self.has_events = true;
        Ok(())
    }

    /// Whether all events were described.
    pub(super) const fn has_events(&self) -> bool {
        self.has_events
    }

    /// Adds an event. An event that lacks a field counts as unknown, unless a recording is useless without
    /// the event.
    fn note(&mut self, system: &str, text: &str) -> Result<(), String> {
        let name = text.lines().find_map(|line| line.strip_prefix("name:")).unwrap_or_default().trim();
        let Some(tracepoint) = tracepoint(system, name) else { return Ok(()) };
        if self.events.iter().any(|(known, _)| known.kind == tracepoint.kind) {
            return Ok(());
        }
        let event = (tracepoint, EventFormat::parse(text)?);
        match Decoder::new(std::slice::from_ref(&event), Symbols::default()) {
            Ok(_) => self.events.push(event),
            Err(problem) if tracepoint.need == Need::Required && event.1.field("page").is_some() => {
                return Err(format!(
                    "{problem}, but an address, as in kernels before 4.1: copy the kernel's own text, \
                     /sys/kernel/tracing/trace, which has frames"
                ));
            }
            Err(problem) if tracepoint.need == Need::Required => return Err(problem),
            Err(_) => {}
        }
        Ok(())
    }

    /// Reads a copy of `/proc/kallsyms`.
    pub(super) fn read_symbols<R: BufRead>(&mut self, bytes: &mut Bytes<R>) -> Result<(), TraceError> {
        let symbol_bytes = bytes.u32()?;
        self.symbols = bytes.part(symbol_bytes.into(), |text: &mut io::Take<&mut R>| Symbols::of(text))?;
        Ok(())
    }

    /// Names of the described events that a trace can hold.
    pub(super) fn names(&self) -> Vec<String> {
        self.events.iter().map(|(tracepoint, _)| tracepoint.kind.name().to_owned()).collect()
    }

    /// Whether the file shows the work items that are ticks.
    pub(super) const fn names_ticks(&self) -> bool {
        self.symbols.vmstat_update.is_some()
    }

    /// Makes the readers of ring pages and of the records in them.
    pub(super) fn finish(self, path: &Path) -> Result<(PageLayout, Decoder), TraceError> {
        let remedy = "record again, with kmem:mm_page_alloc and kmem:mm_page_free at least";
        let missing = |problem: &str| TraceError::file(path, problem, remedy);
        let layout = self.layout.ok_or_else(|| missing("does not describe its pages"))?;
        let decoder = Decoder::new(&self.events, self.symbols);
        Ok((layout, decoder.map_err(|_| missing("describes no page events"))?))
    }
}

/// Finds the catalogue's entry for `system:name`. The group of a probe is not compared, because users choose
/// this group. Marks are left out, because only this project's recorder writes them.
fn tracepoint(system: &str, name: &str) -> Option<Tracepoint> {
    let is_it =
        |known: &Tracepoint| known.name == name && (known.system == system || known.system.is_empty());
    TRACEPOINTS.into_iter().chain(PROBES).find(|known| is_it(known) && known.kind != EventKind::Marker)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FORMAT: &str = include_str!("../../tests/kernel/mm_page_alloc.format");

    #[test]
    fn events_are_kept_by_name_once() {
        let mut described = TracingData::default();
        described.note("kmem", FORMAT).unwrap();
        described.note("kmem", FORMAT).unwrap();
        described.note("other", FORMAT).unwrap();
        described.note("kmem", "name: kmalloc\n").unwrap();
        assert_eq!(described.events.len(), 1);
    }

    #[test]
    fn only_events_that_a_recording_needs_must_have_their_fields() {
        let without_pfn = FORMAT.replace(" pfn;", " page;");
        let error = TracingData::default().note("kmem", &without_pfn).unwrap_err();
        assert!(error.contains("pfn") && error.contains("before 4.1"), "{error}");
        let mut described = TracingData::default();
        let other = without_pfn.replace("name: mm_page_alloc", "name: mm_page_pcpu_drain");
        described.note("kmem", &other).unwrap();
        assert!(described.events.is_empty());
        let error = described.finish(Path::new("t.dat")).map(drop).unwrap_err().to_string();
        assert!(error.contains("does not describe"), "{error}");
    }
}
