//! Reads all text formats, and makes events and counts of losses from lines.
//!
//! Several threads parse lines that can be understood alone, such as events (`parse`). `chunks` delivers the
//! results in order. Lines that depend on earlier lines are handled in this module, one after the other.

use super::{
    blocks::EventSource,
    chunks::{Chunk, Chunks, Raw},
    flags::Legend,
    frames::Frames,
    header::{self, Header, HeaderStyle},
    lines::{LINE_BYTES_MAX, Line, TextLines},
    payload::{Payload, PayloadParser},
    quick::Quick,
    repeats::Repeats,
    unreadable::unreadable,
};
use crate::{
    amount::Amount,
    damage::Strictness,
    error::TraceError,
    event::{Event, EventKind, PFN_NONE},
    info::{LostEvents, TraceInfo},
    input,
    packing::ByteStream,
};

/// The differences between text formats.
pub(super) trait TextFormat: Send {
    /// The beginning of an event's line.
    const STYLE: HeaderStyle;
    /// Remedy for a line that has no known form.
    const REMEDY: &'static str;
    /// Remedy for a page event with the address of a `struct page` but without a frame.
    const REMEDY_WITHOUT_FRAME: &'static str;

    /// Reads a line that is not an event: a heading or a report of losses. The caller has removed spaces and
    /// quotation marks before the line.
    fn other_line(&self, line: &[u8], info: &mut TraceInfo, lost: &mut LostEvents) -> OtherLine;
}

/// Whether a format understands a line that is not an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OtherLine {
    /// The line was understood: a heading, a comment, or a report of losses.
    Taken,
    /// The line was not understood.
    Unknown,
}

/// The bytes of a text.
pub(super) struct Source<'a> {
    /// The beginning of the stream.
    pub(super) head: &'a [u8],
    pub(super) stream: Box<dyn ByteStream>,
    /// Counts the bytes of the stream that were read.
    pub(super) amount: Amount,
}

/// A reader of the text format `F`.
pub(super) struct TextReader<F> {
    format: F,
    info: TraceInfo,
    amount: Amount,
    /// The text, while its headings are read. `None` once the first event was requested.
    lines: Option<TextLines>,
    /// The lines after the headings.
    chunks: Option<Chunks<Vec<Item>>>,
    chunk: At,
    /// Number of the last line returned, counted from 1.
    number: u64,
    legend: Legend,
    frames: Frames,
    payloads: PayloadParser,
    repeats: Repeats,
    strictness: Strictness,
    lost: LostEvents,
    last_ts_ns: u64,
    has_events: bool,
    /// The number of the first line that was not recognised.
    first_unrecognised: Option<u64>,
    /// The number and the problem of the first malformed line, if malformed lines are skipped.
    first_malformed: Option<(u64, Malformed)>,
    /// An error in the headings. The reader returns this error in place of the first block.
    pending: Option<TraceError>,
}

/// A chunk of lines, and the position of the next line in it.
#[derive(Default)]
struct At {
    raw: Raw,
    items: std::vec::IntoIter<Item>,
}

/// The result of parsing one line.
enum Item {
    /// An event. The second value counts unknown names of the event's allocation flags. The third value is
    /// true if the event's tracepoint has the old name `mm_page_free_direct`.
    Event(Event, u32, bool),
    /// The line has no event of a kind that this crate reads. The value is true if the line counts as an
    /// event of another kind.
    Nothing(bool),
    /// The line between these positions must be parsed once more, after all earlier lines.
    Other(usize, usize),
}

/// The meaning of a line after the headings.
enum Found {
    Event(Event),
    /// The line is not an event. If the line reports losses, the losses have been counted.
    Nothing,
    Malformed(Malformed),
}

/// The problem of a malformed line, and the remedy.
struct Malformed {
    problem: String,
    remedy: &'static str,
}

impl<F: TextFormat> TextReader<F> {
    /// Reads the headings before the first event, so that the trace's information is complete.
    pub(super) fn new(
        mut info: TraceInfo,
        Source { head, stream, amount }: Source<'_>,
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
            amount,
            lines: Some(TextLines::new(stream)),
            chunks: None,
            chunk: At::default(),
            number: 0,
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
        reader.info.kinds_at_start = kinds::<F>(head, &reader.legend, frames);
        Ok(reader)
    }

