//! Distinguishes formats by the first bytes.

use crate::{
    import::{self, HeaderStyle},
    info::SourceFormat,
    native,
};

/// Finds the format of a file. `head` has the file's first bytes after decompression.
pub(crate) fn detect(head: &[u8]) -> Option<SourceFormat> {
    if native::looks_native(head) {
        return Some(SourceFormat::Native);
    }
    if import::looks_trace_dat(head) {
        return Some(SourceFormat::TraceDat);
    }
    if import::looks_perf_data(head) {
        return Some(SourceFormat::PerfData);
    }
    // In text, the first line of a known form determines the format.
    for line in head.split(|byte| *byte == b'\n').take(4096) {
        let line = import::unquoted(line);
        if line.starts_with(b"# tracer:") {
            return Some(SourceFormat::Ftrace);
        }
        if line.starts_with(b"cpus=") || line.starts_with(b"version = ") {
            return Some(SourceFormat::TraceCmd);
        }
        if import::is_event_line(line, HeaderStyle::Dash) {
            return Some(SourceFormat::Ftrace);
        }
        if import::is_event_line(line, HeaderStyle::Space) {
            return Some(SourceFormat::PerfScript);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_are_told_by_content() {
        for (head, format) in [
            (b"# tracer: nop\n#\n".as_slice(), Some(SourceFormat::Ftrace)),
            (b"> # tracer: nop\r\n", Some(SourceFormat::Ftrace)),
            (b"cpus=2\n", Some(SourceFormat::TraceCmd)),
            (b" :-1 -1 [012] 5.1: kmem:mm_page_free: pfn=1 order=0\n", Some(SourceFormat::PerfScript)),
            (b"  a-1 [001] d..1. 5.1: mm_page_free: pfn=1 order=0\n", Some(SourceFormat::Ftrace)),
            (b"\n  a b  1 [001] 5.1: kmem:mm_page_free: pfn=1 order=0\n", Some(SourceFormat::PerfScript)),
            (b"  a 1/2 [001] 5.1: kmem:mm_page_free: pfn=1 order=0\n", Some(SourceFormat::PerfScript)),
            (b"", None),
            (b"hello\n\0\xff", None),
        ] {
            assert_eq!(detect(head), format, "{}", head.escape_ascii());
        }
    }
}
