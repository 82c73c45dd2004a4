//! Reads output of `trace-cmd report`, with formatted fields or with raw fields (`-R`).

use super::{
    fields::decimal,
    ftrace::lost_line,
    header::HeaderStyle,
    text::{OtherLine, TextFormat},
};
use crate::info::{LostEvents, TraceInfo};

/// The format of trace-cmd's text.
pub(super) struct TraceCmd;

impl TextFormat for TraceCmd {
    const STYLE: HeaderStyle = HeaderStyle::Dash;
    const REMEDY: &'static str = "run `trace-cmd report` again, without --ts-diff and with the clock mono";
    const REMEDY_WITHOUT_FRAME: &'static str = "run `trace-cmd report` again, without -R; if it prints no frames then, copy /sys/kernel/tracing/trace";

    fn other_line(&self, line: &[u8], info: &mut TraceInfo, lost: &mut LostEvents) -> OtherLine {
        if let Some(cpus) = line.strip_prefix(b"cpus=") {
            let cpus = decimal(cpus).and_then(|cpus| u32::try_from(cpus).ok());
            info.cpus = info.cpus.or(cpus);
            return OtherLine::Taken;
        }
        let is_heading = line.is_empty()
            || line.starts_with(b"#")
            || line.starts_with(b"version = ")
            || line.starts_with(b"CPU ") && line.ends_with(b" is empty");
        if is_heading { OtherLine::Taken } else { lost_line(line, lost) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headings_and_losses() {
        let (mut info, mut lost) = (TraceInfo::default(), LostEvents::default());
        let mut other = |line: &str| TraceCmd.other_line(line.as_bytes(), &mut info, &mut lost);
        for line in ["cpus=2", "version = 6", "CPU 3 is empty", "CPU:1 [EVENTS DROPPED]", ""] {
            assert_eq!(other(line), OtherLine::Taken, "{line}");
        }
        assert_eq!(other("CPU:0 [5 EVENTS DROPPED]"), OtherLine::Taken);
        assert_eq!(other("what"), OtherLine::Unknown);
        assert_eq!(info.cpus, Some(2));
        assert_eq!((lost.lost_in_text, lost.gaps_of_unknown_size), (5, 1));
    }
}
