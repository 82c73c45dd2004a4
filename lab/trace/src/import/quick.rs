//! Reads the most frequent lines in one pass: page events in the form that recent kernels print.
//!
//! ```text
//! comm-1458  [001] d..1.  5313.517212: mm_page_alloc: page=0000… pfn=0x1 order=0 migratetype=1 gfp_flags=…
//! ```
//! A line that differs from this form in any character is left to `header` and `payload`, which know all
//! forms. If this module reads a line, `header` and `payload` would return the same event.

use super::{flags::Legend, header::HeaderStyle};
use crate::event::{Event, EventKind};
use crate::gfp::gfp_bits;

/// A parser that remembers words that most lines repeat.
#[derive(Default)]
pub(super) struct Quick {
    legend: Legend,
    /// Three facts about the flag characters after the CPU in the previous line. The first fact is the eight
    /// bytes that begin with the flag characters. The second fact is the length of the flag characters and of
    /// the space behind them, or 0. The third fact is the meaning of the flag characters under the current
    /// legend.
    state: (u64, usize, (u8, u8)),
    gfp_text: Vec<u8>,
    gfp: (u32, u32),
}

/// The unread rest of a line.
struct Rest<'line>(&'line [u8]);

impl<'line> Rest<'line> {
    /// Skips a word. The word's length is known at compile time, so the comparison needs no function call.
    #[inline(always)]
    fn skip<const LENGTH: usize>(&mut self, word: &[u8; LENGTH]) -> Option<()> {
        let (begin, rest) = self.0.split_first_chunk::<LENGTH>()?;
        (begin == word).then(|| self.0 = rest)
    }

    #[inline(always)]
    fn skip_spaces(&mut self) {
        self.word(|byte| byte == b' ');
    }

    /// Takes all bytes before the first byte that `belongs` rejects.
    #[inline(always)]
    fn word(&mut self, belongs: impl Fn(u8) -> bool) -> &'line [u8] {
        let end = self.0.iter().position(|byte| !belongs(*byte)).unwrap_or(self.0.len());
        let (word, rest) = self.0.split_at(end);
        self.0 = rest;
        word
    }

    /// Parses a decimal number of one to `most` digits. Returns the number and the number of its digits.
    #[inline(always)]
    fn decimal(&mut self, most: usize) -> Option<(u64, usize)> {
        let (mut value, mut digits) = (0_u64, 0);
        while let Some(digit) =
            self.0.get(digits).map(|byte| byte.wrapping_sub(b'0')).filter(|digit| *digit <= 9)
        {
            value = value.wrapping_mul(10).wrapping_add(u64::from(digit));
            digits += 1;
        }
        // A number of 18 digits cannot overflow.
        (1..=most.min(18)).contains(&digits).then(|| self.0 = &self.0[digits..])?;
        Some((value, digits))
    }

    /// Parses a hexadecimal number; `0x` was read before.
    #[inline(always)]
    fn hexadecimal(&mut self) -> Option<u64> {
        let (mut value, mut digits) = (0_u64, 0);
        while let Some(byte) = self.0.get(digits) {
            let digit = match byte {
                b'0'..=b'9' => byte - b'0',
                b'a'..=b'f' => byte - b'a' + 10,
                _ => break,
            };
            value = value << 4 | u64::from(digit);
            digits += 1;
        }
        (1..=15).contains(&digits).then(|| self.0 = &self.0[digits..])?;
        Some(value)
    }
}

impl Quick {
    /// Sets the legend for the lines that are read from now on.
    pub(super) fn under(&mut self, legend: &Legend) {
        if self.legend != *legend {
            (self.legend, self.state) = (*legend, Default::default());
        }
    }