    fn read_headings(&mut self) {
        let Some(lines) = &mut self.lines else { return };
        loop {
            match lines.next() {
                Ok(Some(Line::Whole(line))) if header::parse(line, F::STYLE, &self.legend).is_none() => {
                    let line = unquoted(line);
                    self.legend.note(line);
                    if self.format.other_line(line, &mut self.info, &mut self.lost) == OtherLine::Unknown {
                        return lines.unread();
                    }
                }
                // Count a line longer than the limit now, because `unread` cannot return such a line once
                // more.
                Ok(Some(Line::TooLong)) => self.lost.oversized_lines += 1,
                Ok(Some(Line::Whole(_) | Line::Unfinished(_))) => return lines.unread(),
                Ok(None) => return,
                Err(error) => {
                    self.pending = Some(input::unreadable(&self.info.path, error));
                    return;
                }
            }
        }
    }

    /// Returns the parsed item of the next line, or `None` at the end.
    fn next_item(&mut self) -> std::io::Result<Option<Item>> {
        loop {
            if let Some(item) = self.chunk.items.next() {
                self.number += 1;
                return Ok(Some(item));
            }
            if let Some(lines) = self.lines.take() {
                let (number, rest) = lines.into_rest();
                self.number = number;
                let (frames, parser) = (self.frames, Parser::default);
                self.chunks = Some(Chunks::begin(rest, self.legend, || {
                    let mut parser = parser();
                    move |raw: &Raw, legend: &Legend| parser.parse::<F>(raw, 0, legend, frames)
                })?);
            }
            let Some(chunks) = &mut self.chunks else { return Ok(None) };
            let Some(Chunk { raw, legend, parsed }) = chunks.next()? else { return Ok(None) };
            let is_stale = legend != self.legend;
            self.chunk = At { raw, items: parsed.into_iter() };
            if is_stale {
                self.parse_from(0);
            }
        }
    }

    /// Parses the remaining lines of the chunk again, under the new legend.
    fn parse_from(&mut self, start: usize) {
        let items = Parser::default().parse::<F>(&self.chunk.raw, start, &self.legend, self.frames);
        self.chunk.items = items.into_iter();
    }

    /// Returns the meaning of the next line, or `None` at the end.
    fn next_found(&mut self) -> Result<Option<Found>, TraceError> {
        let item = self.next_item().map_err(|error| input::unreadable(&self.info.path, error))?;
        let found = match item {
            None => return Ok(None),
            Some(Item::Event(event, unknown_gfp_names, is_direct)) => {
                self.payloads.unknown_gfp_names += u64::from(unknown_gfp_names);
                self.in_order(event, is_direct)
            }
            Some(Item::Nothing(is_counted)) => {
                self.lost.unknown_events += u64::from(is_counted);
                Found::Nothing
            }
            Some(Item::Other(..)) if self.chunk.raw.is_too_long => {
                self.lost.oversized_lines += 1;
                Found::Nothing
            }
            Some(Item::Other(start, end)) => {
                let is_unfinished = self.chunk.raw.is_unfinished && end == self.chunk.raw.bytes.len();
                if end - start > LINE_BYTES_MAX {
                    self.lost.oversized_lines += 1;
                    Found::Nothing
                } else if is_unfinished {
                    // A number in the last line may be cut short. Do not trust the last line, even if it
                    // looks complete.
                    match self.chunk.raw.bytes[start..end].iter().all(u8::is_ascii_whitespace) {
                        true => Found::Nothing,
                        false => malformed::<F>("the last line has no end, the file is truncated".to_owned()),
                    }
                } else {
                    let legend = self.legend;
                    let found = self.line(start, end);
                    if legend != self.legend {
                        self.chunks.iter().for_each(|chunks| chunks.note(self.legend));
                        self.parse_from(end + 1);
                    }
                    found
                }
            }
        };
        if self.lost.unrecognised_lines > 0 {
            self.first_unrecognised.get_or_insert(self.number);
        }
        Ok(Some(found))
    }

