//! Reads the flag characters after the CPU: interrupts, rescheduling, context, depth of preemption. The
//! number of flag characters differs between kernels.
//!
//! ftrace prints a legend above its text. The legend has a line for each column of flag characters:
//!
//! ```text
//! #                                _-----=> irqs-off
//! #                               / _----=> need-resched
//! #                              | / _----=> need-resched_lazy
//! #                              || / _---=> hardirq/softirq
//! ```
//! Some text has no legend, such as excerpts and the output of `trace-cmd report`. Without a legend, each
//! word of flag characters is read with the columns of the ordinary kernel or of `PREEMPT_RT`. For a word of
//! up to five characters, the ordinary columns are tried first. For a word of six to eight characters, the
//! columns of `PREEMPT_RT` are tried first.
//!
//! Sources: the kernel's documentation, `Documentation/trace/ftrace.rst`, section "Latency trace format", has
//! most letters, and `X` for "unknown". The legend names the columns. Neither the documentation nor the
//! legend has the letters `b` and `D`, which mean that bottom halves are off. The meaning of `b` and `D` was
//! found on Linux 6.18. Events were read twice: as text, and as `common_flags` from `trace_pipe_raw` (0x80
//! and 0x81 in 882 events). All other letters in the 882 events were compared with `common_flags`, too.

use crate::event::irq_flag;

/// Minimum and maximum number of flag characters in a line.
const FEWEST: usize = 4;
const MOST: usize = 8;

/// The meaning of one column of flag characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Column {
    Interrupts,
    Rescheduling,
    Context,
    Depth,
    /// A column that is not read: lazy rescheduling, its depth, or migration.
    Other,
}

use Column::{Context, Depth, Interrupts, Other, Rescheduling};

/// Columns since Linux 3.2. Up to four more columns may follow the first four columns.
const ORDINARY: [Column; MOST] = [Interrupts, Rescheduling, Context, Depth, Other, Other, Other, Other];
/// Columns with `PREEMPT_RT`, where the column of lazy rescheduling follows the column of rescheduling.
const REAL_TIME: [Column; MOST] = [Interrupts, Rescheduling, Other, Context, Depth, Other, Other, Other];

/// The columns that a legend names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Legend {
    columns: [Option<Column>; MOST],
}

impl Legend {
    /// Reads a comment line of the heading. A comment outside the legend changes nothing.
    pub(super) fn note(&mut self, comment: &[u8]) {
        let Some(at) = memchr::memmem::find(comment, b"-=> ") else { return };
        let column = match comment[at + 4..].trim_ascii() {
            // `irqs-off` is the first line of a legend, so the text of another recording may begin here. In
            // latency format, the column of the CPU comes before the column of interrupts.
            [b'i', b'r', b'q', b's', b'-', b'o', b'f', b'f', ..] => {
                *self = Self::default();
                Interrupts
            }
            b"CPU#" => return,
            b"need-resched" => Rescheduling,
            b"hardirq/softirq" => Context,
            b"preempt-depth" => Depth,
            _ => Other,
        };
        if let Some(free) = self.columns.iter_mut().find(|column| column.is_none()) {
            *free = Some(column);
        }
    }

    /// Returns the bits of [`irq_flag`] and the depth of preemption that `word` encodes. `None` if `word` is
    /// not a word of flag characters.
    pub(super) fn state(&self, word: &[u8]) -> Option<(u8, u8)> {
        if !(FEWEST..=MOST).contains(&word.len()) {
            return None;
        }
        let named: usize = self.columns.iter().flatten().count();
        if named == word.len() {
            let columns = self.columns.map(|column| column.unwrap_or(Other));
            // A letter that is unknown in its column is ignored.
            let says = |(byte, column): (&u8, Column)| said(*byte, column).unwrap_or_default();
            return word.iter().all(|byte| is_flag(*byte)).then(|| together(word, columns, says));
        }
        // `PREEMPT_RT` adds two columns, for lazy rescheduling and for its depth. So a word of more than five
        // characters may have these columns.
        let orders = if word.len() > FEWEST + 1 { [REAL_TIME, ORDINARY] } else { [ORDINARY, REAL_TIME] };
        let fits = |columns: &[Column; MOST]| {
            word.iter().zip(*columns).all(|(byte, column)| said(*byte, column).is_some())
        };
        if let Some(columns) = orders.into_iter().find(fits) {
            return Some(together(word, columns, |(byte, column)| said(*byte, column).unwrap_or_default()));
        }
        // Some letters may be unknown in their columns. An interrupt's letter is recognised in any column,
        // because no other column uses the same letter.
        let begins = matches!(word[0], b'.' | b'd' | b'D' | b'b' | b'X');
        let is_known =
            |byte: &u8| said(*byte, Other).is_some() || said(*byte, Context).is_some() || *byte == b'd';
        (begins && word[1..].iter().all(is_known)).then(|| {
            let context =
                word[1..].iter().filter_map(|byte| said(*byte, Context)).fold(0, |bits, says| bits | says.0);
            (said(word[0], Interrupts).unwrap_or_default().0 | context, 0)
        })
    }
}