    /// Returns the event of the first line of `text`, the number of unknown allocation-flag names, and the
    /// line's length without its line end. `None` if the line has another form, or no line end. The caller
    /// need not search for the line end first, because no step of this function reads beyond the line end.
    pub(super) fn event(&mut self, text: &[u8], style: HeaderStyle) -> Option<(Event, u32, usize)> {
        let mut rest = Rest(text);
        let task = rest.word(|byte| byte != b'[' && byte != b'\n');
        rest.skip(b"[")?;
        let pid = pid(task, style)?;
        let (cpu, _) = rest.decimal(5)?;
        rest.skip(b"] ")?;
        rest.skip_spaces();
        let (mut irq_flags, mut preempt) = (0, 0);
        if style == HeaderStyle::Dash {
            // Only ftrace and trace-cmd print flag characters between the CPU and the time.
            (irq_flags, preempt) = self.state(&mut rest)?;
            rest.skip_spaces();
        }
        let (seconds, _) = rest.decimal(10)?;
        rest.skip(b".")?;
        let (fraction, digits) = rest.decimal(9)?;
        rest.skip(b": ")?;
        rest.skip_spaces();
        if style == HeaderStyle::Space {
            rest.skip(b"kmem:")?;
        }
        rest.skip(b"mm_page_")?;
        let kind = match () {
            () if rest.skip(b"alloc: ").is_some() => EventKind::MmPageAlloc,
            () if rest.skip(b"free: ").is_some() => EventKind::MmPageFree,
            () if rest.skip(b"free_batched: ").is_some() => EventKind::MmPageFreeBatched,
            () if rest.skip(b"alloc_zone_locked: ").is_some() => EventKind::MmPageAllocZoneLocked,
            () if rest.skip(b"pcpu_drain: ").is_some() => EventKind::MmPagePcpuDrain,
            () => return None,
        };
        rest.skip_spaces();
        rest.skip(b"page=")?;
        rest.word(|byte| byte.is_ascii_alphanumeric());
        rest.skip(b" ")?;
        rest.skip(b"pfn=")?;
        let pfn = match rest.skip(b"0x") {
            Some(()) => rest.hexadecimal()?,
            None => rest.decimal(18)?.0,
        };
        if pfn == 0 {
            // The line may be a failed allocation, so leave it to `payload`.
            return None;
        }
        rest.skip(b" order=")?;
        let (order, _) = rest.decimal(2)?;
        let ts_ns = seconds * 1_000_000_000 + fraction * POWERS[9 - digits];
        let mut event = Event::new(kind, ts_ns, u16::try_from(cpu).ok()?);
        (event.pid, event.pfn, event.order) = (pid, pfn, u8::try_from(order).ok()?);
        (event.irq_flags, event.preempt) = (irq_flags, preempt);
        let mut unknown = 0;
        if !matches!(kind, EventKind::MmPageFree | EventKind::MmPageFreeBatched) {
            rest.skip(b" migratetype=")?;
            event.migratetype = rest.decimal(2)?.0 as i8;
        }
        match kind {
            EventKind::MmPageAllocZoneLocked => {
                rest.skip(b" percpu_refill=")?;
                event.refill = rest.decimal(1)?.0 as u8;
            }
            EventKind::MmPageAlloc => {
                rest.skip(b" gfp_flags=")?;
                (event.gfp, unknown) = self.gfp(&mut rest)?;
            }
            _ => {}
        }
        (rest.0.first() == Some(&b'\n')).then_some((event, unknown, text.len() - rest.0.len()))
    }

    /// Returns the meaning of the word with the flag characters, and skips this word and the space behind it.
    #[inline(always)]
    fn state(&mut self, rest: &mut Rest<'_>) -> Option<(u8, u8)> {
        let (known, length, said) = &self.state;
        let begin = u64::from_le_bytes(*rest.0.first_chunk()?);
        // Compare only the bytes of the word and of the space behind it, not all eight bytes.
        if *length > 0 && (begin ^ known) << (8 * (8 - length)) == 0 {
            rest.0 = &rest.0[*length..];
            return Some(*said);
        }
        let word = rest.word(|byte| byte != b' ' && byte != b'\n');
        rest.skip(b" ")?;
        let said = self.legend.state(word)?;
        let length = word.len() + 1;
        // Eight bytes can hold a word of up to seven flag characters and the space behind it. Do not remember
        // a word of eight flag characters.
        self.state = if length <= 8 { (begin, length, said) } else { Default::default() };
        Some(said)
    }

    /// Parses the allocation flags, which extend to the line end.
    #[inline(always)]
    fn gfp(&mut self, rest: &mut Rest<'_>) -> Option<(u32, u32)> {
        if let Some(after) = rest.0.strip_prefix(self.gfp_text.as_slice())
            && after.first() == Some(&b'\n')
            && !self.gfp_text.is_empty()
        {
            rest.0 = after;
            return Some(self.gfp);
        }
        // Allocation flags are written as one word of names and numbers.
        let text = rest.word(|byte| byte.is_ascii_alphanumeric() || b"_|".contains(&byte));
        if text.is_empty() {
            return None;
        }
        self.gfp = gfp_bits(text);
        self.gfp_text.clear();
        self.gfp_text.extend(text);
        Some(self.gfp)
    }
}

/// Powers of ten.
const POWERS: [u64; 10] =
    [1, 10, 100, 1000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000, 1_000_000_000];