    /// Returns the meaning of a line that depends on earlier lines.
    fn line(&mut self, start: usize, end: usize) -> Found {
        let line = &self.chunk.raw.bytes[start..end];
        if let Some(header) = header::parse(line, F::STYLE, &self.legend) {
            return match of_header::<F>(&header, &mut self.payloads, self.frames) {
                Ok(Some(event)) => {
                    let is_direct = header.event == DIRECT;
                    self.in_order(event, is_direct)
                }
                Ok(None) => {
                    self.lost.unknown_events += u64::from(!is_call_chain(&header));
                    Found::Nothing
                }
                Err(malformed) => Found::Malformed(malformed),
            };
        }
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

    fn in_order(&mut self, event: Event, is_direct: bool) -> Found {
        if self.repeats.is_repeated(&event, is_direct) {
            self.lost.unknown_events += 1;
            return Found::Nothing;
        }
        Found::Event(event)
    }

    /// Checks the whole text at its end. A text without any event is an error, because it has another format,
    /// or its events were cut off.
    fn end(&mut self) -> Result<(), TraceError> {
        let is_empty = !self.has_events && self.lost.unknown_events == 0;
        let skipped = self.lost.unrecognised_lines + self.lost.malformed_lines;
        if !is_empty || skipped == 0 {
            return Ok(());
        }
        // Return the error only once. The next call returns the end of the text.
        self.has_events = true;
        if let Some((line, Malformed { problem, remedy })) = self.first_malformed.take() {
            return Err(TraceError::line(&self.info.path, line, problem, remedy));
        }
        let problem = format!("none of the {} lines below the headings is an event", skipped);
        let line = self.first_unrecognised.unwrap_or(self.number);
        Err(TraceError::line(&self.info.path, line, problem, F::REMEDY))
    }
}

impl<F: TextFormat> EventSource for TextReader<F> {
    fn info(&self) -> &TraceInfo {
        &self.info
    }

    fn amount(&self) -> Amount {
        self.amount.clone()
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
                        let line = self.number;
                        self.first_malformed.get_or_insert((line, Malformed { problem, remedy }));
                    }
                    Strictness::Strict => {
                        // If a line has `page=` without `pfn=`, the lines of all page events lack their
                        // frames. So do not offer to skip such lines.
                        let or_skip = match remedy == F::REMEDY {
                            true => ", or read leniently to skip and count such lines",
                            false => "",
                        };
                        let remedy = format!("{remedy}{or_skip}");
                        return Err(TraceError::line(&self.info.path, self.number, problem, remedy));
                    }
                },
            }
        }
    }

    fn lost(&self) -> LostEvents {
        LostEvents { unknown_gfp_names: self.payloads.unknown_gfp_names, ..self.lost }
    }
}

/// The tracepoint of frees that old kernels report twice.
const DIRECT: &[u8] = b"mm_page_free_direct";

/// Whether the line begins a call chain. trace-cmd prints a call chain as an event with its own name.
fn is_call_chain(header: &Header<'_>) -> bool {
    matches!(header.event, b"kernel_stack" | b"user_stack")
}

/// The parser of one thread.
#[derive(Default)]
struct Parser {
    quick: Quick,
    payloads: PayloadParser,
}

impl Parser {
    /// Parses all lines of a chunk from byte `start` on.
    fn parse<F: TextFormat>(
        &mut self,
        raw: &Raw,
        start: usize,
        legend: &Legend,
        frames: Frames,
    ) -> Vec<Item> {
        if raw.is_too_long {
            return vec![Item::Other(0, 0)];
        }
        let bytes = &raw.bytes;
        let mut items = Vec::with_capacity((bytes.len() - start) / LINE_BYTES_USUAL);
        let mut start = start;
        self.quick.under(legend);
        while start < bytes.len() {
            if frames == Frames::Numbers
                && let Some((event, unknown, length)) = self.quick.event(&bytes[start..], F::STYLE)
                && length <= LINE_BYTES_MAX
            {
                items.push(Item::Event(event, unknown, false));
                start += length + 1;
                continue;
            }
            let end = memchr::memchr(b'\n', &bytes[start..]).map(|length| start + length);
            let read = end.and_then(|end| self.line::<F>(&bytes[start..end], legend, frames));
            let end = end.unwrap_or(bytes.len());
            items.push(read.unwrap_or(Item::Other(start, end)));
            start = end + 1;
        }
        items
    }

    /// Parses a line that `quick` did not read. Returns `None` if the meaning of the line depends on earlier
    /// lines.
    fn line<F: TextFormat>(&mut self, line: &[u8], legend: &Legend, frames: Frames) -> Option<Item> {
        if line.len() > LINE_BYTES_MAX {
            return None;
        }
        let Some(header) = header::parse(line, F::STYLE, legend) else {
            // A line that begins with `=> ` is a function of a call chain.
            let is_function = line.trim_ascii_start().starts_with(b"=> ");
            return is_function.then_some(Item::Nothing(false));
        };
        let before = self.payloads.unknown_gfp_names;
        match of_header::<F>(&header, &mut self.payloads, frames) {
            Ok(Some(event)) => {
                let unknown = (self.payloads.unknown_gfp_names - before) as u32;
                Some(Item::Event(event, unknown, header.event == DIRECT))
            }
            Ok(None) => Some(Item::Nothing(!is_call_chain(&header))),
            Err(_) => None,
        }
    }
}

