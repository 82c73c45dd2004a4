//! Recognises text of page events in forms that this crate cannot read, and names the command that makes
//! readable text.

use super::{
    fields::{decimal, hexadecimal},
    header, text,
};
use crate::event::EventKind;

/// The form of a line, and the remedy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Unreadable {
    pub(crate) problem: &'static str,
    pub(crate) remedy: &'static str,
}

const fn of(problem: &'static str, remedy: &'static str) -> Unreadable {
    Unreadable { problem, remedy }
}

const RAW: Unreadable = of(
    "ftrace's option raw leaves out the names of events and their fields",
    "`echo 0 > /sys/kernel/tracing/options/raw`, then copy /sys/kernel/tracing/trace again",
);
const HEX: Unreadable = of(
    "ftrace's option hex leaves out the names of events and their fields",
    "`echo 0 > /sys/kernel/tracing/options/hex`, then copy /sys/kernel/tracing/trace again",
);
const BIN: Unreadable = of(
    "ftrace's option bin leaves out the names of events and their fields",
    "`echo 0 > /sys/kernel/tracing/options/bin`, then copy /sys/kernel/tracing/trace again",
);
const NO_CONTEXT: Unreadable = of(
    "a page event without task, CPU and time: ftrace's option context-info is off",
    "`echo 1 > /sys/kernel/tracing/options/context-info`, then copy /sys/kernel/tracing/trace again",
);
const LATENCY: Unreadable = of(
    "a page event with a time in microseconds since the beginning: ftrace's option latency-format is on",
    "`echo 0 > /sys/kernel/tracing/options/latency-format`, then copy /sys/kernel/tracing/trace again",
);
const VERBOSE: Unreadable = of(
    "a page event in verbose form: ftrace's options latency-format and verbose are on",
    "`echo 0 > /sys/kernel/tracing/options/latency-format`, then copy /sys/kernel/tracing/trace again",
);
const GRAPH: Unreadable = of(
    "a page event as a comment of the tracer function_graph, which has no task and no time of its own",
    "`echo nop > /sys/kernel/tracing/current_tracer`, then record again",
);
const REPORT_LATENCY: Unreadable = of(
    "a page event as `trace-cmd report -l` prints it, with the CPU within another word",
    "run `trace-cmd report` again, without -l",
);
const CLOCK: Unreadable = of(
    "a page event whose time is not in seconds: the recording's clock counts something else",
    "`echo mono > /sys/kernel/tracing/trace_clock` (`-C mono` for trace-cmd), then record again",
);
const PERF_FIELDS: Unreadable = of(
    "a page event of perf without task, CPU or time",
    "run `perf script --ns -F comm,pid,cpu,time,event,trace` again",
);
const PERF_TRACE: Unreadable = of(
    "a page event as `perf trace` prints it, without a CPU",
    "record with `perf record -a`, and run `perf script --ns -F comm,pid,cpu,time,event,trace`",
);

/// Finds the form of `line`, which is not a readable event. `None` if `line` has no page event, or is a
/// damaged line of a readable form.
pub(crate) fn unreadable(line: &[u8]) -> Option<Unreadable> {
    let line = text::unquoted(line);
    if let Some(before) = before_type(line) {
        return without_names(before);
    }
    let at = memchr::memmem::find(line, b"mm_page")?;
    let (before, rest) = line.split_at(at);
    let name_end = rest.iter().position(|byte| !byte.is_ascii_lowercase() && *byte != b'_')?;
    EventKind::from_tracepoint(&rest[..name_end])?;
    let (before, is_perf) = before.strip_suffix(b"kmem:").map_or((before, false), |before| (before, true));
    match rest[name_end] {
        b'(' if is_perf => return Some(PERF_TRACE),
        b':' => {}
        _ => return None,
    }
    let before = before.trim_ascii_end();
    if before.ends_with(b"/*") {
        return Some(GRAPH);
    }
    if is_perf {
        return header_is_short(before).then_some(PERF_FIELDS);
    }
    if before.is_empty() {
        return Some(NO_CONTEXT);
    }
    let time = before.strip_suffix(b":")?;
    if time.ends_with(b"ms)") || time.ends_with(b"us)") {
        return Some(VERBOSE);
    }
    // After a long time, a character such as `+` follows the unit of time.
    let end = time.iter().rposition(|byte| !b" !+#*@$.".contains(byte))? + 1;
    if time[..end].strip_suffix(b"us").is_some_and(|time| time.last().is_some_and(u8::is_ascii_digit)) {
        return Some(LATENCY);
    }
    before_time(time)
}

/// The text before `type: 653` at a line's end.
fn before_type(line: &[u8]) -> Option<&[u8]> {
    let digits = line.iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
    line[..line.len() - digits].strip_suffix(b"type: ").filter(|_| digits > 0)
}