/// Parses the thread's id before the CPU.
#[inline(always)]
fn pid(text: &[u8], style: HeaderStyle) -> Option<u32> {
    let end = text.iter().rposition(|byte| *byte != b' ')? + 1;
    let digits = text[..end].iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
    let (before, number) = text[..end].split_at(end - digits);
    let (pid, _) = Rest(number).decimal(9)?;
    let fits = match style {
        HeaderStyle::Dash => before.last() == Some(&b'-'),
        HeaderStyle::Space => before.last() == Some(&b' '),
    };
    // `-1` may be an unknown task.
    (fits && pid != 1).then_some(pid as u32)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::header;
    use super::super::payload::PayloadParser;
    use super::*;

    const LINES: [(HeaderStyle, &str); 9] = [
        (
            HeaderStyle::Dash,
            "  a b-1458    [001] d.h2.  5313.517212: mm_page_alloc: page=000000004f55aec4 pfn=0x121c27 order=3 migratetype=1 gfp_flags=GFP_KERNEL|__GFP_COMP",
        ),
        (HeaderStyle::Dash, " x-7 [123] ....  0.5: mm_page_free: page=000000004f55aec4 pfn=0x12 order=0"),
        (
            HeaderStyle::Dash,
            "<idle>-0     [000] ..s2. 17.000000001: mm_page_free_batched: page=0xffffea00 pfn=1186855 order=0",
        ),
        (
            HeaderStyle::Dash,
            "x-22 [001] ..... 1.25: mm_page_alloc_zone_locked:   page=4f pfn=0x2a order=10 migratetype=2 percpu_refill=0",
        ),
        (
            HeaderStyle::Dash,
            "x-22 [001] ..... 1.25: mm_page_pcpu_drain: page=4f pfn=0x2a order=1 migratetype=0",
        ),
        (
            HeaderStyle::Space,
            "perf  1471 [001]  5313.938799708:   kmem:mm_page_alloc: page=0x1 pfn=0x99 order=0 migratetype=0 gfp_flags=GFP_NEW|__GFP_ZERO",
        ),
        (HeaderStyle::Space, ":-1 -1 [001]  5313.938799708: kmem:mm_page_free: page=0x1 pfn=0x99 order=0"),
        (HeaderStyle::Dash, "a -1 [001] .... 5.1: mm_page_free: page=(null) pfn=0x0 order=0"),
        (
            HeaderStyle::Dash,
            "a-2 [001] .... 5.1: mm_page_alloc: page=0 pfn=0x0 order=9 migratetype=0 gfp_flags=GFP_NOWAIT",
        ),
    ];

    fn slowly(line: &[u8], style: HeaderStyle) -> Option<(Event, u32)> {
        let header = header::parse(line, style, &Legend::default())?;
        let mut event = Event::new(EventKind::from_tracepoint(header.event)?, header.ts_ns, header.cpu);
        (event.pid, event.irq_flags, event.preempt) = (header.pid, header.irq_flags, header.preempt);
        let mut payloads = PayloadParser::default();
        payloads.fill(&mut event, header.payload).ok()?;
        Some((event, payloads.unknown_gfp_names as u32))
    }

    #[test]
    fn usual_lines_are_read_quickly_and_others_are_left() {
        let read = LINES.map(|(style, line)| {
            let read = Quick::default().event(format!("{line}\nnext").as_bytes(), style);
            read.map(|(.., length)| assert_eq!(length, line.len())).is_some()
        });
        assert_eq!(read, [true, true, true, true, true, true, false, false, false]);
    }

    /// Tests that this parser leaves a line to `header` and `payload` if the line is cut at any place or ends
    /// in CRLF. Chunks and files may end at any place, and some programs write CRLF.
    #[test]
    fn lines_without_their_end_are_left() {
        for (style, line) in LINES {
            for length in 0..=line.len() {
                let cut = &line.as_bytes()[..length];
                for next in [&b""[..], b"\r\n", b" \n", line.as_bytes()] {
                    let text = [cut, next].concat();
                    let read = Quick::default().event(&text, style);
                    assert_eq!(read, None, "{}", text.escape_ascii());
                }
                let read = Quick::default().event(&[cut, b"\n", line.as_bytes()].concat(), style);
                assert!(read.is_none_or(|(.., of_line)| of_line == length), "{}", cut.escape_ascii());
            }
        }
    }

    /// Tests that flag characters that were remembered under one legend are not used under another legend.
    #[test]
    fn what_is_remembered_is_of_one_legend() {
        let mut quick = Quick::default();
        let line = b"a-2 [001] d..1. 5.1: mm_page_free: page=1 pfn=0x1 order=0\n";
        let read = |quick: &mut Quick| quick.event(line, HeaderStyle::Dash).unwrap().0.preempt;
        assert_eq!(read(&mut quick), 1);
        let mut legend = Legend::default();
        for name in ["irqs-off", "need-resched", "hardirq/softirq", "migrate-disable", "preempt-depth"] {
            legend.note(format!("#    | / _--=> {name}").as_bytes());
        }
        quick.under(&legend);
        assert_eq!(read(&mut quick), 0);
    }

    proptest! {
        /// Tests changed lines. For each line, this parser returns the same event as `header` and `payload`,
        /// or no event.
        #[test]
        fn quick_is_as_slow(
            which in 0..LINES.len(),
            edits in prop::collection::vec((any::<prop::sample::Index>(), 0..4_u8, prop::sample::select(b"0123456789af x[]().,:=-|_>\t\n\xff".to_vec())), 0..4),
        ) {
            let (style, line) = LINES[which];
            let mut line = line.as_bytes().to_vec();
            for (at, edit, byte) in edits {
                let at = at.index(line.len().max(1));
                match edit {
                    0 if at < line.len() => drop(line.remove(at)),
                    1 => line.insert(at, byte),
                    2 => line.truncate(at),
                    _ => line.iter_mut().skip(at).take(1).for_each(|old| *old = byte),
                }
            }
            line.push(b'\n');
            let first = line.split(|byte| *byte == b'\n').next().unwrap();
            let read = Quick::default().event(&line, style);
            let slowly = slowly(first, style).map(|(event, unknown)| (event, unknown, first.len()));
            prop_assert!(read.is_none() || read == slowly, "{}", line.escape_ascii());
        }
    }
}