/// Returns the kinds of the events in the whole lines of `head`, sorted.
fn kinds<F: TextFormat>(head: &[u8], legend: &Legend, frames: Frames) -> Vec<EventKind> {
    let end = memchr::memrchr(b'\n', head).map_or(0, |end| end + 1);
    let raw = Raw { bytes: head[..end].to_vec(), ..Raw::default() };
    let items = Parser::default().parse::<F>(&raw, 0, legend, frames);
    let kinds = items.iter().filter_map(|item| match item {
        Item::Event(event, ..) => Some(event.kind),
        Item::Nothing(_) | Item::Other(..) => None,
    });
    kinds.collect::<std::collections::BTreeSet<_>>().into_iter().collect()
}

/// Guess of the length of a line, to reserve memory.
const LINE_BYTES_USUAL: usize = 100;

/// Parses an event whose header was read. `None` if events of this kind are not read.
fn of_header<F: TextFormat>(
    header: &Header<'_>,
    payloads: &mut PayloadParser,
    frames: Frames,
) -> Result<Option<Event>, Malformed> {
    let Some(kind) = EventKind::from_tracepoint(header.event) else { return Ok(None) };
    let mut event = Event::new(kind, header.ts_ns, header.cpu);
    event.pid = header.pid;
    event.irq_flags = header.irq_flags;
    event.preempt = header.preempt;
    match payloads.fill(&mut event, header.payload) {
        Ok(Payload::Filled) => {}
        Ok(Payload::NotNeeded) => return Ok(None),
        Err(problem) => {
            let has_page = kind.has_frame() && problem.ends_with("no pfn=");
            let has_page = has_page && memchr::memmem::find(header.payload, b"page=").is_some();
            let remedy = if has_page { F::REMEDY_WITHOUT_FRAME } else { F::REMEDY };
            return Err(Malformed { problem: format!("{}: {problem}", kind.name()), remedy });
        }
    }
    if kind.has_frame() && event.pfn != PFN_NONE {
        match frames.frame(event.pfn, event.order) {
            Some(frame) => event.pfn = frame,
            // A failed allocation has no `struct page`, so its distance from the first `struct page` is
            // negative.
            None if kind == EventKind::MmPageAlloc && event.pfn >> 63 != 0 => event.pfn = PFN_NONE,
            None => {
                let problem = format!("{}: pfn= is not a multiple of the step in earlier lines", kind.name());
                return Err(Malformed { problem, remedy: F::REMEDY });
            }
        }
    }
    if header.event == b"mm_pagevec_free" {
        event.refill = 1;
    }
    Ok(Some(event))
}

fn malformed<F: TextFormat>(problem: String) -> Found {
    Found::Malformed(Malformed { problem, remedy: F::REMEDY })
}

/// Handles a line that does not have a form of this format. If the line looks like a page event, returns an
/// error. Counts any other line.
fn strange<F: TextFormat>(line: &[u8], lost: &mut LostEvents) -> Found {
    if let Some(known) = unreadable(line) {
        return Found::Malformed(Malformed { problem: known.problem.to_owned(), remedy: known.remedy });
    }
    let has = |word: &[u8]| memchr::memmem::find(line, word).is_some();
    if has(b"mm_page") && has(b"pfn") {
        return malformed::<F>(
            "a page event whose task, CPU or time in seconds is missing or out of range".to_owned(),
        );
    }
    lost.unrecognised_lines += 1;
    Found::Nothing
}

/// Removes the spaces around `line`, and the quotation marks before it.
pub(crate) fn unquoted(line: &[u8]) -> &[u8] {
    let is_mark = |byte: &u8| byte.is_ascii_whitespace() || matches!(byte, b'>' | b'|');
    let start = line.iter().position(|byte| !is_mark(byte)).unwrap_or(line.len());
    line[start..].trim_ascii_end()
}

