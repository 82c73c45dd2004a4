//! Recognises files of another kind than the trace or layout that the user should give, and tells the user
//! which file to give.

use std::path::Path;

use crate::{error::TraceError, input::Input, layout, opening};

/// A file that has a known form, but not the requested form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OtherFile {
    /// A part of a log: `Mem-Info` and the lines after it.
    MemInfo,
    /// A copy of `/proc/zoneinfo`.
    Zoneinfo,
    /// A copy of another file of `/proc`, with this name.
    Proc(&'static str),
    /// A trace.
    Trace(&'static str),
}

/// Texts that show the kind of a file. Each text occurs in only one kind.
const SIGNS: [(&str, OtherFile); 10] = [
    ("Mem-Info:", OtherFile::MemInfo),
    ("Mem-info:", OtherFile::MemInfo),
    ("invoked oom-killer", OtherFile::MemInfo),
    (" per-cpu:", OtherFile::MemInfo),
    ("active_anon:", OtherFile::MemInfo),
    ("kB min:", OtherFile::MemInfo),
    ("Free pages count per migrate type", OtherFile::Proc("/proc/pagetypeinfo")),
    ("Page block order:", OtherFile::Proc("/proc/pagetypeinfo")),
    ("MemTotal: ", OtherFile::Proc("/proc/meminfo")),
    ("nr_free_pages ", OtherFile::Proc("/proc/vmstat")),
];

/// Recognises the form of a file by its first bytes, `head`. `None` if the file has none of these forms.
pub(crate) fn what_is(head: &[u8]) -> Option<OtherFile> {
    let text = String::from_utf8_lossy(&head[..head.len().min(64 << 10)]);
    if layout::is_zoneinfo(&text) {
        return Some(OtherFile::Zoneinfo);
    }
    if let Some(format) = opening::detect(head) {
        return Some(OtherFile::Trace(format.name()));
    }
    let is_buddyinfo = |line: &str| {
        let mut words = line.split_whitespace().skip_while(|word| *word != "zone").skip(2);
        line.contains("Node ")
            && words.clone().count() > 3
            && words.all(|word| word.bytes().all(|c| c.is_ascii_digit()))
    };
    text.lines().take(200).find_map(|line| {
        let sign = SIGNS.into_iter().find(|(sign, _)| line.contains(sign)).map(|(_, file)| file);
        sign.or_else(|| is_buddyinfo(line).then_some(OtherFile::Proc("/proc/buddyinfo")))
    })
}

/// Whether the file at `path` is a copy of `/proc/zoneinfo`, which can become a layout.
///
/// # Errors
/// An error if the file cannot be read.
pub fn is_zoneinfo(path: &Path) -> Result<bool, TraceError> {
    let input = Input::open(path)?;
    Ok(what_is(&input.head) == Some(OtherFile::Zoneinfo))
}

impl OtherFile {
    fn name(self) -> String {
        match self {
            Self::MemInfo => "is the report of the kernel's memory (Mem-Info) in a log".to_owned(),
            Self::Zoneinfo => "is a copy of /proc/zoneinfo".to_owned(),
            Self::Proc(name) => format!("is a copy of {name}"),
            Self::Trace(format) => format!("is a trace ({format})"),
        }
    }

    /// The error for a file that was given as a layout.
    pub(crate) fn as_layout(self, path: &Path) -> TraceError {
        let lacks = match self {
            Self::Trace(_) => "which may contain a description of its machine, but is not a layout",
            _ => "which shows neither where zones begin nor the limits of page sets",
        };
        let remedy = match self {
            Self::Trace(_) => {
                "use it as the recording; `pageset convert --to layout` prints the machine of a recording"
            }
            _ => "give a copy of /proc/zoneinfo of that machine: `cat /proc/zoneinfo > zoneinfo.txt`",
        };
        TraceError::file(path, format!("{}, {lacks}", self.name()), remedy)
    }

    /// The error for a file that was given as a trace.
    pub(crate) fn as_trace(self, path: &Path) -> TraceError {
        let (lacks, remedy) = match self {
            Self::Zoneinfo => (
                "no events",
                "give it as the layout of a recording; `pageset convert FILE --to layout` makes a layout of it",
            ),
            _ => (
                "neither events nor the zones' places",
                "record page events with `pageset record`, ftrace, perf or trace-cmd; for a layout, `cat /proc/zoneinfo > zoneinfo.txt`",
            ),
        };
        TraceError::file(path, format!("{}, which has {lacks}", self.name()), remedy)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_told_by_their_lines() {
        for (text, expected) in [
            ("[ 12.3] Mem-Info:\n[ 12.3] DMA per-cpu:\n", Some(OtherFile::MemInfo)),
            ("DMA per-cpu:\nCPU    0: hi:    0, btch:   1 usd:   0\n", Some(OtherFile::MemInfo)),
            ("Node 0 DMA free:15900kB min:40kB low:48kB\n", Some(OtherFile::MemInfo)),
            ("active_anon:1 inactive_anon:2\n", Some(OtherFile::MemInfo)),
            ("> Node 0, zone   DMA\n>   pages free     3\n", Some(OtherFile::Zoneinfo)),
            ("Node 0, zone      DMA      1      1      0      0\n", Some(OtherFile::Proc("/proc/buddyinfo"))),
            ("Page block order: 9\n", Some(OtherFile::Proc("/proc/pagetypeinfo"))),
            ("MemTotal:       16 kB\n", Some(OtherFile::Proc("/proc/meminfo"))),
            ("nr_free_pages 7\n", Some(OtherFile::Proc("/proc/vmstat"))),
            ("# tracer: nop\n", Some(OtherFile::Trace("ftrace text"))),
            ("kernel = \"6.1\"\npage_size = 4096\n", None),
            ("", None),
        ] {
            assert_eq!(what_is(text.as_bytes()), expected, "{text}");
        }
    }
}
