//! Reads the options of a file. Options that are about neither events nor the recorded machine are skipped.

use std::path::Path;

use super::REMEDY;
use crate::{error::TraceError, import::bytes::quoted, info::TraceInfo, raw::RingCounts};

/// Names of clocks that count nanoseconds. Source: "ftrace - Function Tracer", on `trace_clock`. `uptime` is
/// not in the list, because it counts the kernel's ticks, as recordings of Linux 6.18 show.
const CLOCKS: [&str; 7] = ["local", "global", "perf", "mono", "mono_raw", "boot", "tai"];

/// Numbers of options.
pub(super) mod id {
    pub(in super::super) const DONE: u16 = 0;
    pub(in super::super) const CPU_STATS: u16 = 2;
    pub(in super::super) const BUFFER: u16 = 3;
    pub(in super::super) const CLOCK: u16 = 4;
    pub(in super::super) const UNAME: u16 = 5;
    pub(in super::super) const CPU_COUNT: u16 = 8;
}

/// Information about the recording that the options contain.
#[derive(Default)]
pub(super) struct Options {
    /// The kernel's list of clocks with the current clock in brackets, or only the name of the current clock.
    clock: Option<String>,
    kernel: Option<String>,
    cpus: Option<u32>,
    counts: RingCounts,
}

impl Options {
    /// Reads an option.
    pub(super) fn note(&mut self, id: u16, data: &[u8]) {
        let text = String::from_utf8_lossy(data);
        let text = text.trim_end_matches('\0');
        match id {
            id::CPU_STATS => self.counts = self.counts.plus(RingCounts::parse(text)),
            id::CLOCK => self.clock = Some(text.to_owned()),
            // The text has the form `Linux host 6.18.1 x86_64`.
            id::UNAME => self.kernel = text.split(' ').nth(2).map(str::to_owned),
            id::CPU_COUNT => self.cpus = data.try_into().ok().map(u32::from_ne_bytes),
            _ => {}
        }
    }

    /// Rejects clocks that do not count nanoseconds. `clock` is the buffer's own clock, if there is one.
    pub(super) fn check_clock(&self, path: &Path, clock: Option<&str>) -> Result<(), TraceError> {
        let Some(text) = clock.or(self.clock.as_deref()) else { return Ok(()) };
        let in_use = text.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
        let clock = in_use.map_or(text, |(clock, _)| clock).trim();
        if clock.is_empty() || CLOCKS.contains(&clock) {
            return Ok(());
        }
        let problem = format!("has times of the clock {}, which are not nanoseconds", quoted(clock));
        Err(TraceError::file(
            path,
            problem,
            "record with `trace-cmd record -C mono`, or ".to_owned() + REMEDY,
        ))
    }

    /// Adds facts to `info`. A fact that `info` already has stays, because it comes from a better source.
    pub(super) fn describe(self, info: &mut TraceInfo) {
        info.kernel = info.kernel.take().or(self.kernel);
        info.cpus = info.cpus.or(self.cpus);
        info.lost.overrun = info.lost.overrun.saturating_add(self.counts.overrun);
        info.lost.dropped = info.lost.dropped.saturating_add(self.counts.dropped);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_describe_the_recording() {
        let mut options = Options::default();
        options.note(id::CPU_STATS, b"CPU: 0\nentries: 1\noverrun: 5\ndropped events: 2\n\0");
        options.note(id::CPU_STATS, b"CPU: 1\noverrun: 6\n\0");
        options.note(id::UNAME, b"Linux vm 6.18.44 x86_64\0");
        options.note(id::CPU_COUNT, &2_u32.to_ne_bytes());
        options.note(id::CPU_COUNT + 100, b"\xff");
        let mut info = TraceInfo::default();
        options.describe(&mut info);
        assert_eq!((info.kernel.as_deref(), info.cpus), (Some("6.18.44"), Some(2)));
        assert_eq!((info.lost.overrun, info.lost.dropped), (11, 2));
    }

    #[test]
    fn only_clocks_in_nanoseconds_will_do() {
        let check = |list: &str, own| {
            let mut options = Options::default();
            options.note(id::CLOCK, list.as_bytes());
            options.check_clock(Path::new("t.dat"), own).map_err(|error| error.to_string())
        };
        assert_eq!(check("local global [mono] x86-tsc\n\0", None), Ok(()));
        assert_eq!(check("", None), Ok(()));
        assert_eq!(check("local [x86-tsc]", Some("mono")), Ok(()));
        for (list, own) in [
            ("local [x86-tsc]", None),
            ("[counter]", None),
            ("local [uptime] perf", None),
            ("[local]", Some("x86-tsc")),
        ] {
            let error = check(list, own).unwrap_err();
            assert!(error.contains("-C mono"), "{error}");
        }
    }
}
