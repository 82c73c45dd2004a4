//! What a recording would need, and whether it is there.

use std::fs;

use crate::error::RecordError;
use crate::options::Options;
use crate::session::Session;

/// What a recording could do here.
#[derive(Debug)]
pub struct Check {
    /// Why it cannot begin; `None` if it can.
    pub refused: Option<RecordError>,
    /// What it would not record, each with the reason.
    pub not_recorded: Vec<String>,
    /// Bytes of the kernel's buffer for each CPU.
    pub buffer_bytes: u64,
}

/// Prepares a recording with `options`, and takes all of it back.
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
