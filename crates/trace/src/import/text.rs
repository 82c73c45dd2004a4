//! Reads any of the text formats: lines become events, losses and counts.

use super::{
    blocks::EventSource,
    flags::Legend,
    frames::Frames,
    header::{self, Header, HeaderStyle},
    lines::{Line, Lines},
    payload::{Payload, PayloadParser},
    repeats::Repeats,
    unreadable::unreadable,
};
use crate::{
    error::TraceError,
    event::{Event, EventKind, PFN_NONE},
    info::{LostEvents, TraceInfo},
    input::{self, ByteStream},
    reader::Strictness,
};

/// What tells one text format from another.
pub(super) trait TextFormat: Send {
    /// How events' lines start.
    const STYLE: HeaderStyle;
    /// What to tell the user when a line makes no sense.
    const REMEDY: &'static str;
    /// What to do where a page event has no frame, but the address of its `struct page`.
    const REMEDY_WITHOUT_FRAME: &'static str;

    /// Takes a line that is no event: headings and reports of losses. Neither marks of a quotation nor spaces are before it.
    fn other_line(&self, line: &[u8], info: &mut TraceInfo, lost: &mut LostEvents) -> OtherLine;
}

/// What a line that is no event turned out to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OtherLine {
    /// Understood: a heading, a comment, a report of losses.
    Taken,
    /// Not understood.
    Unknown,
}

/// A reader of the text format `F`.
pub(super) struct TextReader<F> {
    format: F,
    info: TraceInfo,
    lines: Lines,
    legend: Legend,
    frames: Frames,
    payloads: PayloadParser,
    repeats: Repeats,
    strictness: Strictness,
    lost: LostEvents,
    last_ts_ns: u64,
    has_events: bool,
    /// The first line that is nothing known.
    first_unrecognised: Option<u64>,
    /// The first line that makes no sense, where such lines are skipped.
    first_malformed: Option<(u64, Malformed)>,
    /// An error met while the headings were read, for the first block.
    pending: Option<TraceError>,
}

/// What a line that is no heading gave.
enum Found {
    Event(Event),
    /// Nothing, and it is counted where it has to be.
    Nothing,
    Malformed(Malformed),
}

/// What is wrong with a line.
struct Malformed {
    problem: String,
    remedy: &'static str,
}

impl<F: TextFormat> TextReader<F> {
    /// Reads the headings before the first event, so that the information is complete. `head` is the stream's beginning.
    pub(super) fn new(
        mut info: TraceInfo,
        (head, stream): (&[u8], Box<dyn ByteStream>),
        strictness: Strictness,
        format: F,
    ) -> Result<Self, TraceError> {
        let frames = Frames::of_head(head, F::STYLE)
            .map_err(|problem| TraceError::file(&info.path, problem, F::REMEDY_WITHOUT_FRAME))?;
        info.assumed.extend(frames.assumption());
        let mut reader = Self {
            format,
            lost: info.lost,
            info,
            lines: Lines::new(stream),
            legend: Legend::default(),
            frames,
            payloads: PayloadParser::default(),
            repeats: Repeats::default(),
            strictness,
            last_ts_ns: 0,
            has_events: false,
            first_unrecognised: None,
            first_malformed: None,
            pending: None,
        };
        reader.read_headings();
        Ok(reader)
    }

    fn read_headings(&mut self) {
        loop {
            match self.lines.next() {
                Ok(Some(Line::Whole(line))) if header::parse(line, F::STYLE, &self.legend).is_none() => {
                    let line = unquoted(line);
                    self.legend.note(line);
                    if self.format.other_line(line, &mut self.info, &mut self.lost) == OtherLine::Unknown {
                        return self.lines.unread();
                    }
                }
                // Counted here, since such a line cannot be given once more.
                Ok(Some(Line::TooLong)) => self.lost.oversized_lines += 1,
                Ok(Some(Line::Whole(_) | Line::Unfinished(_))) => return self.lines.unread(),
                Ok(None) => return,
                Err(error) => {
                    self.pending = Some(input::unreadable(&self.info.path, error));
                    return;
                }
            }
        }
    }

