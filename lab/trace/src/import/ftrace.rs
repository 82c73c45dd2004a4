//! Reads text of `/sys/kernel/tracing/trace` and `trace_pipe`.

use super::{
    fields::decimal,
    header::HeaderStyle,
    text::{OtherLine, TextFormat},
};
use crate::info::{LostEvents, TraceInfo};

/// The format of the kernel's own trace file.
pub(super) struct Ftrace;

impl TextFormat for Ftrace {
    const STYLE: HeaderStyle = HeaderStyle::Dash;
    const REMEDY: &'static str =
        "copy /sys/kernel/tracing/trace again, with trace_clock = mono and without latency-format";
    const REMEDY_WITHOUT_FRAME: &'static str = "copy the kernel's own text, /sys/kernel/tracing/trace";

    fn other_line(&self, line: &[u8], info: &mut TraceInfo, lost: &mut LostEvents) -> OtherLine {
        if let Some(rest) = line.strip_prefix(b"# entries-in-buffer/entries-written:") {
            entries(rest, info, lost);
            return OtherLine::Taken;
        }
        if line.is_empty() || line.starts_with(b"#") {
            return OtherLine::Taken;
        }
        lost_line(line, lost)
    }
}

/// Parses text such as ` 8582/8582 #P:2`: entries still in the ring, entries written, and number of CPUs.
fn entries(text: &[u8], info: &mut TraceInfo, lost: &mut LostEvents) {
    let mut words = text.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    let counts = words.next().unwrap_or_default();
    let slash = counts.iter().position(|byte| *byte == b'/').unwrap_or(counts.len());
    let (kept, written) = counts.split_at(slash);
    if let (Some(kept), Some(written)) = (decimal(kept), decimal(written.strip_prefix(b"/").unwrap_or(b""))) {
        lost.overrun = lost.overrun.saturating_add(written.saturating_sub(kept));
        info.lost.overrun = lost.overrun;
    }
    let cpus = words.find_map(|word| decimal(word.strip_prefix(b"#P:")?));
    info.cpus = info.cpus.or(cpus.and_then(|cpus| u32::try_from(cpus).ok()));
}

/// Parses lines such as `CPU:0 [LOST 123 EVENTS]`, `CPU:1 [123 EVENTS DROPPED]`, `CPU:1 [EVENTS DROPPED]`.
pub(super) fn lost_line(line: &[u8], lost: &mut LostEvents) -> OtherLine {
    if !line.starts_with(b"CPU:") {
        return OtherLine::Unknown;
    }
    // `##### CPU 1 buffer started ####` is a comment. Only a line that starts with `CPU:` may report lost
    // events.
    let is_loss = [&b"LOST"[..], b"DROPPED"].iter().any(|word| memchr::memmem::find(line, word).is_some());
    if !is_loss {
        return OtherLine::Unknown;
    }
    let bracket = line.iter().position(|byte| *byte == b'[').unwrap_or(line.len());
    let count = line[bracket..].split(|byte| !byte.is_ascii_digit()).find_map(decimal);
    match count {
        Some(count) => lost.lost_in_text = lost.lost_in_text.saturating_add(count),
        None => lost.gaps_of_unknown_size += 1,
    }
    OtherLine::Taken
}

#[cfg(test)]
mod tests {
    use super::*;

    fn other(line: &str) -> (OtherLine, TraceInfo, LostEvents) {
        let (mut info, mut lost) = (TraceInfo::default(), LostEvents::default());
        let taken = Ftrace.other_line(line.as_bytes(), &mut info, &mut lost);
        (taken, info, lost)
    }

    #[test]
    fn the_heading_tells_of_overwritten_entries_and_cpus() {
        let (taken, info, lost) = other("# entries-in-buffer/entries-written: 8500/8582   #P:2");
        assert_eq!((taken, info.cpus, lost.overrun), (OtherLine::Taken, Some(2), 82));
        let (taken, info, lost) = other("# entries-in-buffer/entries-written: x/");
        assert_eq!((taken, info.cpus, lost.overrun), (OtherLine::Taken, None, 0));
    }

    #[test]
    fn losses_are_counted() {
        assert_eq!(other("CPU:0 [LOST 123 EVENTS]").2.lost_in_text, 123);
        assert_eq!(other("CPU:1 [77 EVENTS DROPPED]").2.lost_in_text, 77);
        assert_eq!(other("CPU:1 [EVENTS DROPPED]").2.gaps_of_unknown_size, 1);
        assert_eq!(other("CPU:1").0, OtherLine::Unknown);
        assert_eq!(other("CPU:1 [LOST 99999999999999999999999 EVENTS]").2.gaps_of_unknown_size, 1);
        assert_eq!(other("##### CPU 1 buffer started ####").0, OtherLine::Taken);
        assert_eq!(other("hello").0, OtherLine::Unknown);
    }
}
