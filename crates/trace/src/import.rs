//! Importers of other programs' formats, one file each.

mod blocks;
mod bytes;
mod fields;
mod ftrace;
mod header;
mod lines;
mod payload;
mod pcpt;
mod perf_data;
mod perf_script;
mod rings;
mod text;
mod trace_cmd;
mod trace_dat;
mod tracing_data;

pub(crate) use header::{HeaderStyle, is_event_line};
pub(crate) use pcpt::{PcptReader, looks_pcpt};
pub(crate) use perf_data::{looks_perf_data, open_perf_data};
pub(crate) use trace_dat::{looks_trace_dat, open_trace_dat};

use blocks::Blocks;

use crate::{
    info::{SourceFormat, TraceInfo},
    input::ByteStream,
    reader::{Strictness, TraceReader},
};

/// A reader of one of the text formats, by `info.source`.
pub(crate) fn open_text(
    info: TraceInfo,
    stream: Box<dyn ByteStream>,
    strictness: Strictness,
) -> Box<dyn TraceReader> {
    match info.source {
        SourceFormat::PerfScript => {
            Box::new(Blocks::new(text::TextReader::new(info, stream, strictness, perf_script::PerfScript)))
        }
        SourceFormat::TraceCmd => {
            Box::new(Blocks::new(text::TextReader::new(info, stream, strictness, trace_cmd::TraceCmd)))
        }
        _ => Box::new(Blocks::new(text::TextReader::new(info, stream, strictness, ftrace::Ftrace))),
    }
}