/// Whether a line belongs to a call chain, as its heading or as a function.
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
    // With perf's `-F sym`, lines of a call chain have no address. Lines of a call chain never contain a
    // colon.
    let is_name = line.first().is_some_and(|byte| matches!(byte, b'\t' | b' ')) && !has(b": ") && !has(b"=");
    is_address || is_name || unquoted.ends_with(b"(inlined)")
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::OpenOptions;

    const LEGEND: [&str; 5] = [
        "_-----=> irqs-off",
        "/ _--=> need-resched",
        "| _--=> hardirq/softirq",
        "| _--=> migrate-disable",
        "| _-=> preempt-depth",
    ];

    fn event(at: usize) -> String {
        format!(
            "   x-7 [{:03}] d..1. {}.{:06}: mm_page_free: page=1 pfn={at:#x} order=0\n",
            at % 3,
            at / 1000,
            at % 1000
        )
    }

    fn read(text: &str) -> Result<Vec<Event>, TraceError> {
        let mut reader = OpenOptions::new().open_bytes(Path::new("t"), text.as_bytes().to_vec())?;
        let (mut all, mut block) = (Vec::new(), Vec::new());
        while reader.read_block(&mut block)? > 0 {
            all.extend_from_slice(&block);
        }
        Ok(all)
    }

    /// Several threads parse lines, in chunks. Tests that events keep their order, and that an error still
    /// names the line's number in the file.
    #[test]
    fn events_keep_their_order_and_an_error_its_line() {
        let mut text = "# tracer: nop\n".to_owned();
        text.extend((1..30_000).map(event));
        let events = read(&text).unwrap();
        assert!(
            events.iter().map(|event| event.pfn).eq(1..30_000),
            "expected the events in the order of the text"
        );
        text += "  x-7 [000] d..1. 31.0: mm_page_free: page=1 pfn=! order=0\n";
        text.extend((1..30_000).map(event));
        let error = read(&text).unwrap_err().to_string();
        assert!(error.starts_with("t:30001: mm_page_free: pfn is not a number"), "{error}");
    }

    /// Tests a text that contains the beginning of a second text. The second text has another legend, so the
    /// same flag characters have another meaning.
    #[test]
    fn a_legend_holds_from_its_line_on() {
        let (before, between, behind) = (10_000, 3, 20_000);
        let mut text: String = (1..=before).map(event).collect();
        text.extend(LEGEND.map(|line| format!("#    {line}\n")));
        text.extend((1..=between).map(event));
        text += "# tracer: nop\n";
        text.extend((1..=behind).map(event));
        let preempt: Vec<u8> = read(&text).unwrap().iter().map(|event| event.preempt).collect();
        assert_eq!(preempt.len(), before + between + behind);
        assert!(preempt[..before].iter().all(|depth| *depth == 1));
        assert!(
            preempt[before..].iter().all(|depth| *depth == 0),
            "expected the depth of preemption from the last character, as the new legend says"
        );
    }

    /// A text without a layout may be refused when it is open. Tests that not much more than its first 64 KiB
    /// is read until then.
    #[test]
    fn an_open_text_was_read_only_at_its_beginning() {
        let mut text = "# tracer: nop\n".to_owned();
        text.extend((1..200_000).map(|at| event(at * 7919)));
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        std::io::Write::write_all(&mut gzip, text.as_bytes()).unwrap();
        let zstd = zstd::stream::encode_all(text.as_bytes(), 1).unwrap();
        for bytes in [text.into_bytes(), gzip.finish().unwrap(), zstd] {
            let all = bytes.len();
            let reader = OpenOptions::new().open_bytes(Path::new("t"), bytes).unwrap();
            assert_eq!(reader.info().kinds_at_start, [EventKind::MmPageFree]);
            // Decoders read packed text in pieces of up to 128 KiB.
            let read = reader.amount().done(0);
            assert!(read <= 192 << 10 && read * 4 < all as u64, "{read} of {all} bytes");
        }
    }

    /// The kinds are known before the first event is read, from the first 64 KiB.
    #[test]
    fn the_beginning_of_a_text_shows_kinds_of_events() {
        let mut text = "# tracer: nop\n".to_owned();
        text.extend((1..2_000).map(event));
        text += "  x-7 [000] d..1. 31.0: mm_page_free_batched: page=1 pfn=0x1 order=0\n";
        let kinds = |text: &str| {
            let reader = OpenOptions::new().open_bytes(Path::new("t"), text.as_bytes().to_vec()).unwrap();
            reader.info().kinds_at_start.clone()
        };
        assert_eq!(kinds(&text), [EventKind::MmPageFree], "the other kind is behind the first 64 KiB");
        let end = text[text.len() - 300..].to_owned();
        assert_eq!(kinds(&end), [EventKind::MmPageFree, EventKind::MmPageFreeBatched]);
    }

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
