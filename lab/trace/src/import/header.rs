//! Parses the beginning of an event's line: task, CPU, interrupt state, time, event name.
//!
//! ```text
//! ftrace, trace-cmd   comm-1458  [001] d..1.  5313.517212: mm_page_alloc: …
//! with task groups    comm-1458  (   1458) [001] d..1.  5313.517212: mm_page_alloc: …
//! perf script         comm  1471 [001]  5313.938799708:   kmem:mm_page_alloc: …
//! with pid and tid    comm  1471/1471  [001]  5313.938799708:   kmem:mm_page_alloc: …
//! of no known task    :-1    -1 [001]  5313.938799708:   kmem:mm_page_alloc: …
//! ```
//! A task's name may contain spaces, dashes and brackets. A pair of brackets therefore counts as the brackets
//! of the CPU only if the text before and after them fits. The search goes from left to right.

use super::{fields::decimal, flags::Legend};

/// How a text writes the name and the number of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HeaderStyle {
    /// `comm-pid`.
    Dash,
    /// `comm pid` or `comm pid/tid`.
    Space,
}

/// The beginning of an event's line, and the text after the beginning.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Header<'line> {
    pub(super) pid: u32,
    pub(super) cpu: u16,
    pub(super) irq_flags: u8,
    pub(super) preempt: u8,
    pub(super) ts_ns: u64,
    /// The event's name, without its group.
    pub(super) event: &'line [u8],
    /// The text after the name.
    pub(super) payload: &'line [u8],
}

/// The thread id that perf prints for a thread with unknown name and id.
const NO_THREAD: u32 = u32::MAX;

/// Whether `line` is an event's line of this style.
pub(crate) fn is_event_line(line: &[u8], style: HeaderStyle) -> bool {
    parse(line, style, &Legend::default()).is_some()
}

/// Parses the beginning of `line`. `None` if `line` is not the line of an event.
pub(super) fn parse<'line>(line: &'line [u8], style: HeaderStyle, legend: &Legend) -> Option<Header<'line>> {
    for bracket in memchr::memchr_iter(b'[', line) {
        let rest = &line[bracket + 1..];
        let Some(digits) = rest.iter().take(6).position(|byte| *byte == b']') else { continue };
        let Some(cpu) = decimal(&rest[..digits]).and_then(|cpu| u16::try_from(cpu).ok()) else { continue };
        let Some(pid) = pid_before(&line[..bracket], style) else { continue };
        if let Some(header) = behind_cpu(&rest[digits + 1..], (pid, cpu), legend) {
            return Some(header);
        }
    }
    None
}

/// Parses the thread's id at the end of `text`.
fn pid_before(text: &[u8], style: HeaderStyle) -> Option<u32> {
    let mut text = text.trim_ascii_end();
    if style == HeaderStyle::Dash
        && let Some(rest) = text.strip_suffix(b")")
    {
        // With ftrace's option record-tgid, the process of the task follows as `(   1458)` or `(-----)`.
        let open = rest.iter().rev().take(12).position(|byte| *byte == b'(')?;
        text = rest[..rest.len() - open - 1].trim_ascii_end();
    }
    let digits = text.iter().rev().take(11).take_while(|byte| byte.is_ascii_digit()).count();
    let (before, pid) = text.split_at(text.len() - digits);
    let pid = u32::try_from(decimal(pid)?).ok()?;
    // perf prints `-1` or `-1/-1` after the name of an unknown task. In text of ftrace, `-1` may also be task
    // 1 after a name that ends in a space.
    if let (1, Some((b'-', name))) = (pid, before.split_last()) {
        let name = name.strip_suffix(b"-1/").unwrap_or(name);
        let is_apart = name.last().is_some_and(u8::is_ascii_whitespace);
        match style {
            HeaderStyle::Space if is_apart => return Some(NO_THREAD),
            HeaderStyle::Dash if is_apart && name.trim_ascii_end().ends_with(b":-1") => return None,
            _ => {}
        }
    }
    let fits = match (style, before.last()) {
        (HeaderStyle::Dash, Some(b'-')) => true,
        (HeaderStyle::Space, None | Some(b' ' | b'\t')) => true,
        // In `pid/tid`, the digits found so far are the thread's id.
        (HeaderStyle::Space, Some(b'/')) => before[..before.len() - 1].last().is_some_and(u8::is_ascii_digit),
        _ => false,
    };
    fits.then_some(pid)
}

fn behind_cpu<'line>(text: &'line [u8], (pid, cpu): (u32, u16), legend: &Legend) -> Option<Header<'line>> {
    let (mut word, mut rest) = word(text)?;
    let (mut irq_flags, mut preempt) = (0, 0);
    if !word.ends_with(b":") {
        (irq_flags, preempt) = legend.state(word)?;
        (word, rest) = self::word(rest)?;
    }
    let ts_ns = seconds(word.strip_suffix(b":")?)?;
    let (mut name, mut payload) = self::word(rest)?;
    if decimal(name).is_some() {
        // `perf script` may print the sample's period before the name.
        (name, payload) = self::word(payload)?;
    }
    let name = name.strip_suffix(b":")?;
    let group = memchr::memrchr(b':', name).map_or(0, |colon| colon + 1);
    Some(Header { pid, cpu, irq_flags, preempt, ts_ns, event: &name[group..], payload: payload.trim_ascii() })
}

