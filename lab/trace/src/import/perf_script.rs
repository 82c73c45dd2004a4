//! Reads output of `perf script`, with the default fields or with `-F comm,pid,tid,cpu,time,event,trace`.

use super::{
    fields::decimal,
    header::HeaderStyle,
    text::{OtherLine, TextFormat},
};
use crate::info::{LostEvents, TraceInfo};

/// The format of perf's text.
pub(super) struct PerfScript;

impl TextFormat for PerfScript {
    const STYLE: HeaderStyle = HeaderStyle::Space;
    const REMEDY: &'static str = "run `perf script --ns -F comm,pid,cpu,time,event,trace` again";
    const REMEDY_WITHOUT_FRAME: &'static str =
        "perf cannot print frames of this kernel: record with ftrace, and copy /sys/kernel/tracing/trace";

    fn other_line(&self, line: &[u8], _info: &mut TraceInfo, lost: &mut LostEvents) -> OtherLine {
        if line.is_empty() || line.starts_with(b"#") {
            return OtherLine::Taken;
        }
        // A report of losses is a line such as `perf 0 [000] 1.0: PERF_RECORD_LOST lost 27`, or `…
        // PERF_RECORD_LOST_SAMPLES lost 27`.
        if let Some(at) = memchr::memmem::find(line, b"PERF_RECORD_LOST") {
            let mut words = line[at..].split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
            match words.find_map(decimal) {
                Some(count) => lost.lost_in_text = lost.lost_in_text.saturating_add(count),
                None => lost.gaps_of_unknown_size += 1,
            }
            return OtherLine::Taken;
        }
        OtherLine::Unknown
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_are_counted() {
        let mut lost = LostEvents::default();
        let mut other =
            |line: &str| PerfScript.other_line(line.as_bytes(), &mut TraceInfo::default(), &mut lost);
        assert_eq!(other(" perf 0 [000] 1.0: PERF_RECORD_LOST lost 27"), OtherLine::Taken);
        assert_eq!(other(" perf 0 [000] 1.0: PERF_RECORD_LOST"), OtherLine::Taken);
        assert_eq!(other("\tffffffff81000000 __alloc_pages+0x1 ([kernel.kallsyms])"), OtherLine::Unknown);
        assert_eq!((lost.lost_in_text, lost.gaps_of_unknown_size), (27, 1));
    }
}