/// Recognises a line without names. A line without names has a thread, a CPU and a time, in decimal, in
/// hexadecimal, or as bytes.
fn without_names(before: &[u8]) -> Option<Unreadable> {
    let words = || before.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    let is_hex = |word: &[u8]| word.len() >= 8 && word.len().is_multiple_of(8) && hexadecimal(word).is_some();
    if words().all(|word| decimal(word.strip_prefix(b"-").unwrap_or(word)).is_some()) {
        // A hexadecimal number without letters looks decimal. Leading zeros show that the number is
        // hexadecimal.
        let has_zeros = words().next().is_some_and(|word| word.len() == 8 && word[0] == b'0');
        return Some(if has_zeros { HEX } else { RAW });
    }
    if words().all(is_hex) {
        return Some(HEX);
    }
    let has_bytes = before.iter().any(|byte| !byte.is_ascii_graphic() && !byte.is_ascii_whitespace());
    has_bytes.then_some(BIN)
}

/// Whether perf printed too few fields before a page event's name. If a line has all fields and is still not
/// readable, the line is damaged.
fn header_is_short(before: &[u8]) -> bool {
    let words = before.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    let has_cpu = before.contains(&b'[');
    let has_time = words.clone().any(|word| word.strip_suffix(b":").and_then(header::seconds).is_some());
    !(has_cpu && has_time && words.count() > 3)
}

/// Recognises `cat-1458  1d..1. 5313.517212`, or `cat-1458 [001] d..1. 5313517212`.
fn before_time(before: &[u8]) -> Option<Unreadable> {
    let mut words = before.rsplit(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    let (time, last) = (words.next()?, words.next()?);
    if header::seconds(time).is_some() {
        let digits = last.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let has_state = (4..=8).contains(&(last.len() - digits)) && !before.contains(&b'[');
        return (digits > 0 && has_state).then_some(REPORT_LATENCY);
    }
    let is_count = decimal(time).is_some() || time.strip_prefix(b"0x").and_then(hexadecimal).is_some();
    (is_count && before.contains(&b'[')).then_some(CLOCK)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_text_is_told_apart_and_has_its_remedy() {
        let page = "mm_page_alloc: page=00000000aa pfn=0x186a0 order=0 migratetype=1 gfp_flags=GFP_KERNEL";
        for (line, expected) in [
            ("26911 1 12528813095347 type: 653", RAW),
            ("type: 653", RAW),
            ("0000691f 00000001 00000b65123e4f31 type: 653", HEX),
            ("00006911 00000001 0000012345678901 type: 653", HEX),
            ("\u{1f}i\0\0\u{1}\0\0\0type: 653", BIN),
            (page, NO_CONTEXT),
            ("> mm_pagevec_free: page=1 pfn=2 order=0 cold=0", NO_CONTEXT),
            (&format!(" cat-1458    1d..1.  123us : {page}"), LATENCY),
            (&format!(" cat-1458    1d..1.  5123us+: {page}"), LATENCY),
            (
                &format!(" cat  1458 1 0 00000001 00000000 [0000000012345678] 1.567ms (+0.123ms): {page}"),
                VERBOSE,
            ),
            (&format!(" 1)               |  /* {page} */"), GRAPH),
            (&format!(" 5313.517212 |   1)  cat-1458  |               |  /* {page} */"), GRAPH),
            (&format!("     cat-1458    1d..1. 5313.517212: {page}"), REPORT_LATENCY),
            (&format!("     cat-1458   12.... 5313.517212:   {page}"), REPORT_LATENCY),
            (&format!(" cat-1458 [001] d..1. 5313517212: {page}"), CLOCK),
            (&format!("kmem:{page}"), PERF_FIELDS),
            (&format!("cat 1458 5313.517212: kmem:{page}"), PERF_FIELDS),
            (&format!("cat 1458 [001]: kmem:{page}"), PERF_FIELDS),
            ("     0.000 cat/1458 kmem:mm_page_alloc(pfn: 99, order: 0)", PERF_TRACE),
        ] {
            assert_eq!(unreadable(line.as_bytes()), Some(expected), "{line}");
        }
    }

    #[test]
    fn damage_and_other_lines_are_none_of_these() {
        for line in [
            "",
            "hello type: x",
            "a reader of the type: 7",
            "mm_page",
            "mm_page_alloc",
            "what mm_page_alloc is: a tracepoint",
            " cat-1458 [x01] d..1. 5313.517212: mm_page_free: pfn=1 order=0",
            "a x [001] 5.1: kmem:mm_page_free: pfn=1 order=0",
            " => mm_page_alloc_something",
        ] {
            assert_eq!(unreadable(line.as_bytes()), None, "{line}");
        }
    }
}
