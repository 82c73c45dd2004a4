//! Functions that pass arbitrary bytes to the parsers, for fuzz targets. The functions are not a public
//! interface.

use pageset_trace::raw::EventFormat;
use pageset_trace::raw::{PageLayout, Records};

/// Reads `bytes` as a 4 KiB page of a ring. Returns the number of records. No `bytes` may cause a panic.
///
/// # Panics
/// Panics if the built-in layout is rejected.
#[must_use]
pub fn ring_page(bytes: &[u8]) -> usize {
    let header_page = "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\
        \tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n\
        \tfield: char data;\toffset:16;\tsize:4080;\tsigned:0;\n";
    let header_event = "type_len : 5 bits\ntime_delta : 27 bits\narray : 32 bits\n\
        padding : type == 29\ntime_extend : type == 30\ntime_stamp : type == 31\n";
    let layout = PageLayout::parse(header_page, header_event).expect("the layout is known");
    Records::of(&layout, bytes).map_or(0, Iterator::count)
}

/// Reads `text` as the format of an event.
///
/// # Errors
/// A sentence about the problem.
pub fn event_format(text: &str) -> Result<(), String> {
    EventFormat::parse(text).map(drop)
}
