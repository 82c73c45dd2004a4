//! Checks whether a recording with some options is possible.

use std::fs;

use crate::error::RecordError;
use crate::options::Options;
use crate::session::Session;

/// The result of a check.
#[derive(Debug)]
pub struct Check {
    /// The reason why a recording cannot begin. `None` if a recording can begin.
    pub refused: Option<RecordError>,
    /// Events and facts that would not be recorded. Each entry has the reason.
    pub not_recorded: Vec<String>,
    /// Size of the kernel's buffer per CPU, in bytes.
    pub buffer_bytes: u64,
}

/// Prepares a recording with `options`, and then removes all that the preparation has made.
#[must_use]
pub fn check(options: Options) -> Check {
    let mut not_recorded = Vec::new();
    if fs::read("/proc/pagetypeinfo").is_err() {
        not_recorded.push("/proc/pagetypeinfo: may be read by root only".to_owned());
    }
    match Session::prepare(options) {
        Ok(session) => {
            not_recorded.extend_from_slice(session.not_recorded());
            Check { refused: None, not_recorded, buffer_bytes: session.buffer_bytes() }
        }
        Err(error) => Check { refused: Some(error), not_recorded, buffer_bytes: 0 },
    }
}