    /// What the next line gives; `None` at the end.
    fn next_found(&mut self) -> Result<Option<Found>, TraceError> {
        let found = match self.lines.next() {
            Err(error) => return Err(input::unreadable(&self.info.path, error)),
            Ok(None) => return Ok(None),
            Ok(Some(Line::TooLong)) => {
                self.lost.oversized_lines += 1;
                Found::Nothing
            }
            // A number in it may be cut short, so it is not believed even if it looks whole.
            Ok(Some(Line::Unfinished(line))) => match line.iter().all(u8::is_ascii_whitespace) {
                true => Found::Nothing,
                false => malformed::<F>("the last line has no end, the file is truncated".to_owned()),
            },
            Ok(Some(Line::Whole(line))) => match header::parse(line, F::STYLE, &self.legend) {
                Some(header) => {
                    let mut lines = EventLines {
                        frames: self.frames,
                        payloads: &mut self.payloads,
                        repeats: &mut self.repeats,
                        lost: &mut self.lost,
                    };
                    lines.event::<F>(&header)
                }
                None => {
                    let unquoted = unquoted(line);
                    self.legend.note(unquoted);
                    if self.format.other_line(unquoted, &mut self.info, &mut self.lost) == OtherLine::Taken
                        || is_of_stack(line, unquoted, F::STYLE)
                    {
                        Found::Nothing
                    } else {
                        strange::<F>(unquoted, &mut self.lost)
                    }
                }
            },
        };
        if self.lost.unrecognised_lines > 0 {
            self.first_unrecognised.get_or_insert(self.lines.number());
        }
        Ok(Some(found))
    }

    /// The end of a text that has no event at all is none: it is of another kind, or cut to nothing.
    fn end(&mut self) -> Result<(), TraceError> {
        let is_empty = !self.has_events && self.lost.unknown_events == 0;
        let skipped = self.lost.unrecognised_lines + self.lost.malformed_lines;
        if !is_empty || skipped == 0 {
            return Ok(());
        }
        // The error comes once; then this is the end.
        self.has_events = true;
        if let Some((line, Malformed { problem, remedy })) = self.first_malformed.take() {
            return Err(TraceError::line(&self.info.path, line, problem, remedy));
        }
        let problem = format!("none of the {} lines that are no headings is an event", skipped);
        let line = self.first_unrecognised.unwrap_or(self.lines.number());
        Err(TraceError::line(&self.info.path, line, problem, F::REMEDY))
    }
}

impl<F: TextFormat> EventSource for TextReader<F> {
    fn info(&self) -> &TraceInfo {
        &self.info
    }

    fn next_event(&mut self) -> Result<Option<Event>, TraceError> {
        if let Some(error) = self.pending.take() {
            return Err(error);
        }
        loop {
            match self.next_found()? {
                None => return self.end().map(|()| None),
                Some(Found::Nothing) => {}
                Some(Found::Event(event)) => {
                    self.has_events = true;
                    self.lost.out_of_order += u64::from(event.ts_ns < self.last_ts_ns);
                    self.last_ts_ns = event.ts_ns;
                    return Ok(Some(event));
                }
                Some(Found::Malformed(Malformed { problem, remedy })) => match self.strictness {
                    Strictness::Lenient => {
                        self.lost.malformed_lines += 1;
                        let line = self.lines.number();
                        self.first_malformed.get_or_insert((line, Malformed { problem, remedy }));
                    }
                    Strictness::Strict => {
                        // To skip such lines helps where some are damaged, not where all are of another form.
                        let or_skip = match remedy == F::REMEDY {
                            true => ", or read leniently to skip and count such lines",
                            false => "",
                        };
                        let remedy = format!("{remedy}{or_skip}");
                        return Err(TraceError::line(&self.info.path, self.lines.number(), problem, remedy));
                    }
                },
            }
        }
    }

    fn lost(&self) -> LostEvents {
        LostEvents { unknown_gfp_names: self.payloads.unknown_gfp_names, ..self.lost }
    }
}

/// What the lines of events need.
struct EventLines<'reader> {
    frames: Frames,
    payloads: &'reader mut PayloadParser,
    repeats: &'reader mut Repeats,
    lost: &'reader mut LostEvents,
}

impl EventLines<'_> {
    fn event<F: TextFormat>(&mut self, header: &Header<'_>) -> Found {
        let Some(kind) = EventKind::from_tracepoint(header.event) else {
            // trace-cmd gives call chains a name of their own.
            self.lost.unknown_events += u64::from(!matches!(header.event, b"kernel_stack" | b"user_stack"));
            return Found::Nothing;
        };
        let mut event = Event::new(kind, header.ts_ns, header.cpu);
        event.pid = header.pid;
        event.irq_flags = header.irq_flags;
        event.preempt = header.preempt;
        match self.payloads.fill(&mut event, header.payload) {
            Ok(Payload::Filled) => {}
            Ok(Payload::NotNeeded) => {
                self.lost.unknown_events += 1;
                return Found::Nothing;
            }
            Err(problem) => {
                let has_page = kind.has_frame() && problem.ends_with("no pfn=");
                let has_page = has_page && memchr::memmem::find(header.payload, b"page=").is_some();
                let remedy = if has_page { F::REMEDY_WITHOUT_FRAME } else { F::REMEDY };
                return Found::Malformed(Malformed {
                    problem: format!("{}: {problem}", kind.name()),
                    remedy,
                });
            }
        }
        if kind.has_frame() && event.pfn != PFN_NONE {
            match self.frames.frame(event.pfn, event.order) {
                Some(frame) => event.pfn = frame,
                // A failed allocation has no `struct page`: its distance from the first one is negative.
                None if kind == EventKind::MmPageAlloc && event.pfn >> 63 != 0 => event.pfn = PFN_NONE,
                None => {
                    return malformed::<F>(format!(
                        "{}: pfn= is not in the steps of the lines before",
                        kind.name()
                    ));
                }
            }
        }
        if header.event == b"mm_pagevec_free" {
            event.refill = 1;
        }
        if self.repeats.is_repeated(&event, header.event) {
            self.lost.unknown_events += 1;
            return Found::Nothing;
        }
        Found::Event(event)
    }
}

