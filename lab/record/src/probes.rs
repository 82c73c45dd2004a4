//! Probes at the entry and return of the kernel's bulk allocator, which has no tracepoint.
//!
//! Source: the kernel's documentation "Kprobe-based Event Tracing". In the documented interface of
//! `alloc_pages_bulk`, the first argument is the flags and the fourth the number of pages.

use std::{fs, io::Write as _};

use crate::error::RecordError;
use crate::tracefs::Tracefs;

const ENTRY: &str = "alloc_pages_bulk_entry";
const RETURN: &str = "alloc_pages_bulk_return";

/// The name of the group of an instance's probes. Group names cannot contain dashes.
pub(crate) fn group(instance: &str) -> String {
    instance.replace('-', "_")
}

/// Makes the probes on `function`.
///
/// # Errors
/// A sentence about the reason for a failure.
pub(crate) fn make(tracefs: &Tracefs, instance: &str, function: &str) -> Result<(), String> {
    let path = tracefs.path("kprobe_events");
    if !path.exists() {
        return Err("this kernel has no kprobe events".to_owned());
    }
    let group = group(instance);
    let definitions = [
        format!("p:{group}/{ENTRY} {function} gfp_flags=$arg1:u32 nr_pages=$arg4:u64"),
        format!("r:{group}/{RETURN} {function} ret=$retval:u64"),
    ];
    for definition in definitions {
        append(tracefs, &definition).map_err(|error| error.to_string())?;
    }
    Ok(())
}

/// Removes an instance's probes, if there are any.
pub(crate) fn remove(tracefs: &Tracefs, instance: &str) {
    let group = group(instance);
    if !tracefs.path("events").join(&group).exists() {
        return;
    }
    for event in [ENTRY, RETURN] {
        // Removing a probe that was never made fails, which is harmless.
        drop(append(tracefs, &format!("-:{group}/{event}")));
    }
}

fn append(tracefs: &Tracefs, line: &str) -> Result<(), RecordError> {
    let path = tracefs.path("kprobe_events");
    let write = || fs::OpenOptions::new().append(true).open(&path)?.write_all(line.as_bytes());
    write().map_err(|error| RecordError::io(&path, "write", error))
}