/// Returns the first word of `text`, and the text after this word.
fn word(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let text = text.trim_ascii_start();
    let end = text.iter().position(u8::is_ascii_whitespace).unwrap_or(text.len());
    if end == 0 { None } else { Some(text.split_at(end)) }
}

/// Parses a time such as `5313.517212`, and returns nanoseconds. A time with more than nine decimals is
/// rejected.
pub(super) fn seconds(text: &[u8]) -> Option<u64> {
    let dot = memchr::memchr(b'.', text)?;
    let (whole, fraction) = (&text[..dot], &text[dot + 1..]);
    if fraction.is_empty() || fraction.len() > 9 {
        return None;
    }
    let scale = 10_u64.pow(9 - fraction.len() as u32);
    decimal(whole)?.checked_mul(1_000_000_000)?.checked_add(decimal(fraction)? * scale)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &[u8], style: HeaderStyle) -> Option<Header<'_>> {
        super::parse(line, style, &Legend::default())
    }

    #[track_caller]
    fn check(line: &str, style: HeaderStyle, pid: u32, cpu: u16, ts_ns: u64, event: &str) {
        let header = super::parse(line.as_bytes(), style, &Legend::default()).expect(line);
        assert_eq!((header.pid, header.cpu, header.ts_ns), (pid, cpu, ts_ns));
        assert_eq!(header.event, event.as_bytes());
        assert_eq!(header.payload, b"pfn=1");
    }

    #[test]
    fn both_styles_and_their_variants() {
        use HeaderStyle::{Dash, Space};
        check(
            " mk.sh-1458    [001] .....  5313.517212: mm_page_free: pfn=1",
            Dash,
            1458,
            1,
            5_313_517_212_000,
            "mm_page_free",
        );
        check("<idle>-0 (-----) [012] d.s3. 1.5: a:b: pfn=1", Dash, 0, 12, 1_500_000_000, "b");
        check(" a-7 (    7) [000] d..1 1.000000: b: pfn=1 ", Dash, 7, 0, 1_000_000_000, "b");
        check(
            "trace-cmd-164   [001]     5.145053: mm_page_free:  pfn=1",
            Dash,
            164,
            1,
            5_145_053_000,
            "mm_page_free",
        );
        check(" my [3] -x-1 y-9 [001] .... 5.1: b: pfn=1", Dash, 9, 1, 5_100_000_000, "b");
        check(
            "perf  1471 [001]  5313.938799708: kmem:mm_page_free: pfn=1",
            Space,
            1471,
            1,
            5_313_938_799_708,
            "mm_page_free",
        );
        check("a b 1/22  [001]  0.000000001: 1 kmem:b: pfn=1", Space, 22, 1, 1, "b");
        check("kworker/u8:2-e [x] 7 [001]  0.000000001: kmem:b: pfn=1", Space, 7, 1, 1, "b");
        check("a: [002] b 7 [001]  0.000000001: kmem:b: pfn=1", Space, 7, 1, 1, "b");
    }

    #[test]
    fn perfs_task_of_which_nothing_is_known_has_no_thread() {
        for line in [
            "             :-1    -1 [012] 0.000000001:       kmem:b: pfn=1",
            ":-1 -1/-1 [012] 0.000000001: kmem:b: pfn=1",
            "> :-1 -1 [012] 0.000000001: 1 kmem:b: pfn=1",
        ] {
            check(line, HeaderStyle::Space, NO_THREAD, 12, 1, "b");
            assert!(parse(line.as_bytes(), HeaderStyle::Dash).is_none(), "{line}");
        }
        check(" :-1-1 [012] .... 0.000000001: b: pfn=1", HeaderStyle::Dash, 1, 12, 1, "b");
        check("a -1 [012] .... 0.000000001: b: pfn=1", HeaderStyle::Dash, 1, 12, 1, "b");
    }

    #[test]
    fn styles_do_not_mix_and_damage_is_no_event() {
        let dash = b" a-1 [001] .... 5.1: b: pfn=1".as_slice();
        let space = b" a 1 [001] 5.1: b: pfn=1".as_slice();
        assert!(parse(dash, HeaderStyle::Space).is_none());
        assert!(parse(space, HeaderStyle::Dash).is_none());
        for end in 0..dash.len() - 7 {
            assert!(parse(&dash[..end], HeaderStyle::Dash).is_none(), "cut at {end}");
        }
        for wrong in [
            "a-1 [70000] .... 5.1: b: c",
            "a-99999999999 [001] .... 5.1: b: c",
            "a-1 [001] .... 5: b: c",
            "a-1 [001] .... 5.1234567890: b: c",
            "a-1 [001] .... 99999999999999999.1: b: c",
            "a-1 [001] quux 5.1: b: c",
            "a-1 [001] .... 5.1: function <-caller",
        ] {
            assert!(parse(wrong.as_bytes(), HeaderStyle::Dash).is_none(), "{wrong}");
        }
    }
}