fn together<'word>(
    word: &'word [u8],
    columns: [Column; MOST],
    says: impl Fn((&'word u8, Column)) -> (u8, u8),
) -> (u8, u8) {
    word.iter().zip(columns).map(says).fold((0, 0), |(bits, depth), says| (bits | says.0, depth | says.1))
}

/// Whether a character is a letter, digit or sign that some kernel prints in a flag column.
const fn is_flag(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'#' | b'*' | b'?')
}

/// Returns the flags and the depth of preemption that a character stands for in this column. `None` if the
/// character never stands in this column.
fn said(byte: u8, column: Column) -> Option<(u8, u8)> {
    let bits = match (column, byte) {
        (Column::Other, b'.' | b'L' | b'l' | b'N' | b'n' | b'b' | b'p' | b'0'..=b'9' | b'a'..=b'f') => 0,
        (_, b'.') => 0,
        (Interrupts, b'd') => irq_flag::IRQS_OFF,
        (Interrupts, b'b') => irq_flag::BH_OFF,
        (Interrupts, b'D') => irq_flag::IRQS_OFF | irq_flag::BH_OFF,
        (Interrupts, b'X') => 0,
        (Rescheduling, b'N' | b'B') => irq_flag::NEED_RESCHED | irq_flag::PREEMPT_RESCHED,
        (Rescheduling, b'n' | b'b') => irq_flag::NEED_RESCHED,
        (Rescheduling, b'p' | b'L') => irq_flag::PREEMPT_RESCHED,
        // `l` means only lazy rescheduling, which has no bit here.
        (Rescheduling, b'l') => 0,
        (Context, b'h') => irq_flag::HARDIRQ,
        (Context, b's') => irq_flag::SOFTIRQ,
        (Context, b'H') => irq_flag::HARDIRQ | irq_flag::SOFTIRQ,
        (Context, b'z') => irq_flag::NMI,
        (Context, b'Z') => irq_flag::NMI | irq_flag::HARDIRQ,
        (Depth, _) => return Some((0, (byte as char).to_digit(16)? as u8)),
        _ => return None,
    };
    Some((bits, 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn guessed(word: &str) -> Option<(u8, u8)> {
        Legend::default().state(word.as_bytes())
    }

    fn legend(names: &[&str]) -> Legend {
        let mut legend = Legend::default();
        names.iter().for_each(|name| legend.note(format!("#    | / _--=> {name}  ").as_bytes()));
        legend
    }

    #[test]
    fn the_state_is_read_without_a_legend() {
        assert_eq!(guessed("dNs5."), Some((0x01 | 0x04 | 0x20 | 0x10, 5)));
        assert_eq!(guessed("D.H."), Some((0x01 | 0x80 | 0x08 | 0x10, 0)));
        assert_eq!(guessed("...a1"), Some((0, 10)));
        for wrong in ["...", "...g", "quux", ".........", "12345.7", "hhhh"] {
            assert_eq!(guessed(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn real_time_kernels_have_six_to_eight_columns() {
        for (word, bits, depth) in [
            ("d...111", 0x01, 1),
            ("d..h1..", 0x09, 1),
            ("...s112", 0x10, 1),
            (".N..1..", 0x24, 1),
            ("d.L.1..", 0x01, 1),
            ("d.Lh2.", 0x09, 2),
            ("d..H3..1", 0x19, 3),
            ("d..h1", 0x09, 1),
            ("d...h1", 0x09, 0),
        ] {
            assert_eq!(guessed(word), Some((bits, depth)), "{word}");
        }
    }

    #[test]
    fn columns_are_those_of_the_legend() {
        let legend =
            legend(&["irqs-off/BH-disabled", "migrate-disable", "preempt-depth", "hardirq/softirq", "new"]);
        assert_eq!(legend.state(b"D12hQ"), Some((0x81 | 0x08, 2)));
        assert_eq!(legend.state(b"d.h1"), Some((0x09, 1)), "another number of columns is read without it");
        assert_eq!(legend.state(b"D12h:"), None);
    }

    #[test]
    fn other_comments_are_no_legend() {
        let mut legend = legend(&["CPU#", "irqs-off", "need-resched", "hardirq/softirq", "preempt-depth"]);
        let before = legend;
        for comment in ["#  => started at: irq_enter", "# tracer: nop", "#     |||| /     delay", ""] {
            legend.note(comment.as_bytes());
        }
        assert_eq!(legend, before);
        assert_eq!(legend.state(b"dNs5"), Some((0x01 | 0x24 | 0x10, 5)));
        for _ in 0..20 {
            legend.note(b"# -=> more");
        }
        legend.note(b"# _--=> irqs-off");
        assert_eq!(
            legend.columns.iter().flatten().count(),
            1,
            "expected a new legend to replace the legend before it"
        );
    }
}