fn malformed<F: TextFormat>(problem: String) -> Found {
    Found::Malformed(Malformed { problem, remedy: F::REMEDY })
}

/// A line that is neither an event nor anything else that belongs into a text of this format.
fn strange<F: TextFormat>(line: &[u8], lost: &mut LostEvents) -> Found {
    if let Some(known) = unreadable(line) {
        return Found::Malformed(Malformed { problem: known.problem.to_owned(), remedy: known.remedy });
    }
    let has = |word: &[u8]| memchr::memmem::find(line, word).is_some();
    if has(b"mm_page") && has(b"pfn") {
        return malformed::<F>("a page event without task, CPU or time in seconds before it".to_owned());
    }
    lost.unrecognised_lines += 1;
    Found::Nothing
}

/// `line` without spaces at its ends and without the marks of a quotation before it.
pub(crate) fn unquoted(line: &[u8]) -> &[u8] {
    let is_mark = |byte: &u8| byte.is_ascii_whitespace() || matches!(byte, b'>' | b'|');
    let start = line.iter().position(|byte| !is_mark(byte)).unwrap_or(line.len());
    line[start..].trim_ascii_end()
}

/// Whether a line is part of a call chain: a heading, or a function.
///
/// ```text
/// ftrace       => __alloc_pages_nodemask
/// trace-cmd   => __alloc_pages_nodemask (ffffffff811d0a04)
/// perf                ffffffff811d0a04 __alloc_pages_nodemask+0x104 ([kernel.kallsyms])
/// ```
fn is_of_stack(line: &[u8], unquoted: &[u8], style: HeaderStyle) -> bool {
    let has = |word: &[u8]| memchr::memmem::find(unquoted, word).is_some();
    if unquoted.starts_with(b"=>")
        || unquoted.starts_with(b"<=")
        || has(b"<stack trace")
        || has(b"<user stack")
    {
        return true;
    }
    if style == HeaderStyle::Dash || has(b"pfn=") {
        return false;
    }
    let first = unquoted.split(u8::is_ascii_whitespace).next().unwrap_or_default();
    let address = first.strip_prefix(b"0x").unwrap_or(first);
    let is_address = (4..=16).contains(&address.len()) && address.iter().all(u8::is_ascii_hexdigit);
    // With `-F sym` there is no address, and in a chain no colon.
    let is_name = line.first().is_some_and(|byte| matches!(byte, b'\t' | b' ')) && !has(b": ") && !has(b"=");
    is_address || is_name || unquoted.ends_with(b"(inlined)")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_call_chains_are_told_from_damaged_events() {
        use HeaderStyle::{Dash, Space};
        for (line, style) in [
            (" => trace_event_raw_event_mm_page_free", Dash),
            ("> => free_unref_page", Dash),
            ("=> __alloc_pages_nodemask (ffffffff811d0a04)", Dash),
            (" =>  <00007f3c12345678>", Dash),
            ("  <...>-9 [004] ...1 77212.233934: <stack trace>", Dash),
            ("  cat-9 [004] ...1 77212.233934: <user stack trace>", Dash),
            ("\tffffffff811d0a04 trace_event_raw_event_mm_page_free+0x8b ([kernel.kallsyms])", Space),
            ("ffffffff811d0a04 perf_trace_mm_page_alloc", Space),
            ("            0x7efdf7f7d3e8 __poll+0x18 (/usr/lib64/libc-2.28.so)", Space),
            ("\t            7efd [unknown] ([unknown])", Space),
            ("            prep_new_page (inlined)", Space),
            ("\ttrace_event_raw_event_mm_page_free", Space),
        ] {
            assert!(is_of_stack(line.as_bytes(), unquoted(line.as_bytes()), style), "{line}");
        }
        for (line, style) in [
            ("a-1 [0", Dash),
            ("ffffffff811d0a04 trace_event_raw_event_mm_page_free", Dash),
            ("cat 1 [000] 5.1: kmem:mm_page_free: page=1 pfn=!", Space),
            ("hello", Space),
        ] {
            assert!(!is_of_stack(line.as_bytes(), unquoted(line.as_bytes()), style), "{line}");
        }
    }
}
