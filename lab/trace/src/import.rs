//! Importers of other programs' formats. Each format has its own file.

mod blocks;
mod bytes;
mod chunks;
mod fields;
mod flags;
mod frames;
mod ftrace;
mod header;
mod lines;
mod payload;
mod perf_data;
mod perf_script;
mod quick;
mod repeats;
mod rings;
mod text;
mod trace_cmd;
mod trace_dat;
mod tracing_data;
mod unreadable;

pub(crate) use header::{HeaderStyle, is_event_line};
pub(crate) use perf_data::{looks_perf_data, open_perf_data};
pub(crate) use text::unquoted;
pub(crate) use trace_dat::{looks_trace_dat, open_trace_dat};
pub(crate) use unreadable::unreadable;

use blocks::Blocks;

use crate::{
    amount::Amount,
    damage::Strictness,
    error::TraceError,
    info::{SourceFormat, TraceInfo},
    packing::ByteStream,
    reader::TraceReader,
};

/// Opens a text in the format that `info.source` names. `head` is the beginning of the stream. Reads of the
/// stream count into `amount`.
pub(crate) fn open_text(
    info: TraceInfo,
    head: &[u8],
    (stream, amount): (Box<dyn ByteStream>, Amount),
    strictness: Strictness,
) -> Result<Box<dyn TraceReader>, TraceError> {
    fn open<F: text::TextFormat + 'static>(
        info: TraceInfo,
        text: text::Source<'_>,
        strictness: Strictness,
        format: F,
    ) -> Result<Box<dyn TraceReader>, TraceError> {
        Ok(Box::new(Blocks::new(text::TextReader::new(info, text, strictness, format)?)))
    }
    let text = text::Source { head, stream, amount };
    match info.source {
        SourceFormat::PerfScript => open(info, text, strictness, perf_script::PerfScript),
        SourceFormat::TraceCmd => open(info, text, strictness, trace_cmd::TraceCmd),
        _ => open(info, text, strictness, ftrace::Ftrace),
    }
}
