//! Reads any of the text formats: lines become events, losses and counts.

use super::{
    blocks::EventSource,
    header::{self, HeaderStyle},
    lines::{Line, Lines},
    payload::{Payload, PayloadParser},
};
use crate::{
    error::TraceError,
    event::{Event, EventKind},
    info::{LostEvents, TraceInfo},
    input::{ByteStream, unreadable},
    reader::Strictness,
};

/// What tells one text format from another.
pub(super) trait TextFormat: Send {
    /// How events' lines start.
    const STYLE: HeaderStyle;
    /// What to tell the user when a line makes no sense.
    const REMEDY: &'static str;

    /// Takes a line that is no event: headings and reports of losses.
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
    payloads: PayloadParser,
    strictness: Strictness,
    lost: LostEvents,
    last_ts_ns: u64,
    /// An error met while the headings were read, for the first block.
    pending: Option<TraceError>,
}

impl<F: TextFormat> TextReader<F> {
    /// Reads the headings before the first event, so that the information is complete.
    pub(super) fn new(
        info: TraceInfo,
        stream: Box<dyn ByteStream>,
        strictness: Strictness,
        format: F,
    ) -> Self {
        let mut reader = Self {
            format,
            lost: info.lost,
            info,
            lines: Lines::new(stream),
            payloads: PayloadParser::default(),
            strictness,
            last_ts_ns: 0,
            pending: None,
        };
        reader.read_headings();
        reader
    }

    fn read_headings(&mut self) {
        loop {
            match self.lines.next() {
                Ok(Some(Line::Whole(line)))
                    if header::parse(line, F::STYLE).is_none()
                        && self.format.other_line(line, &mut self.info, &mut self.lost)
                            == OtherLine::Taken => {}
                // Counted here, since such a line cannot be given once more.
                Ok(Some(Line::TooLong)) => self.lost.oversized_lines += 1,
                Ok(Some(Line::Whole(_) | Line::Unfinished(_))) => return self.lines.unread(),
                Ok(None) => return,
                Err(error) => {
                    self.pending = Some(unreadable(&self.info.path, error));
                    return;
                }
            }
        }
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
            let problem = match self.lines.next() {
                Err(error) => return Err(unreadable(&self.info.path, error)),
                Ok(None) => return Ok(None),
                Ok(Some(Line::TooLong)) => {
                    self.lost.oversized_lines += 1;
                    continue;
                }
                Ok(Some(Line::Unfinished(line))) => {
                    // A number in it may be cut short, so it is not believed even if it looks whole.
                    if line.iter().all(u8::is_ascii_whitespace) {
                        continue;
                    }
                    "the last line has no end, the file is truncated".to_owned()
                }
                Ok(Some(Line::Whole(line))) => match header::parse(line, F::STYLE) {
                    Some(header) => {
                        let Some(kind) = EventKind::from_tracepoint(header.event) else {
                            self.lost.unknown_events += 1;
                            continue;
                        };
                        let mut event = Event::new(kind, header.ts_ns, header.cpu);
                        event.pid = header.pid;
                        event.irq_flags = header.irq_flags;
                        event.preempt = header.preempt;
                        match self.payloads.fill(&mut event, header.payload) {
                            Ok(Payload::Filled) => {
                                self.lost.out_of_order += u64::from(event.ts_ns < self.last_ts_ns);
                                self.last_ts_ns = event.ts_ns;
                                return Ok(Some(event));
                            }
                            Ok(Payload::NotNeeded) => {
                                self.lost.unknown_events += 1;
                                continue;
                            }
                            Err(problem) => format!("{}: {problem}", kind.name()),
                        }
                    }
                    None => {
                        if self.format.other_line(line, &mut self.info, &mut self.lost) == OtherLine::Taken {
                            continue;
                        }
                        if memchr::memmem::find(line, b"mm_page_").is_none() {
                            self.lost.unrecognised_lines += 1;
                            continue;
                        }
                        "a page event without task, CPU or time in seconds before it".to_owned()
                    }
                },
            };
            match self.strictness {
                Strictness::Lenient => self.lost.malformed_lines += 1,
                Strictness::Strict => {
                    return Err(TraceError::line(
                        &self.info.path,
                        self.lines.number(),
                        problem,
                        format!("{}, or read leniently to skip and count such lines", F::REMEDY),
                    ));
                }
            }
        }
    }

    fn lost(&self) -> LostEvents {
        LostEvents { unknown_gfp_names: self.payloads.unknown_gfp_names, ..self.lost }
    }
}
